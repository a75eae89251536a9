#!/usr/bin/env bash
# Builds MinIO, a second S3 server that `make soak` runs on; a few minutes, once.
set -euo pipefail
servers=$HOME/.cache/frazil/bin
[ -x "$servers/minio" ] && exit
command -v go >/dev/null || {
  echo "Without Go, MinIO is not built and its soak is skipped." >&2
  exit
}
echo "Building MinIO into $servers, a few minutes"
GOBIN=$servers GOTOOLCHAIN=auto \
  go install github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c ||
  echo "Without MinIO its soak is skipped." >&2
