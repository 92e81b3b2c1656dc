"""Graphs in Lance tables from Spark: staged by tasks, committed in one batch, read at one catalog version.

graph        `Graph`, `Node`, `Edge`: the declaration of a graph
write        `GraphWrite`: calls of a write, on a transaction of `namespace_client`
table_write  state of one table in a write
jobs         staging jobs, side by side
staging      data files and deletion files, written by Spark tasks
checks       rules of the graph
views        tables before and after a write, for the checks
read         `read_table`, `read_graph`: tables as DataFrames
results      results and progress of a write
errors       exceptions
session      settings of a Spark session
"""

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
from spark_catalog.results import GraphTableResult, GraphWriteResult, StagedTable
from spark_catalog.session import configure, start
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
    "GraphTableResult",
    "GraphWrite",
    "GraphWriteResult",
    "InvalidWrite",
    "Node",
    "ServerUnreachable",
    "StagedTable",
    "StagingFailed",
    "WriteRejected",
    "WriteUnknown",
    "configure",
    "read_graph",
    "read_table",
    "start",
]
