"""Compaction: fewer, larger fragments for the same rows, and indices over all of them.

Pylance rewrites the data and the indices; the caller commits the transactions.

rewrite    prepares the transaction that compacts a version
plan       options
indices    prepares the transaction that extends indices to rows that they do not cover
scratch    a temporary clone, for the steps of pylance that need a commit
"""

from lance_core.compaction.indices import prepare_indices
from lance_core.compaction.plan import CompactionOptions
from lance_core.compaction.rewrite import PreparedCompaction, prepare_compaction

__all__ = [
    "CompactionOptions",
    "PreparedCompaction",
    "prepare_compaction",
    "prepare_indices",
]
