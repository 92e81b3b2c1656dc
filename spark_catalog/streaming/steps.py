"""Stream of ranges of catalog versions: where each of several tables began and ended, one row for each table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from namespace_client.errors import CommitRejected
from namespace_client.http import CatalogServer
from namespace_client.wire import CatalogPins
from spark_catalog.connections import connect
from spark_catalog.read import tables_in
from spark_catalog.streaming.spark_limits import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
from table_data.change_feed.changes import refuse_replaced
from table_data.change_feed.version_changes import ReadAt
from table_data.errors import InvalidCall

FORMAT: Final = "lance_catalog_steps"
COLUMNS: Final = (
    "from_catalog_version long, to_catalog_version long, name string, location string, from_version long, "
    "from_time long, to_version long, to_time long"
)
"""`from_version` is null if all rows of the version are meant. Times are milliseconds since the epoch, null if they are
not known."""

Offset = dict[str, Any]
"""`catalog_version`, 0 before the first rows; by name of the tables in it their `versions` and `locations`, and when
these versions were committed, in milliseconds since the epoch (`times`)."""


@dataclass(frozen=True, slots=True)
class StepOptions:
    """The tables and options of a stream of steps.

    Attributes:
        server: URL of the server.
        namespace: Namespace of the tables.
        tables: Names of the tables.
        start: Catalog version whose rows are known, "latest" for that of the start of the query. None for all rows.
        max_versions: Catalog versions of a micro-batch, None for all that there are.
        token: API key for the server.
    """

    server: str
    namespace: tuple[str, ...]
    tables: tuple[str, ...]
    start: int | Literal["latest"] | None
    max_versions: int | None
    token: str | None

    def pack(self) -> dict[str, str]:
        """As options of the data source, which are texts."""
        known = [list(self.namespace), list(self.tables), self.start, self.max_versions]
        return {"server": self.server, "steps": json.dumps(known)} | ({"token": self.token} if self.token else {})

    @classmethod
    def unpack(cls, options: dict[str, str]) -> StepOptions:
        """The inverse of `pack`."""
        namespace, tables, start, limit = json.loads(options["steps"])
        return cls(options["server"], tuple(namespace), tuple(tables), start, limit, options.get("token"))


class StepSource(DataSource):  # type: ignore[misc] # the base class has no types
    """Ranges of catalog versions. Options are made by `StepOptions.pack`."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def schema(self) -> str:
        """The columns of a row."""
        return COLUMNS

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's name
        """A reader of ranges."""
        return StepReader(StepOptions.unpack(self.options))


class StepPartition(InputPartition):  # type: ignore[misc] # the base class has no types
    """The rows of a range."""

    def __init__(self, rows: tuple[tuple[object, ...], ...]) -> None:
        super().__init__(None)
        self.rows = rows


class StepReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc] # no types
    """Plans micro-batches by catalog versions. All tables of one are at the same catalog version."""

    def __init__(self, options: StepOptions) -> None:
        self._options = options
        self._target: int | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """The offset before the first row of a query without a checkpoint."""
        start = self._options.start
        if start is None:
            return {"catalog_version": 0, "versions": {}, "locations": {}, "times": {}}
        with self._connect() as access:
            return self._offset(access.pins(None if start == "latest" else start))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """The limit of a micro-batch. A version stands for a file, since Spark has no limits of other names."""
        limit = self._options.max_versions
        return ReadAllAvailable() if limit is None else ReadMaxFiles(limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Read no catalog version that is committed after this call."""
        with self._connect() as access:
            self._target = access.state().version

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        """The end of the next micro-batch: the first one in which a table has changed; `start` if none has.

        Raises:
            InvalidCall: A table was dropped, or dropped and made again.
            CatalogUnreachable: The server does not respond.
        """
        known = start["catalog_version"]
        with self._connect() as access:
            newest = self._target or access.state().version
            at = known
            while at < newest:
                at = min(at + limit.max_files, newest) if known and isinstance(limit, ReadMaxFiles) else newest
                end = self._pinned(access, at, newest)
                at = end["catalog_version"]
                self._check(start, end)
                if end["versions"] != start["versions"]:
                    return end
        return start

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """One partition with a row for each table, also for an empty range: Spark runs a first micro-batch anyway."""
        is_first = not start["catalog_version"]
        rows = [
            (
                *(start["catalog_version"], end["catalog_version"], name, end["locations"][name]),
                *(None if is_first else start["versions"].get(name, 0), _time(start, name)),
                *(version, _time(end, name)),
            )
            for name, version in end["versions"].items()
        ]
        return [StepPartition(tuple(rows))]

    def read(self, partition: InputPartition) -> Iterator[tuple[object, ...]]:
        """The rows of a partition."""
        assert isinstance(partition, StepPartition)
        return iter(partition.rows)

    def _connect(self) -> CatalogServer:
        return connect(self._options.server, self._options.token)

    def _pinned(self, access: CatalogServer, version: int, newest: int) -> Offset:
        """The tables at a catalog version, at the newest if that one was removed."""
        try:
            return self._offset(access.pins(version))
        except CommitRejected:
            if version == newest:
                raise
            return self._offset(access.pins(newest))

    def _offset(self, pins: CatalogPins) -> Offset:
        found = tables_in(pins.tables, self._options.namespace)
        tables = {name: found[name] for name in self._options.tables if name in found and found[name].version}
        return {
            "catalog_version": pins.version,
            "versions": {name: state.version for name, state in tables.items()},
            "locations": {name: state.uri for name, state in tables.items()},
            "times": {name: state.identity.committed_ms for name, state in tables.items() if state.identity},
        }

    def _check(self, start: Offset, end: Offset) -> None:
        for name, location in start["locations"].items():
            if end["locations"].get(name) != location:
                raise InvalidCall(
                    f"{'$'.join((*self._options.namespace, name))}: expected the table at {location}, found it dropped "
                    f"in catalog version {end['catalog_version']}: start again without a checkpoint"
                )
            known, newest = (ReadAt(offset["versions"][name], _time(offset, name)) for offset in (start, end))
            refuse_replaced("$".join((*self._options.namespace, name)), known, newest)


def _time(offset: Offset, name: str) -> int | None:
    """When the version of a table was committed. Checkpoints of earlier releases do not state it."""
    return (offset.get("times") or {}).get(name)
