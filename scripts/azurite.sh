#!/usr/bin/env bash
# Install the Azure blob emulator for the storage tests into .cache/azurite, unless it is there, and print its path.
# Exits 1, naming what to install, when Node.js is missing and cannot be installed here.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly version=3.35.0
readonly home=.cache/azurite
readonly program=$home/node_modules/azurite/dist/src/blob/main.js

if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
        { apt-get update -q && apt-get install -y -q --no-install-recommends nodejs npm; } >&2 || true
    fi
    if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
        echo "The Azure tests need Node.js and npm: apt-get install nodejs npm" >&2
        exit 1
    fi
fi
if ! grep -qs "\"version\": \"$version\"" "$home/node_modules/azurite/package.json"; then
    npm install --prefix "$home" "azurite@$version" --no-audit --no-fund --loglevel=error >&2
fi
echo "$PWD/$program"
