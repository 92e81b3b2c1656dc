#!/usr/bin/env bash
# Put uv, cyclonedx-py and pip-audit into .cache/supply-chain, unless they are there, and print its directory bin.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly home=$PWD/.cache/supply-chain-1

if [[ ! -x $home/bin/pip-audit ]]; then
    python3 -m venv "$home"
    "$home/bin/pip" install --quiet uv==0.13.9 cyclonedx-bom==7.5.0 pip-audit==2.10.1 >&2
fi
echo "$home/bin"
