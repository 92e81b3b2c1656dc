"""The tools over standard input and output: for a program that starts this one."""

from __future__ import annotations

import anyio
from mcp.server.stdio import stdio_server

from namespace_client import Catalog
from namespace_mcp.server import AgentServer
from namespace_mcp.tools.tool import OpenedCatalog


def serve_stdio(catalog: Catalog, *, writes: bool = False) -> None:
    """Serve a catalog until standard input ends. Nothing but messages of the protocol is written to standard output.

    Args:
        catalog: The catalog, in the name of whom all calls are made. It stays open.
        writes: Whether there are tools that change it.
    """
    anyio.run(_serve, catalog, writes)


async def _serve(catalog: Catalog, writes: bool) -> None:
    server = AgentServer(lambda _request: OpenedCatalog(catalog, _stays_open), writes=writes)
    try:
        async with stdio_server() as (read, write):
            await server.sdk.run(read, write, server.sdk.create_initialization_options())
    finally:
        server.close()


def _stays_open() -> None:
    """The catalog is that of all calls. What is under way ends by itself."""
