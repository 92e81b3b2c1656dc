"""Azurite behind a guard that knows signatures of directories, as accounts with a hierarchical namespace do.

Written after the published rules of signatures with the account's key, and with a key that is delegated to an identity:
what is signed, how deep the directory is, and what each letter of the permissions allows. A request that is allowed is
passed on with a signature for the container. Over TLS a bearer token of the identity is accepted too.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit
from xml.etree import ElementTree as ET

import httpx
from azure.storage.blob import generate_container_sas

from tests.emulators import AZURITE_ACCOUNT, AZURITE_KEY, Emulator
from tests.listener import listen

_SIGNED = {"sp", "st", "se", "sv", "sr", "sdd", "sig", "skoid", "sktid", "skt", "ske", "sks", "skv"}
_DELEGATED = ("skoid", "sktid", "skt", "ske", "sks", "skv")
_KEY = ("SignedOid", "SignedTid", "SignedStart", "SignedExpiry", "SignedService", "SignedVersion")
_HOPS = {"host", "connection", "content-length", "transfer-encoding", "date", "server", "authorization"}
_LETTERS = {"GET": "r", "HEAD": "r", "PUT": "w", "DELETE": "d"}


@dataclass
class AzureGuard:
    """What the guard let through and what it refused, as method and path, and what the identity of the server got.

    `tokens` are valid. `keys` are those that were delegated, with what a signature tells of each.
    """

    upstream: str
    container: str
    url: str = ""
    allowed: list[tuple[str, str]] = field(default_factory=list)
    denied: list[tuple[str, str]] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)
    keys: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    is_down: bool = False

    def issue(self, request: BaseHTTPRequestHandler) -> None:
        """Answer the server's question for a token of its identity."""
        assert request.headers["x-identity-header"] == "secret"
        self.tokens.add(token := secrets.token_hex())
        end = str(int(time.time()) + 3600)
        asked = dict(parse_qsl(urlsplit(request.path).query))["resource"]
        answer = {"access_token": token, "expires_on": end, "token_type": "Bearer", "resource": asked}
        _send(request, json.dumps(answer).encode())

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Pass a request on, or refuse it."""
        parts = urlsplit(request.path)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        below = parts.path.removeprefix(f"/{AZURITE_ACCOUNT}")
        path = unquote(below).removeprefix(f"/{self.container}").strip("/")
        is_server = request.headers.get("Authorization", "").removeprefix("Bearer ") in self.tokens
        if is_server and query.get("comp") == "userdelegationkey":
            self._delegate(request, body)
            return
        lists = query.get("comp") == "list"
        place = query.get("prefix", "").strip("/") if lists else path
        if not is_server and not self._allows(query, place, "l" if lists else _LETTERS[request.command]):
            self.denied.append((request.command, place))
            _send(request, b"", 403)
            return
        if not is_server:
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
            f"{self.upstream}/{AZURITE_ACCOUNT}{below}?{urlencode(kept)}&{token}",
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

    def _delegate(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        """A key for the time that is asked for."""
        if self.is_down:
            _send(request, b"", 503)
            return
        asked = {element.tag: element.text or "" for element in ET.fromstring(body)}
        told = ("oid", "tid", asked["Start"], asked["Expiry"], "b", request.headers["x-ms-version"])
        self.keys.append((base64.b64encode(secrets.token_bytes(32)).decode(), told))
        values = "".join(f"<{name}>{value}</{name}>" for name, value in zip(_KEY, told, strict=True))
        _send(request, f"<UserDelegationKey>{values}<Value>{self.keys[-1][0]}</Value></UserDelegationKey>".encode())

    def _allows(self, query: Mapping[str, str], place: str, letter: str) -> bool:
        if query.get("sr") != "d" or letter not in query["sp"]:
            return False
        now = datetime.now(UTC)
        if not datetime.fromisoformat(query["st"]) <= now < datetime.fromisoformat(query["se"]):
            return False
        directory = "/".join(place.split("/")[: int(query["sdd"])])
        told = tuple(query.get(name, "") for name in _DELEGATED)
        key = next((value for value, of_key in self.keys if of_key == told), None) if any(told) else AZURITE_KEY
        if key is None or (any(told) and not told[2] <= query["st"] < query["se"] <= told[3]):
            return False
        signer = [*told, "", "", "", "", ""] if any(told) else [""]
        signed = "\n".join(
            [query["sp"], query["st"], query["se"], f"/blob/{AZURITE_ACCOUNT}/{self.container}/{directory}"]
            + [*signer, "", "", query["sv"], "d", "", ""]
            + [""] * (7 if any(told) else 5)
        )
        key = base64.b64decode(key)
        expected = base64.b64encode(hmac.new(key, signed.encode(), hashlib.sha256).digest()).decode()
        return hmac.compare_digest(expected, query["sig"])


@contextmanager
def guarded(emulator: Emulator, context: ssl.SSLContext | None = None) -> Iterator[AzureGuard]:
    """A guard in front of azurite, on a free port; with a context it speaks TLS."""
    upstream = emulator.storage_options["azure_endpoint"].removesuffix(f"/{AZURITE_ACCOUNT}")
    guard = AzureGuard(upstream, emulator.bucket)
    with listen(guard.answer, context) as guard.url:
        yield guard


def _send(request: BaseHTTPRequestHandler, body: bytes, status: int = 200) -> None:
    request.send_response(status)
    request.send_header("content-type", "application/json" if body.startswith(b"{") else "application/xml")
    request.send_header("content-length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)
