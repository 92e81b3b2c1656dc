"""The tables of modules in the docstrings of packages name each module, and none that is gone."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.server.servers import REPOSITORY

PRODUCT = ("lance_core", "namespace_client", "namespace_server", "namespace_tck", "spark_catalog", "table_data")
_ROW = re.compile(r"^ *([a-z][a-z_0-9]*(?:, [a-z][a-z_0-9]*)*)/?  +\S")
"""A line of a table: one name or some, and what they are."""
_GENERATED = {"proto"}


def _parts(package: Path) -> set[str]:
    modules = {path.stem for path in package.glob("*.py")} - {"__init__", "__main__"}
    return modules | {path.parent.name for path in package.glob("*/__init__.py")}


def _tables() -> dict[str, tuple[str, set[str]]]:
    """Docstrings that have a table, and the names in its first column, by package."""
    found: dict[str, tuple[str, set[str]]] = {}
    for top in PRODUCT:
        for path in (REPOSITORY / top).rglob("__init__.py"):
            text = ast.get_docstring(ast.parse(path.read_text())) or ""
            rows = [row[1].split(", ") for line in text.splitlines() if (row := _ROW.match(line))]
            named = {name for row in rows for name in row}
            if named & _parts(path.parent):
                found[str(path.parent.relative_to(REPOSITORY))] = text, named
    return found


TABLES = _tables()


def test_packages_have_tables() -> None:
    assert len(TABLES) > 40
    assert {"namespace_server/directory", "namespace_server/directory/committing", "lance_core"} <= TABLES.keys()


@pytest.mark.parametrize("package", sorted(TABLES))
def test_a_table_is_complete(package: str) -> None:
    text, named = TABLES[package]
    parts = _parts(REPOSITORY / package)
    below = {name for part in parts for name in _parts(REPOSITORY / package / part)}
    assert named <= parts | below, "gone"
    assert {part for part in parts - _GENERATED if not re.search(rf"\b{part}\b", text)} == set(), "missing"
