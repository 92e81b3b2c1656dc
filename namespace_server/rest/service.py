"""The endpoints at work: dispatch, identity, the namespace, the answer."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from lance_namespace.errors import UnsupportedOperationError
from starlette.types import Receive, Scope, Send

from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.repeats import REMEMBER, REPEAT, Header
from namespace_server.rest import batches, catalog, exchange, namespaces, tables, unsupported, versions
from namespace_server.rest.commits import CommitQueue
from namespace_server.rest.dispatch import PathTable
from namespace_server.rest.endpoints import Body, Endpoint
from namespace_server.rest.errors import RouteNotFound
from namespace_server.rest.identity import Authenticator, KeyRing
from namespace_server.rest.port import Answer, Catalog

SERVED: tuple[Endpoint, ...] = (
    *tables.ENDPOINTS,
    *versions.ENDPOINTS,
    *batches.ENDPOINTS,
    *namespaces.ENDPOINTS,
    *catalog.ENDPOINTS,
)
_REMOTE_READERS = 32


class CatalogService:
    """Answers the requests of the namespace API, and ours, on one catalog.

    Belongs to one event loop: `start` and `close` frame its life there. Reads of a local catalog run on the loop,
    those of a remote one in threads; all changes go through one `CommitQueue`.
    """

    def __init__(
        self, namespace: Catalog, authenticator: Authenticator, *, max_body: int = 64 << 20, queue_capacity: int = 4096
    ) -> None:
        self._namespace = namespace
        self._authenticator = authenticator
        self._max_body = max_body
        self._table = PathTable(
            (endpoint.method, endpoint.path, endpoint) for endpoint in (*SERVED, *unsupported.ENDPOINTS)
        )
        # One worker is enough where promotion is a link; on remote stores the next group flips while one promotes.
        self._commits = CommitQueue(namespace, workers=1 if namespace.local else 2, capacity=queue_capacity)
        self._readers = None if namespace.local else ThreadPoolExecutor(_REMOTE_READERS, thread_name_prefix="read")
        self._questions = exchange.Questions()
        self._newest = 0
        self._round: CatalogSnapshot | None = None

    @property
    def catalog_version(self) -> int:
        """The newest catalog version that this process has seen."""
        return self._newest

    def start(self) -> None:
        """Begin to accept changes, on the running event loop."""
        self._commits.start()
        self._namespace.start()

    async def close(self) -> None:
        """Finish the changes that were accepted, then let go of the catalog."""
        await self._commits.close()
        if self._readers is not None:
            self._readers.shutdown()
        await asyncio.to_thread(self._namespace.close)

    async def ready(self) -> int:
        """The newest catalog version, read now. Raises whatever stands in the way of reading it."""
        return (await self._read(exchange.Question("describe_catalog", {}), None)).catalog_version

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Answer a request; False, and nothing sent, if its path is not one of the API."""
        try:
            endpoint, segment = self._table.find(scope["method"], scope["raw_path"])
            answer = await self._answer(endpoint, segment, scope, receive)
            self._newest = max(self._newest, answer.catalog_version)
            await exchange.send_success(send, *exchange.render_success(answer, silent=endpoint.silent))
        except RouteNotFound:
            return False
        except exchange.ClientGone:
            await exchange.wait_for_the_end(receive)
        except Exception as error:  # noqa: BLE001 - the last stop: a client gets an ErrorResponse, whatever happened
            await self._send_error(error, receive, send)
        return True

    async def _send_error(self, error: Exception, receive: Receive, send: Send) -> None:
        try:
            await exchange.send_error(send, error, self._newest)
        except exchange.ClientGone:
            await exchange.wait_for_the_end(receive)

    async def _answer(self, endpoint: Endpoint, segment: bytes, scope: Scope, receive: Receive) -> Answer:
        headers = dict(scope["headers"])
        ring = self._authenticator.ring
        principal = self._authenticator.principal(headers)
        operation = endpoint.operation
        pin = exchange.read_pin(headers)
        key = exchange.read_key(headers) if endpoint.keyed else None
        reads = operation in self._namespace.READS
        if not reads and operation not in self._namespace.WRITES:
            raise UnsupportedOperationError(f"Not supported: {operation}")
        body = b"" if endpoint.body is Body.NONE else await exchange.read_body(receive, headers, self._max_body)
        asked = (endpoint, segment, scope["query_string"], headers.get(b"content-type", b""), body)
        if reads:
            question = self._questions.read(*asked)
            if pin is None and self._readers is None and REPEAT in (extensions := scope.get("extensions", {})):
                extensions[REPEAT][REMEMBER](partial(self._answer_again, endpoint, question, ring))
            return await self._read(question, pin)
        request = exchange.read_request(*asked)
        call = self._namespace.prepare(operation, request, idempotency_key=key, principal=principal)
        return await self._commits.commit(call)

    def _answer_again(
        self, endpoint: Endpoint, question: exchange.Question, ring: KeyRing
    ) -> tuple[list[Header], bytes] | None:
        """Answer a read that was answered before, if the keys are the same and what was said then still holds."""
        if self._authenticator.ring is not ring:
            return None
        answer = self._namespace.recall(question, self._newest_of_round())
        return None if answer is None else exchange.render_success(answer, silent=endpoint.silent)

    def _newest_of_round(self) -> CatalogSnapshot:
        """The newest snapshot, for requests that were read in this round of the event loop.

        Storage is asked once in a round, after the round has begun. The clients of all requests that are read in it
        had begun to send them by then, so none of them can have waited for an answer that is newer than that.
        """
        if self._round is None:
            self._round = self._namespace.newest()
            asyncio.get_running_loop().call_soon(self._end_round)
        return self._round

    def _end_round(self) -> None:
        self._round = None

    async def _read(self, question: exchange.Question, pin: int | None) -> Answer:
        if self._readers is None:
            return self._namespace.read(question.operation, question.request, at=pin, question=question)
        read = partial(self._namespace.read, question.operation, question.request, at=pin, question=question)
        return await asyncio.get_running_loop().run_in_executor(self._readers, read)
