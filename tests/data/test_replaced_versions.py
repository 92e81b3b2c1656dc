"""Another version may take the place and the number of one that was read before: its rows are answered then."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import TableVersionNotFoundError

from lance_core.data import commit_time
from lance_core.errors import CorruptFile
from lance_core.format.manifest import encode_manifest_file, parse_manifest_file
from lance_core.format.naming import NamingScheme, manifest_path
from lance_core.storage.opening import open_store
from lance_core.tables.dataset import Dataset
from lance_core.versions import read_version
from namespace_server.data.operations import DataOperations
from table_data import staging
from table_data.batch_operations import TableState, VersionIdentity
from table_data.errors import VersionGone
from table_data.jobs.job import Staged
from table_data.jobs.reading import OpenTables
from table_data.staging.matching import ADDRESS, matching_addresses
from table_data.staging.rows import RowSet
from table_data.table_changes import TableChanges
from tests.data.arrow import ARROW, stream
from tests.data.queried import answered, complete
from tests.emulators import Emulator

OLD, NEW = [1, 2, 3], [7, 8, 9, 10]


def post(http: httpx.Client, path: str, body: dict[str, Any]) -> Any:
    response = http.post(path, json=body)
    assert response.status_code == 200, response.text
    return response.json()


def queried(http: httpx.Client, route: str, column: str, **request: Any) -> list[int]:
    answer = http.post(f"{route}/query", json=complete({"columns": {"column_names": [column]}, **request}))
    return sorted(answered(answer).column(column).to_pylist())


def write_versions(uri: Path | str, values: list[int], *, stable: bool = True) -> None:
    """A table with an index, at version 3, instead of what is there."""
    shutil.rmtree(uri, ignore_errors=True)
    lance.write_dataset(pa.table({"x": values}), uri, enable_stable_row_ids=stable)
    lance.dataset(uri).create_scalar_index("x", "BTREE", name="by_x")
    lance.dataset(uri).delete(f"x = {values[1]}") if values is OLD else lance.dataset(uri).update({"x": "x"}, "x = 10")


def test_a_branch_is_deleted_and_made_again(http: httpx.Client, table: str) -> None:
    for number in (10, 20, 30):
        post(http, f"{table}/branches/create", {"name": "b"})
        body = stream(pa.table({"a": [number], "s": ["new"]}))
        answer = http.post(f"{table}/insert", params={"branch": "b"}, content=body, headers=ARROW)
        assert answer.json()["version"] == 2
        for _ in range(2):  # by each process that reads
            assert queried(http, table, "a", branch="b") == [1, 2, number]
        assert post(http, f"{table}/count_rows", {"branch": "b", "predicate": f"a = {number}"}) == 1
        changed = {"branch": "b", "predicate": f"a = {number}", "updates": [["a", "a + 1"]]}
        assert post(http, f"{table}/update", changed)["updated_rows"] == 1
        assert queried(http, table, "a", branch="b") == [1, 2, number + 1]
        assert post(http, f"{table}/delete", {"branch": "b", "predicate": f"a = {number + 1}"})["version"] == 4
        assert queried(http, table, "a", branch="b") == [1, 2]
        post(http, f"{table}/branches/delete", {"name": "b"})


@pytest.mark.parametrize("stable", [True, False])
def test_other_files_are_registered_at_the_same_location(http: httpx.Client, table: str, stable: bool) -> None:
    described = post(http, f"{table}/describe", {})
    place = f"moved-{Path(described['location']).name}"
    uri = Path(described["location"].removeprefix("file://")).with_name(place)
    route = f"{table}-registered"
    for values in (OLD, NEW, OLD):
        write_versions(uri, values, stable=stable)
        post(http, f"{route}/register", {"location": place})
        kept = [value for value in values if value != 2]
        for _ in range(2):
            assert queried(http, route, "x") == kept
            assert queried(http, route, "x", filter=f"x = {values[0]}") == [values[0]]
            for value in (*OLD, *NEW):
                assert post(http, f"{route}/count_rows", {"predicate": f"x = {value}"}) == kept.count(value)
        updated = {"predicate": f"x > {values[0]}", "updates": [["x", "x + 100"]]}
        assert post(http, f"{route}/update", updated)["updated_rows"] == len(kept) - 1
        assert queried(http, route, "x") == [kept[0], *(value + 100 for value in kept[1:])]
        post(http, f"{route}/deregister", {})


def test_what_was_replaced_is_not_read_at_an_earlier_catalog_version(http: httpx.Client, table: str) -> None:
    uri = Path(post(http, f"{table}/describe", {})["location"].removeprefix("file://")).with_name(f"old-{table[-20:]}")
    route = f"{table}-registered"
    write_versions(uri, OLD)
    post(http, f"{route}/register", {"location": uri.name})
    pinned = {"x-lance-catalog-version": str(http.get("/v1/catalog").json()["version"])}
    assert http.post(f"{route}/count_rows", json={}, headers=pinned).json() == 2
    post(http, f"{route}/deregister", {})
    write_versions(uri, NEW)
    post(http, f"{route}/register", {"location": uri.name})
    assert http.post(f"{route}/count_rows", json={}).json() == 4
    query = complete({"columns": {"column_names": ["x"]}})
    for operation, body in (("count_rows", {}), ("stats", {}), ("query", query), ("query", {**query, "version": 3})):
        answer = http.post(f"{route}/{operation}", json=body, headers=pinned)
        assert answer.status_code == 404, answer.text
        assert answer.json()["code"] == 11
    assert queried(http, route, "x") == NEW


def state_of(uri: str, *, known: bool) -> TableState:
    file = parse_manifest_file(Path(manifest_path(uri, 3, NamingScheme.V2)).read_bytes())
    identity = VersionIdentity(file.identity.sha256, file.timestamp_ms)
    return TableState(("t",), uri, 3, identity=identity if known else None)


@pytest.mark.parametrize("known", [True, False])
def test_what_pylance_keeps_of_a_version_is_not_used_for_another(tmp_path: Path, known: bool) -> None:
    """It keeps the addresses of rows with stable ids by the URI and the number of a version alone."""
    uri, tables = str(tmp_path / "t"), OpenTables()
    for values in (OLD, NEW):
        write_versions(uri, values)
        state = state_of(uri, known=known)
        opened = [
            tables.open(state, {}),
            TableChanges(state, {}).dataset(),
            TableChanges(state, {}).dataset_at(3, None),
        ]
        for dataset in opened:
            assert dataset.scanner(with_row_id=True).to_table().num_rows == (2 if values is OLD else 4)
            for value in (*OLD, *NEW):
                assert dataset.count_rows(f"x = {value}") == (value in values and value != 2), value


def test_a_version_that_is_known_stays_open(tmp_path: Path) -> None:
    uri, tables = str(tmp_path / "t"), OpenTables()
    write_versions(uri, OLD)
    state = state_of(uri, known=True)
    assert tables.open(state, {}) is tables.open(state, {})
    file = TableChanges(state, {}).require_head()
    first, again = (staging.open_version(uri, file, {}) for _ in range(2))
    write_versions(uri, NEW)
    other = staging.open_version(uri, TableChanges(state_of(uri, known=True), {}).require_head(), {})
    assert first.session().is_same_as(again.session())
    assert not first.session().is_same_as(other.session())


@pytest.mark.parametrize("first", ["dataset", "manifest"])
def test_a_version_that_is_replaced_while_it_is_read(tmp_path: Path, first: str) -> None:
    """Rows are found in the dataset and deleted in the manifest: both come from the same bytes."""
    uri = str(tmp_path / "t")
    write_versions(uri, OLD)
    state = state_of(uri, known=True)
    assert state.identity is not None
    changes = TableChanges(state, {})
    steps: list[Callable[[], object]] = [changes.dataset, changes.require_head]
    if first == "manifest":
        steps.reverse()
    steps[0]()
    write_versions(uri, NEW)
    steps[1]()
    assert changes.require_head().identity.sha256 == state.identity.sha256
    assert commit_time(changes.dataset()) == changes.require_head().timestamp_ns
    with pytest.raises(VersionGone, match="version 3 was replaced by another one"):
        TableChanges(state, {}).dataset()


def test_a_manifest_with_other_bytes_is_damaged(tmp_path: Path) -> None:
    """A byte of it changed, in the name of a column: whatever is computed from it would be wrong."""
    uri = str(tmp_path / "t")
    lance.write_dataset(pa.table({"amount": [1, 2]}), uri)
    manifest = Path(manifest_path(uri, 1, NamingScheme.V2))
    data = manifest.read_bytes()
    file = parse_manifest_file(data)
    state = TableState(("t",), uri, 1, identity=VersionIdentity(file.identity.sha256, file.timestamp_ms))
    place = data.rindex(b"amount")
    manifest.write_bytes(data[:place] + b"amounu" + data[place + 6 :])
    for look in (TableChanges(state, {}).dataset, TableChanges(state, {}).require_head):
        with pytest.raises(CorruptFile, match=f"_versions/{manifest.name}: its manifest has SHA-256"):
            look()


@pytest.mark.parametrize("seconds", [9_300_000_000, -5])
def test_a_time_that_pylance_does_not_tell(http: httpx.Client, table: str, seconds: int) -> None:
    """It says 0 for times before 1970 and after 2262, which manifests may have."""
    described = post(http, f"{table}/describe", {})
    uri = Path(described["location"].removeprefix("file://")).with_name(f"odd{seconds}")
    lance.write_dataset(pa.table({"a": [1, 2]}), uri)
    path = Path(manifest_path(str(uri), 1, NamingScheme.V2))
    file = parse_manifest_file(path.read_bytes())
    file.manifest.timestamp.seconds = seconds
    path.write_bytes(encode_manifest_file(file.manifest, file.transaction, file.indices))
    route = f"{table}-odd"
    post(http, f"{route}/register", {"location": uri.name})
    assert queried(http, route, "a") == [1, 2]
    assert Dataset.open(uri).to_pylance().count_rows() == 2
    if seconds > 0:
        body = stream(pa.table({"a": [3]}))
        assert http.post(f"{route}/insert", content=body, headers=ARROW).status_code == 200
        assert post(http, f"{route}/update", {"predicate": "a = 1", "updates": [["a", "7"]]})["updated_rows"] == 1
        assert queried(http, route, "a") == [2, 3, 7]


def test_a_change_is_staged_on_the_version_that_took_the_place() -> None:
    """The branch is made again between the look at the catalog and the opening of its dataset."""
    states = [TableState(("t",), "u", 2, identity=VersionIdentity(digit * 64, 0)) for digit in "001"]
    seen: list[TableState] = []

    class Tables:
        def __init__(self) -> None:
            self.storage_options: dict[str, str] = {}

        async def find_table(self, _request: Any, **asked: object) -> tuple[TableState, int]:
            return states[-1 if seen else 0], 5

    class Change:
        async def stage(self, table: TableState, *, limit: float | None = None) -> Staged:
            seen.append(table)
            if table != states[-1] or table.identity != states[-1].identity:
                raise VersionGone("replaced")
            return Staged((), {"updated_rows": 0}, repeatable=True)

    class Work:
        @asynccontextmanager
        async def change(self, _job: Any, _rows: Any, _principal: str | None) -> AsyncIterator[Change]:
            yield Change()

    operations: DataOperations[bytes] = DataOperations(Tables(), Work())  # type: ignore[arg-type]
    answer = asyncio.run(operations.change("update_table", {"id": ["t"]}))
    assert [state.identity for state in seen] == [states[0].identity, states[2].identity]
    assert answer.body == {"version": 2, "updated_rows": 0}
    states[-1] = states[0]
    seen.clear()
    with pytest.raises(TableVersionNotFoundError, match="replaced"):
        asyncio.run(DataOperations(Tables(), Gone()).change("update_table", {"id": ["t"]}))  # type: ignore[arg-type]
    assert len(seen) == 0


class Gone:
    """Work that finds no version."""

    @asynccontextmanager
    async def change(self, _job: Any, _rows: Any, _principal: str | None) -> AsyncIterator[Gone]:
        yield self

    async def stage(self, _table: TableState, *, limit: float | None = None) -> Staged:
        raise VersionGone("replaced")


def test_an_update_of_a_version_that_is_replaced_changes_nothing(http: httpx.Client, table: str) -> None:
    """The files of a branch that was made again are those of other rows, under the same numbers."""
    described = post(http, f"{table}/describe", {})
    insert = {"params": {"branch": "b"}, "headers": ARROW}

    def make(number: int) -> None:
        post(http, f"{table}/branches/create", {"name": "b"})
        http.post(f"{table}/insert", content=stream(pa.table({"a": [number], "s": ["new"]})), **insert)

    make(10)
    version = post(http, f"{table}/version/describe", {"version": 2, "branch": "b"})["version"]
    identity = VersionIdentity(version["manifest_sha256"], version["timestamp_millis"])
    changes = TableChanges(TableState(("w", "t"), described["location"], 2, {}, "b", identity=identity), {})
    dataset = changes.dataset()
    rows = RowSet()
    for batch in matching_addresses(dataset, "a = 10"):
        rows.add(batch.column(ADDRESS).to_numpy())
    post(http, f"{table}/branches/delete", {"name": "b"})
    make(20)
    assert len(rows) == 1
    changes.files.delete_rows(changes.require_head().outline, rows.by_fragment)
    assert changes.manifest_sha256 == version["manifest_sha256"]  # the commit names it, and is refused
    assert queried(http, table, "a", branch="b") == [1, 2, 20]


def test_the_requests_that_open_a_version_in_a_bucket(moto_server: Emulator) -> None:
    """As many as pylance makes alone: what is compared is what is opened."""
    uri, options = f"{moto_server.new_root()}/t", moto_server.storage_options
    lance.write_dataset(pa.table({"x": range(10)}), uri, storage_options=options)
    lance.dataset(uri, storage_options=options).create_scalar_index("x", "BTREE")
    _, file = read_version(open_store(uri, options), "", 2)
    state = TableState(("t",), uri, 2, identity=VersionIdentity(file.identity.sha256, file.timestamp_ms))
    with moto_server.counted() as ours:
        dataset = OpenTables().open(state, options)
    with moto_server.counted() as theirs:
        lance.dataset(uri, version=2, storage_options=options)
    assert sorted(ours) == sorted(theirs) == ["GET", "HEAD"]
    with moto_server.counted() as first:
        assert dataset.count_rows("x = 3") == 1
    with moto_server.counted() as second:
        assert dataset.count_rows("x = 3") == 1
    assert "BTree" in dataset.scanner(filter="x = 3").explain_plan()
    assert len(second) < len(first)
