#!/usr/bin/env bash
# Put the vector stores of LangChain and LlamaIndex into .cache/vector-stores, unless they are there (160 MB), and print
# the Python that has them: beside them it has the packages of the environment of the project.
set -euo pipefail
cd "$(dirname "$0")/.."
python="${1:-.venv/bin/python}"

readonly home=$PWD/.cache/vector-stores-1

if [[ ! -e $home/.installed ]]; then
    "$python" -m venv --clear "$home"
    "$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$(echo "$home"/lib/python*/site-packages)/project.pth"
    "$home/bin/python" -m pip install --quiet --disable-pip-version-check \
        langchain-community==0.4.2 langchain-lancedb==0.1.0 llama-index-vector-stores-lancedb==0.6.0 >&2
    touch "$home/.installed"
fi
echo "$home/bin/python"
