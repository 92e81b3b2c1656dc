"""S3 that holds the bearers of temporary credentials to their session policies, as AWS does; moto does not."""

from __future__ import annotations

import io
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote

from moto.backends import get_backend

from tests.emulators import Wsgi

ACCOUNT = "123456789012"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/clients"
_EXPIRATION = re.compile(rb"<Expiration>[^<]*</Expiration>")
_DENIED = b"<Error><Code>AccessDenied</Code><Message>denied</Message></Error>"


@dataclass
class Guard:
    """What the guard in front of a service saw, and how long the credentials are valid that it lets through."""

    lifetime: float | None = None
    """Seconds; None: as long as the request for them said."""
    is_down: bool = False
    """Whether the token service answers errors."""
    issued: int = 0
    used: list[str] = field(default_factory=list)
    """Temporary access keys of requests that were let through."""
    denied: list[tuple[str, str]] = field(default_factory=list)
    """Action and resource of requests that were not."""
    _expires: dict[str, float] = field(default_factory=dict)

    def __call__(self, application: Wsgi) -> Wsgi:
        """The service behind the guard."""

        def guarded(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
            key = _access_key(environ)
            if "/sts/" in environ.get("HTTP_AUTHORIZATION", ""):
                return self._token_service(application, environ, start_response)
            if not key or key == "key":
                return application(environ, start_response)
            for action, resource, prefix in _asked(environ):
                if not self._allows(key, environ, action, resource, prefix):
                    self.denied.append((action, resource))
                    start_response("403 Forbidden", [("Content-Type", "application/xml")])
                    return [_DENIED]
            self.used.append(key)
            return application(environ, start_response)

        return guarded

    def _token_service(
        self, application: Wsgi, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        if self.is_down:
            start_response("403 Forbidden", [("Content-Type", "text/xml")])
            return [b"<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>"]
        body = b"".join(application(environ, lambda *_: None))
        role = _roles()[-1]
        self.issued += 1
        end = role.expiration.timestamp() if self.lifetime is None else time.time() + self.lifetime
        self._expires[role.access_key_id] = end
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(end)) + f".{int(end % 1 * 1000):03d}Z"
        body = _EXPIRATION.sub(f"<Expiration>{stamp}</Expiration>".encode(), body)
        start_response("200 OK", [("Content-Type", "text/xml"), ("Content-Length", str(len(body)))])
        return [body]

    def _allows(self, key: str, environ: dict[str, Any], action: str, resource: str, prefix: str | None) -> bool:
        [role] = [role for role in _roles() if role.access_key_id == key] or [None]
        if role is None or environ.get("HTTP_X_AMZ_SECURITY_TOKEN") != role.session_token:
            return False
        return time.time() < self._expires[key] and policy_allows(role.policy, action, resource, prefix)


def policy_allows(policy: str, action: str, resource: str, prefix: str | None = None) -> bool:
    """Whether a policy, as this server writes them, allows an action on a resource."""
    allowed = False
    for statement in json.loads(policy)["Statement"]:
        actions = statement["Action"]
        if action not in ([actions] if isinstance(actions, str) else actions):
            continue
        if not _matches(statement["Resource"], resource):
            continue
        if statement["Effect"] == "Deny":
            return False
        wanted = statement.get("Condition", {}).get("StringLike", {}).get("s3:prefix")
        patterns = [wanted] if isinstance(wanted, str) else wanted
        allowed |= patterns is None or any(_matches(pattern, prefix or "") for pattern in patterns)
    return allowed


def _matches(pattern: str, text: str) -> bool:
    parts = re.split(r"(\$\{[*?$]\}|[*?])", pattern)
    wild = {"*": ".*", "?": "."}
    literal = (wild.get(part) or re.escape(part[2] if re.fullmatch(r"\$\{[*?$]\}", part) else part) for part in parts)
    return re.fullmatch("".join(literal), text, re.DOTALL) is not None


def _roles() -> list[Any]:
    roles: list[Any] = get_backend("sts")[ACCOUNT]["aws"].assumed_roles
    return roles


def _access_key(environ: dict[str, Any]) -> str | None:
    found = re.search(r"Credential=([^/]+)/", environ.get("HTTP_AUTHORIZATION", ""))
    return found and found[1]


def _asked(environ: dict[str, Any]) -> Iterator[tuple[str, str, str | None]]:
    """The actions of a request of S3, each with its resource, and with the prefix of a listing."""
    bucket, _, key = unquote(environ["PATH_INFO"].encode("latin-1").decode()).removeprefix("/").partition("/")
    query = parse_qs(environ["QUERY_STRING"], keep_blank_values=True)
    place, method = f"arn:aws:s3:::{bucket}", environ["REQUEST_METHOD"]
    if key:
        if method == "DELETE":
            yield ("s3:AbortMultipartUpload" if "uploadId" in query else "s3:DeleteObject"), f"{place}/{key}", None
        else:
            yield {"GET": "s3:GetObject", "HEAD": "s3:GetObject"}.get(method, "s3:PutObject"), f"{place}/{key}", None
        if source := environ.get("HTTP_X_AMZ_COPY_SOURCE"):
            yield "s3:GetObject", f"arn:aws:s3:::{unquote(source).removeprefix('/')}", None
    elif method == "GET":
        yield "s3:ListBucket", place, query.get("prefix", [""])[0]
    elif method == "POST" and "delete" in query:
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        environ["wsgi.input"] = io.BytesIO(body)
        for name in re.findall(rb"<Key>([^<]*)</Key>", body):
            yield "s3:DeleteObject", f"{place}/{name.decode()}", None
    else:
        yield f"s3:{method}", place, None
