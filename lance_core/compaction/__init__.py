"""Compaction: fewer, larger fragments for the same rows. Pylance rewrites the data; this engine commits.

table      `compact`: compacts and commits a table that is given by its URI or store
rewrite    prepares the transaction that compacts a version
plan       options
scratch    a temporary clone, for the steps of pylance that need a commit
"""

from lance_core.compaction.plan import CompactionOptions
from lance_core.compaction.rewrite import PreparedCompaction, discard_compaction, prepare_compaction
from lance_core.compaction.table import Compacted, compact, compact_table

__all__ = [
    "Compacted",
    "CompactionOptions",
    "PreparedCompaction",
    "compact",
    "compact_table",
    "discard_compaction",
    "prepare_compaction",
]
