"""A server with keys that records refused attempts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from namespace_server.app import create_app
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.observability.metrics.measures import ServerMetrics
from namespace_server.rest.identity import Authenticator
from tests.audit.lines import log_in
from tests.running import serving

KEYS = {"key-of-ann": "ann", "key-of-bob": "bob"}
ANN, BOB = ({"x-api-key": f"key-of-{name}"} for name in ("ann", "bob"))


@dataclass
class Audited:
    """A server with keys, of which bob is an auditor; `lines` are those of its log, once it has ended."""

    http: httpx.Client
    namespace: Any
    directory: Path
    url: str

    def post(self, path: str, body: Any = None, headers: Any = ANN, **given: Any) -> httpx.Response:
        return self.http.post(path, json={} if body is None else body, headers=headers, **given)


@contextmanager
def audited(root: Path, namespace: Any = None, **given: Any) -> Iterator[Audited]:
    catalog = namespace or DirectoryNamespace(root=str(root / "root"), durability="none")
    app = create_app(
        catalog,
        Authenticator(KEYS, wrong_keys=3),
        attempts=log_in(root / "audit"),
        auditors=["bob"],
        metrics=ServerMetrics(),
        **given,
    )
    with serving(app) as url, httpx.Client(base_url=url, headers={"user-agent": "client/1"}, timeout=60) as http:
        yield Audited(http, catalog, root / "audit", url)
