"""Commands on who the caller is: `login`, `logout` and `whoami`."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from namespace_server.cli.command import refusal
from namespace_server.cli.connection import connected, server_of
from namespace_server.cli.output import print_json, print_table, say, shown_moment

if TYPE_CHECKING:
    from namespace_client.logins import DeviceCode


def login(
    context: typer.Context,
    issuer: Annotated[
        str | None, typer.Option(metavar="URL", help="The issuer of tokens; that of the login before.")
    ] = None,
    client_id: Annotated[
        str | None,
        typer.Option("--client-id", metavar="ID", help="What the issuer knows this command as; as before."),
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option("--scope", help="A scope to ask for; may be repeated; openid and offline_access, or as before."),
    ] = None,
    audience: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What the token is for, for issuers that ask; as before.")
    ] = None,
    resource: Annotated[
        str | None, typer.Option(metavar="URI", help="The same, for issuers that go by RFC 8707; as before.")
    ] = None,
    issuer_ca: Annotated[
        Path | None,
        typer.Option(
            "--issuer-ca",
            metavar="FILE",
            dir_okay=False,
            exists=True,
            help="PEM file of the authorities that may have signed the issuer's certificate; those of the system.",
        ),
    ] = None,
) -> None:
    """Log in to a server with an account of OpenID Connect, by the device authorization grant.

    It prints an address and a code: open the address in any browser, and type the code. Then commands and Python
    clients of this user show the token to that server, and to no other one, unless a key or a token is given. It is
    kept in a file that its owner alone may read, and renewed when it has expired.
    """
    from namespace_client.logins import Login, find_login, keep_login

    server = server_of(context)
    for option, value in (("--api-key", context.obj.api_key), ("--token", context.obj.token)):
        if value is not None:
            raise refusal(f"{option}: expected none: login gets a token of its own")
    texts = {"--issuer": issuer, "--client-id": client_id, "--audience": audience, "--resource": resource}
    for option, value in (*texts.items(), *(("--scope", each) for each in scope or ())):
        if value is not None and not value.strip():
            raise refusal(f"{option}: expected a text, found none")
    known = find_login(server)
    if known is None:
        if issuer is None or client_id is None:
            raise refusal("login: expected --issuer and --client-id the first time")
        known = Login(issuer, client_id)
    given: dict[str, Any] = {
        "issuer": issuer,
        "client_id": client_id,
        "scope": " ".join(scope) if scope else None,
        "audience": audience,
        "resource": resource,
        "ca": None if issuer_ca is None else str(issuer_ca.absolute()),
    }
    asked = replace(known, **{name: value for name, value in given.items() if value is not None})
    keep_login(server, asked.begun(_show))
    with connected(context) as catalog:
        caller = catalog.whoami()
    say(context, f"{server}: logged in as {caller.principal}", principal=caller.principal)


def _show(code: DeviceCode) -> None:
    """Tell what to do, where the output of the command does not go."""
    typer.echo(f"Open {code.url} and type {code.code}", err=True)
    if code.whole_url is not None:
        typer.echo(f"or open {code.whole_url}", err=True)


def logout(context: typer.Context) -> None:
    """Forget the login at a server. The token is not withdrawn: it is good until it expires."""
    from namespace_client.logins import forget_login

    server = server_of(context)
    if not forget_login(server):
        raise refusal(f"{server}: expected a login, found none")
    say(context, f"{server}: logged out", server=server)


def whoami(context: typer.Context) -> None:
    """Show who the server takes the caller for, what tells it so, and until when."""
    with connected(context) as catalog:
        caller = catalog.whoami()
    if context.obj.as_json:
        print_json({**asdict(caller), "roles": sorted(caller.roles)})
        return
    until = "" if caller.expires_at is None else shown_moment(caller.expires_at)
    shown = caller.principal or "(no caller is known)"
    row = (shown, caller.means, caller.issuer or "", ", ".join(sorted(caller.roles)), until)
    print_table(("principal", "by", "issuer", "roles", "until"), [row])
