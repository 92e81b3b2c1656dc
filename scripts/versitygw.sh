#!/usr/bin/env bash
# Build the S3 gateway of the storage benchmarks into .cache/versitygw, unless it is there, and print its path.
# Takes minutes the first time. Exits 1, naming what to install, when Go is missing and cannot be installed here.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly version=v1.8.0
readonly home=$PWD/.cache/versitygw-$version

if [[ ! -x $home/versitygw ]]; then
    scripts/go_install.sh "$home" "github.com/versity/versitygw/cmd/versitygw@$version"
fi
echo "$home/versitygw"
