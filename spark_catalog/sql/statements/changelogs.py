"""`CHANGES`: rows that versions of a table inserted, updated or deleted.

Spark reads changes step by step over the versions, and computes net changes from them by the ids of rows.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from lance_core.data import arrow_schema as stored_schema
from spark_catalog.change_feed.change_rows import divide, read_changed
from spark_catalog.sql.access import Access
from spark_catalog.sql.errors import InvalidStatement, NoSuchTable
from spark_catalog.sql.schemas import parse_schema
from spark_catalog.sql.tables import STABLE_ROW_IDS, Versions, describe, resolve
from spark_catalog.sql.transactions import SqlTransaction
from spark_catalog.tables.types import arrow_schema, row_width
from spark_catalog.version_names import (
    CommitTime,
    MissingVersion,
    NamedVersions,
    VersionName,
    VersionOfCatalog,
    newest_by,
    parse_version,
)
from table_data.batch_operations import DELIMITER, Json, TableId, TableState
from table_data.change_feed.changes import changes_between
from table_data.change_feed.policy import ChangePolicy
from table_data.change_feed.selected_rows import (
    CHANGE_TYPE,
    CHANGED_ROW,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    refuse_taken,
)

_ALL: Final = ChangePolicy("rows", "rows", "rows", has_images=True)
_ADDED: Final = (
    StructField(CHANGED_ROW, LongType(), nullable=False),
    StructField(CHANGE_TYPE, StringType(), nullable=False),
    StructField(COMMIT_VERSION, LongType(), nullable=False),
    StructField(COMMIT_TIMESTAMP, TimestampType(), nullable=False),
)
_ADDED_NAMES: Final = frozenset(field.name for field in _ADDED)


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of a range.

    Attributes:
        name: A number, a tag of main, a catalog version, or a time.
        is_inclusive: Whether changes at the bound are part of the range.
    """

    name: VersionName
    is_inclusive: bool

    @classmethod
    def parse(cls, given: Json | None) -> Bound | None:
        """From the arguments that Java passes."""
        if given is None:
            return None
        value = given["value"]
        return cls(CommitTime(value) if given["kind"] == "timestamp" else parse_version(value), given["inclusive"])


def load(
    access: Access,
    transaction: SqlTransaction | None,
    path: TableId,
    head: int,
    start: Bound | None,
    end: Bound | None,
) -> Json:
    """The changes of a range as Java gets them: their columns, and a reference for `plan`.

    Args:
        access: The catalog.
        transaction: Transaction of the statement. Its own changes are not part of the range.
        path: Path of the table.
        head: Catalog version that the table is looked up in.
        start: First bound, None for the first version.
        end: Last bound, None for the newest version of that catalog version.

    Raises:
        NoSuchTable: There is no such table.
        InvalidCall: A column has the name of an added one.
        InvalidStatement: There is no such version, the range ends before it begins, or the table has no stable row
            ids. (Spark replaces the message of an unsupported operation here.)
    """
    name = DELIMITER.join(path)
    state = _state(access, transaction, path, head)
    if state is None:
        raise NoSuchTable(f"{name}: no such table at catalog version {head}")
    if state.version is None:
        raise InvalidStatement(f"{name}: expected a published version, found none: its first one is not committed")
    reader = _Range(access, state, name, head)
    known = 0 if start is None else reader.known(start)
    last = state.version if end is None else reader.last(end)
    if known > last or last > state.version:
        raise InvalidStatement(
            f"{name}: changes after version {known} up to version {last}: expected a range that ends where it begins "
            f"or later, at version {state.version} at most"
        )
    state = state.at(max(last, 1))
    file = access.versions.manifest(state)
    described = describe(state, file, at=head, steps=0, properties=state.properties, fixed=True)
    if not described["stable_row_ids"]:
        raise InvalidStatement(
            f"{name}: CHANGES: expected a table with stable row ids, which identify changed rows; a table has "
            f"them if it was created with TBLPROPERTIES ('{STABLE_ROW_IDS}' = 'true')"
        )
    columns = StructType.fromJson(described["schema"])
    refuse_taken(f"{name}: CHANGES", columns.names, _ADDED_NAMES)
    ref = {**described["ref"], "from": known, "to": last, "is_open": end is None}
    schema = StructType([*columns.fields, *_ADDED])
    return {"ref": ref, "schema": schema.jsonValue(), "catalog_version": head}


