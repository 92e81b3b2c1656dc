"""Streams: micro-batches as batches of the catalog, and rows that were added between versions.

stream_writer  `StreamWriter`: many tables from `foreachBatch`, each epoch once
sink           sink of the data source: one table, each epoch once
epochs         `Epoch`: a write that commits at most once
marks          the last committed epoch of a query, committed with its rows
"""
