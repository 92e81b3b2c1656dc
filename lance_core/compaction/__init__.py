"""Compaction: fewer, larger fragments for the same rows, and indices over all of them.

Pylance rewrites the data and the indices; the caller commits the transactions.

rewrite    options, and the transactions that compact a version and that extend indices to all its rows
scratch    a temporary clone, for the steps of pylance that need a commit
"""

from lance_core.compaction.rewrite import CompactionOptions, PreparedCompaction, prepare_compaction, prepare_indices

__all__ = [
    "CompactionOptions",
    "PreparedCompaction",
    "prepare_compaction",
    "prepare_indices",
]
