"""A missing or damaged file of a table is a fault of the storage, whatever is asked: status 500 and code 18."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from tests.data.arrow import ARROW, location, stream

ROWS = pa.table({"a": list(range(200)), "s": [f"x{number}" for number in range(200)]})
CALLS: dict[str, Any] = {
    "query": {},
    "count_rows": {"predicate": "s = 'x1'"},
    "update": {"updates": [["a", "a + 1"]], "predicate": "s = 'x1'"},
    "delete": {"predicate": "s = 'x9'"},
    "add_columns": {"new_columns": [{"name": "b", "expression": "a + 1"}]},
    "alter_columns": {"alterations": [{"path": "a", "data_type": {"type": "int32"}}]},
    "create_index": {"column": "s", "index_type": "BTREE"},
    "merge_insert?on=a&when_matched_update_all=true": None,
}


def cut(file: Path) -> None:
    os.truncate(file, 100)


def call(http: httpx.Client, route: str, name: str) -> httpx.Response:
    if CALLS[name] is None:
        return http.post(f"{route}/{name}", content=stream(ROWS.slice(0, 3)), headers=ARROW)
    return http.post(f"{route}/{name}", json=CALLS[name])


@pytest.mark.parametrize(("kind", "damage"), [("data", Path.unlink), ("data", cut), ("_deletions", Path.unlink)])
def test_every_call_names_the_table_and_what_is_wrong(
    http: httpx.Client, kind: str, damage: Callable[[Path], None]
) -> None:
    route = f"/v1/table/w${kind}-{damage.__name__}"
    http.post(f"{route}/create", content=stream(ROWS), headers=ARROW).raise_for_status()
    http.post(f"{route}/delete", json={"predicate": "a % 7 = 1"}).raise_for_status()
    (file,) = (location(http, route) / kind).iterdir()
    damage(file)
    for name in CALLS:
        answer = call(http, route, name)
        error = answer.json()["error"]
        assert (answer.status_code, answer.json()["code"]) == (500, 18), (name, error)
        assert f"{kind}-{damage.__name__}" in error
        assert " is damaged" in error if damage is cut else f"{kind}/{file.name} of the table is missing" in error, (
            error
        )
        assert str(location(http, route)) not in error
