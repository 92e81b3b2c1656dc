"""Streams: micro-batches as batches of the catalog, and rows that were added between versions.

stream_writer    `StreamWriter`: many tables from `foreachBatch`, each epoch once
sink             sink of the data source: one table, each epoch once
epochs           `Epoch`: a write that commits at most once
source           stream of the rows that versions of a table add or change
graph_changes    `graph_changes`: several tables in step
steps            ranges of catalog versions, as a stream
change_frames    `read_changes`: changes of one table as a DataFrame
changes          which rows those are, told by transactions and manifests
changes_by_id    the same with deleted rows and rows before an update, told by stable row ids
row_differences  how two versions differ by the ids of their rows
version_changes  `VersionChanges`: what both find
change_rows      these rows, divided among tasks and read there
spark_limits     names that PySpark 4.1 does not have
policy           what other changes mean to a reader
marks            the last committed epoch of a query, committed with its rows
"""
