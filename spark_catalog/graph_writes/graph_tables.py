"""The tables of a graph write: found or declared in its transaction, with their declarations in the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
from pyspark.sql import DataFrame

from lance_core.data import arrow_schema
from lance_core.transaction.operations import Operation
from namespace_client.http import CatalogServer
from namespace_client.staged_transaction import Isolation, StagedTransaction
from spark_catalog.errors import InvalidWrite
from spark_catalog.graph import Edge, Graph, Node, parse_properties
from spark_catalog.graph_writes.checks import AnyCheck, Level, TableView, plan_checks
from spark_catalog.graph_writes.table_calls import TableCalls
from spark_catalog.read import tables_in
from spark_catalog.tables import types as spark_types
from spark_catalog.tables.pinned import PinnedTable
from spark_catalog.tasks.staging import StageTarget
from table_data.batch_operations import TableId, TableState
from table_data.table_changes import TableChanges


class GraphTransaction(StagedTransaction):
    """A transaction that shows the versions that its operations lead to."""

    def changes(self, table: TableId) -> TableChanges:
        """The table with the operations so far. Raises `InvalidCall` if there is none."""
        return self._require(table, None)

    def apply(self, changes: TableChanges, operation: Operation, call: str) -> None:
        """Add an operation to a table. Calls for different tables may run at the same time.

        Raises `InvalidCall` if the operation does not fit the table.
        """
        with self._named(call, changes):
            changes.take(call, operation, message=self._message)


class GraphTables:
    """The tables of one write.

    Args:
        server: The catalog.
        transaction: The transaction of the write.
        namespace: Namespace of the tables.
        graph: Declarations that the caller gave.
        target: Settings of all tables for staging.
    """

    def __init__(
        self,
        server: CatalogServer,
        *,
        namespace: Sequence[str],
        graph: Graph | None,
        target: StageTarget,
        message: str | None,
        isolation: Isolation,
        intent_after: timedelta | None,
    ) -> None:
        self.transaction = GraphTransaction(
            server,
            message=message,
            isolation=isolation,
            storage_options=target.storage_options,
            key_prefix="graph-write",
            intent_after=intent_after,
        )
        self.writes: dict[str, TableCalls] = {}
        self._server = server
        self._namespace = tuple(namespace)
        self._graph = graph
        self._settings = target

    def id(self, name: str) -> TableId:
        """Path of a table."""
        return (*self._namespace, name)

    def find(self, name: str) -> TableCalls | None:
        """The table for a call that needs rows; None if it has none. The table is not declared."""
        write = self.writes.get(name)
        if write is not None:
            return write
        state = self._state(name)
        if state is None or state.version is None:
            return None
        changes = self.transaction.changes(self.id(name))
        manifest = changes.require_head().manifest
        return self._write(name, state, arrow_schema(manifest.fields, manifest.schema_metadata))

    def find_or_declare(self, name: str, df: DataFrame, schema: pa.Schema | None, *, replaces: bool) -> TableCalls:
        """The table for a call with rows. A table that is not in the catalog is declared, and created by the batch.

        Raises `InvalidWrite` if a schema is given for a table that has one, unless the call replaces all rows.
        """
        found = self.find(name)
        if found is not None:
            if schema is not None and not replaces and not found.calls:
                raise InvalidWrite(f"{name}: it has a schema; another one is for new tables and overwrite")
            return found
        state = self._state(name)
        declared = self._declaration(name, state)
        made = schema or new_schema(name, df, declared)
        check_required(name, declared, made)
        if state is None:
            properties = declared.properties() if declared is not None else {}
            state = self.transaction.declare(self.id(name), properties=properties)
        return self._write(name, state, made)

    def _write(self, name: str, state: TableState, schema: pa.Schema) -> TableCalls:
        changes = self.transaction.changes(self.id(name))
        declared = self._declaration(name, state)
        check_required(name, declared, schema)
        target = replace(
            self._settings,
            name=name,
            uri=state.uri,
            schema=schema,
            version=None if state.version is None else PinnedTable.of(state, changes.options),
            required=declared.required if declared is not None else (),
            storage_options=changes.options,
        )
        return TableCalls(target, changes, declared, self.transaction.apply, new=changes.new)

    def _state(self, name: str) -> TableState | None:
        """The table as of the begin of the write, or as declared by it."""
        return self.transaction.describe(self.id(name))

    def _declaration(self, name: str, state: TableState | None) -> Node | Edge | None:
        stored = None if state is None else parse_properties(name, state.properties)
        declared = None if self._graph is None else self._graph.table(name)
        if declared is not None and stored is not None and declared != stored:
            raise InvalidWrite(f"{name}: declared as {declared}, stored as {stored}")
        return declared or stored

    # -- the graph

    def edges_at(self, node: str) -> dict[str, Edge]:
        """The edge tables at a node table, as the caller declared them or as they are stored in the namespace."""
        return self._whole_graph().edges_at(node)

    def plan_checks(self, level: Level) -> tuple[list[AnyCheck], list[str]]:
        """The checks of the write, and the names of the existing tables that were written or are read by them.

        All calls must be applied.
        """
        loses_nodes = [name for name, write in self.writes.items() if _loses_rows(write)]
        whole = level == "full" and any(isinstance(self.writes[name].declared, Node) for name in loses_nodes)
        graph = self._whole_graph() if whole else self._known_graph()
        names = dict.fromkeys(self.writes)
        if level == "full":
            for name in self.writes:
                declared = graph.table(name)
                if isinstance(declared, Edge):
                    names |= dict.fromkeys((declared.source, declared.target))
                elif name in loses_nodes:
                    names |= dict.fromkeys(graph.edges_at(name))
        existing = [name for name in names if self._state(name) is not None]
        views = {name: self._view(name) for name in names}
        return plan_checks(graph, views, level), existing

    def _view(self, name: str) -> TableView:
        write = self.writes.get(name)
        if write is None:
            write = self.find(name)
            rows = write.rows_before() if write is not None else None
            return TableView(name, None, rows, rows)
        repeats = any(call.change in ("append", "overwrite") for call in write.calls)
        return TableView(
            name,
            write.rows_after(added=True),
            write.rows_after(added=False),
            write.rows_after(),
            repeats=repeats,
            loses_rows=_loses_rows(write),
        )

    def _known_graph(self) -> Graph:
        """The declared graph, or the declarations stored with the written tables and the end points of their edges."""
        if self._graph is not None:
            return self._graph
        edges = {name: write.declared for name, write in self.writes.items() if isinstance(write.declared, Edge)}
        nodes = {name: write.declared for name, write in self.writes.items() if isinstance(write.declared, Node)}
        for end in dict.fromkeys(end for edge in edges.values() for end in (edge.source, edge.target)):
            if end not in nodes:
                declared = self._declaration(end, self._state(end))
                if not isinstance(declared, Node):
                    raise InvalidWrite(f"{end}: edges are stored as ending there, but it is no node table")
                nodes[end] = declared
        return Graph(nodes, edges)

    def _whole_graph(self) -> Graph:
        """The declared graph, or all declarations that are stored in the namespace or made by this write."""
        if self._graph is not None:
            return self._graph
        nodes: dict[str, Node] = {}
        edges: dict[str, Edge] = {}
        stored = tables_in(self._server.pins(self.transaction.catalog_version).tables, self._namespace)
        for name in dict.fromkeys((*stored, *self.writes)):
            declared = self._declaration(name, self._state(name))
            if isinstance(declared, Node):
                nodes[name] = declared
            elif declared is not None:
                edges[name] = declared
        return Graph(nodes, edges)


def new_schema(name: str, df: DataFrame, declared: Node | Edge | None) -> pa.Schema:
    """The schema of a new table. Only columns that the graph requires are not nullable."""
    required = declared.required if declared is not None else ()
    schema = spark_types.storable_schema(name, df.schema)
    return pa.schema([item.with_nullable(item.name not in required) for item in schema])


def check_required(name: str, declared: Node | Edge | None, schema: pa.Schema) -> None:
    """Raise `InvalidWrite` if the schema lacks a column that the graph requires."""
    missing = [column for column in (declared.required if declared is not None else ()) if column not in schema.names]
    if missing:
        raise InvalidWrite(f"{name}: the declared graph needs columns {missing}, found {schema.names}")


def _loses_rows(write: TableCalls) -> bool:
    return any(call.loses_rows for call in write.calls)
