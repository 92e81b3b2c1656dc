"""Handlers of reads of values of columns of blobs: many as rows, one as bytes, of which a range may be asked for."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast
from urllib.parse import quote, urlencode

from lance_namespace.errors import InvalidInputError, LanceNamespaceError, PermissionDeniedError
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from lance_core.byte_ranges import is_known, is_same, read_range
from namespace_server.data.reads import ReadPoint
from namespace_server.data.request_checks import read_type
from namespace_server.rest.blob_pieces import pieces
from namespace_server.rest.data_service import RowStream, TableReading
from namespace_server.rest.errors import Header, RangeNotSatisfiable, RowNotFound, RowNotUnique
from namespace_server.rest.exchange import Exchange, QueryModel
from namespace_server.rest.header_names import CATALOG_VERSION, IF_NONE_MATCH, IF_RANGE, RANGE, TABLE_VERSION
from namespace_server.rest.models import BlobQuery
from namespace_server.rest.request.ids import as_segment, choose_name
from namespace_server.rest.responses import RowsResponse
from namespace_server.rest.routing import Handler
from table_data.batch_operations import DELIMITER
from table_data.requests.found_blobs import FoundBlob, blob_tag
from table_data.requests.table_requests import FetchBlobs, ReadRequest

_log = logging.getLogger(__name__)

_MOST_ROWS: Final = 1024
_MOST_BYTES: Final = 64 << 20
"""The values that are answered as rows, whose client has them all in memory."""
_OCTETS: Final[tuple[Header, ...]] = (
    (b"content-type", b"application/octet-stream"),
    (b"x-content-type-options", b"nosniff"),  # no browser is to take for a page what somebody wrote into a row
    (b"accept-ranges", b"bytes"),
)


async def fetch_blobs(exchange: Exchange) -> Response:
    """The values of some rows, as a whole: one row for each id, in their order."""
    operation, at = exchange.scope["operation"], exchange.read_point
    read = await exchange.table_request(read_type(operation), large=True)
    request = cast("FetchBlobs", read.request)
    if len(request["row_ids"]) > _MOST_ROWS:
        raise InvalidInputError(
            f"row_ids: fetch_blobs accepts at most {_MOST_ROWS} row ids, found {len(request['row_ids'])}"
        )
    rows = partial(_fetched, exchange, operation, request, at)
    return RowsResponse(exchange.service, rows, read.size)


@asynccontextmanager
async def _fetched(
    exchange: Exchange, operation: str, request: FetchBlobs, at: ReadPoint, receive: Receive
) -> AsyncIterator[RowStream]:
    ids, column = request["row_ids"], request["column"]
    async with exchange.service.data.reading(operation, request, receive, caller=exchange.reader, at=at) as reading:
        found = {each.row_id: each for each in await _located(reading, column, {"row_ids": ids})}
        for row_id in ids:
            if row_id not in found:
                raise _no_row(reading, row_id)
        sizes = {row_id: await _size(reading, column, blob) or 0 for row_id, blob in found.items()}
        total = sum(sizes[row_id] for row_id in ids)
        if total > _MOST_BYTES:
            raise InvalidInputError(
                f"row_ids: fetch_blobs accepts at most {_MOST_BYTES} total blob bytes, found {total}; ask for fewer "
                "rows, or for each blob by itself"
            )
        whole = {"column": column, "row_ids": ids, "sizes": [sizes[row_id] for row_id in ids]}
        async with reading.rows("read_blobs", cast("ReadRequest", whole)) as rows:
            yield rows


@dataclass(frozen=True, slots=True)
class OneBlob:
    """One value as bytes: of the row whose id is in the path, or of the one that the filter in the query matches."""

    query: type[BlobQuery] = BlobQuery

    def handler(self, operation: str, path: str) -> Handler:
        """The handler of an operation on a path."""
        model, kind, has_row = QueryModel(self.query), read_type(operation), "{row}" in path

        async def answer(exchange: Exchange) -> Response:
            exchange.require_no_body()
            at = exchange.read_point
            given, parameters = model.parse(exchange.scope["query_string"])
            asked = dict(parameters)
            named = await exchange.route(given)
            segment = exchange.segments[1]
            asked["column"] = choose_name("column", segment, None, form=exchange.writes_forms)
            if has_row:
                asked["row_id"] = _row_id(exchange.segments[2])
            table_id = exchange.place.absolute(named)
            tag = asked.pop("tag", None)
            if tag is not None:
                if "version" in asked or "branch" in asked:
                    raise InvalidInputError("tag: expected it without version and branch")
                tagged = await exchange.service.read(
                    "get_table_tag_version", {"id": table_id, "tag": tag}, exchange.subject, at=at.catalog_version
                )
                asked |= {name: value for name, value in tagged.body.items() if name in {"version", "branch"}}
            asked |= {"id": table_id}
            request = kind.validate_python({name: value for name, value in asked.items() if value is not None})
            address = b"/v1/table/" + as_segment(named, given)
            return _BlobResponse(exchange, operation, request, at, address, given.get("delimiter"))

        return answer


class _BlobResponse(Response):
    """The bytes of one value, read as the client takes them; the errors of RowsResponse."""

    def __init__(
        self,
        exchange: Exchange,
        operation: str,
        request: ReadRequest,
        at: ReadPoint,
        address: bytes,
        delimiter: str | None,
    ) -> None:
        super().__init__()
        self._exchange = exchange
        self._operation = operation
        self._request = request
        self._column: str = cast("Any", request)["column"]
        self._at = at
        self._address = address
        self._delimiter = delimiter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it. Raises the namespace errors of the operation, before anything is sent."""
        exchange = self._exchange
        begun = False

        async def begin(status: int, headers: Sequence[Header]) -> None:
            nonlocal begun
            begun = True
            await send({"type": "http.response.start", "status": status, "headers": list(headers)})

        data = exchange.service.data
        try:
            async with data.reading(
                self._operation, self._request, receive, caller=exchange.reader, at=self._at
            ) as reading:
                blob = await self._found(reading)
                size = await _size(reading, self._column, blob)
                exchange.service.saw(reading.catalog_version)
                status, headers, span = self._answer(reading, blob, size)
                if scope["method"] == "HEAD" or span is None:
                    await begin(status, headers)
                else:
                    read = partial(_part, reading, self._column, blob.row_id)
                    async for piece in reading.taken(
                        pieces(read, *span, data.pieces, exchange.principal, reading.break_off)
                    ):
                        if not begun:
                            await begin(status, headers)
                        await send({"type": "http.response.body", "body": piece, "more_body": True})
        except LanceNamespaceError as error:
            if not begun:
                raise
            # Without a last message the HTTP server closes the connection.
            _log.warning("a blob ended before its end: %s", error)
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _found(self, reading: TableReading) -> FoundBlob:
        """The value that is asked for. Raises `RowNotFound`, `RowNotUnique`."""
        request = cast("Mapping[str, Any]", self._request)
        if "row_id" in request:
            found = await _located(reading, self._column, {"row_ids": [request["row_id"]]})
            if not found:
                raise _no_row(reading, request["row_id"])
            return found[0]
        found = await _located(reading, self._column, {"filter": request["filter"]})
        if not found:
            raise RowNotFound(f"{_name(reading)}: filter: expected one row that matches it, found none")
        if len(found) > 1:
            raise RowNotUnique(f"{_name(reading)}: filter: expected one row that matches it, found several")
        return found[0]

    def _answer(
        self, reading: TableReading, blob: FoundBlob, size: int | None
    ) -> tuple[int, list[Header], tuple[int, int] | None]:
        """Status, headers, and from where to which end bytes follow. Raises `RangeNotSatisfiable`."""
        about = [(CATALOG_VERSION, b"%d" % reading.catalog_version), *self._versioned(reading, blob)]
        if size is None:
            return 204, about, None
        given = self._exchange.headers
        tag = _tag(reading, self._column, blob)
        about += [(b"etag", tag)] if tag is not None else []
        if is_known(given.get(IF_NONE_MATCH), tag):
            return 304, about, None
        try:
            asked = read_range(given.get(RANGE)) if self._exchange.scope["method"] == "GET" else None
        except ValueError as error:
            raise InvalidInputError(str(error)) from error
        if asked is None or not is_same(given.get(IF_RANGE), tag):
            return 200, [*_OCTETS, *about, (b"content-length", b"%d" % size)], (0, size) if size else None
        span = asked.within(size)
        if span is None:
            limits = [(b"content-range", b"bytes */%d" % size), (b"accept-ranges", b"bytes"), *about[1:]]
            raise RangeNotSatisfiable(f"Range: expected some of the {size} bytes of the blob", limits)
        first, last = span
        lengths = [
            (b"content-range", b"bytes %d-%d/%d" % (first, last, size)),
            (b"content-length", b"%d" % (last + 1 - first)),
        ]
        return 206, [*_OCTETS, *about, *lengths], (first, last + 1)

    def _versioned(self, reading: TableReading, blob: FoundBlob) -> list[Header]:
        """The version of the table, and where its value is found as long as the version is kept."""
        table = reading.table
        query = {"version": table.version, "branch": table.branch, "delimiter": self._delimiter}
        where = b"%b/blob/%b/%d/bytes?%b" % (
            self._address,
            quote(self._column, safe="").encode(),
            blob.row_id,
            urlencode({name: value for name, value in query.items() if value is not None}, quote_via=quote).encode(),
        )
        return [(TABLE_VERSION, b"%d" % (table.version or 0)), (b"content-location", where)]


