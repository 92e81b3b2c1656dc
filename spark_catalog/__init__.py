"""Graphs in Lance tables from Spark: staged by tasks, committed in one batch, read at one catalog version.

source         data source `lance`: `spark.read.format("lance")`, `df.write.format("lance")`
tables         one version of a table, as tasks read it
graph          `Graph`, `Node`, `Edge`: the declaration of a graph
write          `GraphWrite`: calls of a write
write_block    the life of a write: jobs, checks, commit, resend, discarding of files
call_arguments arguments of the calls, compared with the table
written_tables tables of a write, in its transaction of `namespace_client`
table_write    state of one table in a write
changes        what a call does to its table: rows that go, merges by key, new columns
jobs           staging jobs, side by side
staging        data files, written by Spark tasks
arrow_batches  size of the batches in which Spark passes rows to tasks
checks         rules of the graph
integer_keys   keys of integers, as sets of numbers
views          rows of published and of staged versions
read           `read_table`, `read_graph`: tables as DataFrames
streaming      `StreamWriter`, `graph_changes`, `read_changes`: streams, each micro-batch once, and changes
results        results and progress of a write
errors         exceptions
spark_session  settings of a Spark session
shipping       this package as a zip file, for executors
sql            SQL on a catalog server: `session`, `lance_transaction`
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from namespace_client.http import CatalogServer
    from namespace_client.wire import CatalogPins
    from spark_catalog.errors import (
        EpochTaken,
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
    from spark_catalog.results import GraphPreview, GraphTableResult, GraphWriteResult, PreviewedTable, StagedTable
    from spark_catalog.spark_session import configure, start
    from spark_catalog.sql.blocks import lance_transaction
    from spark_catalog.sql.settings import session
    from spark_catalog.streaming.change_frames import read_changes
    from spark_catalog.streaming.graph_changes import GraphChanges, GraphStep, graph_changes
    from spark_catalog.streaming.stream_writer import StreamWriter
    from spark_catalog.write import GraphWrite

__all__ = [
    "CatalogPins",
    "CatalogServer",
    "Edge",
    "EpochTaken",
    "Graph",
    "GraphChanges",
    "GraphCheckFailed",
    "GraphConflict",
    "GraphError",
    "GraphPreview",
    "GraphSnapshot",
    "GraphStep",
    "GraphTableResult",
    "GraphWrite",
    "GraphWriteResult",
    "InvalidWrite",
    "Node",
    "PreviewedTable",
    "ServerUnreachable",
    "StagedTable",
    "StagingFailed",
    "StreamWriter",
    "WriteRejected",
    "WriteUnknown",
    "configure",
    "graph_changes",
    "lance_transaction",
    "read_changes",
    "read_graph",
    "read_table",
    "session",
    "start",
]

_HOMES: Final = {
    "CatalogServer": "namespace_client.http",
    "CatalogPins": "namespace_client.wire",
    "EpochTaken": "spark_catalog.errors",
    "GraphCheckFailed": "spark_catalog.errors",
    "GraphConflict": "spark_catalog.errors",
    "GraphError": "spark_catalog.errors",
    "InvalidWrite": "spark_catalog.errors",
    "ServerUnreachable": "spark_catalog.errors",
    "StagingFailed": "spark_catalog.errors",
    "WriteRejected": "spark_catalog.errors",
    "WriteUnknown": "spark_catalog.errors",
    "Edge": "spark_catalog.graph",
    "Graph": "spark_catalog.graph",
    "Node": "spark_catalog.graph",
    "GraphSnapshot": "spark_catalog.read",
    "read_graph": "spark_catalog.read",
    "read_table": "spark_catalog.read",
    "GraphPreview": "spark_catalog.results",
    "PreviewedTable": "spark_catalog.results",
    "GraphTableResult": "spark_catalog.results",
    "GraphWriteResult": "spark_catalog.results",
    "StagedTable": "spark_catalog.results",
    "configure": "spark_catalog.spark_session",
    "start": "spark_catalog.spark_session",
    "lance_transaction": "spark_catalog.sql.blocks",
    "session": "spark_catalog.sql.settings",
    "read_changes": "spark_catalog.streaming.change_frames",
    "GraphChanges": "spark_catalog.streaming.graph_changes",
    "GraphStep": "spark_catalog.streaming.graph_changes",
    "graph_changes": "spark_catalog.streaming.graph_changes",
    "StreamWriter": "spark_catalog.streaming.stream_writer",
    "GraphWrite": "spark_catalog.write",
}


def __getattr__(name: str) -> Any:
    """Import the module of a name when the name is first used: a Spark worker needs few of them."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
