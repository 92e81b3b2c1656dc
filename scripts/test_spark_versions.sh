#!/usr/bin/env bash
# Runs the SQL scripts and the tests of transactions on the other supported versions of pyspark, which are installed into
# .cache (490 MB each). The jar is compiled against the version of the environment.
set -euo pipefail
cd "$(dirname "$0")/.."
python="${1:-.venv/bin/python}"
shift || true
"$python" scripts/build_jar.py

for version in ${SPARK_VERSIONS:-4.2 4.1}; do
    place="$PWD/.cache/pyspark-$version"
    if [ ! -e "$place/.installed" ]; then
        "$python" -m pip install --quiet --disable-pip-version-check --upgrade --no-deps --target "$place" "pyspark==$version.*"
        touch "$place/.installed"
    fi
    # The Python side of older versions leaves sockets to the garbage collector.
    PYTHONPATH="$place:$PWD" "$python" -m pytest \
        -W "ignore:unclosed:ResourceWarning" -W "ignore::pytest.PytestUnraisableExceptionWarning" \
        tests/spark/sql/test_statements.py tests/spark/sql/test_transactions.py tests/spark/sql/test_versions.py \
        tests/spark/sql/test_changes.py "$@"
done
