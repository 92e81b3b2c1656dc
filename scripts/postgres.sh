#!/usr/bin/env bash
# Prints the directory of PostgreSQL's programs (initdb, postgres), version 13 or newer, for the tests of the external
# manifest store. Installs the distribution's package where there is none and we may; otherwise says what to install and
# fails. No cluster is created or started: the tests make one of their own and throw it away.
set -euo pipefail

say() { printf '%s\n' "$*" >&2; }

find_programs() {
    local candidate version
    for candidate in $(ls -d /usr/lib/postgresql/*/bin /usr/pgsql-*/bin 2>/dev/null | sort -rV) "$(dirname "$(command -v initdb || echo /initdb)")"; do
        [ -x "$candidate/initdb" ] && [ -x "$candidate/postgres" ] || continue
        version="$("$candidate/postgres" --version | sed -n 's/^[^0-9]*\([0-9]*\).*/\1/p')"
        if [ -n "$version" ] && [ "$version" -ge 13 ]; then
            printf '%s\n' "$candidate"
            return 0
        fi
    done
    return 1
}

find_programs && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "no PostgreSQL found: installing it with apt-get"
    if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
        mkdir -p /etc/postgresql-common
        echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
    fi
    {
        apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends postgresql
    } >&2 || true
    find_programs && exit 0
fi

say "The tests of the external manifest store need PostgreSQL 13 or newer: apt-get install postgresql"
exit 1
