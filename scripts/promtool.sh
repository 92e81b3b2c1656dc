#!/usr/bin/env bash
# Build promtool of Prometheus into .cache/promtool, unless it is there, and print its path. Takes five minutes.
# Exits 1, naming what to install, when Go is missing and cannot be installed here.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly version=v0.313.3
readonly home=$PWD/.cache/promtool-$version

if [[ ! -x $home/promtool ]]; then
    scripts/go_install.sh "$home" "github.com/prometheus/prometheus@$version" ./cmd/promtool
fi
echo "$home/promtool"
