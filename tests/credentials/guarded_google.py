"""Google Cloud Storage and its token services, which hold the bearers of tokens to their access boundaries.

Written after the published interfaces: an account exchanges an assertion that it signs for a token, a token is
exchanged for one with a boundary, objects are reached by the JSON interface (our server) and by the XML one (Lance).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from itertools import count
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth import jwt

from tests.emulators import Emulator, Gcs
from tests.listener import listen

_EMAIL = "server@project.iam.gserviceaccount.com"
_CONDITION = re.compile(
    r'resource\.name\.startsWith\(("(?:[^"\\]|\\.)*")\) \|\| '
    r"api\.getAttribute\('storage\.googleapis\.com/objectListPrefix', ''\)\.startsWith\((\"(?:[^\"\\]|\\.)*\")\)"
)
_GRANTS = {"roles/storage.objectViewer": {"get", "list"}} | {
    "roles/storage.objectUser": {"get", "list", "create", "delete", "update"}
}
_NEEDED = {"GET": "get", "HEAD": "get", "PUT": "create", "POST": "create", "DELETE": "delete"}


def boundary_allows(
    boundary: Mapping[str, Any], bucket: str, permission: str, name: str = "", prefix: str = ""
) -> bool:
    """Whether an access boundary, as this server writes them, allows an object, or to list the names with a prefix."""
    [rule] = boundary["accessBoundary"]["accessBoundaryRules"]
    [role] = rule["availablePermissions"]
    found = _CONDITION.fullmatch(rule["availabilityCondition"]["expression"])
    assert found is not None, rule
    objects, listed = (json.loads(text) for text in found.groups())
    return (
        rule["availableResource"] == f"//storage.googleapis.com/projects/_/buckets/{bucket}"
        and permission in _GRANTS[role.removeprefix("inRole:")]
        and (f"projects/_/buckets/{bucket}/objects/{name}".startswith(objects) or prefix.startswith(listed))
    )


@dataclass
class GuardedGoogle:
    """The services, and what they saw. `lifetime` is that of tokens with a boundary, in seconds."""

    gcs: Gcs = field(default_factory=Gcs)
    lifetime: float | None = None
    is_down: bool = False
    url: str = ""
    grants: int = 0
    """Tokens that the account got for itself."""
    used: list[str] = field(default_factory=list)
    denied: list[tuple[str, str]] = field(default_factory=list)
    issued: dict[str, tuple[Mapping[str, Any], float]] = field(default_factory=dict)
    """Tokens with a boundary, and their ends."""
    _uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=count)
    _key: rsa.RSAPrivateKey = field(default_factory=lambda: rsa.generate_private_key(65537, 2048))

    @property
    def emulator(self) -> Emulator:
        """The service, with the account of the server."""
        account = {
            "type": "service_account",
            "client_email": _EMAIL,
            "private_key_id": "1",
            "private_key": self._key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ).decode(),
            "token_uri": f"{self.url}/token",
        }
        return Emulator("gs", self.public | {"google_service_account_key": json.dumps(account)})

    @property
    def public(self) -> dict[str, str]:
        """What a client must know of the service beside a token."""
        return {"allow_http": "true", "google_base_url": self.url}

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Answer a request to any of the services."""
        path = urlsplit(request.path).path
        data = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        if path in {"/token", "/sts"}:
            form = {name: values[0] for name, values in parse_qs(data.decode()).items()}
            status, content = (self._grant if path == "/token" else self._exchange)(form)
            return _send(request, status, json.dumps(content).encode())
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if path.startswith(("/storage/v1/", "/upload/")):
            if not self._is_account(token):
                return _send(request, 401)
            status, found = self.gcs.answer(request.command, request.path, request.headers, data)
            return _send(request, status, found if isinstance(found, bytes) else json.dumps(found).encode())
        bucket, _, name = unquote(path).removeprefix("/").partition("/")
        query = {key: values[0] for key, values in parse_qs(urlsplit(request.path).query, True).items()}
        if not self._is_account(token):
            needed = _NEEDED[request.command] if name else "list"
            boundary, end = self.issued.get(token, ({}, 0.0))
            if time.time() >= end or not boundary_allows(boundary, bucket, needed, name, query.get("prefix", "")):
                self.denied.append((needed, name or query.get("prefix", "")))
                return _send(request, 403)
            self.used.append(token)
        return self._xml(request, name, query, data) if name else _send(request, 200, self._listing(query))

    def _grant(self, form: Mapping[str, str]) -> tuple[int, dict[str, object]]:
        claims = jwt.decode(form["assertion"], self._public_key(), audience="https://oauth2.googleapis.com/token")
        assert claims["iss"] == _EMAIL
        self.grants += 1
        return 200, {"access_token": f"account-{self.grants}", "expires_in": 3600, "token_type": "Bearer"}

    def _exchange(self, form: Mapping[str, str]) -> tuple[int, dict[str, object]]:
        if self.is_down:
            return 400, {"error": "invalid_grant", "error_description": "the account may not"}
        assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:token-exchange"
        assert self._is_account(form["subject_token"])
        token = f"bounded-{next(self._numbers)}"
        self.issued[token] = json.loads(unquote(form["options"])), time.time() + (self.lifetime or 3600)
        return 200, {"access_token": token} | ({"expires_in": self.lifetime} if self.lifetime else {})

    def _is_account(self, token: str) -> bool:
        if token.startswith("account-"):
            return int(token.partition("-")[2]) <= self.grants
        try:  # Lance's client signs its tokens by itself
            return token.count(".") == 2 and jwt.decode(token, self._public_key())["iss"] == _EMAIL
        except ValueError:
            return False

    def _public_key(self) -> bytes:
        return self._key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    def _xml(self, request: BaseHTTPRequestHandler, name: str, query: Mapping[str, str], data: bytes) -> None:
        upload, command = query.get("uploadId", ""), request.command
        if "uploads" in query:
            upload = f"upload-{next(self._numbers)}"
            self._uploads[upload] = {}
            return _send(request, 200, f"<R><UploadId>{upload}</UploadId></R>".encode())
        if upload and command == "PUT":
            self._uploads[upload][int(query["partNumber"])] = data
            return _send(request, 200, ETag=f'"{len(data)}"')
        if upload and command == "DELETE":
            del self._uploads[upload]
            return _send(request, 204)
        if upload:
            data = b"".join(part for _, part in sorted(self._uploads.pop(upload).items()))
        if command in {"PUT", "POST"}:
            if source := request.headers.get("x-goog-copy-source"):
                data = self.gcs.objects[unquote(source).removeprefix("/").partition("/")[2]].data
            expected = request.headers.get("x-goog-if-generation-match")
            status, _ = self.gcs.upload(name, data, {} if expected is None else {"ifGenerationMatch": expected})
            tag = f'"{self.gcs.objects[name].generation}"'
            body = f"<R><ETag>{tag}</ETag></R>".encode() if upload else b""
            return _send(request, status, body, ETag=tag)
        if name not in self.gcs.objects:
            return _send(request, 404)
        if command == "DELETE":
            return _send(request, self.gcs.remove(name)[0])
        return self._send_object(request, name)

    def _send_object(self, request: BaseHTTPRequestHandler, name: str) -> None:
        found = self.gcs.objects[name]
        told = {"ETag": f'"{found.generation}"', "Last-Modified": formatdate(usegmt=True)}
        size = len(found.data)
        limits = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers.get("Range", ""))
        if limits is None:
            return _send(request, 200, found.data, **told)
        start = int(limits[1]) if limits[1] else max(0, size - int(limits[2]))
        stop = min(size, int(limits[2]) + 1) if limits[1] and limits[2] else size
        if start >= size:
            return _send(request, 416)
        told["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
        return _send(request, 206, found.data[start:stop], **told)

    def _listing(self, query: Mapping[str, str]) -> bytes:
        found = self.gcs.list(
            {"prefix": query.get("prefix", ""), "delimiter": query.get("delimiter", "")}
            | ({"pageToken": query["continuation-token"]} if "continuation-token" in query else {})
        )
        objects: Any = found["items"]
        prefixes: Any = found["prefixes"]
        parts = [
            f"<Contents><Key>{escape(item['name'])}</Key><Size>{item['size']}</Size>"
            f'<LastModified>{item["updated"]}</LastModified><ETag>"{item["generation"]}"</ETag></Contents>'
            for item in objects
        ]
        parts += [f"<CommonPrefixes><Prefix>{escape(prefix)}</Prefix></CommonPrefixes>" for prefix in prefixes]
        if "nextPageToken" in found:
            parts.append(f"<NextContinuationToken>{escape(str(found['nextPageToken']))}</NextContinuationToken>")
        return f"<ListBucketResult>{''.join(parts)}</ListBucketResult>".encode()


def _send(request: BaseHTTPRequestHandler, status: int, body: bytes = b"", **headers: str) -> None:
    request.send_response(status)
    for name, value in headers.items():
        request.send_header(name.replace("_", "-"), value)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    if request.command != "HEAD":
        request.wfile.write(body)


@contextmanager
def google() -> Iterator[GuardedGoogle]:
    """The services, on a free port."""
    guard = GuardedGoogle()
    with listen(guard.answer) as guard.url:
        yield guard
