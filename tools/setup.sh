#!/usr/bin/env bash
# Makes the virtual environment with the package and some extras; finds Java, or offers to install it.
set -euo pipefail
python=${PYTHON:-python3}
venv=${VENV:-.venv}
extras=${EXTRAS:-demo}

"$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || {
  echo "Python 3.11, 3.12 or 3.13 is needed; found $("$python" --version)" >&2
  exit 1
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

apt_install() {
  if ! command -v apt-get >/dev/null || { [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; }; then
    echo "Please install: $*" >&2
    return 1
  fi
  if [ -z "${YES:-}${CI:-}" ]; then
    if [ ! -t 0 ]; then
      echo "Needed: $*. Install it, or run again with YES=1 to let apt-get do it." >&2
      return 1
    fi
    read -r -p "Install $* with apt-get? [y/N] " answer
    case "$answer" in [yY]*) ;; *) echo "Not installed: $*" >&2; return 1 ;; esac
  fi
  echo "Installing $*"
  as_root apt-get update -qq && as_root apt-get install -y -qq "$@" >/dev/null
}

if [ ! -x "$venv/bin/python" ]; then
  echo "Making the virtual environment $venv"
  "$python" -m venv "$venv" 2>/dev/null || {
    apt_install python3-venv
    "$python" -m venv "$venv"
  }
fi
echo "Installing frazil[$extras] into $venv"
"$venv/bin/python" -m pip install --quiet --upgrade pip
"$venv/bin/python" -m pip install --quiet -c constraints/development.txt -e ".[$extras]"

needs_java() {
  command -v java >/dev/null && [ "$extras" != dev ] || command -v javac >/dev/null
}
if ! needs_java; then
  apt_install openjdk-17-jdk-headless || {
    [ "$extras" != dev ] || exit 1
    echo "Without Java 17 everything works but Spark: 'frazil demo --no-spark'." >&2
  }
fi
if [ "$extras" = dev ]; then
  command -v mvn >/dev/null || apt_install maven
  command -v chromium >/dev/null || apt_install chromium
  command -v npm >/dev/null || apt_install npm
  npm install --silent --no-fund --no-audit --no-package-lock --prefix tools/explorer
  # Object stores that tests run on: azurite for Azure, versitygw for S3.
  npm install --silent --no-fund --no-audit --no-package-lock --prefix tools/object_servers
  servers=$HOME/.cache/frazil/bin
  if [ ! -x "$servers/versitygw" ]; then
    command -v go >/dev/null || apt_install golang-go || true
    echo "Building versitygw into $servers, a few minutes"
    GOBIN=$servers GOTOOLCHAIN=auto go install github.com/versity/versitygw/cmd/versitygw@v1.8.0 ||
      echo "Without versitygw the tests on S3 are skipped." >&2
  fi
fi
echo "Ready: $venv/bin/frazil"
