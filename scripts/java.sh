#!/usr/bin/env bash
# Prints the home of a Java runtime, version 17 or newer; with --jdk, of one that has a compiler. Installs
# openjdk-17-jre-headless or openjdk-17-jdk-headless (or the distribution's default) where there is none and we may;
# otherwise says what to install and fails.
set -euo pipefail
needed=jre
[ "${1:-}" = --jdk ] && needed=jdk

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
        [ "$needed" = jre ] || [ -x "$(dirname "$binary")/javac" ] || continue
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
    say "no Java 17 or newer ($needed) found: installing it with apt-get"
    apt-get update -q >&2
    for package in "openjdk-17-$needed-headless" "openjdk-21-$needed-headless" "default-$needed-headless"; do
        if DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$package" >&2; then
            find_java && exit 0
        fi
    done
fi

say "Spark needs Java 17 or newer ($needed) and none was found."
say "Debian or Ubuntu: sudo apt-get install openjdk-17-$needed-headless"
say "elsewhere: install any ${needed^^} >= 17 and set JAVA_HOME to its directory"
exit 1
