#!/usr/bin/env bash
# Install lancedb's client for Node.js into .cache/lancedb-node, unless it is there, and print the directory that has it.
# Exits 1, naming what to install, when Node.js is missing and cannot be installed here.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly version=0.39.0 arrow=18.1.0
readonly home=.cache/lancedb-node

if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
        { apt-get update -q && apt-get install -y -q --no-install-recommends nodejs npm; } >&2 || true
    fi
    if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
        echo "The tests of lancedb in Node.js need Node.js and npm: apt-get install nodejs npm" >&2
        exit 1
    fi
fi
if ! grep -qs "\"version\": \"$version\"" "$home/node_modules/@lancedb/lancedb/package.json"; then
    npm install --prefix "$home" "@lancedb/lancedb@$version" "apache-arrow@$arrow" --no-audit --no-fund --loglevel=error >&2
fi
echo "$PWD/$home"
