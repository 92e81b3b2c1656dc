"""A catalog for agents: the command that serves one over standard input and output, and `/mcp` of a server."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from namespace_server.cli.command import refusal
from namespace_server.cli.connection import RootArgument, connected, take_root

if TYPE_CHECKING:
    from namespace_server.app import Application
    from namespace_server.settings import Settings


def mcp(
    context: typer.Context,
    arguments: RootArgument = None,
    write: Annotated[
        bool, typer.Option("--write", help="Also the tools that change the catalog; else it is only read.")
    ] = False,
) -> None:
    """Serve a catalog to an agent by MCP (Model Context Protocol), over standard input and output, until that ends.

    The agent's program starts this command. Its calls are made in the name of the caller that the options, the
    environment or the profile name, with the grants of that caller. Names in calls are whole, whatever the namespace of
    the profile is. Standard output has messages of the protocol alone; the log goes to standard error.
    """
    take_root(context, arguments, ())
    if context.obj.as_json:
        raise refusal("mcp: --json: expected none of it: all output is messages of the protocol")
    if not _is_installed():
        raise refusal(f"mcp: {_MISSING}")
    from namespace_mcp.stdio import serve_stdio

    with connected(context) as catalog:
        serve_stdio(catalog, writes=write)


def mount_agents(app: Application, settings: Settings) -> None:
    """Serve the tools for agents at `/mcp`, as the settings say. Ends the command where they want what is missing."""
    if settings.mcp == "off":
        return
    if not _is_installed():
        if "mcp" in settings.model_fields_set:
            raise refusal(f"settings: mcp: {_MISSING}")
        return
    from namespace_mcp.http import AGENTS, WELL_KNOWN, AgentApplication, ResourceMetadata

    issuers = [each.issuer for each in settings.token_issuers]
    app.mount(AGENTS, AgentApplication(writes=settings.mcp == "write", issuers=issuers))
    if issuers:
        app.mount(WELL_KNOWN, ResourceMetadata(issuers))


_MISSING = "expected the extra mcp, found none: pip install 'lance-namespace-server[mcp]'"


def _is_installed() -> bool:
    return find_spec("mcp") is not None
