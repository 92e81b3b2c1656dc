"""Metadata tables: `t.history`, `t.versions`, `t.tags`, `t.branches` and `t.fragments`, as rows of JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from lance_core.format.deletion import live_row_count
from spark_catalog.sql.access import Access
from spark_catalog.sql.tables import resolve
from spark_catalog.sql.transactions import SqlTransaction
from table_data.batch_operations import Json, TableId

NAMES = frozenset({"history", "versions", "tags", "branches", "fragments"})

_MICROSECONDS = 1000
_LONG, _TEXT, _TIME = LongType(), StringType(), TimestampType()
_SCHEMAS = {
    "history": [("version", _LONG), ("timestamp", _TIME), ("operation", _TEXT), ("read_version", _LONG),
                ("message", _TEXT), ("transaction_id", _TEXT)],
    "versions": [("version", _LONG), ("timestamp", _TIME)],
    "tags": [("tag", _TEXT), ("version", _LONG), ("branch", _TEXT)],
    "branches": [("branch", _TEXT), ("parent_branch", _TEXT), ("parent_version", _LONG)],
    "fragments": [("fragment", _LONG), ("rows", _LONG), ("deleted_rows", _LONG), ("files", _LONG), ("bytes", _LONG)],
}  # fmt: skip


def load(access: Access, transaction: SqlTransaction | None, table: Json, name: str) -> Json:
    """The rows of a metadata table of a table that was loaded. `tags` and `branches` are those of now."""
    ref = table["ref"]
    path: TableId = tuple(ref["table"])
    rows: Iterator[list[Any]]
    if name == "fragments":
        rows = _fragments(access, transaction, ref)
    elif name == "tags":
        rows = ([tag, found["version"], found.get("branch")] for tag, found in access.server.tags(path).items())
    elif name == "branches":
        rows = (
            [branch, found.get("parentBranch"), found.get("parentVersion")]
            for branch, found in access.server.branches(path).items()
        )
    elif transaction is not None and transaction.require(path).new:
        rows = iter(())
    elif name == "versions":
        rows = ([found["version"], _time(found)] for found in access.server.versions(path, at=ref["at"]))
    else:
        rows = _history(access, path, ref["at"])
    schema = StructType([StructField(column, kind) for column, kind in _SCHEMAS[name]])
    return {"schema": schema.jsonValue(), "rows": list(rows)}


def _history(access: Access, path: TableId, at: int) -> Iterator[list[Any]]:
    for version in access.server.versions(path, at=at):
        made = access.requests.transaction(path, int(version["version"]))
        read = made.get("read_version")
        yield [
            version["version"],
            _time(version),
            made.get("operation"),
            None if read is None else int(read),
            made.get("__lance_commit_message"),
            made.get("uuid"),
        ]


def _fragments(access: Access, transaction: SqlTransaction | None, ref: Json) -> Iterator[list[Any]]:
    _, file = resolve(access.versions, transaction, ref)
    for fragment in file.manifest.fragments:
        deleted = int(fragment.deletion_file.num_deleted_rows) if fragment.HasField("deletion_file") else 0
        stored = sum(int(data.file_size_bytes) for data in fragment.files)
        yield [int(fragment.id), live_row_count(fragment), deleted, len(fragment.files), stored]


def _time(version: Json) -> int:
    return int(version["timestamp_millis"]) * _MICROSECONDS