def plan(versions: Versions, ref: Json, schema: Json) -> Json:
    """The function and the partitions of a scan of changes, the number of rows, and their bytes in memory.

    Raises:
        VersionGone: A version of the range was cleaned up.
        InvalidCall: A version has other columns, or its changes cannot be determined.
    """
    shown = parse_schema(schema)
    table, file = resolve(versions, None, ref)
    last = stored_schema(file.manifest.fields)
    found = changes_between(DELIMITER.join(ref["table"]), table, ref["from"], _ALL, columns=last)
    changes = list(found) if ref["to"] else []
    rows = sum(changed.rows for changed in changes)
    stored = sum(fragment.bytes for changed in changes for fragment in changed.fragments)
    read = arrow_schema(shown)
    share = row_width(read) / row_width(last)
    return {
        "function": _text(_function(shown)),
        "partitions": [_text(pickle.dumps(parts)) for parts in divide(table, changes)],
        "rows": rows,
        "bytes": max(rows * row_width(read), int(stored * min(1.0, share)), 1),
    }


def _function(shown: StructType) -> bytes:
    """The function that reads one partition, for Spark."""
    schema = arrow_schema(shown)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for parts in batch.column(0).to_pylist():
                yield from read_changed(pickle.loads(parts), schema, _ADDED_NAMES)  # noqa: S301 - made by `plan`

    pickled: bytes = cloudpickle.dumps((run, shown))
    return pickled


@dataclass(frozen=True, slots=True)
class _Range:
    """Versions of the table of `state` that bounds name, looked up at catalog version `head`."""

    access: Access
    state: TableState
    name: str
    head: int

    def known(self, start: Bound) -> int:
        """The last version before the range, 0 for none."""
        return self._newest(start.name, is_before=start.is_inclusive)

    def last(self, end: Bound) -> int:
        """The last version of the range."""
        return self._newest(end.name, is_before=not end.is_inclusive)

    def _newest(self, name: VersionName, *, is_before: bool) -> int:
        """The newest version up to that of a name, with `is_before` before it."""
        match name:
            case CommitTime():
                listed = self.access.server.versions(self.state.id, at=self.head)
                found = newest_by(listed, name, is_before=is_before)
                return int(listed[-1]["version"]) - 1 if found is None else found
            case VersionOfCatalog():
                return self._of_catalog(name, is_before=is_before)
            case _:
                return self._number(name) - is_before

    def _number(self, name: int | str) -> int:
        tag = NamedVersions(self.access.server, self.state.id, self.head).tag(name) if isinstance(name, str) else None
        number = name if isinstance(name, int) else 0 if tag is None or tag.branch is not None else tag.version
        if number < 1:
            raise InvalidStatement(
                f"{self.name}: version {str(name)!r}: expected a number from 1, a tag of main, or catalog: and a "
                "catalog version"
            )
        return number

    def _of_catalog(self, name: VersionOfCatalog, *, is_before: bool) -> int:
        try:
            at = NamedVersions(self.access.server, self.state.id, self.head).check_catalog_version(name) - is_before
        except MissingVersion as error:
            raise InvalidStatement(str(error)) from error
        found = self._table_at(at) if at else None
        if found is None or found.version is None:
            return 0
        if found.uri != self.state.uri:
            raise InvalidStatement(
                f"{self.name}: expected the table of catalog version {self.head} at catalog version {at}, found one "
                "that was dropped since: its changes are not those of this table"
            )
        return found.version

    def _table_at(self, at: int) -> TableState | None:
        """The table as of a catalog version, by its name or the one that it had there; None if there is none."""
        found = self.access.server.table(self.state.id, at=at)
        if found is not None and found.uri == self.state.uri:
            return found
        former = self._former_name(at)
        return found if former == self.state.id else self.access.server.table(former, at=at)

    def _former_name(self, at: int) -> TableId:
        """What the table was called at a catalog version, by the renames since."""
        name = self.state.id
        for version in self.access.server.history(below=self.head + 1):
            if version.version <= at:
                break
            for change in (each for batch in reversed(version.batches) for each in reversed(batch.changes)):
                if change.operation == "rename_table" and change.new_name == name and change.name is not None:
                    name = change.name
        return name


def _state(access: Access, transaction: SqlTransaction | None, path: TableId, head: int) -> TableState | None:
    if transaction is not None:
        return transaction.require(path).state
    state = access.server.table(path, at=head) if head else None
    if state is not None:
        access.versions.remember(state)
    return state


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
