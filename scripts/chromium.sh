#!/usr/bin/env bash
# Prints the path of Chromium, for the tests of the console in a browser. Installs the distribution's package where there
# is none and we may; otherwise says what to install and fails.
set -euo pipefail

say() { printf '%s\n' "$*" >&2; }

find_browser() {
    local name
    for name in chromium chromium-browser google-chrome-stable google-chrome; do
        command -v "$name" && return 0
    done
    return 1
}

find_browser && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "no Chromium found: installing it with apt-get"
    {
        apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends chromium
    } >&2 || true
    find_browser && exit 0
fi

say "The tests of the console in a browser need Chromium: apt-get install chromium"
exit 1
