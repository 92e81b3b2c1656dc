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
documentation  the OpenAPI document and the pages that show it
"""

from __future__ import annotations

from namespace_server.rest.direct import DirectRoute
from namespace_server.rest.routers import (
    batches,
    catalog,
    documentation,
    health,
    indices,
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

DIRECT: tuple[DirectRoute, ...] = (
    *tables.DIRECT,
    *versions.DIRECT,
    *batches.DIRECT,
    *rows.DIRECT,
    *queries.DIRECT,
    *indices.DIRECT,
    *namespaces.DIRECT,
    *references.DIRECT,
    *transactions.DIRECT,
    *catalog.DIRECT,
)
"""In the order in which they are matched: the most frequent first."""

ROUTERS = (
    tables.router,
    versions.router,
    namespaces.router,
    references.router,
    transactions.router,
    rows.router,
    schemas.router,
    indices.router,
    queries.router,
    health.router,
    documentation.router,
    unsupported.router,
)
"""Of everything else, for FastAPI."""
