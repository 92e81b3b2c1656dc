"""Handlers of requests: one class for each kind of operation, whose fields hold the differences, or one handler.

Read            a read of the catalog, whose answer may be cached
Commit          a change of the catalog, committed in a group
change          a change that also writes or removes files beside the catalog
RowsChange      a change whose body is rows
TableChange     a change of a table that a JSON body describes, done by a worker
change_schema_metadata  replaces the schema metadata
maintain_table  maintenance of a table, in several changes
read_changes    the changed rows of a table between two catalog versions, done by a worker
TableRead       a read of the rows of a table, or of facts about them, done by a worker
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import Final, cast

from lance_namespace.errors import InvalidInputError, LanceNamespaceError
from pydantic import TypeAdapter
from starlette.responses import Response

from namespace_server.answer import Answer
from namespace_server.data.reads import NEWEST
from namespace_server.data.request_checks import change_type, changes_type, read_type
from namespace_server.data.uploads import STAGED_CHANGES
from namespace_server.directory.model.errors import CommittedElsewhere
from namespace_server.outcomes import before_commit
from namespace_server.rest.errors import ForwardingUnknown, Misdirected
from namespace_server.rest.exchange import Exchange, QueryModel
from namespace_server.rest.forwarding_result import ForwardingResult
from namespace_server.rest.header_names import CATALOG_VERSION, LEAST_VERSION
from namespace_server.rest.models import QueryParameters
from namespace_server.rest.request.body import JsonObject
from namespace_server.rest.request.decoding import decode_body, parse_query
from namespace_server.rest.request.headers import read_id, read_version
from namespace_server.rest.request.ids import Id, IdScope
from namespace_server.rest.responses import STREAM_OF_ROWS, RowsResponse, Success, read_success, success
from namespace_server.rest.routing import Handler
from namespace_server.rest.service import CatalogService
from table_data.requests.table_requests import TableRequest


@dataclass(frozen=True, slots=True)
class Read:
    """A read of the catalog, which reads its request.

    `query` has its query parameters, which win over the `body`, if it has one. Some clients send none where it is
    `optional`. A `silent` read answers an empty body.
    """

    query: type[QueryParameters] = QueryParameters
    body: bool = False
    optional: bool = False
    silent: bool = False

    def handler(self, operation: str, path: str) -> Handler:
        """The handler of an operation on a path."""
        parameters: TypeAdapter[QueryParameters] = TypeAdapter(self.query)
        has_id = "{id}" in path

        async def answer(exchange: Exchange) -> Response:
            service, as_of = exchange.service, exchange.as_of
            if self.body:
                body = await exchange.read_body()
            else:
                body = b""
                exchange.require_no_body()
            query: bytes = exchange.scope["query_string"]
            place = exchange.place
            # The catalog adds the subject to the key where subjects see different things. What a `+` in the path stands
            # for may be another name later.
            is_fixed = as_of is None and "+" not in exchange.segment
            key = (operation, exchange.scope["path"], query, body, place.database) if is_fixed else None
            answer = None if key is None else service.cached(key, exchange.subject)
            if answer is None:
                parsed, given = parse_query(query, parameters)
                route = await exchange.route(parsed, body) if has_id else None
                decode = partial(self._request, exchange, operation, body, parsed, given, route)
                request = await service.decoded(decode, len(body))
                answer = await service.read(operation, request, exchange.subject, at=as_of, key=key)
            service.saw(answer.catalog_version)
            answer = _relative(answer, place)
            return Success(b"" if self.silent else answer.json, answer.catalog_version)

        return answer

    def _request(
        self,
        exchange: Exchange,
        operation: str,
        body: bytes,
        query: Mapping[str, str],
        given: Mapping[str, object],
        route: Id | None,
    ) -> JsonObject:
        request: JsonObject = {}
        place = exchange.place
        if self.body:
            limits = exchange.service.limits
            request = decode_body(
                body, limits, values=limits.read_values, route=route, place=place, optional=self.optional
            )
        elif route is not None:
            request["id"] = place.absolute(route)
        request |= given
        if route is not None:
            return request
        if exchange.segment:
            request["version"] = read_version(exchange.segment.encode(), "path")
        elif "delimiter" in query:
            read_id("", query)
            if operation == "list_all_tables":
                request["delimiter"] = query["delimiter"]
        if place.database and operation == "list_all_tables":
            request["id"] = list(place.database)
        return request


@dataclass(frozen=True, slots=True)
class Commit:
    """A change of the catalog. Some clients send no body where it is `optional`.

    The catalog reads the body. The answer about a new table has storage options, unless the request says otherwise.
    Another server of the root may be asked to commit it: at once, or after a slot was lost to that one. A change that
    was handed to this server is refused then (421), and never handed on. One that another server may commit yet is
    committed here, or its outcome is unknown: it is not refused.
    """

    optional: bool = False

    def handler(self, operation: str, _path: str) -> Handler:
        """The handler of an operation on a path."""

        async def answer(exchange: Exchange) -> Response:
            service, handed = exchange.service, ForwardingResult(exchange.caller)
            forwarding = service.forwarding_of(exchange.headers)
            place = exchange.place
            if (
                place.database and forwarding is not None
            ):  # a server of an earlier release takes the root for the database
                forwarding, handed = None, replace(handed, do_not_forward=True)
            with before_commit():
                body = await exchange.change(optional=self.optional)
            with service.bodies.hold(body.size):
                for movable in (True, False):
                    if forwarding is not None:
                        handed = await forwarding.hand_over(exchange.scope, body.data, handed)
                        if handed.answer is not None:
                            return _passed_on(service, handed, handed.answer)
                    try:
                        call = await service.prepare(
                            operation, body, handed.caller, movable=movable and not handed.do_not_forward
                        )
                        exchange.scope["batch"] = call.batch
                        committed = await service.commits.enqueue(call)
                        break
                    except CommittedElsewhere as error:
                        if forwarding is None:  # the server that handed it to this one finds the other
                            raise Misdirected(str(error)) from error
                    except LanceNamespaceError as error:
                        if not handed.may_still_commit:
                            raise
                        raise ForwardingUnknown(handed.caller.idempotency_key, f"code {int(error.code)}") from error
            if call.vends:
                committed = await service.with_storage_options(committed, exchange.subject)
            return success(service, _relative(committed, place))

        return _counted(answer)


def _counted(answer: Handler) -> Handler:
    """The handler of a change of the catalog, which its principal has under way until it is answered."""

    async def counted(exchange: Exchange) -> Response:
        with exchange.service.changes.holding(exchange.principal):
            return await answer(exchange)

    return counted


def _relative(answer: Answer, place: IdScope) -> Answer:
    """The answer with the ids that its client knows."""
    return Answer(place.answer(answer.body), answer.catalog_version) if place.database else answer


def _passed_on(service: CatalogService, handed: ForwardingResult, answer: Response) -> Response:
    """The answer of another server. Raises `ForwardingUnknown` if that refuses what a third one may commit yet."""
    service.saw(handed.catalog_version)
    if handed.may_still_commit and answer.status_code != HTTPStatus.OK:
        raise ForwardingUnknown(handed.caller.idempotency_key, f"status {answer.status_code}")
    return answer


@_counted
async def change(exchange: Exchange) -> Response:
    """A change that also reads, writes or removes files beside the catalog. The catalog reads its body."""
    service, caller = exchange.service, exchange.caller
    with before_commit():
        body = await exchange.change()
    with service.bodies.hold(body.size):
        changed = await service.change(exchange.scope["operation"], body, caller, exchange.implicit)
        return success(service, _relative(changed, exchange.place))


@dataclass(frozen=True, slots=True)
class RowsChange:
    """A change whose body is rows, and whose fields are in the query, as `query` names them.

    The answer of one that `vends` has storage options for the new table. It answers these `fields`, or all without any.
    """

    query: type[QueryParameters]
    vends: bool = False
    fields: tuple[str, ...] = ()

    def handler(self, operation: str, _path: str) -> Handler:
        """The handler of an operation on a path."""
        model = QueryModel(self.query)

        async def answer(exchange: Exchange) -> Response:
            service, caller = exchange.service, exchange.caller
            with before_commit():
                rows = await exchange.rows(model)
            committed: Answer = await service.data.change_with_rows(
                operation, rows.request, rows.body, caller, implicit=exchange.implicit
            )
            if self.vends:
                committed = await service.with_storage_options(committed, exchange.subject)
            if self.fields:
                committed = _only(committed, self.fields)
            return success(service, _relative(committed, exchange.place))

        return answer


@dataclass(frozen=True, slots=True)
class TableChange:
    """A change of a table that a JSON body describes.

    `query` names the fields that may be in the query instead, `named` one that is the last parameter of the path. It
    answers these `fields`, or all without any. One that is `staged` is written for a batch that commits it, and changes
    nothing itself.
    """

    fields: tuple[str, ...] = ()
    query: type[QueryParameters] = QueryParameters
    optional: bool = False
    named: str | None = None
    staged: bool = False

    def handler(self, operation: str, _path: str) -> Handler:
        """The handler of an operation on a path."""
        query, kind = QueryModel(self.query), change_type(STAGED_CHANGES[operation] if self.staged else operation)

        async def answer(exchange: Exchange) -> Response:
            service, caller = exchange.service, exchange.caller
            with before_commit():
                change = await exchange.table_request(kind, query, optional=self.optional, named=self.named)
            make = service.data.stage if self.staged else service.data.change
            with service.bodies.hold(change.size):
                made = await make(operation, change.request, exchange.receive, caller)
            if self.staged:
                made = _relative(made, exchange.place)
            return success(service, _only(made, self.fields) if self.fields else made)

        return answer


async def maintain_table(exchange: Exchange) -> Response:
    """Maintenance of a table, or the plan of it: some changes of the caller's, one after another, or none."""
    service, caller = exchange.service, exchange.caller
    with before_commit():
        body = await exchange.change(optional=True)
        request = await service.decoded(body.decode, body.size)
    with service.bodies.hold(body.size):
        done = await service.data.maintain(
            cast("TableRequest", request),
            exchange.receive,
            caller,
            plans=request.get("dry_run") is True,
            stopped=service.read_only.is_on,
        )
        return success(service, done)


