"""Transactions over many Lance tables: computed in this process, committed by the catalog in one batch.

catalog             `Catalog`: connections, transactions, retries of whole blocks
transaction         `MultiTableTransaction`: calls that change tables
staged_transaction  `StagedTransaction`: begin, composition, isolation, commit, resend, result
table_changes       the steps of one table
composition         from the steps of one table to the transactions of the batch (pure)
staging             data files, deletion files and indices, written through pylance
descriptions        uncommitted results of pylance as operations of the engine
reading, merging    readers, and the clauses of a merge
results, errors     results and exceptions
access              reads and the batch request, over any backend
http, in_process    the two backends: a server, or a catalog in this process
wire                request and response types
"""

from __future__ import annotations

from lance_core.compaction import CompactionOptions
from namespace_client.catalog import Attempt, Catalog
from namespace_client.errors import (
    CatalogUnavailable,
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
from namespace_client.http import CatalogServer
from namespace_client.reading import TableReader
from namespace_client.results import CompactionCounts, MergeCounts, TableResult, TransactionResult
from namespace_client.staged_transaction import StagedTransaction
from namespace_client.transaction import MultiTableTransaction
from table_data.batch_operations import TableState

__all__ = [
    "Attempt",
    "Catalog",
    "CatalogServer",
    "CatalogUnavailable",
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
    "StagedTransaction",
    "TableReader",
    "TableResult",
    "TableState",
    "TransactionResult",
]
