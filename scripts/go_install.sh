#!/usr/bin/env bash
# Build a program of Go into DIRECTORY; takes minutes:
#     go_install.sh DIRECTORY PACKAGE@VERSION
#     go_install.sh DIRECTORY MODULE@VERSION ./PACKAGE    where the module replaces others, which "go install" refuses
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
if [[ $# == 2 ]]; then
    GOBIN=$1 go install "$2" >&2
    exit
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -R "$(go mod download -json "$2" | sed -n 's/.*"Dir": "\(.*\)",*/\1/p')/." "$work"
chmod -R u+w "$work"
mkdir -p "$1"
directory=$(cd "$1" && pwd)
(cd "$work" && GOWORK=off go build -o "$directory/" "$3") >&2
