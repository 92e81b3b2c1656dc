"""Lists of namespaces and tables of a database.

A name that a client of lancedb finds invalid fails its whole list, so such names are left out.
"""

from __future__ import annotations

import re
from typing import Any, Final, cast
from urllib.parse import urlencode

import orjson
from pydantic import TypeAdapter
from starlette.responses import Response

from namespace_server.answer import json_bytes
from namespace_server.rest.dialects.translation import Translation
from namespace_server.rest.exchange import Exchange
from namespace_server.rest.handlers import Read
from namespace_server.rest.models import ListTablesQuery, Paging, QueryParameters
from namespace_server.rest.request.decoding import parse_query
from namespace_server.rest.responses import Success

_NAME: Final = re.compile(r"[A-Za-z0-9_.-]+")
_PATH: Final = "/v1/namespace/{id}/table/list"
_PAGING: Final[TypeAdapter[QueryParameters]] = TypeAdapter(Paging)

_LIST_TABLES: Final = Read(ListTablesQuery).handler("list_tables", _PATH)


def addressable(answer: Any) -> object:
    """A list of tables without the names that clients refuse."""
    return {**answer, "tables": [name for name in answer["tables"] if _NAME.fullmatch(name)]}


async def _table_names(exchange: Exchange) -> Response:
    """The names of the tables of a database, those after `page_token`, which is a name: a page is as long as asked for.

    It is answered by lists of the tables of the namespace.
    """
    scope = exchange.scope
    _, given = parse_query(scope["query_string"], _PAGING)
    asked = dict(given)
    limit = cast("int", given.get("limit", -1))
    exchange.segments, scope["route_path"] = ("$",), _PATH
    names: list[str] = []
    while True:
        scope["query_string"] = urlencode(asked).encode()
        page = await _LIST_TABLES(exchange)
        found = orjson.loads(page.body)
        names += [name for name in found["tables"] if _NAME.fullmatch(name)]
        if "page_token" not in found or 0 <= limit <= len(names):
            break
        asked["page_token"] = found["page_token"]
    response = Success(json_bytes({"tables": names if limit < 0 else names[:limit]}), None)
    response.raw_headers += [header for header in page.raw_headers if header[0].startswith(b"x-")]
    return response


TRANSLATIONS: Final = {
    "list_all_tables": Translation(work=_table_names, nothing={"tables": []}),
    "list_tables": Translation(answer=addressable, nothing={"tables": []}),
    "list_namespaces": Translation(nothing={"namespaces": []}),
    "create_namespace": Translation(),
    "describe_namespace": Translation(),
    "drop_namespace": Translation(),
}
