#!/usr/bin/env bash
# Write the two lists of distributions with the SHA-256 of their files, in the versions of constraints.txt:
# requirements.txt for development and tests, deploy/container/requirements.txt for the image.
set -euo pipefail
cd "$(dirname "$0")/.."

uv="$(scripts/supply_chain.sh)/uv"

lock() { # OUTPUT HEADING OPTIONS...
    local output=$1 heading=$2 made
    shift 2
    made=$(mktemp)
    "$uv" pip compile --quiet pyproject.toml "$@" --constraint constraints.txt --generate-hashes \
        --no-emit-package lance-namespace-client --no-annotate --no-header --no-emit-index-url --output-file "$made"
    { printf '# %s\n# Made by make locks from pyproject.toml and constraints.txt.\n' "$heading" && cat "$made"; } >"$output"
    rm "$made"
}

lock requirements.txt "What development and tests install." - --extra dev --universal --python-version 3.11.5 <<<"pip"
lock deploy/container/requirements.txt "What the image installs, and setuptools, which builds it." - \
    --extra s3 --extra azure --extra console --extra gcs --extra mcp --extra oidc --extra postgres --extra otel --python-platform linux --python-version 3.11 \
    <<<"setuptools"
