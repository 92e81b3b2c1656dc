"""Transactions over many Lance tables: computed in this process, committed by the catalog in one batch.

asynchronous        `AsyncCatalog`: the same for asyncio
lancedb_past        `lancedb`: a connection of lancedb to one catalog version
lancedb_transaction tables of a transaction with the methods of lancedb's
progress            `with_progress`: how far rows are written
ray_data            rows of Ray datasets for tables of one transaction
torch_data          rows of several tables for PyTorch, at one catalog version
catalog             `Catalog`: connections, transactions, retries of whole blocks
past                what a catalog did, what is in it and how its server is: history, log, refused attempts, health
changes             changes of namespaces, tables, tags and branches outside of a transaction
differences         what differs between two catalog versions
row_differences     rows of a table that only one of them has
log                 the log of a catalog: a line for each batch
events              the events of the catalog, and cursors that move behind them
reads               reads outside of a transaction, and `CatalogView`: the catalog at one version
row_pages           pages of rows as one looks at them, and searches
table_overview      what the catalog tells of a table
descriptions        what a table is: schema, size, branches, tags, indices
transaction         `MultiTableTransaction`: calls that change tables, made by `table_data` in this process
distributed         its calls for rows that other processes write
staged_transaction  `StagedTransaction`: begin, composition, isolation, commit, resend, result
leases              `Intent`, `PinnedVersion`: what is kept for a job while it is renewed
blobs               `BlobFile`: values of columns of blobs
read_point          the catalog version that the tables of a job are opened as of
reading             `TableReader`: reads inside a transaction
http                `HttpClient`, and the backend for a server
own_server          requests to the server of this process, which go over no network
row_streams         rows of a server, read as they come
in_process          the backend for a catalog in this process
access              reads and changes, over any backend
connections         the address of a catalog, and the credentials of the caller
routes              the HTTP routes of the operations
logins              tokens of the user by server, got by the device grant, renewed and kept
wire                request and response types, and the exceptions for error responses
catalog_overview    what is in a catalog, as far as it is known
maintenance         the result of maintenance of one table
history             the versions of the catalog, and what made them
audit               what a server has refused
grants              who may do what: grants, grantees, objects
grant_changes       changes of grants and roles, and questions about them
names               names of namespaces and tables
explanations        errors by their parts: the thing, the expectation, the finding, what to do
health              how a server is, from its metrics
media_types         images, sounds and films, by how their bytes begin
display             results as text and HTML
call_threads        threads for blocking calls beside an event loop
results, errors     results and exceptions
error_codes         error codes of the specification
tracing             spans and trace headers, where the program uses the SDK of OpenTelemetry

A module imports only modules below it in this list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lance_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from lance_core.compaction import CompactionOptions
    from namespace_client.asynchronous import (
        AsyncAttempt,
        AsyncBlobFile,
        AsyncCatalog,
        AsyncCatalogView,
        AsyncLease,
        AsyncTableReader,
        AsyncTransaction,
    )
    from namespace_client.audit import FailedOperation, RefusedAttempt, RefusedAttempts
    from namespace_client.blobs import BlobFile
    from namespace_client.catalog import Attempt, Catalog
    from namespace_client.catalog_overview import CatalogOverview, TableWorthMaintenance
    from namespace_client.descriptions import BranchDescription, IndexDescription, TableDescription, TagDescription
    from namespace_client.differences import CatalogDiff, ColumnDifference, TableDifference
    from namespace_client.errors import (
        AccessRefused,
        AlreadyExists,
        CatalogClosed,
        CatalogUnavailable,
        CatalogUnreachable,
        ClientError,
        CommitConflict,
        CommitRejected,
        CommitUnknown,
        Conflict,
        EventsGone,
        IncompatibleConflict,
        InvalidCall,
        NotFound,
        RetryableConflict,
    )
    from namespace_client.events import CatalogEvent, ChangedTable
    from namespace_client.grants import (
        CatalogGrant,
        GrantedOn,
        GrantedTo,
        GrantList,
        GrantOutcome,
        PrivilegeCheck,
        RoleHolder,
    )
    from namespace_client.health import HealthWarning, ServerHealth
    from namespace_client.history import CatalogBatch, CatalogChange, CatalogHistory, CatalogVersion
    from namespace_client.http import CatalogServer
    from namespace_client.lancedb_past import lancedb
    from namespace_client.lancedb_transaction import (
        RowsDeleted,
        RowsMerged,
        RowsUpdated,
        TransactionDatabase,
        TransactionMerge,
        TransactionTable,
    )
    from namespace_client.leases import Intent, PinnedVersion
    from namespace_client.log import CatalogLog, LogEntry
    from namespace_client.maintenance import MaintenanceResult, MaintenanceStatus, MaintenanceWork
    from namespace_client.names import Name
    from namespace_client.progress import with_progress
    from namespace_client.reading import TableReader
    from namespace_client.reads import CatalogView
    from namespace_client.results import CompactionCounts, MergeCounts, TableResult, TransactionResult
    from namespace_client.row_differences import RowDiff
    from namespace_client.staged_transaction import StagedTransaction
    from namespace_client.table_overview import (
        ColumnOverview,
        FragmentFile,
        FragmentOverview,
        FragmentPage,
        FragmentSizes,
        IndexOverview,
        PolicyProperty,
        TableOverview,
        VersionOverview,
    )
    from namespace_client.transaction import MultiTableTransaction
    from namespace_client.wire import (
        CallerIdentity,
        CatalogCursor,
        CatalogIntent,
        CatalogPin,
        DroppedTable,
        FoundTables,
    )
    from table_data.batch_operations import TableOfIntent, TableState
    from table_data.errors import WorkFailed

__all__ = [
    "AccessRefused",
    "AlreadyExists",
    "AsyncAttempt",
    "AsyncBlobFile",
    "AsyncCatalog",
    "AsyncCatalogView",
    "AsyncLease",
    "AsyncTableReader",
    "AsyncTransaction",
    "Attempt",
    "BlobFile",
    "BranchDescription",
    "CallerIdentity",
    "Catalog",
    "CatalogBatch",
    "CatalogChange",
    "CatalogClosed",
    "CatalogCursor",
    "CatalogDiff",
    "CatalogEvent",
    "CatalogGrant",
    "CatalogHistory",
    "CatalogIntent",
    "CatalogLog",
    "CatalogOverview",
    "CatalogPin",
    "CatalogServer",
    "CatalogUnavailable",
    "CatalogUnreachable",
    "CatalogVersion",
    "CatalogView",
    "ChangedTable",
    "ClientError",
    "ColumnDifference",
    "ColumnOverview",
    "CommitConflict",
    "CommitRejected",
    "CommitUnknown",
    "CompactionCounts",
    "CompactionOptions",
    "Conflict",
    "DroppedTable",
    "EventsGone",
    "FailedOperation",
    "FoundTables",
    "FragmentFile",
    "FragmentOverview",
    "FragmentPage",
    "FragmentSizes",
    "GrantList",
    "GrantOutcome",
    "GrantedOn",
    "GrantedTo",
    "HealthWarning",
    "IncompatibleConflict",
    "IndexDescription",
    "IndexOverview",
    "Intent",
    "InvalidCall",
    "LogEntry",
    "MaintenanceResult",
    "MaintenanceStatus",
    "MaintenanceWork",
    "MergeCounts",
    "MultiTableTransaction",
    "Name",
    "NotFound",
    "PinnedVersion",
    "PolicyProperty",
    "PrivilegeCheck",
    "RefusedAttempt",
    "RefusedAttempts",
    "RetryableConflict",
    "RoleHolder",
    "RowDiff",
    "RowsDeleted",
    "RowsMerged",
    "RowsUpdated",
    "ServerHealth",
    "StagedTransaction",
    "TableDescription",
    "TableDifference",
    "TableOfIntent",
    "TableOverview",
    "TableReader",
    "TableResult",
    "TableState",
    "TableWorthMaintenance",
    "TagDescription",
    "TransactionDatabase",
    "TransactionMerge",
    "TransactionResult",
    "TransactionTable",
    "VersionOverview",
    "WorkFailed",
    "lancedb",
    "with_progress",
]

_HOMES: Final = {
    "CompactionOptions": "lance_core.compaction",
    "AsyncAttempt": "namespace_client.asynchronous",
    "AsyncBlobFile": "namespace_client.asynchronous",
    "BlobFile": "namespace_client.blobs",
    "AsyncCatalog": "namespace_client.asynchronous",
    "AsyncCatalogView": "namespace_client.asynchronous",
    "AsyncLease": "namespace_client.asynchronous",
    "AsyncTableReader": "namespace_client.asynchronous",
    "AsyncTransaction": "namespace_client.asynchronous",
    "Attempt": "namespace_client.catalog",
    "Catalog": "namespace_client.catalog",
    "CatalogOverview": "namespace_client.catalog_overview",
    "TableWorthMaintenance": "namespace_client.catalog_overview",
    "BranchDescription": "namespace_client.descriptions",
    "IndexDescription": "namespace_client.descriptions",
    "TableDescription": "namespace_client.descriptions",
    "TagDescription": "namespace_client.descriptions",
    "AccessRefused": "namespace_client.errors",
    "CatalogClosed": "namespace_client.errors",
    "AlreadyExists": "namespace_client.errors",
    "CatalogUnavailable": "namespace_client.errors",
    "CatalogUnreachable": "namespace_client.errors",
    "ClientError": "namespace_client.errors",
    "CommitConflict": "namespace_client.errors",
    "CommitRejected": "namespace_client.errors",
    "CommitUnknown": "namespace_client.errors",
    "Conflict": "namespace_client.errors",
    "EventsGone": "namespace_client.errors",
    "IncompatibleConflict": "namespace_client.errors",
    "InvalidCall": "namespace_client.errors",
    "NotFound": "namespace_client.errors",
    "RetryableConflict": "namespace_client.errors",
    "RefusedAttempt": "namespace_client.audit",
    "RefusedAttempts": "namespace_client.audit",
    "CatalogEvent": "namespace_client.events",
    "ChangedTable": "namespace_client.events",
    "CatalogBatch": "namespace_client.history",
    "CatalogChange": "namespace_client.history",
    "CatalogVersion": "namespace_client.history",
    "CatalogDiff": "namespace_client.differences",
    "ColumnDifference": "namespace_client.differences",
    "TableDifference": "namespace_client.differences",
    "CatalogLog": "namespace_client.log",
    "LogEntry": "namespace_client.log",
    "HealthWarning": "namespace_client.health",
    "ServerHealth": "namespace_client.health",
    "RowDiff": "namespace_client.row_differences",
    "FailedOperation": "namespace_client.audit",
    "CatalogHistory": "namespace_client.history",
    "CatalogServer": "namespace_client.http",
    "Intent": "namespace_client.leases",
    "PinnedVersion": "namespace_client.leases",
    "lancedb": "namespace_client.lancedb_past",
    "RowsDeleted": "namespace_client.lancedb_transaction",
    "RowsMerged": "namespace_client.lancedb_transaction",
    "RowsUpdated": "namespace_client.lancedb_transaction",
    "TransactionDatabase": "namespace_client.lancedb_transaction",
    "TransactionMerge": "namespace_client.lancedb_transaction",
    "TransactionTable": "namespace_client.lancedb_transaction",
    "Name": "namespace_client.names",
    "with_progress": "namespace_client.progress",
    "TableReader": "namespace_client.reading",
    "CatalogView": "namespace_client.reads",
    "ColumnOverview": "namespace_client.table_overview",
    "FragmentFile": "namespace_client.table_overview",
    "FragmentOverview": "namespace_client.table_overview",
    "FragmentPage": "namespace_client.table_overview",
    "FragmentSizes": "namespace_client.table_overview",
    "IndexOverview": "namespace_client.table_overview",
    "PolicyProperty": "namespace_client.table_overview",
    "TableOverview": "namespace_client.table_overview",
    "VersionOverview": "namespace_client.table_overview",
    "CompactionCounts": "namespace_client.results",
    "MaintenanceResult": "namespace_client.maintenance",
    "MaintenanceStatus": "namespace_client.maintenance",
    "MaintenanceWork": "namespace_client.maintenance",
    "MergeCounts": "namespace_client.results",
    "TableResult": "namespace_client.results",
    "TransactionResult": "namespace_client.results",
    "StagedTransaction": "namespace_client.staged_transaction",
    "MultiTableTransaction": "namespace_client.transaction",
    "CatalogCursor": "namespace_client.wire",
    "CallerIdentity": "namespace_client.wire",
    "CatalogIntent": "namespace_client.wire",
    "CatalogPin": "namespace_client.wire",
    "CatalogGrant": "namespace_client.grants",
    "GrantedOn": "namespace_client.grants",
    "GrantedTo": "namespace_client.grants",
    "GrantList": "namespace_client.grants",
    "GrantOutcome": "namespace_client.grants",
    "PrivilegeCheck": "namespace_client.grants",
    "RoleHolder": "namespace_client.grants",
    "DroppedTable": "namespace_client.wire",
    "FoundTables": "namespace_client.wire",
    "TableOfIntent": "table_data.batch_operations",
    "TableState": "table_data.batch_operations",
    "WorkFailed": "table_data.errors",
}

# Each is imported when it is first used: a Spark worker needs few of them.
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
