"""The routes, one module for each kind of object.

namespaces, tables, versions, references, transactions, catalog
               operations on one object, and lists
batches        changes of many tables, all or nothing
rows           changes of rows, which come as Arrow
schemas        changes of metadata and columns
indices        indices of tables
queries        reads of rows
unsupported    published operations that this server does not serve
health         probes
metrics        what the server measures
documentation  the OpenAPI document and the pages that show it
"""

from __future__ import annotations

from namespace_server.rest.routers import (
    batches,
    catalog,
    documentation,
    health,
    indices,
    metrics,
    namespaces,
    queries,
    references,
    rows,
    schemas,
    tables,
    transactions,
    unsupported,
    versions,
)
from namespace_server.rest.routing import Route

OPERATIONS: tuple[Route, ...] = (
    *tables.ROUTES,
    *versions.ROUTES,
    *batches.ROUTES,
    *rows.ROUTES,
    *queries.ROUTES,
    *indices.ROUTES,
    *schemas.ROUTES,
    *namespaces.ROUTES,
    *references.ROUTES,
    *transactions.ROUTES,
    *catalog.ROUTES,
)
"""The operations that are served, in the order in which they are matched: the most frequent first."""

ROUTES: tuple[Route, ...] = (*OPERATIONS, *health.ROUTES, *metrics.ROUTES, *documentation.ROUTES, *unsupported.ROUTES)
"""All routes."""
