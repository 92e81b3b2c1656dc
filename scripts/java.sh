#!/usr/bin/env bash
# Prints the home of a Java runtime, version 17 or newer. Installs openjdk-17-jre-headless (or the distribution's default
# runtime) where there is none and we may; otherwise says what to install and fails.
set -euo pipefail

say() { printf '%s\n' "$*" >&2; }

major_version() {
    # 'openjdk version "17.0.15" 2025-04-15' -> 17 ; 'java version "1.8.0_292"' -> 1
    "$1" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1
}

find_java() {
    local candidate binary version
    for candidate in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)" /usr/lib/jvm/*/bin/java; do
        [ -n "$candidate" ] && [ -x "$candidate" ] || continue
        binary="$(readlink -f "$candidate")"
        version="$(major_version "$binary")"
        if [ -n "$version" ] && [ "$version" -ge 17 ]; then
            dirname "$(dirname "$binary")"
            return 0
        fi
    done
    return 1
}

find_java && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "no Java 17 or newer found: installing it with apt-get"
    apt-get update -q >&2
    for package in openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless; do
        if DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$package" >&2; then
            find_java && exit 0
        fi
    done
fi

say "Spark needs Java 17 or newer and none was found."
say "Debian or Ubuntu: sudo apt-get install openjdk-17-jre-headless"
say "elsewhere: install any JRE >= 17 and set JAVA_HOME to its directory"
exit 1
