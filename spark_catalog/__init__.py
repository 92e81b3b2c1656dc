"""Graphs in Lance tables from Spark: staged by tasks, committed in one batch, read at one catalog version.

sql            SQL on a catalog server: `session`, `lance_transaction`
source         data source `lance`: `spark.read.format("lance")`, `df.write.format("lance")`, and streams of one table
options        options of reads and writes, of the data source and by name
streaming      `StreamWriter`, `graph_changes`: micro-batches of many tables, each committed once
graph_writes   `GraphWrite`: many tables, staged and committed in one batch
change_feed    `read_changes`: the rows that versions of a table inserted, updated and deleted
tasks          data files, written by Spark tasks
read           `read_table`, `read_graph`: tables as DataFrames
tables         one version of a table, as tasks read it
version_names  numbers, tags, branches, times and catalog versions as names of versions
spark_session  settings of a Spark session
requirements   checks of pyspark, Java, the jar and the server
graph          `Graph`, `Node`, `Edge`: the declaration of a graph
connections    connections to a server
errors         exceptions
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lance_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from namespace_client.http import CatalogServer
    from namespace_client.wire import CatalogPins
    from spark_catalog.change_feed.change_frames import read_changes
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
    from spark_catalog.graph_writes.graph_write import GraphWrite
    from spark_catalog.graph_writes.results import (
        GraphPreview,
        GraphTableResult,
        GraphWriteResult,
        PreviewedTable,
        StagedTable,
    )
    from spark_catalog.read import GraphSnapshot, read_graph, read_table
    from spark_catalog.spark_session import configure, start
    from spark_catalog.sql.blocks import lance_transaction
    from spark_catalog.sql.settings import session
    from spark_catalog.streaming.graph_changes import GraphChanges, GraphStep, graph_changes
    from spark_catalog.streaming.stream_writer import StreamWriter

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
    "GraphPreview": "spark_catalog.graph_writes.results",
    "PreviewedTable": "spark_catalog.graph_writes.results",
    "GraphTableResult": "spark_catalog.graph_writes.results",
    "GraphWriteResult": "spark_catalog.graph_writes.results",
    "StagedTable": "spark_catalog.graph_writes.results",
    "configure": "spark_catalog.spark_session",
    "start": "spark_catalog.spark_session",
    "lance_transaction": "spark_catalog.sql.blocks",
    "session": "spark_catalog.sql.settings",
    "read_changes": "spark_catalog.change_feed.change_frames",
    "GraphChanges": "spark_catalog.streaming.graph_changes",
    "GraphStep": "spark_catalog.streaming.graph_changes",
    "graph_changes": "spark_catalog.streaming.graph_changes",
    "StreamWriter": "spark_catalog.streaming.stream_writer",
    "GraphWrite": "spark_catalog.graph_writes.graph_write",
}

# Each is imported when it is first used: a Spark worker needs few of them.
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
