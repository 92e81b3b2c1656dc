"""Stream of the rows that the versions of a table add or change.

Spark keeps offsets in the checkpoint and asks for the rows between two of them, again after a failure. An offset is a
version of the table, found in a catalog version. So the same rows come again, in the same micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from namespace_client.error_codes import ErrorCode
from namespace_client.errors import CommitRejected
from spark_catalog.change_feed.change_rows import CHANGE_COLUMNS, ChangedRows, divide, read_changed, whole_version
from spark_catalog.options import StreamReadOptions
from spark_catalog.source.resolving import connect
from spark_catalog.streaming.spark_limits import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
from spark_catalog.tables.pinned import PinnedTable
from spark_catalog.tables.types import arrow_schema
from table_data.change_feed.changes import changes_between, refuse_replaced
from table_data.change_feed.version_changes import ReadAt
from table_data.errors import InvalidCall

Offset = dict[str, Any]
"""`catalog_version`; `table_version`; `location` of the table, empty if unknown; `committed_ms`: when the version was
committed, None if unknown; `snapshot`: no rows are read yet, and the first micro-batch is all rows of a version."""


class ChangedPartition(InputPartition):  # type: ignore[misc] # the base class has no types
    """Changed rows that one task reads."""

    def __init__(self, parts: tuple[ChangedRows, ...]) -> None:
        super().__init__(None)
        self.parts = parts


class LanceStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc] # no types
    """Plans micro-batches by versions of a table, and reads them in tasks.

    Args:
        options: Options of the stream.
        schema: Columns that Spark reads. `_change_type` and `_commit_version` may be among them.
    """

    def __init__(self, options: StreamReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = arrow_schema(schema)
        self._target: Offset | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """The offset before the first row of a query without a checkpoint."""
        start = self._options.start
        if start is None:
            return _offset(0, 0, "", snapshot=True)
        if start == "latest":
            return self._head()
        return _offset(0, start - 1, "")

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """The limit of a micro-batch. A version stands for a file, since Spark has no limits of other names."""
        limit = self._options.max_versions
        return ReadAllAvailable() if limit is None else ReadMaxFiles(limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Read no version that is committed after this call."""
        self._target = self._head()

    def reportLatestOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """The newest version."""
        return self._head()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        """The end of the next micro-batch, `start` if there is nothing new.

        Raises:
            InvalidCall: The table was dropped, or dropped and made again.
            CatalogUnreachable: The server does not respond.
        """
        end = self._target or self._head()
        if start["location"] not in ("", end["location"]):
            raise InvalidCall(
                f"{self._options.place.name}: expected the table at {start['location']}, found it dropped and made "
                "again: start again without a checkpoint"
            )
        if start["snapshot"]:
            return end
        known, version = _read_at(start), end["table_version"]
        if start["location"] and start["catalog_version"] <= end["catalog_version"]:
            refuse_replaced(self._options.place.name, known, _read_at(end))
        if isinstance(limit, ReadMaxFiles):
            version = min(version, known.version + limit.max_files)
        if version <= known.version:
            return start
        if version == end["table_version"]:
            return end
        try:
            return self._head(end["catalog_version"], version)
        except CommitRejected as error:
            if error.code != ErrorCode.TABLE_VERSION_NOT_FOUND:
                raise
            return {**end, "table_version": version, "committed_ms": None}  # `partitions` says that it is gone

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The changed rows between two offsets, divided among tasks.

        Raises:
            VersionGone: A version was cleaned up before it was read.
            InvalidCall: A version does what the options do not allow.
        """
        if start == end:
            return []
        place = self._options.place
        last = _read_at(end)
        table = PinnedTable(end["location"], last.version, place.storage_options, last.committed_ms)
        if start["snapshot"]:
            tasks = divide(table, [whole_version(table)])
        else:
            tasks = divide(table, changes_between(place.name, table, _read_at(start), self._options.policy))
        return [ChangedPartition(parts) for parts in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition."""
        assert isinstance(partition, ChangedPartition)
        added = CHANGE_COLUMNS if self._options.policy.has_types else ()
        return read_changed(partition.parts, self._schema, added)

    def _head(self, at: int | None = None, version: int | None = None) -> Offset:
        """The newest version, or the given one, in a catalog version, the newest if None."""
        place = self._options.place
        assert place.table is not None
        with connect(place) as access:
            at = access.state().version if at is None else at
            state = access.table(place.table, at=at, version=version)
        if state is None or state.version is None:
            raise InvalidCall(f"{place.name}: expected a table with a version in catalog version {at}, found none")
        committed_ms = None if state.identity is None else state.identity.committed_ms
        return _offset(at, state.version, state.uri, committed_ms)


def _offset(
    catalog_version: int, table_version: int, location: str, committed_ms: int | None = None, *, snapshot: bool = False
) -> Offset:
    return {
        "catalog_version": catalog_version,
        "table_version": table_version,
        "location": location,
        "committed_ms": committed_ms,
        "snapshot": snapshot,
    }


def _read_at(offset: Offset) -> ReadAt:
    """The version of an offset. Checkpoints of earlier releases do not state when it was committed."""
    return ReadAt(offset["table_version"], offset.get("committed_ms"))
