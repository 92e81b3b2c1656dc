"""Clients of the MCP SDK that talk to the tools for agents, over HTTP and over standard input and output."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import CallToolResult

from tests.access.granting import as_principal
from tests.server.servers import REPOSITORY

T = TypeVar("T")

OLD, NEW = "legacy", "2026-07-28"
"""The two ways in which a client may begin: with a handshake, or without one."""


def talk(target: Any, talking: Callable[[Client], Awaitable[T]], *, mode: str = NEW) -> T:
    """What a client gets from a conversation with a server."""

    async def run() -> T:
        async with Client(target, mode=mode) as client:
            return await talking(client)

    return asyncio.run(run())


@asynccontextmanager
async def over_http(url: str, principal: str | None = None) -> AsyncIterator[Any]:
    """A server at a URL, for a principal."""
    headers = {} if principal is None else as_principal(principal)
    async with (
        create_mcp_http_client(headers) as http,
        streamable_http_client(f"{url}/mcp", http_client=http) as streams,
    ):
        yield streams


def over_pipes(*arguments: str, log: Path | None = None, environment: dict[str, str] | None = None) -> Any:
    """The command, as a program of an agent starts it."""
    del log
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "namespace_server", "mcp", *arguments],
        cwd=REPOSITORY,
        env={**os.environ, **(environment or {})},
    )


class Caller:
    """Calls of tools by one principal at one server, each in a connection of its own."""

    def __init__(self, url: str, principal: str | None = None, *, mode: str = NEW) -> None:
        self.url = url
        self.principal = principal
        self.mode = mode

    def answer(self, tool: str, **arguments: Any) -> CallToolResult:
        """The result of a call."""
        return talk(
            over_http(self.url, self.principal), lambda client: client.call_tool(tool, arguments), mode=self.mode
        )

    def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured content of a call that succeeds."""
        result = self.answer(tool, **arguments)
        assert not result.is_error, text_of(result)
        assert isinstance(result.structured_content, dict)
        return result.structured_content

    def refused(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured content of a call that fails."""
        result = self.answer(tool, **arguments)
        assert result.is_error, text_of(result)
        assert isinstance(result.structured_content, dict)
        return result.structured_content


def text_of(result: CallToolResult) -> str:
    """The text of a result."""
    [content] = result.content
    assert content.type == "text"
    return content.text
