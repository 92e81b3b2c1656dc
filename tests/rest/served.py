"""The routes that the application serves, read from the application itself."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace

from fastapi.routing import APIRoute

from namespace_server.rest import models
from namespace_server.rest.direct import DirectRoute, RowChangeRoute, RowReadRoute, RowsRoute
from namespace_server.rest.models import Query
from namespace_server.rest.reads import ReadRoute
from namespace_server.rest.routers import (
    DIRECT,
    indices,
    namespaces,
    queries,
    references,
    rows,
    schemas,
    tables,
    transactions,
    versions,
)


@dataclass(frozen=True, slots=True)
class Served:
    """One method and path; `read` is set for reads of the catalog.

    `rows` are the query parameters where the body is rows, `parameters` those beside a JSON body; `data` says that
    pylance does the work; `pinned` says that a catalog version may be named, and `fresh` that a table version may be
    named that is the oldest to be read.
    """

    operation: str
    method: str
    path: str
    read: ReadRoute | None = None
    rows: type[Query] | None = None
    parameters: type[Query] | None = None
    data: bool = False
    pinned: bool = False
    fresh: bool = False

    @property
    def query(self) -> type[Query]:
        return self.rows or self.parameters or (Query if self.read is None else self.read.query)


ROWS: dict[str, type[Query]] = {
    "create_table": models.CreateTableQuery,
    "stage_rows": models.StageRowsQuery,
}
PARAMETERS: dict[str, type[Query]] = {
    "update_table_schema_metadata": models.BranchQuery,
    "drop_table_index": models.BranchQuery,
}
BEHIND = tuple(
    Served(
        route.name,
        method,
        route.path,
        rows=ROWS.get(route.name),
        parameters=PARAMETERS.get(route.name),
        data=module in (rows, queries, schemas, indices),
        pinned="at" in inspect.signature(route.endpoint).parameters,
        fresh="at" in inspect.signature(route.endpoint).parameters,
    )
    for module in (tables, versions, namespaces, references, transactions, rows, queries, schemas, indices)
    for route in module.router.routes
    if isinstance(route, APIRoute)
    for method in route.methods
)
# The list of versions is the history itself: there is nothing to pin.
HISTORY = {"list_catalog_versions", "describe_catalog_version"}


def _direct(route: DirectRoute) -> Served:
    found = Served(route.operation, route.method, route.path)
    match route:
        case ReadRoute():
            return replace(found, read=route, pinned=route.operation not in HISTORY)
        case RowsRoute():
            return replace(found, rows=route.query, data=True)
        case RowReadRoute():
            return replace(found, data=True, pinned=True, fresh=True)
        case RowChangeRoute():
            return replace(found, data=True)
    return found


SERVED: tuple[Served, ...] = (*(_direct(route) for route in DIRECT), *BEHIND)
CHANGES = tuple(item for item in SERVED if item.read is None)
