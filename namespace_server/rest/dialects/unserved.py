"""What lancedb sells and this server does not have: lists of it are empty, and all else is refused by name (406).

The page of clients in the documentation says why, and what to do instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from lance_namespace.errors import InvalidInputError, TransactionNotFoundError, UnsupportedOperationError
from starlette.responses import Response

from namespace_server.answer import json_bytes
from namespace_server.rest.dialects.translation import Translation, present
from namespace_server.rest.exchange import Exchange
from namespace_server.rest.handlers import Read
from namespace_server.rest.request.body import JsonObject
from namespace_server.rest.responses import Success
from namespace_server.rest.routing import Handler

_INSTEAD: Final = {
    "view": "a catalog has tables; read them with a query",
    "materialized_view": "make a table of the query, and write it in one batch with its sources",
    "function": "functions of clients are not run here; compute columns where the data is written",
    "secret": "secrets are not kept here",
    "jobs": "changes are answered when they are done, so that there are no jobs",
    "lsm": "rows are written to tables at once; use add or merge_insert",
    "column": "add the column with an SQL expression, or write its values",
}
"""Why there is none of it, and what to do instead, by kind."""


@dataclass(frozen=True, slots=True)
class NotServed:
    """Refuses an operation by name, with what to do instead."""

    instead: str

    def handler(self, operation: str, _path: str) -> Handler:
        """The handler of an operation on a path."""

        async def answer(_exchange: Exchange) -> Response:
            raise UnsupportedOperationError(f"{operation} is not supported by this server: {self.instead}")

        return answer


@dataclass(frozen=True, slots=True)
class NoneThere:
    """Answers what there is none of. One that is about a table looks whether that is there."""

    body: Mapping[str, object]
    of_table: bool = False

    def handler(self, _operation: str, _path: str) -> Handler:
        """The handler of an operation on a path."""
        find = Read(body=True, silent=True).handler("table_exists", "/v1/table/{id}/exists")

        async def answer(exchange: Exchange) -> Response:
            if self.of_table:
                await find(exchange)
            return Success(json_bytes(self.body), exchange.service.catalog_version)

        return answer


class NoJob:
    """Answers that there is no such job."""

    def handler(self, _operation: str, _path: str) -> Handler:
        """The handler of an operation on a path."""

        async def answer(_exchange: Exchange) -> Response:
            raise TransactionNotFoundError(f"job not found: {_INSTEAD['jobs']}")

        return answer


def statistics(body: JsonObject) -> JsonObject:
    """A request for statistics of a log. Where there is no log there are no rows in it, whether they are asked for."""
    found = present(body)
    rows = found.pop("include_generation_rows", False)
    if not isinstance(rows, bool):
        raise InvalidInputError(f"include_generation_rows: expected true or false, found {str(rows)[:80]}")
    return found


def _refused(kind: str, *operations: str) -> dict[str, Translation]:
    return {operation: Translation(work=NotServed(_INSTEAD[kind])) for operation in operations}


def _none(body: Mapping[str, object]) -> Translation:
    return Translation(work=NoneThere(body))


TRANSLATIONS: Final[Mapping[str, Translation]] = {
    **{
        operation: translation
        for kind, extra in (("view", ()), ("materialized_view", ("refresh",)), ("function", ()), ("secret", ("alter",)))
        for operation, translation in _refused(
            kind, *(f"{what}_{kind}" for what in ("create", "describe", "drop", *extra))
        ).items()
    },
    **_refused("jobs", "pause_jobs", "resume_jobs", "query_events_jobs"),
    **_refused("lsm", "set_lsm_write_spec", "unset_lsm_write_spec", "flush_lsm", "compact_lsm"),
    **_refused("column", "alter_table_backfill_columns", "list_table_errors"),
    "list_views": _none({"views": []}),
    "list_materialized_views": _none({"views": []}),
    "list_functions": _none({"functions": []}),
    "list_secrets": _none({"secrets": []}),
    "list_jobs": _none({"jobs": []}),
    "describe_jobs": Translation(work=NoJob()),
    "cancel_jobs": Translation(work=NoJob()),
    "get_lsm_write_spec": Translation(body=present, work=NoneThere({"lsm_write_spec": None}, of_table=True)),
    "get_lsm_stats": Translation(body=statistics, work=NoneThere({"lsm_stats": None}, of_table=True)),
}
