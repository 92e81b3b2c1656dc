"""Transactions over many Lance tables, from Python: computed here, published by the catalog in one batch."""

from __future__ import annotations

from lance_core.compaction import CompactionOptions
from namespace_client.catalog import Attempt, Catalog
from namespace_client.errors import (
    CatalogUnreachable,
    ClientError,
    CommitConflict,
    CommitRejected,
    CommitUnknown,
    Conflict,
    IncompatibleConflict,
    InvalidCall,
    RetryableConflict,
)
from namespace_client.merging import MergeCounts
from namespace_client.reading import TableReader
from namespace_client.transaction import CompactionCounts, MultiTableTransaction, TableResult, TransactionResult

__all__ = [
    "Attempt",
    "Catalog",
    "CatalogUnreachable",
    "ClientError",
    "CommitConflict",
    "CommitRejected",
    "CommitUnknown",
    "CompactionCounts",
    "CompactionOptions",
    "Conflict",
    "IncompatibleConflict",
    "InvalidCall",
    "MergeCounts",
    "MultiTableTransaction",
    "RetryableConflict",
    "TableReader",
    "TableResult",
    "TransactionResult",
]
