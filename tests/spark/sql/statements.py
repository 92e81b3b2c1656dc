"""SQL scripts, and what their statements answer as text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

_VARIABLE = re.compile(
    r"file:/\S+"  # locations
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|(?<=catalog version )\d+"
    r"|(?<=the oldest is of )\S+"  # a time
)
_LONGEST = 300


def statements(script: Path) -> Iterator[str]:
    """The statements of a script, each of which ends with a semicolon at the end of a line."""
    lines = [line for line in script.read_text().splitlines() if not line.startswith("--")]
    yield from filter(None, (text.strip().rstrip(";") for text in "\n".join(lines).split(";\n")))


def answer(spark: SparkSession, statement: str, names: Mapping[str, str]) -> list[str]:
    """The rows of a statement, in order where it has one, or its error: the condition, and the first line if none."""
    for name, value in names.items():
        statement = statement.replace(f"${{{name}}}", value)
    try:
        rows = spark.sql(statement).collect()
    except PySparkException as error:
        condition = error.getCondition()
        if condition:
            return [f"! {condition}"]
        return [f"! {type(error).__name__}: {_VARIABLE.sub('…', str(error).splitlines()[0])[:_LONGEST]}"]
    shown = [" | ".join(_text(name, value) for name, value in zip(row.__fields__, row, strict=True)) for row in rows]
    return shown if "ORDER BY" in statement else sorted(shown)


def _text(column: str, value: object) -> str:
    if value is None:
        return "NULL"
    return "…" if column == "catalog_version" else _VARIABLE.sub("…", str(value))
