"""Forwards changes to the server that commits to the root at present: see `Peers.committing`.

They are committed here where that one does not answer. Flips hint which server commits. A wrong hint costs time, never
correctness:

* Only an address with a proof of the servers' common secret is called. The catalog names it, which others may write.
* Before the credentials of a client go to a process, that proves the secret itself, with the answer to a challenge: an
  introduction that was copied from an earlier flip leads nowhere.
* A change is forwarded to a process, not to a URL: another process there, of whatever root, refuses it (421). An answer
  names its process. One that does not is of another program, and counts as none.
* A change goes with an idempotency key, its own or a new one. Whatever its outcome there, it is committed once: the
  key is looked up in the catalog before it is committed here, and again after each lost slot.
* A change that the other server may commit yet is not refused here: its outcome is unknown then. A failure of that
  server that says that nothing was done leaves nothing open.
* A refusal because of what the principal has under way at that server is passed on to the client, which tries again.
* It goes with the credentials of its client, and is never forwarded a second time: the server that receives it commits
  it, or refuses it (421) if another one commits.

The HTTP client is aiohttp, which is a dependency of the server for this module alone: with 32 requests at one time
httpx takes 3 to 5 ms of processor time for each, aiohttp 0.1 to 0.2 ms, and a batch takes less than 1 ms (note 025).
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import ssl
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

import orjson
from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientSession,
    ClientTimeout,
    ConnectionTimeoutError,
    TCPConnector,
)
from starlette.responses import Response
from starlette.types import Scope
from yarl import URL

from namespace_server.attempts import RequestOrigin
from namespace_server.data.change_request import Caller
from namespace_server.directory.manifest_table.peer_secret import PeerSecret
from namespace_server.directory.manifest_table.peers import AVOIDED, Peer, Peers
from namespace_server.observability.observation import SILENT, ForwardingOutcome, Observer
from namespace_server.outcomes import NOTHING_DONE
from namespace_server.rest.fair_queue import FairGate
from namespace_server.rest.forwarding_result import ForwardingResult
from namespace_server.rest.header_names import (
    ANSWERED_BY,
    CATALOG_VERSION,
    FORWARDED_TO,
    HANDED_ORIGIN,
    IDEMPOTENCY_KEY,
    PEER_CHALLENGE,
    PEER_RESPONSE,
)
from namespace_server.rest.origins import read_origin, write_origin
from namespace_server.throttling import OF_PRINCIPALS

_log = logging.getLogger(__name__)

_PROBE_AFTER: Final = 0.5
"""Seconds after which a server without an answer is probed, again and again."""
_PROBE_TIMEOUT: Final = 1.0
"""Seconds in which it must answer a probe, and in which a connection must be made."""
_AT_ONCE: Final = 8
"""Changes of one principal that are handed on at one time, while several principals hand on some. What waits here would
else be in front of those of others on the event loop, where this server is the slower one of the two."""
_CLIENT_ERRORS: Final = frozenset({401, 403, 408, 413, 431})
_UNDECIDED: Final = _CLIENT_ERRORS | {405, 429}
"""Answers that say nothing about the change, as all from 500 on: limits, keys and peers of servers may differ. Some are
about this client or its request alone, so that the changes of others are forwarded."""
_FORWARDED_HEADERS: Final = (
    b"content-type",
    b"x-api-key",
    b"authorization",
    b"x-request-id",
    b"traceparent",
    b"tracestate",
)
_ANSWER_HEADERS: Final = frozenset({b"content-type", b"retry-after", CATALOG_VERSION})
_CHALLENGE: Final = re.compile(rb"[0-9a-f]{32}")
_ASCII: Final = "".join(map(chr, range(0x21, 0x7F)))
_NOT_SENT: Final = (ClientConnectorError, ConnectionTimeoutError)


@dataclass(frozen=True, slots=True)
class _PeerRequest:
    """A request to another server."""

    url: URL
    headers: Mapping[str, str]
    body: bytes


class NotThePeer(Exception):
    """An answer came from another process than was asked. A server answers so (421) if it did nothing."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status} of another process")
        self.did_nothing = status == HTTPStatus.MISDIRECTED_REQUEST


