"""Changed rows between two catalog versions: over HTTP, in this process, sync and async, applied to the rows known."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from lance_core.format.naming import manifest_path
from namespace_client import AsyncCatalog, Catalog, CatalogUnreachable, CommitRejected, EventsGone, NotFound
from namespace_server.directory.namespace import DirectoryNamespace
from tests.events.following import Followed, followed

Rows = dict[int, dict[str, Any]]
_numbers = itertools.count()
ADDED = ["_row_id", "_change_type", "_commit_version", "_commit_timestamp", "_catalog_version"]
FIRST = pa.table({"id": [1, 2, 3, 4], "x": [10, 20, 30, 40]})


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("changes")


@pytest.fixture(scope="module")
def server(root: Path) -> Iterator[Followed]:
    with followed(root) as found:
        yield found


@pytest.fixture(scope="module", params=["http", "in process"])
def catalog(server: Followed, root: Path, request: pytest.FixtureRequest) -> Iterator[Catalog]:
    if request.param == "http":
        with Catalog.connect(server.url) as found:
            yield found
        return
    namespace = DirectoryNamespace(root=str(root), durability="none", sweep_interval_seconds="0")
    with closing(namespace), Catalog.connect(namespace) as found:
        yield found


@pytest.fixture
def name(catalog: Catalog) -> str:
    path = f"t{next(_numbers)}"
    catalog.create(path, FIRST, stable_row_ids=True)
    return path


def newest(catalog: Catalog) -> int:
    return catalog.access.state().version


def rows_at(catalog: Catalog, name: str, version: int, branch: str | None = None) -> Rows:
    dataset = catalog.at(version).dataset(name, branch=branch)
    found = dataset.scanner(with_row_id=True).to_table().to_pylist()
    return {row.pop("_rowid"): row for row in found}


def applied(rows: Rows, changes: pa.RecordBatchReader) -> Rows:
    left = dict(rows)
    for change in changes.read_all().to_pylist():
        row, kind = change["_row_id"], change["_change_type"]
        values = {name: value for name, value in change.items() if name not in ADDED}
        if kind in ("delete", "update_preimage"):
            assert left.pop(row) == values
        else:
            assert row not in left
            left[row] = values
    return left


def test_changes_of_a_batch_have_the_columns_of_spark_and_the_catalog_version(catalog: Catalog, name: str) -> None:
    since = newest(catalog)
    with catalog.begin() as tx:
        tx.append(name, pa.table({"id": [5], "x": [50]}))
        tx.update(name, {"x": "x + 1"}, where="id = 1")
        tx.delete(name, "id = 2")
    reader = catalog.changes(name, since=since)
    assert reader.schema.names == ["id", "x", *ADDED]
    assert reader.schema.metadata[b"lance.changes.since"] == b"%d" % since
    assert reader.schema.metadata[b"lance.changes.to"] == b"%d" % (since + 1)
    changes = reader.read_all()
    assert {*changes.column("_catalog_version").to_pylist()} == {since + 1}
    found = [(row["_change_type"], row["id"], row["x"]) for row in changes.to_pylist()]
    assert sorted(found) == [
        ("delete", 2, 20),
        ("insert", 5, 50),
        ("update_postimage", 1, 11),
        ("update_preimage", 1, 10),
    ]


def test_each_change_names_the_catalog_version_that_published_it(catalog: Catalog, name: str) -> None:
    since = newest(catalog)
    for number in (5, 6, 7):
        catalog.append(name, pa.table({"id": [number], "x": [0]}))
        catalog.create_namespace(f"{name}n{number}")
    changes = catalog.changes(name, since=since).read_all()
    assert changes.column("_catalog_version").to_pylist() == [since + 1, since + 3, since + 5]
    assert changes.column("_commit_version").to_pylist() == [2, 3, 4]
    part = catalog.changes(name, since=since + 1, to=since + 4, columns=["id"]).read_all()
    assert part.schema.names == ["id", *ADDED]
    assert part.column("id").to_pylist() == [6]
    assert catalog.changes(name, since=since + 5).read_all().num_rows == 0


def test_a_table_that_was_not_there_is_new_as_a_whole(catalog: Catalog, name: str) -> None:
    catalog.update(name, {"x": "0"}, where="id = 1")
    assert applied({}, catalog.changes(name, since=0)) == rows_at(catalog, name, newest(catalog))


def test_columns_that_were_added_renamed_and_dropped(server: Followed, catalog: Catalog, name: str) -> None:
    since, before = newest(catalog), rows_at(catalog, name, newest(catalog))
    with catalog.begin() as tx:
        tx.add_columns(name, {"twice": "x * 2"})
    altered = server.http.post(f"/v1/table/{name}/alter_columns", json={"alterations": [{"path": "x", "rename": "y"}]})
    assert altered.status_code == 200, altered.text
    catalog.delete(name, "id = 3")
    known = {row: {"id": values["id"], "y": values["x"], "twice": None} for row, values in before.items()}
    assert applied(known, catalog.changes(name, since=since)) == rows_at(catalog, name, newest(catalog))


def test_compaction_and_indices_change_nothing(server: Followed, catalog: Catalog, name: str) -> None:
    catalog.append(name, pa.table({"id": [5], "x": [50]}))
    since = newest(catalog)
    with catalog.begin() as tx:
        tx.compact(name)
    created = server.http.post(f"/v1/table/{name}/create_scalar_index", json={"column": "id", "index_type": "BTREE"})
    assert created.status_code == 200, created.text
    assert newest(catalog) == since + 2
    assert catalog.changes(name, since=since).read_all().num_rows == 0


def test_a_renamed_table_is_the_same_one(catalog: Catalog, name: str) -> None:
    since, before = newest(catalog), rows_at(catalog, name, newest(catalog))
    catalog.delete(name, "id = 1")
    catalog.rename(name, f"{name}new")
    catalog.append(f"{name}new", pa.table({"id": [9], "x": [90]}))
    catalog.create(name, FIRST)  # another table under its old name
    changes = catalog.changes(f"{name}new", since=since).read_all()
    assert changes.column("_catalog_version").to_pylist() == [since + 1, since + 3]
    assert applied(before, catalog.changes(f"{name}new", since=since)) == rows_at(
        catalog, f"{name}new", newest(catalog)
    )


def test_a_table_that_took_the_place_of_another_one_is_refused(catalog: Catalog, name: str) -> None:
    since = newest(catalog)
    catalog.drop(name)
    dropped = newest(catalog)
    with pytest.raises(NotFound, match="does not exist"):
        catalog.changes(name, since=since)
    catalog.create(name, FIRST, stable_row_ids=True)
    with pytest.raises(EventsGone, match="found one that took its place; take a baseline"):
        catalog.changes(name, since=since)
    assert applied({}, catalog.changes(name, since=dropped)) == rows_at(catalog, name, newest(catalog))


def test_a_dropped_table_that_came_back_is_the_same_one(catalog: Catalog, name: str) -> None:
    since, before = newest(catalog), rows_at(catalog, name, newest(catalog))
    catalog.delete(name, "id = 1")
    catalog.drop(name)
    gone = newest(catalog)
    catalog.undrop(name)
    catalog.delete(name, "id = 2")
    after = rows_at(catalog, name, newest(catalog))
    assert applied(before, catalog.changes(name, since=since)) == after
    assert applied({}, catalog.changes(name, since=gone)) == after


def test_overwrite_and_restore(server: Followed, catalog: Catalog, name: str) -> None:
    since, before = newest(catalog), rows_at(catalog, name, newest(catalog))
    catalog.delete(name, "id = 1")
    catalog.overwrite(name, pa.table({"id": [7], "x": [70]}))
    middle = newest(catalog)
    assert applied(before, catalog.changes(name, since=since)) == rows_at(catalog, name, middle)
    restored = server.http.post(f"/v1/table/{name}/restore", json={"version": 1})
    assert restored.status_code == 200, restored.text
    assert applied(before, catalog.changes(name, since=since)) == before
    assert applied(rows_at(catalog, name, middle), catalog.changes(name, since=middle)) == before


def test_an_overwrite_gives_the_ids_of_columns_to_others(catalog: Catalog, name: str) -> None:
    since = newest(catalog)
    catalog.overwrite(name, pa.table({"id": [7], "y": [70]}))
    changes = catalog.changes(name, since=since).read_all().to_pylist()
    assert [(row["_change_type"], row["id"], row["y"]) for row in changes] == [
        *(("delete", number, None) for number in (1, 2, 3, 4)),  # `x` had the id of `y`
        ("insert", 7, 70),
    ]


def test_branches_have_changes_of_their_own(catalog: Catalog, name: str) -> None:
    catalog.create_branch(name, "b")
    since, before = newest(catalog), rows_at(catalog, name, newest(catalog), "b")
    with catalog.begin() as tx:
        tx.delete(name, "id = 1", branch="b")
    catalog.append(name, pa.table({"id": [5], "x": [50]}))
    after = rows_at(catalog, name, newest(catalog), "b")
    assert applied(before, catalog.changes(name, since=since, branch="b")) == after
    assert applied({}, catalog.changes(name, since=0, branch="b")) == after
    assert catalog.changes(name, since=since, branch="b").read_all().column("id").to_pylist() == [1]
    with pytest.raises(NotFound, match="branch 'c' does not exist"):
        catalog.changes(name, since=since, branch="c")


def test_a_commit_around_the_catalog_is_adopted(catalog: Catalog, name: str) -> None:
    since, before = newest(catalog), rows_at(catalog, name, newest(catalog))
    uri = catalog.dataset(name).uri
    lance.dataset(uri).delete("id = 4")
    changes = catalog.changes(name, since=since)
    assert changes.schema.metadata[b"lance.changes.to"] == b"%d" % (since + 1)
    assert applied(before, changes) == rows_at(catalog, name, since + 1)


def test_a_cursor_says_where_to_begin(catalog: Catalog, name: str) -> None:
    catalog.advance_cursor(f"{name}c", newest(catalog))
    catalog.append(name, pa.table({"id": [5], "x": [50]}))
    assert catalog.changes(name, cursor=f"{name}c").read_all().column("id").to_pylist() == [5]
    with pytest.raises(NotFound, match="there is no cursor other"):
        catalog.changes(name, cursor="other")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "since, cursor: expected one of them, found none"),
        ({"since": 1, "cursor": "c"}, "since, cursor: expected one of them, found both"),
        ({"since": 10**6}, "expected catalog versions in order"),
        ({"since": 2, "to": 1}, "expected catalog versions in order"),
        ({"since": 0, "columns": ["y"]}, "expected columns among"),
        ({"since": 0, "columns": ["x", "x"]}, "expected columns among"),
    ],
)
def test_refused_requests(catalog: Catalog, name: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(CommitRejected, match=message) as refused:
        catalog.changes(name, **given)
    assert refused.value.code == 13


def test_tables_without_stable_row_ids_and_with_taken_names_are_refused_by_name(catalog: Catalog) -> None:
    plain, taken = (f"t{next(_numbers)}" for _ in range(2))
    catalog.create(plain, FIRST)
    with pytest.raises(CommitRejected, match=f"{plain}: expected stable row ids"):
        catalog.changes(plain, since=0)
    catalog.create(taken, pa.table({"_change_type": ["a"]}), stable_row_ids=True)
    with pytest.raises(CommitRejected, match="expected no column of the name _change_type"):
        catalog.changes(taken, since=0)


def test_versions_that_were_removed_are_gone(server: Followed, catalog: Catalog, name: str) -> None:
    since = newest(catalog)
    for number in (5, 6):
        catalog.append(name, pa.table({"id": [number], "x": [0]}))
    removed = server.http.post(
        f"/v1/table/{name}/version/delete", json={"ranges": [{"start_version": 2, "end_version": 3}]}
    )
    assert removed.status_code == 200, removed.text
    with pytest.raises(EventsGone, match="expected version 2, found 3: those between were removed; take a baseline"):
        catalog.changes(name, since=since)
    answer = server.http.post(f"/v1/table/{name}/changes", json={"since": since})
    assert (answer.status_code, answer.json()["code"]) == (410, 11)
    assert applied(rows_at(catalog, name, since + 2), catalog.changes(name, since=since + 2)) == rows_at(
        catalog, name, newest(catalog)
    )


def test_a_damaged_manifest_is_named_and_one_that_is_missing_is_gone(
    server: Followed, catalog: Catalog, name: str
) -> None:
    since = newest(catalog)
    for number in (5, 6, 7):
        catalog.append(name, pa.table({"id": [number], "x": [0]}))
    place = Path(catalog.dataset(name).uri.removeprefix("file://"))
    manifest = place / manifest_path("", 2)
    whole = manifest.read_bytes()
    manifest.write_bytes(whole[:20] + b"damage" + whole[26:])
    answer = server.http.post(f"/v1/table/{name}/changes", json={"since": since})
    assert (answer.status_code, answer.json()["code"]) == (500, 18)
    assert f"the file {manifest.relative_to(place)} of the table is damaged" in answer.json()["error"]
    assert str(place.parent) not in answer.text
    manifest.unlink()
    with pytest.raises(EventsGone, match="version 2 was cleaned up"):
        catalog.changes(name, since=since).read_all()
    manifest.write_bytes(whole)
    assert catalog.changes(name, since=since).read_all().num_rows == 3


def test_the_route_answers_a_stream_and_refuses_headers_of_other_reads(
    server: Followed, catalog: Catalog, name: str
) -> None:
    answer = server.http.post(f"/v1/table/{name}/changes", json={"since": 0})
    assert answer.headers["content-type"] == "application/vnd.apache.arrow.stream"
    assert int(answer.headers["x-lance-catalog-version"]) == newest(catalog)
    assert pa.ipc.open_stream(answer.content).read_all().num_rows == 4
    for headers in ({"x-lance-catalog-version": "1"}, {"x-lancedb-min-read-version": "1"}):
        refused = server.http.post(f"/v1/table/{name}/changes", json={"since": 0}, headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (400, 13)
    for body in ({"since": 0, "version": 1}, {"since": -1}, {"since": "0"}, {"since": 0, "filter": "x"}):
        assert server.http.post(f"/v1/table/{name}/changes", json=body).json()["code"] == 13


def test_asyncio(catalog: Catalog, name: str) -> None:
    async def read() -> list[int]:
        found: list[int] = []
        async for batch in AsyncCatalog(catalog).changes(name, since=0):
            found += batch.column("id").to_pylist()
        return found

    assert asyncio.run(read()) == [1, 2, 3, 4]


def test_a_stream_that_breaks_off_is_an_error() -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, FIRST.schema) as writer:
        writer.write_table(FIRST)
    whole = sink.getvalue().to_pybytes()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "application/vnd.apache.arrow.stream")
            self.send_header("content-length", str(len(whole)))
            self.end_headers()
            self.wfile.write(whole[: len(whole) // 2])

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as stub:
        threading.Thread(target=stub.serve_forever, daemon=True).start()
        with (
            Catalog.connect(f"http://127.0.0.1:{stub.server_port}") as catalog,
            pytest.raises(CatalogUnreachable, match="the rows broke off before their end"),
        ):
            catalog.changes("t", since=0).read_all()
        stub.shutdown()