async def _located(reading: TableReading, column: str, rows: Mapping[str, object]) -> list[FoundBlob]:
    """The values of these rows, of those that are there. Raises `PermissionDeniedError` for files out of bounds."""
    found: list[FoundBlob] = await reading.value("locate_blobs", cast("ReadRequest", {"column": column, **rows}))
    for each in found:
        if each.place is not None and (refusal := reading.blob_refusal(each.place)) is not None:
            raise PermissionDeniedError(
                f"{_name(reading)}: the blob of row {each.row_id} is a file elsewhere, which is not read: {refusal}"
            )
    return found


async def _size(reading: TableReading, column: str, blob: FoundBlob) -> int | None:
    """The size of a value; of a file elsewhere it may be unknown so far."""
    if blob.place is None or blob.size:
        return blob.size
    size, _ = await reading.value("read_blob", _request_of_part(column, blob.row_id, 0, 0))
    return int(size)


async def _part(reading: TableReading, column: str, row_id: int, place: int, length: int) -> bytes:
    _, data = await reading.value("read_blob", _request_of_part(column, row_id, place, length))
    found: bytes = data
    return found


def _request_of_part(column: str, row_id: int, offset: int, length: int) -> ReadRequest:
    return cast("ReadRequest", {"column": column, "row_id": row_id, "offset": offset, "length": length})


def _tag(reading: TableReading, column: str, blob: FoundBlob) -> bytes | None:
    """The strong entity tag of a value; None where its bytes may change, or what the version is among others."""
    identity = reading.table.identity
    if identity is None or blob.place is not None:
        return None
    return b'"%b"' % blob_tag(identity.sha256, blob.row_id, column).encode()


def _row_id(segment: str) -> int:
    if segment.isascii() and segment.isdigit() and len(segment) <= 20:
        return int(segment)
    raise InvalidInputError(f"path: expected the id of a row, found {segment[:80]!r}")


def _name(reading: TableReading) -> str:
    return f"table {DELIMITER.join(reading.table.id)}, version {reading.table.version}"


def _no_row(reading: TableReading, row_id: int) -> RowNotFound:
    return RowNotFound(f"{_name(reading)}: expected row {row_id}, found none; it may have been deleted")
