"""uvicorn, as this server uses it."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from typing import Literal, cast

import typer
import uvicorn
from starlette.types import ASGIApp


class Server(uvicorn.Server):
    """uvicorn, saying on standard output where it listens."""

    async def startup(self, sockets: list | None = None) -> None:  # type: ignore[type-arg]
        """Listen, then say where: the port may have been chosen by the system."""
        await super().startup(sockets)
        for server in self.servers:
            for listener in server.sockets:
                host, port = listener.getsockname()[:2]
                shown = f"[{host}]" if ":" in host else host
                typer.echo(f"listening on http://{shown}:{port}")
        sys.stdout.flush()


def configure(app: ASGIApp, *, host: str, port: int) -> uvicorn.Config:
    """How `app` is served on `host` and `port`; 0 takes a free one."""
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        loop="asyncio" if sys.platform == "win32" else "uvloop",
        http=_protocol(),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        # Longer than the 90 s for which stock clients keep an idle connection: who reuses one must find it open.
        timeout_keep_alive=120,
    )


def _protocol() -> type[asyncio.Protocol] | Literal["h11"]:
    if sys.platform == "win32":
        return "h11"
    from namespace_server.repeats import Repeats
    from namespace_server.transport import RepeatingProtocol

    return cast("type[asyncio.Protocol]", partial(RepeatingProtocol, repeats=Repeats()))
