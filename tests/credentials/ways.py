"""The ways in which stock clients reach the files of tables in a bucket, on our server and on stock's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from lance.namespace import RestAdapter, RestNamespace
from lance_namespace import CreateNamespaceRequest, DescribeTableRequest
from lancedb.namespace import LanceNamespaceDBConnection

from tests.credentials.conftest import GuardedS3
from tests.credentials.guarded_s3 import ROLE
from tests.server.servers import ServerProcess

LIFETIME = 4.0
"""Seconds for which credentials are valid where they are to expire."""
REFRESH = {"refresh_offset_millis": "1000"}
"""What tells clients to renew credentials a second before their end."""


@dataclass(frozen=True)
class Way:
    """A server on a bucket, with the namespace `w`, and what its clients have."""

    urls: tuple[str, ...]
    """Of the server, or of two on one root."""
    service: GuardedS3
    own: dict[str, str] | None
    """The options that a client has of its own."""
    numbers: Iterator[int] = field(default_factory=count)

    def client(self, server: int = -1) -> RestNamespace:
        """A stock client that counts its requests."""
        return RestNamespace(uri=self.urls[server], ops_metrics_enabled="true")

    def database(self, client: RestNamespace) -> LanceNamespaceDBConnection:
        """lancedb, over a client."""
        return LanceNamespaceDBConnection(client, storage_options=self.own)

    def new_table(self) -> list[str]:
        """The id of a table that does not exist yet."""
        return ["w", f"t{next(self.numbers)}"]

    def options(self, client: RestNamespace, table: list[str]) -> dict[str, str]:
        """What a client reaches a table with: its own options, and over them what it is handed."""
        found = client.describe_table(DescribeTableRequest(id=table)).storage_options
        return {**(self.own or {}), **(found or {})}


def asked(client: RestNamespace) -> tuple[int, int]:
    """How often a client has declared and described tables."""
    counts = client.retrieve_ops_metrics()
    return counts.get("declare_table", 0), counts.get("describe_table", 0)


@contextmanager
def ours(service: GuardedS3, vended: dict[str, str], own: dict[str, str] | None, log: Path) -> Iterator[Way]:
    """Our server; two on one root where credentials end. `vended` are settings about what clients are handed."""
    settings = {f"STORAGE__{name.upper()}": value for name, value in service.emulator.storage_options.items()} | vended
    environment = {f"LANCE_NAMESPACE_{name}": value for name, value in settings.items()}
    root = service.emulator.new_root()
    with ExitStack() as stack:
        servers = range(2 if "VENDED_ROLE_ARN" in vended else 1)  # one starts in seconds
        urls = [stack.enter_context(ServerProcess(root, log=log, environment=environment)).url for _ in servers]
        RestNamespace(uri=urls[0]).create_namespace(CreateNamespaceRequest(id=["w"]))
        yield Way(tuple(urls), service, own)


@contextmanager
def stock(service: GuardedS3, vended: dict[str, str], own: dict[str, str] | None) -> Iterator[Way]:
    """Two servers of stock on one root. `vended` are its properties about what clients are handed."""
    options = service.emulator.storage_options | REFRESH
    properties = {f"storage.{name}": value for name, value in options.items()} | vended
    root = {"root": service.emulator.new_root().replace(" ", "_"), "commit_retries": "2147483647"}
    with RestAdapter("dir", properties | root, port=0) as one, RestAdapter("dir", properties | root, port=0) as other:
        urls = tuple(f"http://127.0.0.1:{server.port}" for server in (one, other))
        RestNamespace(uri=urls[0]).create_namespace(CreateNamespaceRequest(id=["w"]))
        yield Way(urls, service, own)


def _handed(options: dict[str, str]) -> dict[str, str]:
    return {f"VENDED_STORAGE__{name.upper()}": value for name, value in options.items()}


@contextmanager
def way(name: str, service: GuardedS3, log: Path) -> Iterator[Way]:
    """One of `WAYS`, opened."""
    keys = service.emulator.storage_options
    role = {"VENDED_ROLE_ARN": ROLE, "VENDED_STS_ENDPOINT": service.public["aws_endpoint"]}
    refreshed = {
        "vend_input_storage_options": "true",
        "vend_input_storage_options_refresh_interval_millis": str(int(LIFETIME * 1000)),
    }
    opened = {
        "own keys": lambda: ours(service, {}, keys, log),
        "static options": lambda: ours(service, _handed(keys), None, log),
        "sessions": lambda: ours(service, role | _handed(service.public | REFRESH), None, log),
        "stock, own keys": lambda: stock(service, {}, keys),
        "stock, handed out": lambda: stock(service, refreshed, None),
    }[name]()
    with opened as found:
        yield found


OURS = ("own keys", "static options", "sessions")
WAYS = (*OURS, "stock, own keys", "stock, handed out")
EXPIRING = ("sessions", "stock, handed out")
"""The ways in which what a server hands out ends after a time."""
