"""Responses of catalog operations and of operations on rows."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from lance_namespace.errors import LanceNamespaceError
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from namespace_server.answer import Answer
from namespace_server.rest.data_service import RowStream
from namespace_server.rest.errors import Header
from namespace_server.rest.header_names import CATALOG_VERSION, TABLE_VERSION
from namespace_server.rest.service import CatalogService

_log = logging.getLogger(__name__)

_JSON = (b"content-type", b"application/json")
FILE_OF_ROWS = b"application/vnd.apache.arrow.file"
STREAM_OF_ROWS = b"application/vnd.apache.arrow.stream"


class Success(Response):
    """A success: a JSON body, or none, and then no content type. `catalog_version` is in a header unless it is None.

    What `Response` does for bodies of all kinds takes longer than a cached read.
    """

    background = None
    status_code = 200

    def __init__(self, content: bytes, catalog_version: int | None) -> None:
        self.body = content
        self.raw_headers = [(b"content-length", b"%d" % len(content))]
        if catalog_version is not None:
            self.raw_headers.append((CATALOG_VERSION, b"%d" % catalog_version))
        if content:
            self.raw_headers.append(_JSON)

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Send it."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body})


def success(service: CatalogService, answer: Answer[object]) -> Success:
    """The response for an answer."""
    service.saw(answer.catalog_version)
    return Success(answer.json, answer.catalog_version)


def read_success(service: CatalogService, answer: Answer[object]) -> Success:
    """The response for a read of rows whose answer is a value; it states the version of the table."""
    response = success(service, answer)
    response.raw_headers += _table_version(answer.table_version)
    return response


class RowsResponse(Response):
    """Rows as an Arrow IPC file, or a stream as `media_type` says, sent as they come.

    An error before the first rows is raised before anything is sent, so that it has an answer. One after them breaks
    the connection: a body that is not whole must not look so. The request, of `request_size` bytes, counts until then.
    """

    def __init__(
        self,
        service: CatalogService,
        begin: Callable[[Receive], AbstractAsyncContextManager[RowStream]],
        request_size: int,
        media_type: bytes = FILE_OF_ROWS,
    ) -> None:
        super().__init__()
        self._type = (b"content-type", media_type)
        self._service = service
        self._begin = begin
        self._request_size = request_size

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Send the rows. Raises the namespace errors of the operation, before anything is sent."""
        with self._service.bodies.hold(self._request_size):
            await self._answer(receive, send)

    async def _answer(self, receive: Receive, send: Send) -> None:
        has_begun = False

        async def begin(headers: list[Header]) -> None:
            nonlocal has_begun
            has_begun = True
            await send({"type": "http.response.start", "status": 200, "headers": headers})

        try:
            async with self._begin(receive) as answer:
                self._service.saw(answer.catalog_version)
                version = b"%d" % answer.catalog_version
                headers = [self._type, (CATALOG_VERSION, version), *_table_version(answer.table_version)]
                last = await anext(answer.chunks, b"")
                async for chunk in answer.chunks:
                    if not has_begun:
                        await begin(headers)
                    await send({"type": "http.response.body", "body": last, "more_body": True})
                    last = chunk
        except LanceNamespaceError as error:
            if not has_begun:
                raise
            # Without a last message the HTTP server closes the connection.
            _log.warning("rows of a query ended before their end: %s", error)
            return
        if not has_begun:
            await begin([*headers, (b"content-length", b"%d" % len(last))])
        # The end is sent with the last bytes: a packet of its own would wait for their acknowledgement.
        await send({"type": "http.response.body", "body": last, "more_body": False})


def _table_version(version: int | None) -> list[Header]:
    return [] if version is None else [(TABLE_VERSION, b"%d" % version)]
