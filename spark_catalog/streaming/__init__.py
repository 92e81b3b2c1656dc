"""Streams: micro-batches as batches of the catalog, and rows that were added between versions.

marks          the last committed epoch of a query, committed with its rows
stream_writer  `StreamWriter`: many tables from `foreachBatch`, each epoch once
"""
