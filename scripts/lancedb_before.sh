#!/usr/bin/env bash
# Install the version of lancedb before the one of the environment into .cache/lancedb-0.39.0, unless it is there, and
# print the directory: first on PYTHONPATH, it is the one that is imported. What it needs is in the environment.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly version=0.39.0
readonly place=.cache/lancedb-$version

if [ ! -e "$place/.installed" ]; then
    "${1:-.venv/bin/python}" -m pip install --quiet --disable-pip-version-check --upgrade --no-deps --target "$place" \
        "lancedb==$version" >&2
    touch "$place/.installed"
fi
echo "$PWD/$place"
