#!/usr/bin/env bash
# Makes the virtual environment, and installs Java 17 when the machine has none.
set -euo pipefail
python=${PYTHON:-python3}
venv=${VENV:-.venv}

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "Python 3.11 or newer is needed; found $("$python" --version)" >&2
  exit 1
}
if [ ! -x "$venv/bin/python" ]; then
  "$python" -m venv "$venv" 2>/dev/null || {
    echo "installing python3-venv"
    apt-get update -qq && apt-get install -y -qq python3-venv >/dev/null
    "$python" -m venv "$venv"
  }
fi
"$venv/bin/python" -m pip install --quiet --upgrade pip
"$venv/bin/python" -m pip install --quiet -e '.[dev]'

apt_install() {
  if [ "$(id -u)" = 0 ]; then
    apt-get update -qq && apt-get install -y -qq "$@" >/dev/null
  elif command -v sudo >/dev/null; then
    sudo apt-get update -qq && sudo apt-get install -y -qq "$@" >/dev/null
  else
    echo "please install: $*" >&2
    return 1
  fi
}
command -v java >/dev/null || { echo "installing Java 17"; apt_install openjdk-17-jdk-headless; }
command -v javac >/dev/null || { echo "installing javac 17"; apt_install openjdk-17-jdk-headless; }
command -v mvn >/dev/null || { echo "installing Maven"; apt_install maven; }
