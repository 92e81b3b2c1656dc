"""The tools over streamable HTTP, beside the routes of a server in its process.

Each request stands for itself: there are no sessions, so that any of several servers can answer the next one. An answer
is one JSON document. A call is made by requests to the routes of this server with the credentials of its caller, so
that identity, grants, limits, the audit log and the read-only mode hold as for any client. Host and origin of a request
are judged by the server, in front of this.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import orjson

from namespace_client import Catalog, CatalogServer
from namespace_client.own_server import OwnServerTransport, RequestSource
from namespace_mcp.tools.tool import OpenedCatalog

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from namespace_mcp.server import AgentServer

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApplication = Callable[[Scope, Receive, Send], Awaitable[None]]

AGENTS: Final = "mcp"
"""Where the tools are: `/mcp`."""
WELL_KNOWN: Final = ".well-known"
"""Where a client looks for what says how to get a token (RFC 9728)."""
MOST_BODY: Final = 8 << 20
"""Bytes of a request."""
_METADATA: Final = f"/{WELL_KNOWN}/oauth-protected-resource"
_CREDENTIALS: Final = (b"x-api-key", b"authorization")
_TIMEOUT: Final = 120.0
"""Seconds that a request to the own server may take, longer than the server lets any take."""
_OK: Final = 200
_UNAUTHENTICATED: Final = 401


class AgentApplication:
    """The tools for agents as an ASGI application at `/mcp`, to be mounted in a server.

    Args:
        writes: Whether there are tools that change the catalog.
        issuers: Who gives tokens that the server takes: what a client without credentials is told.
    """

    def __init__(self, *, writes: bool = False, issuers: Sequence[str] = ()) -> None:
        self._writes = writes
        self._challenges = bool(issuers)
        self._server: AsgiApplication | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wanted = asyncio.Event()
        self._manager: asyncio.Future[StreamableHTTPSessionManager] | None = None

    @asynccontextmanager
    async def lifespan(self, server: AsgiApplication) -> AsyncIterator[None]:
        """Requests come within. `server` answers the requests of tools, on the running event loop."""
        self._server, self._loop = server, asyncio.get_running_loop()
        self._manager = self._loop.create_future()
        tools = asyncio.create_task(self._serve_tools(self._manager))
        try:
            yield
        finally:
            tools.cancel()
            await asyncio.wait({tools})

    async def _serve_tools(self, manager: asyncio.Future[StreamableHTTPSessionManager]) -> None:
        """Make the tools when they are first wanted: the SDK takes a second to import, and many servers need none."""
        await self._wanted.wait()
        try:
            agents = await asyncio.to_thread(self._make)
        except Exception as error:  # noqa: BLE001 - requests raise it
            manager.set_exception(error)
            return
        try:
            from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

            made = StreamableHTTPSessionManager(
                agents.sdk, json_response=True, stateless=True, max_request_body_size=MOST_BODY
            )
            async with made.run():
                manager.set_result(made)
                await asyncio.Event().wait()
        finally:
            agents.close()

    def _make(self) -> AgentServer:
        import mcp.server.streamable_http_manager  # noqa: F401 - in a thread, as it takes long

        from namespace_mcp.server import AgentServer

        return AgentServer(self._open, writes=self._writes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        assert self._manager is not None, "requests come within the lifespan"
        self._wanted.set()
        if scope["path"] != f"/{AGENTS}":
            await _answer(send, 404, {"error": f"Not found: expected /{AGENTS}", "code": 0, "outcome": "nothing_done"})
            return
        if scope["method"] != "POST":  # there are no sessions, and no streams that a GET would open
            error = {
                "error": f"/{AGENTS}: expected POST, found {scope['method']}",
                "code": 0,
                "outcome": "nothing_done",
            }
            await _answer(send, 405, error, [(b"allow", b"POST")])
            return
        refusal = await self._refusal(scope)
        if refusal is not None:
            await _answer(send, *refusal)
            return
        manager = await asyncio.shield(self._manager)
        await _while_connected(manager.handle_request, scope, receive, send)

    def _open(self, request: Any) -> OpenedCatalog:
        """The catalog in the name of the caller of a request."""
        scope = request.scope
        headers: dict[bytes, bytes] = scope["header_map"]
        given = {name.decode(): headers[name].decode("latin-1") for name in _CREDENTIALS if name in headers}
        transport = self._transport(scope)
        url = f"{scope['client_scheme']}://{headers.get(b'host', b'localhost').decode('latin-1')}"
        access = CatalogServer(url, headers=given, timeout=_TIMEOUT, retries=1, transport=transport)
        return OpenedCatalog(Catalog(access), transport.close)

    def _transport(self, scope: Scope) -> OwnServerTransport:
        assert self._server is not None
        assert self._loop is not None
        return OwnServerTransport(self._server, self._loop, source_of(scope))

    async def _refusal(self, scope: Scope) -> tuple[int, Any, list[tuple[bytes, bytes]]] | None:
        """The answer of the server to a caller that it does not know; None for those that it knows."""
        assert self._server is not None
        status, headers, body = await _asked(self._server, scope, "/v1/whoami")
        if status == _OK:
            scope["principal"] = orjson.loads(body).get("principal")  # for the access log
            return None
        kept = [(name, value) for name, value in headers if name in {b"www-authenticate", b"retry-after"}]
        if status == _UNAUTHENTICATED and self._challenges:
            said = next((value for name, value in kept if name == b"www-authenticate"), b"Bearer")
            place = f"{origin_of(scope)}{_METADATA}/{AGENTS}".encode()
            more = b'resource_metadata="' + place + b'"'
            challenge = said + (b", " if b"=" in said else b" ") + more
            kept = [each for each in kept if each[0] != b"www-authenticate"] + [(b"www-authenticate", challenge)]
        return status, body, kept


class ResourceMetadata:
    """What says where a client gets a token for `/mcp`, as an ASGI application to be mounted at `/.well-known`.

    It is public, and tells nothing but the issuers of tokens that the server takes (RFC 9728).
    """

    def __init__(self, issuers: Sequence[str]) -> None:
        self._issuers = list(issuers)

    @asynccontextmanager
    async def lifespan(self, server: AsgiApplication) -> AsyncIterator[None]:
        """Requests come within."""
        del server
        yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        del receive
        if scope["path"] not in {_METADATA, f"{_METADATA}/{AGENTS}"} or scope["method"] != "GET":
            await _answer(send, 404, {"error": f"Not found: expected GET {_METADATA}", "code": 0})
            return
        metadata = {
            "resource": f"{origin_of(scope)}/{AGENTS}",
            "authorization_servers": self._issuers,
            "bearer_methods_supported": ["header"],
            "resource_name": "Catalog of Lance tables",
        }
        await _answer(send, _OK, metadata)


def source_of(scope: Scope) -> RequestSource:
    """Where the requests of a tool come from, as the server is to see it: from the client of the outer request."""
    headers: dict[bytes, bytes] = scope["header_map"]
    passed = [(b"user-agent", headers.get(b"user-agent", b"mcp")), (b"x-request-id", scope["request_id"].encode())]
    return RequestSource(scope["client_address"], headers.get(b"host", b"localhost"), scope["client_scheme"], passed)


def origin_of(scope: Scope) -> str:
    """Scheme and host as the client of a request has addressed them. The server has judged the host."""
    return f"{scope['client_scheme']}://{scope['header_map'].get(b'host', b'localhost').decode('latin-1')}"


async def _asked(server: AsgiApplication, scope: Scope, path: str) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """The answer of the server to a GET in the name of the caller of a request: status, headers and body."""
    headers: dict[bytes, bytes] = scope["header_map"]
    given = [(name, headers[name]) for name in _CREDENTIALS if name in headers]
    asked = source_of(scope).scope("GET", path.encode(), headers=given)
    messages: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        messages.append(message)

    await server(asked, receive, send)
    body = b"".join(each.get("body", b"") for each in messages[1:])
    return messages[0]["status"], list(messages[0].get("headers", ())), body


async def _while_connected(application: AsgiApplication, scope: Scope, receive: Receive, send: Send) -> None:
    """Have a request handled, until its client goes away: then it is cancelled."""
    gone = asyncio.Event()
    is_whole = False

    async def first() -> Message:
        nonlocal is_whole
        if is_whole:
            await gone.wait()
            return {"type": "http.disconnect"}
        message = await receive()
        is_whole = message["type"] != "http.request" or not message.get("more_body", False)
        if is_whole:
            watching.append(asyncio.create_task(watch()))
        return message

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            continue
        gone.set()
        handled.cancel()

    watching: list[asyncio.Task[None]] = []
    handled = asyncio.create_task(_run(application, scope, first, send))
    try:
        await asyncio.wait({handled})
    except asyncio.CancelledError:
        handled.cancel()
        raise
    finally:
        for each in watching:
            each.cancel()
    with suppress(asyncio.CancelledError):
        handled.result()


async def _run(application: AsgiApplication, scope: Scope, receive: Receive, send: Send) -> None:
    await application(scope, receive, send)


async def _answer(send: Send, status: int, body: Any, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    told = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(data)), *headers]
    await send({"type": "http.response.start", "status": status, "headers": told})
    await send({"type": "http.response.body", "body": data, "more_body": False})
