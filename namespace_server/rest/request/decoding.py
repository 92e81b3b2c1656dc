"""From the parts of an HTTP request to the request of a catalog operation."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import orjson
from lance_namespace.errors import InvalidInputError
from pydantic import TypeAdapter

from namespace_server.rest.models import QueryParameters
from namespace_server.rest.request.body import JsonObject, decode_object
from namespace_server.rest.request.headers import SHORT_QUERY, read_query, read_repeated
from namespace_server.rest.request.ids import ROOT, Id, IdScope, matches
from namespace_server.rest.request.limits import RequestLimits


def decode_body(
    data: bytes,
    limits: RequestLimits,
    *,
    values: int,
    route: Id | None = None,
    place: IdScope = ROOT,
    optional: bool = False,
) -> JsonObject:
    """A body as plain JSON, with the id of its route if that has one. Its fields are not checked.

    All ids in it are from the root, of those that are below its `place`. Credentials in it are dropped: they are taken
    from the headers only. An empty list as `id` is no id: generated clients send one for a list that is not set.
    Raises `InvalidInputError`.
    """
    body = decode_object(data, limits, values=values, optional=optional)
    body.pop("identity", None)
    if body.get("id") == []:
        del body["id"]
    if route is not None:
        named = body.get("id")
        if not matches(named, route):
            raise InvalidInputError(f"request body names {_shown(named)}, the route names {_shown(route)}")
        if named is None:
            body["id"] = route
    return place.request(body) if place.database else body


def parse_query(
    query_string: bytes, model: TypeAdapter[QueryParameters], repeated: tuple[str, ...] = ()
) -> tuple[Mapping[str, str], Mapping[str, object]]:
    """All query parameters as text, and those of `model`, with their types. Others are refused, but the delimiter.

    Those in `repeated` are lists of all their values.

    Short query strings are parsed once: those of a client hardly differ. Raises `InvalidInputError` and
    `pydantic.ValidationError`.
    """
    parse = _parse_short if len(query_string) <= SHORT_QUERY else _parse
    return parse(query_string, model, repeated)


def _parse(
    query_string: bytes, model: TypeAdapter[QueryParameters], repeated: tuple[str, ...]
) -> tuple[Mapping[str, str], Mapping[str, object]]:
    query = read_query(query_string, repeated)
    lists = {name: read_repeated(query_string, name) for name in repeated if name in query}
    given = {name: value for name, value in query.items() if name != "delimiter"}  # which belongs to the path
    return query, model.validate_python(given | lists)


_parse_short = lru_cache(512)(_parse)


def _shown(value: object) -> str:
    return orjson.dumps(value).decode()[:400]
