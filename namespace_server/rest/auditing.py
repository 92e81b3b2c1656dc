"""Handlers for auditors: who did what from where, and what was refused.

An auditor is a principal that the settings name, or where grants are in force one that has `grant` on the catalog. A
server without keys and issuers knows no principals, so it has none: its operator reads the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import orjson
from lance_namespace.errors import InvalidInputError, PermissionDeniedError, UnsupportedOperationError
from starlette.responses import Response

from namespace_server.attempts import AttemptPage, AttemptQuery, Authorization, with_authorizations
from namespace_server.rest.exchange import Exchange, QueryModel
from namespace_server.rest.header_names import CATALOG_VERSION
from namespace_server.rest.models import AttemptsQuery, Pages
from namespace_server.rest.request.headers import read_id
from namespace_server.rest.responses import Success, success

if TYPE_CHECKING:
    from namespace_server.observability.audit.log import RefusedAttemptLog

_USUAL: Final = 100
_MOST: Final = 1_000
_VERSIONS: Final = QueryModel(Pages)
_ATTEMPTS: Final = QueryModel(AttemptsQuery)


async def audited_versions(exchange: Exchange) -> Response:
    """A page of the history with the origin of each batch: all of it, whatever else the auditor may see."""
    _, given = await _read_query(exchange, _VERSIONS, "the history is of all versions")
    return success(exchange.service, await exchange.service.read(exchange.scope["operation"], dict(given), None))


async def refused_attempts(exchange: Exchange) -> Response:
    """A page of the log of refused attempts, newest first. It is of no catalog version."""
    query, given = await _read_query(exchange, _ATTEMPTS, "attempts are of no version")
    log = exchange.service.attempts
    if log is None:
        raise UnsupportedOperationError("this server does not record refused attempts: audit_log is off")
    wanted = _wanted(query, dict(given))
    return Success(await exchange.service.in_thread(partial(_page, log, wanted)), None)


async def _read_query(
    exchange: Exchange, parameters: QueryModel, unversioned: str
) -> tuple[Mapping[str, str], Mapping[str, object]]:
    """What the query says of an auditor's request, which has no body and names no catalog version.

    `unversioned` is why it names none.
    """
    await _require_auditor(exchange)
    exchange.require_no_body()
    if exchange.as_of is not None:
        raise InvalidInputError(f"{CATALOG_VERSION.decode()}: expected none: {unversioned}")
    return parameters.parse(exchange.scope["query_string"])


async def _require_auditor(exchange: Exchange) -> None:
    """Raise `PermissionDeniedError` (15) unless the caller is an auditor."""
    if not await exchange.service.may_audit(exchange.subject, exchange.scope["operation"]):
        reason = "audit_readers does not name the principal, and no grant on the catalog has grant for it"
        raise with_authorizations(
            PermissionDeniedError(
                "expected a principal that audit_readers names, in the settings of the server, or that has grant on "
                "the catalog"
            ),
            [Authorization("grant", False, reason, "catalog")],
        )


def _wanted(query: Any, given: dict[str, Any]) -> AttemptQuery:
    limit = given.get("limit", _USUAL)
    path = given.get("object")
    return AttemptQuery(
        given.get("principal"),
        None if path is None else tuple(read_id(path, query)),
        given.get("decision"),
        min(limit, _MOST),
        given.get("page_token"),
    )


def _page(log: RefusedAttemptLog, wanted: AttemptQuery) -> bytes:
    """The body of an answer."""
    try:
        page = log.read(wanted)
    except ValueError as error:
        raise InvalidInputError(str(error)) from None
    if page is None:
        raise UnsupportedOperationError("refused attempts go to standard output, where this server cannot read them")
    return orjson.dumps(_body(page))


def _body(page: AttemptPage) -> dict[str, Any]:
    more = {} if page.token is None else {"page_token": page.token}
    return {"attempts": page.attempts, **more, **({"unreadable": page.unreadable} if page.unreadable else {})}
