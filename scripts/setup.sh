#!/usr/bin/env bash
# Makes the virtual environment named by the first argument (default .venv) and installs both distributions of this
# checkout into it, editable, with everything that development, tests and the demo need: the files of requirements.txt,
# known by their SHA-256.
set -euo pipefail
cd "$(dirname "$0")/.."
venv="${1:-.venv}"

say() { printf '%s\n' "$*" >&2; }

can_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

apt_install() {
    say "installing $* with apt-get"
    { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@"; } >&2
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

if ! python="$(find_python)"; then
    if can_install; then
        apt_install python3 python3-venv
        python="$(find_python)" || { say "this distribution's python3 is older than 3.11: install Python 3.11 or newer"; exit 1; }
    else
        say "Python 3.11 or newer is needed and was not found: install python3 and python3-venv, or set PYTHON=/path/to/python"
        exit 1
    fi
fi

if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    if can_install; then
        apt_install python3-venv
    fi
    "$python" -c 'import ensurepip, venv' 2>/dev/null || {
        say "$python cannot make virtual environments: install the package python3-venv (Debian, Ubuntu) and run this again"
        exit 1
    }
fi

[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
log="$venv/setup.log"
say "installing into $venv (about a minute on a first run; the log is $log)"
# pyspark comes as source: its build, and ours, use the pip and setuptools that are installed first.
locked() { sed -n "/^$1==/,/[^\\\\]\$/p" requirements.txt; }
pip_install() { "$venv/bin/python" -m pip install --disable-pip-version-check --no-deps "$@"; }
if ! {
    pip_install --require-hashes --requirement <(locked pip && locked setuptools) &&
        pip_install --require-hashes --no-build-isolation --requirement requirements.txt &&
        pip_install --no-build-isolation --editable ./client --editable . &&
        "$venv/bin/python" -m pip check
} >"$log" 2>&1 </dev/null; then
    tail -n 30 "$log" >&2
    say "installation failed"
    exit 1
fi
# Spark's SQL catalog is compiled against the jars of pyspark. Without a JDK everything else works.
if JAVA_HOME="$(scripts/java.sh --jdk)"; then
    export JAVA_HOME
    "$venv/bin/python" scripts/build_jar.py >&2
else
    say "without a JDK the SQL catalog of Spark is not built: install one and run make jar"
fi
