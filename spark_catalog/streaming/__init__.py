"""Structured Streaming over many tables. Streams of one table are in `spark_catalog.source`.

stream_writer  `StreamWriter`: many tables from `foreachBatch`, each epoch once
graph_changes  `graph_changes`: several tables, at one catalog version in every micro-batch
steps          ranges of catalog versions, as a stream
epochs         `Epoch`: a write that commits at most once
marks          the last committed epoch of a query, committed with its rows
spark_limits   names that PySpark 4.1 does not have
"""
