"""Handlers of rows that are uploaded in parts: a part is an insert that names its upload, and is committed with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from lance_namespace.errors import InvalidInputError
from pydantic import TypeAdapter
from starlette.responses import Response

from namespace_server.outcomes import before_commit
from namespace_server.rest.exchange import Exchange, QueryModel
from namespace_server.rest.handlers import RowsChange
from namespace_server.rest.header_names import IDEMPOTENCY_KEY
from namespace_server.rest.models import QueryParameters
from namespace_server.rest.responses import success
from namespace_server.rest.routing import Handler
from table_data.requests.table_requests import Insert

_PART = ("upload_id", "upload_part_id")


class RowsInsert(RowsChange):
    """An insert, which is a part of an upload where its query names that."""

    def handler(self, operation: str, path: str) -> Handler:
        """The handler of an operation on a path."""
        insert, model = RowsChange.handler(self, operation, path), QueryModel(self.query)

        async def answer(exchange: Exchange) -> Response:
            given, _ = model.parse(exchange.scope["query_string"])
            if not any(name in given for name in _PART):
                return await insert(exchange)
            service, caller = exchange.service, exchange.caller
            with before_commit():
                rows = await exchange.rows(model, digested=True)
                asked = cast("dict[str, Any]", dict(rows.request))
                named = [asked.pop(name, None) for name in _PART]
                for name, value in zip(_PART, named, strict=True):
                    if value is None:
                        raise InvalidInputError(f"{name}: expected it with {', '.join(_PART)}, found none")
                _refuse_key(exchange)
            upload_id, part_id = named
            part = await service.data.add_part(cast("Insert", asked), upload_id, part_id, rows.body, caller)
            return success(service, part)

        return answer


@dataclass(frozen=True, slots=True)
class MultipartChange:
    """A request of this `kind` about an upload as a whole, which the query names. Other fields are in a JSON body."""

    kind: type[Mapping[str, Any]]
    query: type[QueryParameters]

    def handler(self, operation: str, _path: str) -> Handler:
        """The handler of an operation on a path."""
        query, kind = QueryModel(self.query), TypeAdapter(self.kind)

        async def answer(exchange: Exchange) -> Response:
            service, caller = exchange.service, exchange.caller
            with before_commit():
                _refuse_key(exchange)
                _, named = query.parse(exchange.scope["query_string"])
                asked = await exchange.table_request(kind, query, optional=True)
                if asked.request.get("upload_id") != named.get("upload_id"):
                    raise InvalidInputError("upload_id: expected it in the query, found another one in the body")
            with service.bodies.hold(asked.size):
                answered = await service.data.multipart(operation, cast("Any", asked.request), exchange.receive, caller)
            return success(service, answered)

        return answer


def _refuse_key(exchange: Exchange) -> None:
    """Raise InvalidInputError (13) for a key: a repetition is known by the ids of the upload and of the part."""
    if IDEMPOTENCY_KEY in exchange.headers:
        raise InvalidInputError(
            f"{IDEMPOTENCY_KEY.decode()}: expected none, a multipart write is known again by its upload_id"
        )
