"""The routes that the application serves, read from the application itself."""

from __future__ import annotations

from dataclasses import dataclass

from namespace_server.rest import blobs, following, handlers
from namespace_server.rest.blobs import OneBlob
from namespace_server.rest.handlers import Read, RowsChange, TableChange, TableRead
from namespace_server.rest.models import BranchQuery, EventsQuery, QueryParameters
from namespace_server.rest.multipart import MultipartChange
from namespace_server.rest.routers import OPERATIONS
from namespace_server.rest.routing import Route


@dataclass(frozen=True, slots=True)
class Served:
    """One method and path; `read` is set for reads of the catalog.

    `rows` are the query parameters where the body is rows, `parameters` those beside a JSON body; `data` says that
    pylance does the work, and `reads_rows` that it reads them alone; `pinned` says that a catalog version may be named,
    and `fresh` that a table version may be named that is the oldest to be read. Of what has `ranges` a range of bytes
    may be asked for.
    """

    operation: str
    method: str
    path: str
    read: Read | None = None
    rows: type[QueryParameters] | None = None
    parameters: type[QueryParameters] | None = None
    data: bool = False
    reads_rows: bool = False
    pinned: bool = False
    fresh: bool = False
    ranges: bool = False

    @property
    def query(self) -> type[QueryParameters]:
        return self.rows or self.parameters or (QueryParameters if self.read is None else self.read.query)


# The list of versions, and their events, are the history itself: there is nothing to pin.
UNPINNED = {"list_catalog_versions", "list_catalog_events", "describe_catalog_version", "describe_catalog_figures"}
"""Of the history, and of the newest version alone."""


def _served(route: Route) -> Served:
    named = (route.operation, route.method, route.path)
    match route.work:
        case Read() as read:
            return Served(*named, read=read, pinned=route.operation not in UNPINNED)
        case following.events:
            return Served(*named, read=Read(EventsQuery))
        case RowsChange(query):
            return Served(*named, rows=query, data=True)
        case TableRead():
            return Served(*named, data=True, reads_rows=True, pinned=True, fresh=True)
        case blobs.fetch_blobs:
            return Served(*named, data=True, reads_rows=True, pinned=True, fresh=True)
        case handlers.read_changes:  # its body names the versions
            return Served(*named, data=True, reads_rows=True)
        case OneBlob(query):
            return Served(*named, parameters=query, data=True, reads_rows=True, pinned=True, fresh=True, ranges=True)
        case TableChange() as change:
            return Served(*named, parameters=None if change.query is QueryParameters else change.query, data=True)
        case handlers.maintain_table:
            return Served(*named, data=True)
        case MultipartChange(_, parameters):
            return Served(*named, parameters=parameters, data=True)
        case handlers.change_schema_metadata:
            return Served(*named, parameters=BranchQuery, data=True)
    return Served(*named)


SERVED: tuple[Served, ...] = tuple(map(_served, OPERATIONS))
CHANGES = tuple(item for item in SERVED if item.read is None)
