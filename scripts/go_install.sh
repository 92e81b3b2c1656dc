#!/usr/bin/env bash
# Build PACKAGE@VERSION of Go into DIRECTORY: go_install.sh DIRECTORY PACKAGE@VERSION. Takes minutes.
# Exits 1, naming what to install, when Go is missing and cannot be installed here.
set -euo pipefail

if ! command -v go >/dev/null; then
    if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
        { apt-get update -q && apt-get install -y -q --no-install-recommends golang-go; } >&2 || true
    fi
    if ! command -v go >/dev/null; then
        echo "$2 needs Go: https://go.dev/dl" >&2
        exit 1
    fi
fi
GOBIN=$1 go install "$2" >&2
