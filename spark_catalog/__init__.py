"""Graphs from Spark into Lance tables: staged by tasks, published by one atomic batch, read at one catalog version."""

from __future__ import annotations

from namespace_client.http import CatalogServer
from namespace_client.wire import CatalogPins
from spark_catalog.errors import (
    GraphCheckFailed,
    GraphConflict,
    GraphError,
    InvalidWrite,
    ServerUnreachable,
    StagingFailed,
    WriteRejected,
    WriteUnknown,
)
from spark_catalog.graph import Edge, Graph, Node
from spark_catalog.read import GraphSnapshot, read_graph, read_table
from spark_catalog.session import configure, start
from spark_catalog.work import GraphWriteResult, StagedTable, TableResult
from spark_catalog.write import GraphWrite

__all__ = [
    "CatalogPins",
    "CatalogServer",
    "Edge",
    "Graph",
    "GraphCheckFailed",
    "GraphConflict",
    "GraphError",
    "GraphSnapshot",
    "GraphWrite",
    "GraphWriteResult",
    "InvalidWrite",
    "Node",
    "ServerUnreachable",
    "StagedTable",
    "StagingFailed",
    "TableResult",
    "WriteRejected",
    "WriteUnknown",
    "configure",
    "read_graph",
    "read_table",
    "start",
]
