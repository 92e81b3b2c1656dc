"""Tables as DataFrames of fixed versions. Versions are resolved once; tasks open them without the catalog."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from namespace_client.http import CatalogServer
from spark_catalog.connections import connected
from spark_catalog.errors import InvalidWrite
from spark_catalog.graph import Edge, Graph, Node, parse_properties
from spark_catalog.tables.frames import parallelism, scan_frame
from spark_catalog.tables.pinned import PinnedTable
from spark_catalog.tables.planned import plan_scan
from spark_catalog.tables.scans import Scan
from spark_catalog.version_names import NamedVersions
from table_data.batch_operations import TableId, TableState


@dataclass(frozen=True, slots=True)
class GraphSnapshot:
    """The tables of one namespace at one catalog version, consistent with each other.

    Attributes:
        catalog_version: Catalog version that was read.
        versions: Table versions by table name.
        graph: Declarations stored in the properties of the tables.
        tables: Rows by table name.
    """

    catalog_version: int
    versions: Mapping[str, int]
    graph: Graph
    tables: Mapping[str, DataFrame]

    @property
    def nodes(self) -> dict[str, DataFrame]:
        """Rows of the node tables by name."""
        return {name: self.tables[name] for name in self.graph.nodes}

    @property
    def edges(self) -> dict[str, DataFrame]:
        """Rows of the edge tables by name."""
        return {name: self.tables[name] for name in self.graph.edges}


def read_table(
    spark: SparkSession,
    server: CatalogServer | str,
    table_id: Sequence[str],
    *,
    catalog_version: int | None = None,
    columns: Sequence[str] | None = None,
    filter: str | None = None,  # noqa: A002 - the word of Lance and of Spark
    limit: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Read a table as of a catalog version.

    The version is resolved by this call. Later commits do not change the DataFrame. Unsigned integers become the next
    wider signed type, half floats become floats. Spark knows the size of the rows before the filter.

    Example:
        ```python
        names = read_table(spark, "http://127.0.0.1:2333", ["social", "person"], columns=["name"])
        ```

    Args:
        spark: Session that runs the tasks.
        server: Connections to a server, or its URL.
        table_id: Path of the table.
        catalog_version: Catalog version to read, the newest if None.
        columns: Names of the columns to read, all columns if None. `_rowid`, `_rowaddr`, `_row_created_at_version` and
            `_row_last_updated_at_version` may be among them.
        filter: SQL expression of Lance that the rows must match. It is applied where the rows are read.
        limit: Largest number of rows; which ones is not defined.
        storage_options: Options of Lance for the object store of the table.

    Returns:
        The rows.

    Raises:
        InvalidWrite: There is no such table, version or column, or the filter does not fit the table.
        ServerUnreachable: The server does not respond.
    """
    with connected(server) as catalog:
        state = NamedVersions(catalog, tuple(table_id), catalog_version).find()
    table = PinnedTable.of(state, storage_options or state.storage_options)
    return read_pinned(spark, table, columns=columns, filter=filter, limit=limit)


def read_pinned(
    spark: SparkSession,
    table: PinnedTable,
    *,
    columns: Sequence[str] | None = None,
    filter: str | None = None,  # noqa: A002 - the word of Lance and of Spark
    limit: int | None = None,
    only: Collection[int] | None = None,
) -> DataFrame:
    """Read rows of one version, without a catalog. See `read_table`; `only` names the fragments to read."""
    if limit is not None and limit < 0:
        raise InvalidWrite(f"{table.uri}: limit {limit}: expected a number from 0")
    if columns is not None and not columns:
        raise InvalidWrite(f"{table.uri}: expected columns, found none")
    scan = Scan(tuple(columns) if columns is not None else None, filter, limit)
    return scan_frame(spark, plan_scan(table, scan, tasks=parallelism(spark), only=only))


def read_graph(
    spark: SparkSession,
    server: CatalogServer | str,
    namespace: Sequence[str],
    *,
    catalog_version: int | None = None,
    columns: Mapping[str, Sequence[str]] | None = None,
    filter: Mapping[str, str] | None = None,  # noqa: A002 - the word of Lance and of Spark
    storage_options: Mapping[str, str] | None = None,
) -> GraphSnapshot:
    """Read all tables of a namespace as of one catalog version. Tables that are only declared are left out.

    Args:
        spark: Session that runs the tasks.
        server: Connections to a server, or its URL.
        namespace: Path of the namespace.
        catalog_version: Catalog version to read, the newest if None.
        columns: Names of the columns to read by table; all columns of a table that is left out.
        filter: SQL expressions of Lance by table; all rows of a table that is left out.
        storage_options: Options of Lance for the object store of the tables.

    Returns:
        The tables, with their versions and declarations.

    Raises:
        InvalidWrite: A stored declaration cannot be understood; or `columns` or `filter` do not fit, or name a table
            that is not there.
        ServerUnreachable: The server does not respond.
    """
    options = dict(storage_options or {})
    wanted, filters = dict(columns or {}), dict(filter or {})
    nodes: dict[str, Node] = {}
    edges: dict[str, Edge] = {}
    frames: dict[str, DataFrame] = {}
    versions: dict[str, int] = {}
    with connected(server) as catalog:
        pins = catalog.pins(catalog_version)
        for name, state in tables_in(pins.tables, namespace).items():
            if state.version is None:
                continue
            described = catalog.table(state.id, at=pins.version) or state
            declared = parse_properties(name, described.properties)
            if isinstance(declared, Node):
                nodes[name] = declared
            elif declared is not None:
                edges[name] = declared
            versions[name] = state.version
            table = PinnedTable.of(state, options or described.storage_options)
            frames[name] = read_pinned(spark, table, columns=wanted.get(name), filter=filters.get(name))
    unknown = sorted({*wanted, *filters} - frames.keys())
    if unknown:
        raise InvalidWrite(f"columns or filter of {', '.join(unknown)}: expected tables among {', '.join(frames)}")
    return GraphSnapshot(pins.version, versions, Graph(nodes, edges), frames)


def tables_in(tables: Mapping[TableId, TableState], namespace: Sequence[str]) -> dict[str, TableState]:
    """The tables of a namespace without its children, by name."""
    parent = tuple(namespace)
    return {table_id[-1]: state for table_id, state in sorted(tables.items()) if table_id[:-1] == parent}
