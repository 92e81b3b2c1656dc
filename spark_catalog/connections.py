"""Connections to a catalog server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from namespace_client.http import CatalogServer


def connect(url: str, token: str | None) -> CatalogServer:
    """Connections to a server, with an API key if there is one. Close them."""
    return CatalogServer(url, headers={"authorization": f"Bearer {token}"} if token else {})


@contextmanager
def connected(server: CatalogServer | str) -> Iterator[CatalogServer]:
    """The given connections, or new ones to a URL that are closed with the block."""
    if isinstance(server, CatalogServer):
        yield server
    else:
        with CatalogServer(server) as connection:
            yield connection
