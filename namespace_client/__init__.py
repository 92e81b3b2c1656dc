"""Transactions over many Lance tables: computed in this process, committed by the catalog in one batch.

catalog             `Catalog`: connections, transactions, retries of whole blocks
transaction         `MultiTableTransaction`: calls that change tables, made by `table_data` in this process
staged_transaction  `StagedTransaction`: begin, composition, isolation, commit, resend, result
leases              `Intent`, `PinnedVersion`: what is kept for a job while it is renewed
reading             `TableReader`: reads inside a transaction
http                `HttpClient`, and the backend for a server
in_process          the backend for a catalog in this process
access              reads and the batch request, over any backend
wire                request and response types, and the exceptions for error responses
results, errors     results and exceptions
error_codes         error codes of the specification

A module imports only modules below it in this list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lance_core.lazy_names import lazy_names

if TYPE_CHECKING:
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
    from namespace_client.leases import Intent, PinnedVersion
    from namespace_client.reading import TableReader
    from namespace_client.results import CompactionCounts, MergeCounts, TableResult, TransactionResult
    from namespace_client.staged_transaction import StagedTransaction
    from namespace_client.transaction import MultiTableTransaction
    from namespace_client.wire import CatalogIntent, CatalogPin, DroppedTable
    from table_data.batch_operations import TableOfIntent, TableState

__all__ = [
    "Attempt",
    "Catalog",
    "CatalogIntent",
    "CatalogPin",
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
    "DroppedTable",
    "IncompatibleConflict",
    "Intent",
    "InvalidCall",
    "MergeCounts",
    "MultiTableTransaction",
    "PinnedVersion",
    "RetryableConflict",
    "StagedTransaction",
    "TableOfIntent",
    "TableReader",
    "TableResult",
    "TableState",
    "TransactionResult",
]

_HOMES: Final = {
    "CompactionOptions": "lance_core.compaction",
    "Attempt": "namespace_client.catalog",
    "Catalog": "namespace_client.catalog",
    "CatalogUnavailable": "namespace_client.errors",
    "CatalogUnreachable": "namespace_client.errors",
    "ClientError": "namespace_client.errors",
    "CommitConflict": "namespace_client.errors",
    "CommitRejected": "namespace_client.errors",
    "CommitUnknown": "namespace_client.errors",
    "Conflict": "namespace_client.errors",
    "IncompatibleConflict": "namespace_client.errors",
    "InvalidCall": "namespace_client.errors",
    "RetryableConflict": "namespace_client.errors",
    "CatalogServer": "namespace_client.http",
    "Intent": "namespace_client.leases",
    "PinnedVersion": "namespace_client.leases",
    "TableReader": "namespace_client.reading",
    "CompactionCounts": "namespace_client.results",
    "MergeCounts": "namespace_client.results",
    "TableResult": "namespace_client.results",
    "TransactionResult": "namespace_client.results",
    "StagedTransaction": "namespace_client.staged_transaction",
    "MultiTableTransaction": "namespace_client.transaction",
    "CatalogIntent": "namespace_client.wire",
    "CatalogPin": "namespace_client.wire",
    "DroppedTable": "namespace_client.wire",
    "TableOfIntent": "table_data.batch_operations",
    "TableState": "table_data.batch_operations",
}

# Each is imported when it is first used: a Spark worker needs few of them.
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