class Forwarding:
    """Forwards changes from one server to others on the same root. Belongs to one event loop.

    Args:
        this: this process, as its flips name it from now on.
        secret: the common secret of the servers of the root.
        peers: those whose flips were seen lately, and which of them commits.
        tls: how to trust servers, and which certificate to show them.
        observer: receives the outcome of each change that is forwarded.
    """

    def __init__(
        self,
        this: Peer,
        secret: PeerSecret,
        peers: Peers,
        tls: ssl.SSLContext | bool = True,
        observer: Observer = SILENT,
    ) -> None:
        peers.join(this, secret)
        self.this = this
        self._secret = secret
        self._peers = peers
        self._tls = tls
        self._observer = observer
        self._client: ClientSession | None = None
        self._looks: dict[Peer, asyncio.Task[bool]] = {}
        self._turns = FairGate(_AT_ONCE)
        self._genuine: Peer | None = None  # the last one that proved the secret

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()

    def is_addressed(self, instance: bytes) -> bool:
        """Whether a request that names a process means this one."""
        return instance == self.this.instance.encode()

    def identify(self, challenge: bytes | None) -> Sequence[tuple[bytes, bytes]]:
        """The headers of an answer to another server that asks this process, and perhaps for a proof."""
        own = (ANSWERED_BY, self.this.instance.encode())
        if challenge is None or not _CHALLENGE.fullmatch(challenge):
            return (own,)
        return own, (PEER_RESPONSE, self._secret.response(self.this.instance, challenge.decode()).encode())

    def origin_told(self, header: bytes) -> RequestOrigin | None:
        """What another server says of where a change came from; None without its proof."""
        return read_origin(header, self._secret, self.this.instance)

    def was_handed(self) -> None:
        """Note that another server forwarded a change to this one."""
        self._peers.was_handed()

    async def hand_over(self, scope: Scope, body: bytes, before: ForwardingResult) -> ForwardingResult:
        """Forward a change to the server that commits at present. Without an answer it is to be committed here.

        `before` is its result so far.
        """
        if self._peers.committing() is None:
            return before
        async with self._turns.turn(before.caller.principal):
            return await self._hand_over(scope, body, before)

    async def _hand_over(self, scope: Scope, body: bytes, before: ForwardingResult) -> ForwardingResult:
        peer, caller = self._peers.committing(), before.caller
        if peer is None:
            return before
        caller = replace(caller, idempotency_key=caller.idempotency_key or str(uuid.uuid4()))
        try:
            asked = self._request(peer, scope, body, caller)
        except UnicodeDecodeError:  # bytes that the client for HTTP cannot send as they came
            return replace(before, do_not_forward=True)
        began = time.monotonic()
        outcome, handed = await self._forward(peer, asked, replace(before, caller=caller))
        self._observer.forwarded(outcome, time.monotonic() - began)
        return handed

    async def _forward(
        self, peer: Peer, asked: _PeerRequest, before: ForwardingResult
    ) -> tuple[ForwardingOutcome, ForwardingResult]:
        if peer != self._genuine and not await self._lives(peer):
            self._avoid(peer, "no proof of the common secret")
            return "unreachable", before
        try:
            answer = await self._ask(peer, asked)
        except (ClientError, TimeoutError, NotThePeer) as error:
            self._avoid(peer, str(error) or type(error).__name__)
            not_taken = isinstance(error, _NOT_SENT) or (isinstance(error, NotThePeer) and error.did_nothing)
            return "unreachable", replace(before, may_still_commit=before.may_still_commit or not not_taken)
        if answer.status_code == HTTPStatus.MISDIRECTED_REQUEST:  # it saw another one commit
            self._peers.forget(peer)
            return "undecided", before
        if answer.status_code == HTTPStatus.TOO_MANY_REQUESTS and _error_of(answer).get("detail") in OF_PRINCIPALS:
            self._peers.saw(peer)  # committed here, what its principal sends would be bounded by no server
            return "answered", replace(before, answer=answer)
        fails = answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR
        if fails or answer.status_code in _UNDECIDED:
            do_not_forward = answer.status_code in _CLIENT_ERRORS
            if not do_not_forward:
                self._avoid(peer, f"status {answer.status_code}")
            may_still_commit = before.may_still_commit or (fails and _error_of(answer).get("outcome") != NOTHING_DONE)
            return "undecided", replace(before, may_still_commit=may_still_commit, do_not_forward=do_not_forward)
        self._peers.saw(peer)
        return "answered", replace(before, answer=answer)

    def _request(self, peer: Peer, scope: Scope, body: bytes, caller: Caller) -> _PeerRequest:
        """The request to send. Raises `UnicodeDecodeError` for a header in another encoding than UTF-8."""
        target: bytes = scope["raw_path"]
        if scope["query_string"]:
            target += b"?" + scope["query_string"]
        given: Mapping[bytes, bytes] = scope["header_map"]
        kept = {name.decode(): given[name].decode() for name in _FORWARDED_HEADERS if name in given}
        own = {FORWARDED_TO.decode(): peer.instance, IDEMPOTENCY_KEY.decode(): caller.idempotency_key or ""}
        if caller.origin is not None:
            own[HANDED_ORIGIN.decode()] = write_origin(caller.origin, self._secret, peer.instance)
        return _PeerRequest(URL(peer.url + quote(target, safe=_ASCII), encoded=True), {**kept, **own}, body)

    async def _ask(self, peer: Peer, asked: _PeerRequest) -> Response:
        """Send a request, and wait for the answer while the server lives. Raises as `_send`, `TimeoutError`."""
        answering = asyncio.create_task(self._send(peer, asked))
        try:
            while not (await asyncio.wait({answering}, timeout=_PROBE_AFTER))[0]:
                if not await self._lives(peer):
                    raise TimeoutError(f"no sign of life for {_PROBE_AFTER + _PROBE_TIMEOUT:g} s")
            return answering.result()
        finally:
            answering.cancel()

    async def _send(self, peer: Peer, asked: _PeerRequest) -> Response:
        async with self._session().post(
            asked.url,
            data=asked.body,
            headers=asked.headers,
            skip_auto_headers=("Content-Type",),  # stock clients send none with an empty body
            allow_redirects=False,
        ) as answer:
            content = await answer.read()
            answered_by = answer.headers.get(ANSWERED_BY.decode())
        if answered_by != peer.instance:
            raise NotThePeer(answer.status)
        response = Response(content, answer.status)
        response.raw_headers = [(b"content-length", b"%d" % len(content))]
        response.raw_headers += [
            (name.lower(), value) for name, value in answer.raw_headers if name.lower() in _ANSWER_HEADERS
        ]
        return response

    def _session(self) -> ClientSession:
        if self._client is None:
            self._client = ClientSession(
                connector=TCPConnector(limit=0, ssl=self._tls),
                timeout=ClientTimeout(total=None, sock_connect=_PROBE_TIMEOUT),
                auto_decompress=False,
            )
        return self._client

    async def _lives(self, peer: Peer) -> bool:
        """Whether a process answers that has the secret. Changes that wait at the same time share the probe."""
        look = self._looks.get(peer)
        if look is None:
            look = self._looks[peer] = asyncio.create_task(self._look(peer))
            look.add_done_callback(lambda _: self._looks.pop(peer))
        return await asyncio.shield(look)

    async def _look(self, peer: Peer) -> bool:
        challenge = secrets.token_hex(16)
        expected = {
            ANSWERED_BY.decode(): peer.instance,
            PEER_RESPONSE.decode(): self._secret.response(peer.instance, challenge),
        }
        headers = {FORWARDED_TO.decode(): peer.instance, PEER_CHALLENGE.decode(): challenge}
        asked = self._session().get(f"{peer.url}/health/live", headers=headers, allow_redirects=False)
        try:
            async with asyncio.timeout(_PROBE_TIMEOUT), asked as answer:
                found = {name: answer.headers.get(name) for name in expected}
                if answer.status != HTTPStatus.OK or found != expected:
                    return False
        except (ClientError, TimeoutError):
            return False
        self._genuine = peer
        return True

    def _avoid(self, peer: Peer, found: str) -> None:
        self._genuine = None  # its address may have another owner by the next time
        if self._peers.avoid(peer):
            _log.warning(
                "changes are committed here for %g s: expected an answer of %s, found %s", AVOIDED, peer.url, found
            )


def _error_of(answer: Response) -> Mapping[str, Any]:
    """The fields of an error answer, if it is one. That of a server of the release before has no outcome."""
    try:
        error = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        return {}
    return error if isinstance(error, dict) else {}
