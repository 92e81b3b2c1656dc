"""Changes of a table between two versions, as a DataFrame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from namespace_client.http import CatalogServer
from spark_catalog.change_feed.change_rows import CHANGE_COLUMNS, divide, read_changed, whole_version
from spark_catalog.connections import connected
from spark_catalog.errors import InvalidWrite
from spark_catalog.tables.frames import sized_numbers
from spark_catalog.tables.pinned import PinnedTable
from spark_catalog.tables.planned import stored_schema
from spark_catalog.tables.scans import Scan
from spark_catalog.tables.types import arrow_schema, row_width, spark_schema
from table_data.change_feed.changes import changes_between
from table_data.change_feed.policy import ChangePolicy, Meaning
from table_data.change_feed.selected_rows import refuse_taken
from table_data.change_feed.version_changes import ReadAt


def read_changes(
    spark: SparkSession,
    server: CatalogServer | str,
    table_id: Sequence[str],
    from_version: int,
    to_version: int | None = None,
    *,
    columns: Sequence[str] | None = None,
    updates: Meaning = "rows",
    deletes: Meaning = "fail",
    overwrites: Meaning = "fail",
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Read the rows that versions of a table added, changed or deleted.

    Rows are as of the version that changed them, deleted rows as of the version before, so a row that was changed twice
    comes twice. The columns `_change_type` (`insert`, `update`, `delete`, or `upsert` if only stable row ids would
    tell) and `_commit_version` are added.

    Example:
        ```python
        new = read_changes(spark, "http://127.0.0.1:2333", ["social", "person"], 4, 7)
        new.where("_change_type = 'insert'").show()
        ```

    Args:
        spark: Session that runs the tasks.
        server: Connections to a server, or its URL.
        table_id: Path of the table.
        from_version: Version of the table whose rows are known, 0 for none.
        to_version: Last version, the newest if None.
        columns: Names of the columns to read, all columns of the last version if None.
        updates: What versions mean that update rows: "rows", "ignore" to leave these rows out, or "fail".
        deletes: What versions mean that delete rows: "fail", "ignore", or "rows" to read them as they were, which needs
            stable row ids.
        overwrites: What versions mean that replace all rows: "fail", "ignore", or "rows" to read what they delete,
            insert and update, which needs stable row ids.
        storage_options: Options of Lance for the object store of the table.

    Returns:
        The rows, in order of the versions within each task.

    Raises:
        InvalidWrite: There is no such table, version or column, or a version does what is to fail.
        VersionGone: A version was cleaned up.
        ServerUnreachable: The server does not respond.
    """
    name = "$".join(table_id)
    with connected(server) as access:
        state = access.table(tuple(table_id))
    if state is None or state.version is None:
        raise InvalidWrite(f"{name}: expected a table with a version, found none")
    last = state.version if to_version is None else to_version
    if not 0 <= from_version <= last <= state.version or not last:
        raise InvalidWrite(
            f"{name}: changes from version {from_version} to {last}: expected numbers in order, at most {state.version}"
        )
    table = PinnedTable.of(state.at(last), storage_options or {})
    return changes_frame(spark, name, table, from_version, ChangePolicy(updates, deletes, overwrites), columns)


def changes_frame(
    spark: SparkSession,
    name: str,
    table: PinnedTable,
    known: ReadAt | int | None,
    policy: ChangePolicy,
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """The changes after version `known` up to the version of `table`, without a catalog.

    If `known` is None they are all rows of that version, as inserted. With `policy.has_types` there are the columns of
    `CHANGE_COLUMNS`, too. Raises as `read_changes`.
    """
    stored = table.open().schema
    wanted = None if columns is None else Scan(tuple(columns))
    read = stored if wanted is None else stored_schema(table, stored, wanted)
    added = CHANGE_COLUMNS if policy.has_types else {}
    refuse_taken(name, read.names, added)
    read = pa.schema([*read, *added.items()])
    changes = [whole_version(table)] if known is None else list(changes_between(name, table, known, policy))
    tasks = divide(table, changes)
    schema = spark_schema(read)
    arrow = arrow_schema(schema)

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from read_changed(tasks[number], arrow, added)

    size = sum(changed.rows for changed in changes) * row_width(read)
    return sized_numbers(spark, len(tasks), size).mapInArrow(rows, schema)
