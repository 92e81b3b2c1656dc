"""The routes that the application serves, read from the application itself."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi.routing import APIRoute

from namespace_server.rest import models
from namespace_server.rest.models import Query
from namespace_server.rest.reads import ReadRoute
from namespace_server.rest.routers import READS, batches, namespaces, queries, rows, tables, versions


@dataclass(frozen=True, slots=True)
class Served:
    """One method and path; `read` is set for reads of the catalog.

    `rows` are the query parameters where the body is rows; `pinned` says that a catalog version may be named.
    """

    operation: str
    method: str
    path: str
    read: ReadRoute | None = None
    rows: type[Query] | None = None
    pinned: bool = False

    @property
    def query(self) -> type[Query]:
        return self.rows or (Query if self.read is None else self.read.query)


ROWS: dict[str, type[Query]] = {"insert_into_table": models.InsertQuery}
CHANGES = tuple(
    Served(route.name, method, route.path, rows=ROWS.get(route.name), pinned=module is queries)
    for module in (tables, versions, namespaces, batches, rows, queries)
    for route in module.router.routes
    if isinstance(route, APIRoute)
    for method in route.methods
)
# The list of versions is the history itself: there is nothing to pin.
HISTORY = {"list_catalog_versions", "describe_catalog_version"}
SERVED: tuple[Served, ...] = (
    *(Served(read.operation, read.method, read.path, read, pinned=read.operation not in HISTORY) for read in READS),
    *CHANGES,
)
