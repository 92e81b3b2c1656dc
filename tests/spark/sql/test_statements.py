"""Scripts of statements with their expected answers, and with the answers of tables of Parquet.

The expected answers are in files beside the scripts. `UPDATE_EXPECTED=1` writes them anew.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_catalog.requirements import has_transactions
from tests.spark.sql.statements import answer, statements

HERE = Path(__file__).parent


def _transcript(spark: SparkSession, script: Path, names: dict[str, str]) -> list[tuple[str, list[str]]]:
    return [(statement, answer(spark, statement, names)) for statement in statements(script)]


def _check(script: Path, transcript: list[tuple[str, list[str]]]) -> None:
    """Compare with the expected answers."""
    text = "".join(f"{statement};\n" + "".join(f"    {row}\n" for row in rows) for statement, rows in transcript)
    expected = script.with_suffix(".expected")
    if os.environ.get("UPDATE_EXPECTED"):
        expected.write_text(text)
    assert text.splitlines() == expected.read_text().splitlines()


def test_tables_answer_as_those_of_parquet_do(sql: SparkSession) -> None:
    script, name = HERE / "common.sql", f"s{secrets.token_hex(4)}"
    lance = _transcript(sql, script, {"ns": f"lance.{name}", "bare": name, "format": "lance"})
    parquet = _transcript(sql, script, {"ns": f"spark_catalog.{name}", "bare": name, "format": "parquet"})
    named = [(statement, [row.replace(name, "shop") for row in rows]) for statement, rows in lance]
    reference = [(statement, [row.replace(name, "shop") for row in rows]) for statement, rows in parquet]
    assert named == reference
    _check(script, named)


@pytest.mark.parametrize(
    "script",
    [
        "lance.sql",
        pytest.param("changes.sql", marks=pytest.mark.skipif(not has_transactions(), reason="needs Spark 4.2")),
    ],
)
def test_statements_beyond_parquet(sql: SparkSession, script: str) -> None:
    name = f"s{secrets.token_hex(4)}"
    transcript = _transcript(sql, HERE / script, {"ns": f"lance.{name}", "bare": name})
    named = [(statement, [row.replace(name, "shop") for row in rows]) for statement, rows in transcript]
    _check(HERE / script, named)


def test_there_are_enough_statements() -> None:
    assert sum(1 for script in HERE.glob("*.sql") for _ in statements(script)) >= 200
