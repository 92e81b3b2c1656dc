"""What lancedb sells and this server does not have: lists of it are empty, and all else is refused by name (406).

The page of clients in the documentation says why, and what to do instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from lance_namespace.errors import InvalidInputError, TransactionNotFoundError, UnsupportedOperationError
from starlette.responses import Response

from namespace_server.answer import json_bytes
from namespace_server.rest.dialects.translation import Query, Translation, present
from namespace_server.rest.exchange import Exchange
from namespace_server.rest.handlers import Read
from namespace_server.rest.request.body import JsonObject
from namespace_server.rest.request.headers import Headers
from namespace_server.rest.responses import Success
from namespace_server.rest.routing import Handler, Work

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


def _none_there(body: Mapping[str, object], about: str | None = None) -> Handler:
    """Answers what there is none of. One that is `about` a table or a namespace looks whether that is there."""
    kind = about or "table"
    find = Read(body=True, silent=True).handler(f"{kind}_exists", f"/v1/{kind}/{{id}}/exists")

    async def answer(exchange: Exchange) -> Response:
        if about is not None:
            await find(exchange)
        _ = exchange.place  # is that of a database
        return Success(json_bytes(body), exchange.service.catalog_version)

    return answer


async def _no_job(exchange: Exchange) -> Response:
    """Answers that there is no such job."""
    _ = exchange.place  # is that of a database
    raise TransactionNotFoundError(f"job not found: {_INSTEAD['jobs']}")


def texts(body: JsonObject, *, needed: tuple[str, ...] = (), known: tuple[str, ...] = ()) -> JsonObject:
    """A request whose fields are texts, and nothing depends on them. Raises `InvalidInputError` for any other."""
    found = present(body)
    for name in needed:
        if name not in found:
            raise InvalidInputError(f"{name}: expected a text, found none")
    for name, value in found.items():
        if name not in (*needed, *known):
            raise InvalidInputError(f"{name}: expected no such field, found {str(value)[:80]}")
        if not isinstance(value, str):
            raise InvalidInputError(f"{name}: expected a text, found {str(value)[:80]}")
    return {}


def parameters(query: Query, _headers: Headers, *, known: tuple[str, ...] = ()) -> Query:
    """Parameters of a query, on which nothing depends. Raises `InvalidInputError` for one that is not known."""
    for name, value in query:
        if name not in known:
            raise InvalidInputError(f"{name}: expected no such parameter, found {value[:80]!r}")
    return []


def statistics(body: JsonObject) -> JsonObject:
    """A request for statistics of a log. Where there is no log there are no rows in it, whether they are asked for."""
    found = present(body)
    rows = found.pop("include_generation_rows", False)
    if not isinstance(rows, bool):
        raise InvalidInputError(f"include_generation_rows: expected true or false, found {str(rows)[:80]}")
    return found


def _refused(kind: str, *operations: str) -> dict[str, Translation]:
    return {operation: Translation(work=NotServed(_INSTEAD[kind])) for operation in operations}


def _listed(key: str, *known: str) -> Translation:
    """A list of a namespace, in pages; in a database that is missing, too."""
    taken = partial(parameters, known=("limit", "page_token", *known))
    none: Mapping[str, object] = {key: []}
    return Translation(body=present, query=taken, work=_none_there(none, "namespace"), nothing=none)


def _job(work: Work, needed: tuple[str, ...] = (), known: tuple[str, ...] = ()) -> Translation:
    return Translation(body=partial(texts, needed=needed, known=known), query=parameters, work=work)


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
    "list_views": _listed("views"),
    "list_materialized_views": _listed("views"),
    "list_functions": _listed("functions", "include_definition"),
    "list_secrets": _listed("secrets"),
    "list_jobs": _job(_none_there({"jobs": []}), known=("page_token",)),
    "describe_jobs": _job(_no_job, needed=("job_id",)),
    "cancel_jobs": _job(_no_job, needed=("job_id",)),
    "get_lsm_write_spec": Translation(body=present, work=_none_there({"lsm_write_spec": None}, "table")),
    "get_lsm_stats": Translation(body=statistics, work=_none_there({"lsm_stats": None}, "table")),
}
