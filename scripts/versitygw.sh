#!/usr/bin/env bash
# Build the S3 gateway of the storage benchmarks into .cache/versitygw, unless it is there, and print its path.
# Takes minutes the first time. Exits 1, naming what to install, when Go is missing and cannot be installed here.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly version=v1.8.0
readonly home=$PWD/.cache/versitygw-$version

if [[ ! -x $home/versitygw ]]; then
    if ! command -v go >/dev/null; then
        if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
            { apt-get update -q && apt-get install -y -q --no-install-recommends golang-go; } >&2 || true
        fi
        if ! command -v go >/dev/null; then
            echo "The S3 gateway needs Go: https://go.dev/dl" >&2
            exit 1
        fi
    fi
    GOBIN=$home go install "github.com/versity/versitygw/cmd/versitygw@$version" >&2
fi
echo "$home/versitygw"
