"""All checks, one module for each kind of object."""

from __future__ import annotations

from namespace_tck.checks import (
    batches,
    branches,
    columns,
    create_table,
    credentials,
    dropped_tables,
    extensions,
    hostile,
    idempotency,
    indices,
    insert,
    listing,
    merge_insert,
    metadata,
    namespace_paging,
    namespaces,
    queries,
    search,
    stock_clients,
    surface,
    table_versions,
    tables,
    tags,
    transactions,
    update_delete,
    version_commits,
)
from namespace_tck.registry import Check

ALL: tuple[Check, ...] = tuple(
    check
    for module in (
        surface,
        namespaces,
        namespace_paging,
        tables,
        listing,
        create_table,
        insert,
        merge_insert,
        update_delete,
        queries,
        search,
        columns,
        metadata,
        indices,
        table_versions,
        version_commits,
        batches,
        tags,
        branches,
        transactions,
        credentials,
        stock_clients,
        hostile,
        extensions,
        idempotency,
        dropped_tables,
    )
    for check in module.checks
)
"""Every check of the kit, in the order in which they run."""
