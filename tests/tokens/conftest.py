"""Issuers, and a server that accepts their tokens beside a key."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from namespace_server.app import create_app
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.observability.access_log import AccessLog
from namespace_server.observability.metrics.measures import ServerMetrics
from namespace_server.rest.access_tokens import AccessTokens
from namespace_server.rest.identity import Authenticator
from namespace_server.rest.issuer_keys import IssuerKeys
from namespace_server.rest.principals import TokenIssuer
from tests.running import serving
from tests.tokens.issuer import AUDIENCE, Issuer, issuing

KEY = "key-of-operator"


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.asked = 0

    def __call__(self) -> float:
        self.asked += 1
        return self.seconds


@dataclass
class Guarded:
    """A server with an issuer and a key, its clocks, and what it has logged."""

    http: httpx.Client
    monotonic: Clock
    wall: Clock
    log: io.StringIO
    metrics: ServerMetrics
    namespace: DirectoryNamespace

    def call(self, token: str, path: str = "/v1/table", **headers: str) -> httpx.Response:
        return self.http.get(path, headers={"authorization": f"Bearer {token}", **headers})

    def whoami(self, token: str) -> Any:
        answer = self.call(token, "/v1/whoami")
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with issuing() as found:
        yield found


def rules(issuer: Issuer, **other: Any) -> TokenIssuer:
    """How the settings describe an issuer."""
    return TokenIssuer.model_validate({"issuer": issuer.url, "audience": AUDIENCE, **other})


@pytest.fixture
def guard(tmp_path: Path) -> Iterator[Any]:
    """See `guarding`."""
    with guarding(tmp_path) as start:
        yield start


@contextmanager
def guarding(home: Path) -> Iterator[Any]:
    """Start servers that end with the block: `start(rules(issuer), …, wrong_keys=0)`."""
    with ExitStack() as stack:

        def start(*issuers: TokenIssuer, wrong_keys: int = 0, forwarding: Any = None, root: str = "root") -> Guarded:
            monotonic, wall = Clock(1000.0), Clock(time.time())
            tokens = AccessTokens(issuers, wall, lambda issuer: IssuerKeys(issuer, monotonic))
            log, metrics = io.StringIO(), ServerMetrics()
            namespace = DirectoryNamespace(root=str(home / root), durability="none")
            app = create_app(
                namespace,
                Authenticator({KEY: "operator"}, None, wrong_keys, tokens),
                access_log=AccessLog("json", log),
                metrics=metrics,
                forwarding=None if forwarding is None else forwarding(namespace),
                proxies=("127.0.0.1",),
            )
            url = stack.enter_context(serving(app))
            http = stack.enter_context(httpx.Client(base_url=url, verify=False, timeout=30))
            return Guarded(http, monotonic, wall, log, metrics, namespace)

        yield start
