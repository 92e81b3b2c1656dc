"""Azurite behind a guard that knows signatures of directories, as accounts with a hierarchical namespace do.

Written after the published rules of service signatures: what is signed, how deep the directory is, and what each letter
of the permissions allows. A request that is allowed is passed on with a signature for the container.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import httpx
from azure.storage.blob import generate_container_sas

from tests.emulators import AZURITE_ACCOUNT, AZURITE_KEY, Emulator
from tests.listener import listen

_SIGNED = {"sp", "st", "se", "sv", "sr", "sdd", "sig"}
_HOPS = {"host", "connection", "content-length", "transfer-encoding", "date", "server"}
_LETTERS = {"GET": "r", "HEAD": "r", "PUT": "w", "DELETE": "d"}


@dataclass
class AzureGuard:
    """What the guard let through and what it refused, as method and path."""

    upstream: str
    container: str
    url: str = ""
    allowed: list[tuple[str, str]] = field(default_factory=list)
    denied: list[tuple[str, str]] = field(default_factory=list)

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Pass a request on, or refuse it."""
        parts = urlsplit(request.path)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        path = unquote(parts.path).removeprefix(f"/{AZURITE_ACCOUNT}/{self.container}").strip("/")
        lists = query.get("comp") == "list"
        place = query.get("prefix", "").strip("/") if lists else path
        if not self._allows(query, place, "l" if lists else _LETTERS[request.command]):
            self.denied.append((request.command, place))
            request.send_response(403)
            request.send_header("content-length", "0")
            request.end_headers()
            return
        self.allowed.append((request.command, place))
        kept = [(name, value) for name, value in query.items() if name not in _SIGNED]
        token = generate_container_sas(
            AZURITE_ACCOUNT,
            self.container,
            account_key=AZURITE_KEY,
            permission="racwdl",
            expiry=datetime.now(UTC) + timedelta(hours=1),
        )
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOPS}
        answer = httpx.request(
            request.command,
            f"{self.upstream}{parts.path}?{urlencode(kept)}&{token}",
            content=body,
            headers=headers,
        )
        request.send_response(answer.status_code)
        for name, value in answer.headers.items():
            if name.lower() not in _HOPS:
                request.send_header(name, value)
        length = answer.headers.get("content-length", "0") if request.command == "HEAD" else str(len(answer.content))
        request.send_header("content-length", length)
        request.end_headers()
        if request.command != "HEAD":
            request.wfile.write(answer.content)

    def _allows(self, query: Mapping[str, str], place: str, letter: str) -> bool:
        if query.get("sr") != "d" or letter not in query["sp"]:
            return False
        now = datetime.now(UTC)
        if not datetime.fromisoformat(query["st"]) <= now < datetime.fromisoformat(query["se"]):
            return False
        directory = "/".join(place.split("/")[: int(query["sdd"])])
        signed = "\n".join(
            [query["sp"], query["st"], query["se"], f"/blob/{AZURITE_ACCOUNT}/{self.container}/{directory}"]
            + ["", "", "", query["sv"], "d"]
            + [""] * 7
        )
        key = base64.b64decode(AZURITE_KEY)
        expected = base64.b64encode(hmac.new(key, signed.encode(), hashlib.sha256).digest()).decode()
        return hmac.compare_digest(expected, query["sig"])


@contextmanager
def guarded(emulator: Emulator) -> Iterator[AzureGuard]:
    """A guard in front of azurite, on a free port."""
    upstream = emulator.storage_options["azure_endpoint"].removesuffix(f"/{AZURITE_ACCOUNT}")
    guard = AzureGuard(upstream, emulator.bucket)
    with listen(guard.answer) as guard.url:
        yield guard
