"""A missing or damaged file of a table is a fault of the storage, whatever is asked: status 500 and code 18."""

from __future__ import annotations

import os
import random
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import lance
import pyarrow as pa
import pytest

from lance_core.format.naming import manifest_name
from lance_core.storage.sizes import LARGEST_MANIFEST
from tests.data.arrow import ARROW, location, stream
from tests.data.queried import complete

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


def overwrite_end(file: Path) -> None:
    """The end of the file keeps its size and its last bytes, and points to other places."""
    data = bytearray(file.read_bytes())
    data[-40:-16] = bytes(range(1, 25))
    file.write_bytes(data)


def overwrite_all(file: Path) -> None:
    file.write_bytes(bytes(file.stat().st_size))


def replace_directory(file: Path) -> None:
    """What has the name of the directory is no directory."""
    file.parent.rename(file.parent.with_name("moved"))
    os.mkfifo(file.parent)


def replace_by_a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def call(http: httpx.Client, route: str, name: str) -> httpx.Response:
    body = MANIFEST_CALLS[name]
    if body is None:
        return http.post(f"{route}/{name}", content=stream(ROWS.slice(0, 3)), headers=ARROW)
    return http.post(f"{route}/{name}", json=body)


@pytest.mark.parametrize(
    ("kind", "damage"),
    [("data", Path.unlink), ("data", cut), ("data", replace_directory), ("_deletions", Path.unlink)],
)
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
        assert f"{kind}/{file.name} of the table is {'damaged' if damage is cut else 'missing'}" in error, error
        assert str(location(http, route)) not in error


@pytest.mark.parametrize("kind", ["data", "_deletions"])
def test_no_worker_waits_for_a_pipe(http: httpx.Client, kind: str) -> None:
    """What opens one waits for its writer; a change has an hour for that."""
    route = f"/v1/table/w${kind}-pipe"
    http.post(f"{route}/create", content=stream(ROWS), headers=ARROW).raise_for_status()
    http.post(f"{route}/delete", json={"predicate": "a % 7 = 1"}).raise_for_status()
    (file,) = (location(http, route) / kind).iterdir()
    replace_by_a_pipe(file)
    for name in ("query", "update", "create_index"):
        answer = call(http, route, name)
        assert (answer.status_code, answer.json()["code"]) == (500, 18), (name, answer.text)
        assert f"{kind}/{file.name} of the table is damaged" in answer.json()["error"], (name, answer.text)


@pytest.mark.parametrize("damage", [overwrite_end, overwrite_all])
@pytest.mark.parametrize("name", ["query", "count_rows"])
def test_an_overwritten_file_is_named(http: httpx.Client, name: str, damage: Callable[[Path], None]) -> None:
    route = f"/v1/table/w${damage.__name__}-{name}"
    http.post(f"{route}/create", content=stream(ROWS), headers=ARROW).raise_for_status()
    (file,) = (location(http, route) / "data").iterdir()
    damage(file)
    answer = call(http, route, name)
    assert (answer.status_code, answer.json()["code"]) == (500, 18), answer.text
    assert f"file data/{file.name} of the table is damaged" in answer.json()["error"]


MANIFEST_CALLS: dict[str, Any] = {
    **CALLS,
    "insert": None,
    "stats": {},
    "describe": {"load_detailed_metadata": True},
    "explain_plan": {"query": complete({})},
    "index/list": {},
    "drop_columns": {"columns": ["s"]},
}


def fill(file: Path) -> None:
    file.write_bytes(random.Random(7).randbytes(file.stat().st_size))


def change_a_byte(file: Path) -> None:
    """A column has another name: the manifest is well-formed, and an answer from it would be wrong."""
    data = bytearray(file.read_bytes())
    data[data.rindex(b"amount") + 5] ^= 1
    file.write_bytes(data)


def enlarge(file: Path) -> None:
    os.truncate(file, LARGEST_MANIFEST + 1)


