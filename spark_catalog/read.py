"""Tables as DataFrames of fixed versions. Versions are resolved once; tasks open them without the catalog."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import lance
import pyarrow as pa
from lance.file import LanceFileReader
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from namespace_client.http import CatalogServer
from spark_catalog.errors import InvalidWrite
from spark_catalog.graph import Edge, Graph, Node, parse_properties
from spark_catalog.staging import numbers
from table_data.batch_operations import TableId, TableState

_BATCH_ROWS = 65_536


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


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """One version of one table. Pickled into the tasks."""

    uri: str
    version: int
    storage_options: Mapping[str, str] = field(default_factory=dict)

    def open(self) -> lance.LanceDataset:
        """Open the version with pylance."""
        return lance.dataset(self.uri, version=self.version, storage_options=dict(self.storage_options))

    def frame(
        self, spark: SparkSession, columns: Sequence[str] | None = None, predicate: str | None = None
    ) -> DataFrame:
        """Read rows, one task for each group of fragments.

        Args:
            spark: Session that runs the tasks.
            columns: Names of the columns to read, all columns if None.
            predicate: SQL filter expression of Lance.

        Returns:
            The rows.

        Raises:
            InvalidWrite: There is no such column.
        """
        dataset = self.open()
        wanted = list(columns) if columns is not None else dataset.schema.names
        unknown = [name for name in wanted if name not in dataset.schema.names]
        if unknown or not wanted:
            raise InvalidWrite(f"{self.uri}: expected columns among {dataset.schema.names}, found {wanted}")
        stored = pa.schema([dataset.schema.field(name) for name in wanted])
        ids = [fragment.fragment_id for fragment in dataset.get_fragments()]
        shown = from_arrow_schema(_readable(stored))
        arrow = to_arrow_schema(shown, timezone="UTC")

        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            opened = self.open()
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    fragment = opened.get_fragment(ids[number])
                    for rows in fragment.to_batches(columns=wanted, filter=predicate, batch_size=_BATCH_ROWS):
                        yield _cast(rows, arrow)

        return numbers(spark, len(ids)).mapInArrow(read, shown)


def read_table(
    spark: SparkSession,
    server: CatalogServer | str,
    table_id: Sequence[str],
    *,
    catalog_version: int | None = None,
    columns: Sequence[str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Read a table as of a catalog version.

    The version is resolved by this call. Later commits do not change the DataFrame. Unsigned integers become the next
    wider signed type, half floats become floats.

    Example:
        ```python
        names = read_table(spark, "http://127.0.0.1:2333", ["social", "person"], columns=["name"])
        ```

    Args:
        spark: Session that runs the tasks.
        server: Connections to a server, or its URL.
        table_id: Path of the table.
        catalog_version: Catalog version to read, the newest if None.
        columns: Names of the columns to read, all columns if None.
        storage_options: Options of Lance for the object store of the table.

    Returns:
        The rows.

    Raises:
        InvalidWrite: There is no such table, version or column.
        ServerUnreachable: The server does not respond.
    """
    with _connected(server) as catalog:
        pins = catalog.pins(catalog_version)
    state = pins.tables.get(tuple(table_id))
    if state is None or state.version is None:
        raise InvalidWrite(f"{'$'.join(table_id)}: no version of it in catalog version {pins.version}")
    return PinnedTable(state.uri, state.version, dict(storage_options or {})).frame(spark, columns)


def read_graph(
    spark: SparkSession,
    server: CatalogServer | str,
    namespace: Sequence[str],
    *,
    catalog_version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> GraphSnapshot:
    """Read all tables of a namespace as of one catalog version. Tables that are only declared are left out.

    Args:
        spark: Session that runs the tasks.
        server: Connections to a server, or its URL.
        namespace: Path of the namespace.
        catalog_version: Catalog version to read, the newest if None.
        storage_options: Options of Lance for the object store of the tables.

    Returns:
        The tables, with their versions and declarations.

    Raises:
        InvalidWrite: A stored declaration cannot be understood.
        ServerUnreachable: The server does not respond.
    """
    options = dict(storage_options or {})
    nodes: dict[str, Node] = {}
    edges: dict[str, Edge] = {}
    frames: dict[str, DataFrame] = {}
    versions: dict[str, int] = {}
    with _connected(server) as catalog:
        pins = catalog.pins(catalog_version)
        for name, state in tables_in(pins.tables, namespace).items():
            if state.version is None:
                continue
            described = catalog.table(state.id, at=pins.version)
            declared = parse_properties(name, described.properties if described else {})
            if isinstance(declared, Node):
                nodes[name] = declared
            elif declared is not None:
                edges[name] = declared
            versions[name] = state.version
            frames[name] = PinnedTable(state.uri, state.version, options).frame(spark)
    return GraphSnapshot(pins.version, versions, Graph(nodes, edges), frames)


def tables_in(tables: Mapping[TableId, TableState], namespace: Sequence[str]) -> dict[str, TableState]:
    """The tables of a namespace without its children, by name."""
    parent = tuple(namespace)
    return {table_id[-1]: state for table_id, state in sorted(tables.items()) if table_id[:-1] == parent}


def read_data_files(
    spark: SparkSession, uri: str, files: Sequence[str], columns: Sequence[str], storage_options: Mapping[str, str]
) -> DataFrame:
    """Read columns of data files that are not part of a version yet. `files` are relative to `uri`; at least one."""
    paths = [f"{uri}/{file}" for file in files]
    options, wanted = dict(storage_options), list(columns)
    stored = LanceFileReader(paths[0], storage_options=options, columns=wanted).read_range(0, 0).to_table().schema
    shown = from_arrow_schema(_readable(stored))
    arrow = to_arrow_schema(shown, timezone="UTC")

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                reader = LanceFileReader(paths[number], storage_options=options, columns=wanted)
                for rows in reader.read_all(batch_size=_BATCH_ROWS).to_batches():
                    yield _cast(rows, arrow)

    return numbers(spark, len(paths)).mapInArrow(read, shown)


@contextmanager
def _connected(server: CatalogServer | str) -> Iterator[CatalogServer]:
    """The given connections, or new ones to a URL that are closed with the block."""
    if isinstance(server, CatalogServer):
        yield server
    else:
        with CatalogServer(server) as connection:
            yield connection


def _readable(schema: pa.Schema) -> pa.Schema:
    """The schema with types that Spark does not have replaced by wider ones."""
    return pa.schema([field.with_type(_readable_type(field.type)).remove_metadata() for field in schema])


def _readable_type(kind: pa.DataType) -> pa.DataType:
    wider = {
        pa.uint8(): pa.int16(),
        pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(),
        pa.uint64(): pa.decimal128(20, 0),
        pa.float16(): pa.float32(),
        pa.date64(): pa.date32(),
    }
    if pa.types.is_struct(kind):
        return pa.struct([item.with_type(_readable_type(item.type)) for item in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_readable_type(kind.value_type)))
    return wider.get(kind, kind)


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Cast a batch to the schema of the DataFrame, which Spark requires exactly."""
    return pa.RecordBatch.from_arrays(
        [
            column if column.type == wanted.type else column.cast(wanted.type)
            for column, wanted in zip(batch.columns, schema, strict=True)
        ],
        schema=schema,
    )
