"""An issuer of tokens in this process, which signs what a test says."""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey, Key, RSAKey

from tests.listener import listen

AUDIENCE = "lance"
RSA = RSAKey.generate_key(2048, {"kid": "rsa"})
EC = ECKey.generate_key("P-256", {"kid": "ec"})
OTHER = RSAKey.generate_key(2048, {"kid": "rsa"})
"""Of somebody else, under the name of a key of the issuer."""


@dataclass
class Issuer:
    """What it publishes, and what it was asked. `answers` replaces the answer to a path by a status and a body."""

    url: str = ""
    keys: list[Key] = field(default_factory=lambda: [RSA, EC])
    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    delay: float = 0.0
    asked: list[str] = field(default_factory=list)

    @property
    def looks(self) -> int:
        """How often the keys were asked for."""
        return self.asked.count("/keys")

    def __call__(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append(request.path)
        request.rfile.read(int(request.headers.get("content-length", 0)))
        time.sleep(self.delay)
        if request.path == "/keys":
            answer: Any = {"keys": [{**key.as_dict(private=False), "use": "sig"} for key in self.keys]}
        else:
            answer = {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
        status, body = self.answers.get(request.path, (200, json.dumps(answer).encode()))
        request.send_response(status)
        request.send_header("content-length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def claims(self, **other: Any) -> dict[str, Any]:
        """Those of a good token of Ann, for an hour; None leaves one out."""
        now = int(time.time())
        good = {"iss": self.url, "sub": "ann", "aud": AUDIENCE, "iat": now, "exp": now + 3600}
        return {name: value for name, value in {**good, **other}.items() if value is not None}

    def token(self, key: Key = RSA, header: Mapping[str, Any] | None = None, **claims: Any) -> str:
        """A token with these claims over those of a good one, signed with a key."""
        algorithm = "RS256" if isinstance(key, RSAKey) else "ES256"
        head = {"alg": algorithm, "typ": "at+jwt", "kid": key.kid, **(header or {})}
        return jwt.encode(
            {name: value for name, value in head.items() if value is not None},
            self.claims(**claims),
            key,
            algorithms=[head["alg"]],
            registry=_Any(algorithms=[head["alg"]], strict_check_header=False),
        )


class _Any(jwt.JWSRegistry):
    max_header_length = 1 << 20
    max_payload_length = 1 << 20


def unsigned(header: Mapping[str, Any], claims: Mapping[str, Any], signature: bytes = b"") -> str:
    """A token whose signature is these bytes."""
    return ".".join(encoded(part) for part in (json.dumps(header).encode(), json.dumps(claims).encode(), signature))


def encoded(data: bytes) -> str:
    """Base64 as tokens have it."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


@contextmanager
def issuing() -> Iterator[Issuer]:
    """An issuer that answers within the block."""
    issuer = Issuer()
    with listen(issuer) as url:
        issuer.url = url
        yield issuer
