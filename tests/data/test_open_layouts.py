"""Insertions write through a dataset that stays open while the layout of the table is the same."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.format.outline import layout_digest
from table_data import table_changes
from table_data.batch_operations import TableState, TransactionCommit
from table_data.errors import ClientError
from table_data.jobs.job import Job
from table_data.jobs.sessions import ChangeSession
from table_data.open_datasets import OpenDatasets

INSERT = Job("insert_into_table", {})


def newest(uri: str) -> ManifestFile:
    [path] = Path(uri, "_versions").glob(f"{2**64 - 1 - lance.dataset(uri).version}.manifest")
    return parse_manifest_file(path.read_bytes())


def state_of(uri: str) -> TableState:
    file = newest(uri)
    return TableState(("t",), uri, file.version, layout=layout_digest(file.outline))


def body(rows: pa.Table) -> pa.Buffer:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return pa.py_buffer(sink.getvalue())


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The versions that are opened."""
    found: list[int] = []
    real = table_changes.staging.open_version

    def noting(uri: str, file: ManifestFile, options: dict[str, str]) -> lance.LanceDataset:
        found.append(file.version)
        return real(uri, file, options)

    monkeypatch.setattr(table_changes.staging, "open_version", noting)
    return found


def insert(layouts: OpenDatasets, state: TableState, rows: pa.Table) -> None:
    staged = ChangeSession(INSERT, body(rows), layouts).stage(state)
    assert staged.result == {"num_inserted_rows": rows.num_rows}
    [operation] = staged.operations
    assert isinstance(operation, TransactionCommit)


def test_rows_are_added_and_deleted_between_insertions(tmp_path: Path, opened: list[int]) -> None:
    uri, layouts = str(tmp_path / "t.lance"), OpenDatasets()
    lance.write_dataset(pa.table({"a": [1]}), uri)
    insert(layouts, state_of(uri), pa.table({"a": [2]}))
    lance.write_dataset(pa.table({"a": [3]}), uri, mode="append")
    insert(layouts, state_of(uri), pa.table({"a": [4]}))
    assert opened == [1]


def test_new_columns_are_another_layout(tmp_path: Path, opened: list[int]) -> None:
    uri, layouts = str(tmp_path / "t.lance"), OpenDatasets()
    lance.write_dataset(pa.table({"a": [1]}), uri)
    before = state_of(uri)
    insert(layouts, before, pa.table({"a": [2]}))
    lance.dataset(uri).add_columns({"b": "a + 1"})
    after = state_of(uri)
    assert after.layout != before.layout
    insert(layouts, after, pa.table({"a": [2], "b": [3]}))
    with pytest.raises(ClientError):
        insert(layouts, before, pa.table({"a": [2], "b": [3]}))
    assert opened == [1, 2]


def test_other_tables_and_an_unknown_layout_are_opened(tmp_path: Path, opened: list[int]) -> None:
    layouts = OpenDatasets()
    for name in ("one", "other"):
        uri = str(tmp_path / name)
        lance.write_dataset(pa.table({"a": [1]}), uri)
        insert(layouts, state_of(uri), pa.table({"a": [2]}))
        insert(layouts, replace(state_of(uri), layout=None), pa.table({"a": [2]}))
    assert opened == [1] * 4


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.update_schema_metadata({"k": "v"}),
        lambda table: table.update_config({"k": "v"}),
        lambda table: table.alter_columns({"path": "a", "name": "c"}),
        lambda table: table.update_field_metadata({"a": {"k": "v"}}),
    ],
)
def test_whatever_new_files_depend_on_is_in_the_digest(tmp_path: Path, change: object) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(pa.table({"a": [1]}), uri)
    before = state_of(uri).layout
    lance.write_dataset(pa.table({"a": [3]}), uri, mode="append")
    assert state_of(uri).layout == before
    assert callable(change)
    change(lance.dataset(uri))
    assert state_of(uri).layout != before