@pytest.mark.parametrize(
    "damage",
    [cut, overwrite_all, fill, change_a_byte, enlarge, replace_by_a_pipe, Path.unlink],
    ids=lambda each: each.__name__,
)
def test_each_call_says_that_the_newest_manifest_is_damaged(http: httpx.Client, damage: Callable[[Path], None]) -> None:
    """No process has it open: the table is registered, and damaged before its first use."""
    http.post("/v1/table/w$any/create", content=stream(ROWS), headers=ARROW)
    uri = location(http, "/v1/table/w$any").with_name(f"manifest-{damage.__name__}")
    lance.write_dataset(pa.table({"amount": [1, 2], "s": ["x1", "x2"], "a": [1, 2]}), uri)
    route = f"/v1/table/w${uri.name}"
    http.post(f"{route}/register", json={"location": uri.name}).raise_for_status()
    (file,) = (uri / "_versions").glob("*.manifest")
    damage(file)
    for name in MANIFEST_CALLS:
        answer = call(http, route, name)
        assert (answer.status_code, answer.json()["code"]) == (500, 18), (name, answer.text)
        assert f"_versions/{file.name}" in answer.json()["error"], (name, answer.text)
        assert str(uri.parent) not in answer.text, (name, answer.text)
    assert http.post(f"{route}/version/list", json={}).json()["versions"][0]["version"] == 1


def test_an_earlier_version_that_is_gone_is_named_as_gone(http: httpx.Client) -> None:
    route = "/v1/table/w$earlier"
    http.post(f"{route}/create", content=stream(ROWS), headers=ARROW).raise_for_status()
    http.post(f"{route}/insert", content=stream(ROWS), headers=ARROW).raise_for_status()
    (location(http, route) / "_versions" / manifest_name(1)).unlink()
    calls = {"query": complete({"version": 1}), "stats": {"version": 1}, "version/describe": {"version": 1}}
    for name, body in calls.items():
        answer = http.post(f"{route}/{name}", json=body)
        assert (answer.status_code, answer.json()["code"]) == (404, 11), (name, answer.text)


def test_files_that_go_before_their_version(http: httpx.Client) -> None:
    """As stock removals may delete them: damage also when the manifest is gone, since the newest is never removed."""
    route = "/v1/table/w$removed"
    http.post(f"{route}/create", content=stream(ROWS), headers=ARROW).raise_for_status()
    (file,) = (location(http, route) / "data").iterdir()
    file.unlink()
    first = call(http, route, "query")
    assert (first.status_code, first.json()["code"]) == (500, 18)
    for manifest in (location(http, route) / "_versions").iterdir():
        manifest.unlink()
    then = call(http, route, "query")
    assert (then.status_code, then.json()["code"]) == (500, 18), then.text
    assert "_versions/" in then.json()["error"]


def test_damage_in_the_middle_of_an_answer_breaks_the_connection(http: httpx.Client) -> None:
    """The status is sent when the first rows are there: a body that ends early must not look whole."""
    route = "/v1/table/w$late"
    big = pa.table({"a": range(400_000), "s": [f"{number:064}" for number in range(400_000)]})
    http.post(f"{route}/create", content=stream(big), headers=ARROW).raise_for_status()
    before = {file.name for file in (location(http, route) / "data").iterdir()}
    http.post(f"{route}/insert", content=stream(big), headers=ARROW).raise_for_status()
    (file,) = (file for file in (location(http, route) / "data").iterdir() if file.name not in before)
    cut(file)
    received = bytearray()
    with http.stream("POST", f"{route}/query", json={}) as answer:
        assert answer.status_code == 200
        with pytest.raises(httpx.RemoteProtocolError):
            deque(map(received.extend, answer.iter_bytes()), maxlen=0)
    assert len(received) > 1 << 20
    with pytest.raises(pa.ArrowInvalid):
        pa.ipc.open_file(bytes(received))
    assert call(http, "/v1/table/w$late", "count_rows").status_code == 500
    http.post(f"{route}/query", json={"filter": "a < 10", "k": 5}).raise_for_status()
