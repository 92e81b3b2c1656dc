#!/usr/bin/env bash
# Install the OpenID Connect provider for the tests of logins into .cache/oidc-provider, unless it is there, and print
# its module. Exits 1, naming what to install, when Node.js is missing and cannot be installed here.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly version=9.13.3
readonly home=.cache/oidc-provider
readonly module=$home/node_modules/oidc-provider/lib/index.js

if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
        { apt-get update -q && apt-get install -y -q --no-install-recommends nodejs npm; } >&2 || true
    fi
    if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
        echo "The tests of logins need Node.js and npm: apt-get install nodejs npm" >&2
        exit 1
    fi
fi
if ! grep -qs "\"version\": \"$version\"" "$home/node_modules/oidc-provider/package.json"; then
    npm install --prefix "$home" "oidc-provider@$version" --no-audit --no-fund --loglevel=error >&2
fi
echo "$PWD/$module"
