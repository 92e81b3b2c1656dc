"""Who the server takes the caller of a request for; and for auditors, who did what from where, and what was refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from lance_namespace.errors import InvalidInputError
from starlette.responses import Response

from namespace_server.rest.auditing import audited_versions, refused_attempts
from namespace_server.rest.exchange import ANY_QUERY, Exchange
from namespace_server.rest.header_names import CATALOG_VERSION
from namespace_server.rest.responses import Success
from namespace_server.rest.routing import get


async def _who_am_i(exchange: Exchange) -> Response:
    """The principal of the request, what it has shown, and until when that is good.

    It is about no catalog version: the answer names none, and a request for one is refused.
    """
    exchange.require_no_body()
    ANY_QUERY.parse(exchange.scope["query_string"])
    if exchange.as_of is not None:
        raise InvalidInputError(f"{CATALOG_VERSION.decode()}: expected none: the caller is of no version")
    identity = exchange.identity
    if identity is None:
        return _answer({"means": "none", "roles": []})
    found: dict[str, Any] = {"principal": identity.principal, "means": identity.means}
    if identity.issuer is not None:
        found["issuer"] = identity.issuer
    if identity.expires_at is not None:
        found["expires_at"] = identity.expires_at
    return _answer({**found, "roles": sorted(identity.roles)})


def _answer(found: Mapping[str, Any]) -> Success:
    """The answer, which no cache keeps: the next request to this address may be another caller's."""
    response = Success(orjson.dumps(found), None)
    response.raw_headers.append((b"cache-control", b"no-store"))
    return response


ROUTES = (
    get("who_am_i", "/v1/whoami", _who_am_i),
    get("list_audited_versions", "/v1/catalog/audit/versions", audited_versions),
    get("list_refused_attempts", "/v1/catalog/audit/refused", refused_attempts),
)
