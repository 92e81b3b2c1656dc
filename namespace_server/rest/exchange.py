"""One request, and what its parts say; for routes of FastAPI and for those in front of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeVar, cast, get_origin, get_type_hints

from lance_namespace.errors import InvalidInputError, LanceNamespaceError
from pydantic import TypeAdapter
from starlette.types import Receive, Scope

from namespace_server.access.subjects import ANONYMOUS_SUBJECT, Subject
from namespace_server.data.change_request import Caller
from namespace_server.data.reads import ReadPoint
from namespace_server.data.request_checks import present
from namespace_server.rest.errors import ServerReadOnly
from namespace_server.rest.header_names import CATALOG_VERSION, IDEMPOTENCY_KEY
from namespace_server.rest.models import BranchQuery, QueryParameters
from namespace_server.rest.origins import origin_of
from namespace_server.rest.principals import KeysNeeded, RequestIdentity
from namespace_server.rest.request.body import (
    LARGE_BODY,
    EncodedBody,
    TableBody,
    check_arrow,
    check_media_type,
    decode_object,
)
from namespace_server.rest.request.decoding import decode_body, parse_query
from namespace_server.rest.request.headers import (
    Headers,
    declared_length,
    read_as_of,
    read_id,
    read_idempotency_key,
    read_least_version,
)
from namespace_server.rest.request.ids import (
    Database,
    Id,
    IdScope,
    as_segment,
    choose,
    choose_name,
    kind_of,
    may_be_looked_up,
    read_ids,
    undecided,
    writes_forms,
)
from namespace_server.rest.request.rows import RowsBody
from namespace_server.rest.service import CatalogService
from namespace_server.throttling import Upload
from table_data.requests.table_requests import TableRequest

R = TypeVar("R")


class QueryModel:
    """Query parameters by name and type. Those whose type is a list may be given more than once."""

    def __init__(self, query: type[QueryParameters]) -> None:
        self._adapter: TypeAdapter[QueryParameters] = TypeAdapter(query)
        self._repeated = tuple(name for name, kind in get_type_hints(query).items() if get_origin(kind) is list)

    def parse(self, query_string: bytes) -> tuple[Mapping[str, str], Mapping[str, object]]:
        """All parameters as text, and those of the model with their types; see `parse_query`."""
        return parse_query(query_string, self._adapter, self._repeated)


_OF_NAMESPACES: Final = frozenset({"create_namespace", "drop_namespace", "undrop_namespace"})
ANY_QUERY: Final = QueryModel(QueryParameters)
_BRANCH: Final = QueryModel(BranchQuery)
_NO_LENGTH: Final = (None, b"0")
_FIELDLESS: Final = len("null")
"""Bytes of the longest JSON without fields that stands for no request; `{"a":1}` has seven."""


@dataclass(frozen=True, slots=True)
class RowsRequest:
    """A request whose body is rows: what its query says, with the id of its route, and the body."""

    request: TableRequest
    body: RowsBody


class Exchange:
    """A request of one principal.

    `segments` are the parameters in its path as they were sent. Unless the route is `public`, its caller is identified
    before anything else of the request is read, once its head is there: credentials that expire meanwhile are good for
    the rest of it. `implicit` is a namespace that a table may be created in, or below, though it does not exist: it is
    created with the table. Raises what `Authenticator.identify` raises.
    """

    __slots__ = ("headers", "identity", "implicit", "principal", "receive", "scope", "segments", "service")

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        service: CatalogService,
        path: str,
        segments: tuple[str, ...],
        *,
        public: bool = False,
    ) -> None:
        self.scope = scope
        self.receive = receive
        self.service = service
        self.segments = segments
        self.headers: Headers = scope["header_map"]
        self.implicit: Database = ()
        scope["route_path"] = path
        self.identity: RequestIdentity | None = None
        self.principal: str | None = None
        if not public:
            self.identity = service.authenticator.identify(self.headers, scope["client_address"])
            if self.identity is not None:
                self.principal = self.identity.principal
            scope["principal"], scope["identity"] = self.principal, self.identity

    def is_admitted(self) -> bool:
        """Whether the credentials of the request would be accepted again, and are of the same principal still."""
        try:
            found = self.service.authenticator.identify(self.headers, self.scope["client_address"])
        except (LanceNamespaceError, KeysNeeded):
            return False
        return found == self.identity

    @property
    def subject(self) -> Subject:
        """The caller as grants are judged for it."""
        return ANONYMOUS_SUBJECT if self.identity is None else self.identity.subject

    @property
    def segment(self) -> str:
        """The first parameter in the path, empty if the route has none."""
        return self.segments[0] if self.segments else ""

    @property
    def place(self) -> IdScope:
        """The scope of the ids of the request. Raises `InvalidInputError` (13)."""
        return self.service.place_of(self.headers, self.scope["route_path"])

    @property
    def as_of(self) -> int | None:
        """The catalog version to answer at, if the request names one. Raises `InvalidInputError` (13)."""
        return read_as_of(self.headers)

    @property
    def caller(self) -> Caller:
        """The principal, the idempotency key and the origin of a change; every change asks for it first.

        From then on an error that was not foreseen leaves the outcome unknown (`outcome_of`). Raises `ServerReadOnly`
        (17) if the server takes no changes, `InvalidInputError` (13), also for a catalog version: changes are of the
        newest.
        """
        self.scope["is_change"] = True
        if self.service.read_only.is_on():
            raise ServerReadOnly
        if CATALOG_VERSION in self.headers:
            raise InvalidInputError(
                f"{CATALOG_VERSION.decode()}: expected with a read, found with a change; assert_table_version in a "
                "batch names the version that a change is built on"
            )
        return Caller(self.principal, read_idempotency_key(self.headers), origin_of(self.scope), self.subject)

    @property
    def reader(self) -> Caller:
        """The principal of a read."""
        return Caller(self.principal, subject=self.subject)

    @property
    def read_point(self) -> ReadPoint:
        """The catalog version and table version that a read of rows is for. Raises `InvalidInputError` (13)."""
        return ReadPoint(self.as_of, read_least_version(self.headers))

    def require_no_body(self) -> None:
        """Raise `InvalidInputError` (13) for a body where none is read: its content would be ignored.

        One that is too short for a field is none: some clients send `{}` with every request.
        """
        headers = self.headers
        if b"transfer-encoding" not in headers and headers.get(b"content-length") in _NO_LENGTH:
            return
        declared = declared_length(headers)
        if declared is None or declared > _FIELDLESS:
            raise InvalidInputError(f"{self.scope['method']}: expected no body, found one; fields are in the query")

    async def read_body(self, limit: int | None = None) -> bytes:
        """The bytes of a JSON body; at most those of a read by default. Raises as `BodyReader.read`."""
        check_media_type(self.headers)
        bound = self.service.limits.read_body if limit is None else limit
        return await self.service.bodies.read(self.receive, self.headers, bound, self._upload())

    def _upload(self) -> Upload:
        return Upload(self.service.uploads, self.principal)

    async def route(self, query: Mapping[str, str], body: bytes = b"") -> Id:
        """The id in the path, below the place of the request.

        A `+` in it is what the client, the id in a JSON `body` or the catalog says. Other servers that the request is
        handed to read what was decided. Raises `InvalidInputError` (13), also where nothing decides.
        """
        segment = self.segment
        if "+" not in segment:
            return read_id(segment, query)
        readings = read_ids(segment, query, form=self.writes_forms)
        found = readings[0] if len(readings) == 1 else await self._choose(readings, body)
        self.scope["raw_path"] = self.scope["raw_path"].replace(segment.encode(), as_segment(found, query), 1)
        return found

    @property
    def writes_forms(self) -> bool:
        """Whether the client writes paths as forms: a space as `+`."""
        return writes_forms(self.headers, self.scope["query_string"])

    async def _choose(self, readings: Sequence[Id], body: bytes) -> Id:
        limits, service = self.service.limits, self.service
        decode = partial(decode_object, body, limits, values=limits.values, optional=True)
        named = (await service.decoded(decode, len(body))).get("id")
        if isinstance(named, list) and named:
            return named if named in readings else readings[0]  # which is refused as another one
        if not may_be_looked_up(self.scope["operation"], self.headers):
            raise undecided(readings)
        existing = await service.existing(
            replace(self.place, kind=kind_of(self.scope["route_path"])), readings, self.as_of, self.subject
        )
        return choose(self.scope["operation"], readings, existing)

    async def change(self, *, optional: bool = False) -> EncodedBody:
        """The body of a change of the catalog. Raises `InvalidInputError` (13)."""
        limits = self.service.limits
        data = await self.read_body(limits.body)
        place = self.place
        query, _ = ANY_QUERY.parse(self.scope["query_string"])
        route = await self.route(query, data) if self.segment else None
        if place.database and route == [] and self.scope["operation"] in _OF_NAMESPACES:
            raise InvalidInputError(f"{self.scope['operation']}: the root namespace of a database cannot be changed")
        decode = partial(decode_body, data, limits, values=limits.values, route=route, place=place, optional=optional)
        return EncodedBody(decode, data)

    async def table_request(
        self,
        kind: TypeAdapter[R],
        query: QueryModel = ANY_QUERY,
        *,
        optional: bool = False,
        large: bool = False,
        named: str | None = None,
    ) -> TableBody[R]:
        """The request of an operation on one table, of this type.

        Fields that the body lacks may be parameters of the query, as `query` names them. A `large` body may hold long
        vectors and filters. The field that is `named` is the last parameter of the path, and may be in the body too.
        Raises `InvalidInputError` (13), `pydantic.ValidationError`.
        """
        data = await self.read_body(self.service.limits.data.query if large else None)
        given, parameters = query.parse(self.scope["query_string"])
        limits, place, route = self.service.limits, self.place, await self.route(given, data)

        def decode() -> R:
            body = decode_body(data, limits, values=limits.values, route=route, place=place, optional=optional)
            if named is not None:
                body[named] = choose_name(named, self.segments[-1], body.get(named), form=self.writes_forms)
            return kind.validate_python({**parameters, **present(body)})

        if len(data) < LARGE_BODY:
            return TableBody(decode(), len(data))
        with self.service.bodies.hold(len(data)):
            return TableBody(await self.service.in_thread(decode), len(data))

    async def schema_metadata(self, kind: TypeAdapter[R]) -> TableBody[R]:
        """A request whose whole body is keys and values, and has no other fields.

        Raises `InvalidInputError` (13), `pydantic.ValidationError`.
        """
        data = await self.read_body()
        given, parameters = _BRANCH.parse(self.scope["query_string"])
        limits = self.service.limits
        metadata = decode_object(data, limits, values=limits.values)
        request = {**parameters, "id": self.place.absolute(await self.route(given)), "metadata": metadata}
        return TableBody(kind.validate_python(request), len(data))

    async def rows(self, query: QueryModel, *, digested: bool = False) -> RowsRequest:
        """A request whose body is an Arrow IPC stream or file, and whose fields are in the query.

        The rows are digested where that is asked for, and where the request has an idempotency key.

        Raises `InvalidInputError` (13), `pydantic.ValidationError`.
        """
        check_arrow(self.headers)
        given, parameters = query.parse(self.scope["query_string"])
        digested = digested or IDEMPOTENCY_KEY in self.headers
        body = RowsBody(self.receive, self.headers, digested=digested, upload=self._upload())
        # The parameters have the names and the types of the fields of the request.
        request = cast("TableRequest", {**parameters, "id": self.place.absolute(await self.route(given))})
        return RowsRequest(request, body)