def _only(answer: Answer, names: tuple[str, ...]) -> Answer:
    """The answer with these fields of it, in its order."""
    return Answer({name: value for name, value in answer.body.items() if name in names}, answer.catalog_version)


_SCHEMA_METADATA: Final = change_type("update_table_schema_metadata")


async def change_schema_metadata(exchange: Exchange) -> Response:
    """Replaces the schema metadata. Body and answer are the keys and values alone."""
    service, caller = exchange.service, exchange.caller
    with before_commit():
        change = await exchange.schema_metadata(_SCHEMA_METADATA)
    with service.bodies.hold(change.size):
        committed = await service.data.change(exchange.scope["operation"], change.request, exchange.receive, caller)
    return success(service, Answer(committed.body["metadata"], committed.catalog_version))


@dataclass(frozen=True, slots=True)
class TableRead:
    """A read of rows that a JSON body describes. Its answer is a JSON value, or `streamed` rows.

    A `large` body may hold long vectors and filters. `named` is a field that is the last parameter of the path.
    """

    large: bool = False
    streamed: bool = False
    optional: bool = False
    named: str | None = None

    def handler(self, operation: str, _path: str) -> Handler:
        """The handler of an operation on a path."""
        kind = read_type(operation)

        async def answer(exchange: Exchange) -> Response:
            service, at, reader = exchange.service, exchange.read_point, exchange.reader
            read = await exchange.table_request(kind, large=self.large, optional=self.optional, named=self.named)
            request = read.request
            if self.streamed:
                rows = partial(service.data.rows, operation, request, caller=reader, at=at)
                return RowsResponse(service, rows, read.size)
            with service.bodies.hold(read.size):
                value = await service.data.value(operation, request, exchange.receive, caller=reader, at=at)
                return read_success(service, value)

        return answer


async def read_changes(exchange: Exchange) -> Response:
    """The changed rows of a table between two catalog versions, which the body names: an Arrow IPC stream."""
    service, point = exchange.service, exchange.read_point
    if point != NEWEST:
        raise InvalidInputError(
            f"{CATALOG_VERSION.decode()}, {LEAST_VERSION.decode()}: expected none, changes have `to`"
        )
    read = await exchange.table_request(changes_type())
    rows = partial(service.data.changes, read.request, caller=exchange.reader)
    return RowsResponse(service, rows, read.size, STREAM_OF_ROWS)
