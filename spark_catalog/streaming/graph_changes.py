"""`graph_changes`: the rows that several tables got, in step with the versions of the catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import DataFrame, SparkSession

from namespace_client.http import CatalogServer
from spark_catalog.change_feed.change_frames import changes_frame
from spark_catalog.errors import InvalidWrite
from spark_catalog.streaming.steps import FORMAT, StepOptions, StepSource
from spark_catalog.tables.pinned import PinnedTable
from table_data.change_feed.policy import ChangePolicy, Meaning
from table_data.change_feed.version_changes import ReadAt


@dataclass(frozen=True, slots=True)
class GraphStep:
    """The changes of several tables between two catalog versions.

    Attributes:
        from_catalog_version: Catalog version whose rows are known, 0 if `tables` hold all rows.
        to_catalog_version: Catalog version that all tables are at, 0 if there are none.
        tables: Added and changed rows by table name. Tables that have no version yet are left out.
    """

    from_catalog_version: int
    to_catalog_version: int
    tables: Mapping[str, DataFrame]


class GraphChanges:
    """A stream of steps, made by `graph_changes`.

    Attributes:
        stream: Streaming DataFrame for `foreachBatch`. Its rows name versions; `read` gives the rows of the tables.
    """

    def __init__(
        self,
        stream: DataFrame,
        policy: ChangePolicy,
        columns: Mapping[str, Sequence[str]],
        storage_options: Mapping[str, str],
    ) -> None:
        self.stream = stream
        self._policy = policy
        self._columns = dict(columns)
        self._storage_options = dict(storage_options)

    def read(self, rows: DataFrame) -> GraphStep:
        """The changes of a micro-batch of `stream`.

        Args:
            rows: What `foreachBatch` passes.

        Returns:
            The rows of all tables, up to one catalog version. The first step of a query may have no rows.

        Raises:
            InvalidWrite: A version does what the options do not allow.
            VersionGone: A version was cleaned up before it was read.
        """
        ranges = rows.collect()
        frames = {
            item["name"]: changes_frame(
                rows.sparkSession,
                item["name"],
                PinnedTable(item["location"], item["to_version"], self._storage_options, item["to_time"]),
                None if item["from_version"] is None else ReadAt(item["from_version"], item["from_time"]),
                self._policy,
                self._columns.get(item["name"]),
            )
            for item in ranges
        }
        if not ranges:
            return GraphStep(0, 0, {})
        return GraphStep(ranges[0]["from_catalog_version"], ranges[0]["to_catalog_version"], frames)


def graph_changes(
    spark: SparkSession,
    server: CatalogServer | str,
    namespace: Sequence[str],
    tables: Sequence[str],
    *,
    starting_version: int | Literal["latest"] | None = None,
    max_versions_per_trigger: int | None = None,
    columns: Mapping[str, Sequence[str]] | None = None,
    updates: Meaning = "fail",
    deletes: Meaning = "fail",
    overwrites: Meaning = "fail",
    storage_options: Mapping[str, str] | None = None,
    token: str | None = None,
) -> GraphChanges:
    """Stream the changes of several tables, which are at one catalog version in every micro-batch.

    Example:
        ```python
        changes = graph_changes(spark, url, ["social"], ["person", "knows"])

        @writer.batch
        def degrees(tx: GraphWrite, rows: DataFrame, epoch: int) -> None:
            step = changes.read(rows)
            tx.append("degrees", step.tables["knows"].groupBy("who").count())

        changes.stream.writeStream.option("checkpointLocation", checkpoint).foreachBatch(degrees).start()
        ```

    Args:
        spark: Session of the stream.
        server: Connections to a server, or its URL.
        namespace: Namespace of the tables.
        tables: Names of the tables. A table that is not there yet is read from its first version on.
        starting_version: Catalog version whose rows are known, or "latest". By default the first micro-batch has all
            rows.
        max_versions_per_trigger: Catalog versions of a micro-batch, all that there are if None. If the catalog version
            at the limit was removed, the micro-batch goes up to the newest.
        columns: Names of the columns to read by table; all columns of a table that is left out.
        updates: What versions mean that update rows: "fail", "ignore" to leave these rows out, or "rows". If this or
            one of the following two is "rows", all rows have the columns `_change_type` and `_commit_version`.
        deletes: What versions mean that delete rows: "fail", "ignore", or "rows" to read them as they were, which needs
            stable row ids.
        overwrites: What versions mean that replace all rows: "fail", "ignore", or "rows" to read what they delete,
            insert and update, which needs stable row ids.
        storage_options: Options of Lance for the object store of the tables.
        token: API key for the server, which the processes of the stream use.

    Returns:
        The stream, and the rows of its micro-batches.

    Raises:
        InvalidWrite: No table is named, or `columns` names another one.
    """
    unknown = sorted(set(columns or {}) - set(tables))
    if unknown or not tables:
        raise InvalidWrite(f"graph changes of {list(tables)}: expected names of tables, columns of {unknown}")
    options = StepOptions(
        server.url if isinstance(server, CatalogServer) else server,
        tuple(namespace),
        tuple(tables),
        starting_version,
        max_versions_per_trigger,
        token,
    )
    spark.dataSource.register(StepSource)
    stream = spark.readStream.format(FORMAT).options(**options.pack()).load()
    return GraphChanges(stream, ChangePolicy(updates, deletes, overwrites), columns or {}, storage_options or {})
