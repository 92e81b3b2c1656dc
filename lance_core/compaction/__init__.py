"""Fewer, larger fragments for the same rows: pylance rewrites the data, the commit is ours."""

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
