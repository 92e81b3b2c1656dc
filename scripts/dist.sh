#!/usr/bin/env bash
# Build the wheels of the client and the server into dist/, and the bill of materials (CycloneDX) of a server beside them:
# the distributions that the image installs, as they are found installed, with their licences and what needs what.
set -euo pipefail
cd "$(dirname "$0")/.."
python="${1:-.venv/bin/python}"
sbom="$(scripts/supply_chain.sh)/cyclonedx-py"

rm -rf {.,client}/build/lib {.,client}/build/bdist.* dist
LANCE_WHEEL_WITH_JAR=1 "$python" -m pip wheel --disable-pip-version-check --quiet --no-deps --no-build-isolation \
    --wheel-dir dist ./client .
bill=$(echo dist/lance_namespace_server-*.whl)
bill=${bill%.whl}.cdx.json
installed=$(mktemp -d)
trap 'rm -rf "$installed"' EXIT
"$python" -m venv "$installed"
"$installed/bin/pip" install --disable-pip-version-check --quiet --no-deps --require-hashes \
    --requirement deploy/container/requirements.txt
"$installed/bin/pip" install --disable-pip-version-check --quiet --no-deps dist/*.whl
"$installed/bin/pip" check >&2
"$installed/bin/pip" uninstall --yes --quiet pip setuptools
"$sbom" environment --pyproject pyproject.toml --mc-type application --spec-version 1.6 --output-reproducible \
    --output-file "$bill" "$installed/bin/python"
printf '%s\n' dist/*.whl "$bill"
