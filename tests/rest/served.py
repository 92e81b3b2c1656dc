"""The routes that the application serves, read from the application itself."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi.routing import APIRoute
from pydantic import BaseModel

from namespace_server.rest.models import Query
from namespace_server.rest.reads import ReadRoute
from namespace_server.rest.routers import READS, batches, namespaces, tables, versions


@dataclass(frozen=True, slots=True)
class Served:
    """One method and path; `read` is set for reads."""

    operation: str
    method: str
    path: str
    read: ReadRoute | None = None

    @property
    def query(self) -> type[BaseModel]:
        return Query if self.read is None else self.read.query


CHANGES = tuple(
    Served(route.name, method, route.path)
    for module in (tables, versions, namespaces, batches)
    for route in module.router.routes
    if isinstance(route, APIRoute)
    for method in route.methods
)
SERVED: tuple[Served, ...] = tuple(Served(read.operation, read.method, read.path, read) for read in READS) + CHANGES
