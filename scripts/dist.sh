#!/usr/bin/env bash
# Build the wheel into dist/, with its bill of materials (CycloneDX) beside it: the distributions that the image installs
# with the wheel, as they are found installed, with their licences and what needs what.
set -euo pipefail
cd "$(dirname "$0")/.."
python="${1:-.venv/bin/python}"
sbom="$(scripts/supply_chain.sh)/cyclonedx-py"

rm -rf build/lib build/bdist.* dist
LANCE_WHEEL_WITH_JAR=1 "$python" -m pip wheel --disable-pip-version-check --quiet --no-deps --no-build-isolation --wheel-dir dist .
wheel=$(ls dist/*.whl)
installed=$(mktemp -d)
trap 'rm -rf "$installed"' EXIT
"$python" -m venv "$installed"
"$installed/bin/pip" install --disable-pip-version-check --quiet --no-deps --require-hashes \
    --requirement deploy/container/requirements.txt
"$installed/bin/pip" install --disable-pip-version-check --quiet --no-deps "$wheel"
"$installed/bin/pip" check >&2
"$installed/bin/pip" uninstall --yes --quiet pip setuptools
"$sbom" environment --pyproject pyproject.toml --mc-type application --spec-version 1.6 --output-reproducible \
    --output-file "${wheel%.whl}.cdx.json" "$installed/bin/python"
printf '%s\n%s\n' "$wheel" "${wheel%.whl}.cdx.json"
