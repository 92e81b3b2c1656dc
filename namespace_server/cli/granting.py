"""Commands on grants: who may do what with a catalog.

With `--root` they work as the operator of the catalog, whom no grant restricts; with `--url` as the caller of the
server.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from namespace_server.access.subjects import Privilege
from namespace_server.cli.command import ExitStatus, refusal
from namespace_server.cli.connection import RootArgument, connected, take_root
from namespace_server.cli.output import print_json, print_table, say, shown_moment

if TYPE_CHECKING:
    from namespace_client import GrantOutcome

_Table = Annotated[str | None, typer.Option("--table", metavar="NAME", help="The table: shop.orders.")]
_Namespace = Annotated[str | None, typer.Option("--namespace", metavar="NAME", help="The namespace, and all in it.")]
_Catalog = Annotated[bool, typer.Option("--catalog", help="The catalog, and all in it.")]
_To = Annotated[str | None, typer.Option("--to", metavar="PRINCIPAL", help="The principal.")]
_ToRole = Annotated[
    str | None, typer.Option("--to-role", metavar="ROLE", help="The role. Every caller has the role everyone.")
]
_Message = Annotated[str | None, typer.Option(help="Text that is kept with the change.")]
_PRIVILEGES = f"{', '.join(Privilege)}; own is all of them"


def enable_grants(
    context: typer.Context,
    arguments: RootArgument = None,
    to: Annotated[
        list[str] | None, typer.Option("--to", metavar="PRINCIPAL", help="Who owns the catalog; may be repeated.")
    ] = None,
    to_role: Annotated[
        list[str] | None, typer.Option("--to-role", metavar="ROLE", help="A role that owns it; may be repeated.")
    ] = None,
    message: _Message = None,
) -> None:
    """Put grants in force, for good: what no grant allows is refused from then on, by every server.

    The operator, who can write the root of the catalog, is never refused: commands with `--root` go on as before.
    """
    take_root(context, arguments, ())
    if not to and not to_role:
        raise refusal("expected --to or --to-role, to name who owns the catalog from then on; found neither")
    with connected(context, new=True) as catalog:
        catalog.enable_grants(principals=to or (), roles=to_role or (), message=message)
    owners = [f"principal {name}" for name in to or ()] + [f"role {name}" for name in to_role or ()]
    say(context, f"grants are in force; the catalog is owned by {', '.join(owners)}", owners=owners)


def grant(
    context: typer.Context,
    arguments: Annotated[list[str], typer.Argument(metavar="[ROOT] PRIVILEGE...", help=f"Some of: {_PRIVILEGES}.")],
    table: _Table = None,
    namespace: _Namespace = None,
    catalog: _Catalog = False,
    to: _To = None,
    to_role: _ToRole = None,
    message: _Message = None,
) -> None:
    """Grant privileges on a table, a namespace or the catalog, and on all in it, to a principal or a role."""
    privileges = _privileges(context, arguments)
    on, grantee = _on(table, namespace, catalog=catalog), _grantee(to, to_role)
    with connected(context) as connection:
        outcome = connection.grant(privileges, **on, **grantee, message=message)
    _say(context, outcome, on, grantee, unchanged="had that before")


def revoke(
    context: typer.Context,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ROOT] [PRIVILEGE...]", help=f"Some of: {_PRIVILEGES}. Without any all go."),
    ] = None,
    table: _Table = None,
    namespace: _Namespace = None,
    catalog: _Catalog = False,
    to: _To = None,
    to_role: _ToRole = None,
    message: _Message = None,
) -> None:
    """Revoke privileges that a principal or a role was granted on an object itself.

    What it has by another grant, on what is above or to a role of it, stays: `can` tells. Ends with status 1 if
    there was nothing to revoke.
    """
    privileges = _privileges(context, arguments)
    on, grantee = _on(table, namespace, catalog=catalog), _grantee(to, to_role)
    with connected(context) as connection:
        outcome = connection.revoke(privileges or None, **on, **grantee, message=message)
    _say(context, outcome, on, grantee, unchanged="had nothing of that")
    if not outcome.changed:
        raise typer.Exit(ExitStatus.FOUND)


def grants(
    context: typer.Context,
    arguments: RootArgument = None,
    table: _Table = None,
    namespace: _Namespace = None,
    catalog: _Catalog = False,
    to: _To = None,
    to_role: _ToRole = None,
) -> None:
    """List grants: all, or those on one object itself, or to one grantee itself; as far as the caller may see them."""
    take_root(context, arguments, ())
    on = _on(table, namespace, catalog=catalog) if table or namespace or catalog else {}
    grantee = _grantee(to, to_role) if to or to_role else {}
    with connected(context) as connection:
        found = connection.grants(**on, **grantee)
    if context.obj.as_json:
        print_json(asdict(found))
        return
    if not found.in_force:
        typer.echo("grants are not in force: every caller may do everything")
        return
    rows = [
        (each.on, each.to, ", ".join(each.privileges), each.principal or "the operator", shown_moment(each.changed_at))
        for each in found.grants
    ]
    print_table(("on", "to", "privileges", "by", "changed"), rows)


def grant_role(
    context: typer.Context,
    arguments: Annotated[list[str], typer.Argument(metavar="[ROOT] ROLE", help="The role that is given.")],
    to: _To = None,
    to_role: _ToRole = None,
    message: _Message = None,
) -> None:
    """Give a role to a principal, or to another role. Roles that tokens name need not be given."""
    [role] = take_root(context, arguments, ("ROLE",))
    grantee = _grantee(to, to_role)
    with connected(context) as connection:
        outcome = connection.grant_role(role, **grantee, message=message)
    _say_role(context, outcome, role, grantee, "has", "had it before")


def revoke_role(
    context: typer.Context,
    arguments: Annotated[list[str], typer.Argument(metavar="[ROOT] ROLE", help="The role that is taken.")],
    to: _To = None,
    to_role: _ToRole = None,
    message: _Message = None,
) -> None:
    """Take a role from a principal or a role that was given it. Ends with status 1 if it was not given."""
    [role] = take_root(context, arguments, ("ROLE",))
    grantee = _grantee(to, to_role)
    with connected(context) as connection:
        outcome = connection.revoke_role(role, **grantee, message=message)
    _say_role(context, outcome, role, grantee, "has no longer", "was not given it")
    if not outcome.changed:
        raise typer.Exit(ExitStatus.FOUND)


def roles(context: typer.Context, arguments: RootArgument = None) -> None:
    """List who has which role, as far as the caller may see it. Roles that tokens name are not kept in the catalog."""
    take_root(context, arguments, ())
    with connected(context) as connection:
        found = connection.grants()
    if context.obj.as_json:
        print_json({"in_force": found.in_force, "roles": [asdict(each) for each in found.roles]})
        return
    rows = [(each.role, each.to, each.principal or "the operator", shown_moment(each.given_at)) for each in found.roles]
    print_table(("role", "given to", "by", "at"), rows)


def can(
    context: typer.Context,
    arguments: Annotated[
        list[str], typer.Argument(metavar="[ROOT] PRINCIPAL PRIVILEGE", help="Who, and which privilege.")
    ],
    table: _Table = None,
    namespace: _Namespace = None,
    catalog: _Catalog = False,
    with_role: Annotated[
        list[str] | None,
        typer.Option("--with-role", metavar="ROLE", help="A role that its token would name; may be repeated."),
    ] = None,
) -> None:
    """Say whether a principal has a privilege, and by which grant. Ends with status 1 if it has not."""
    principal, privilege = take_root(context, arguments, ("PRINCIPAL", "PRIVILEGE"))
    on = _on(table, namespace, catalog=catalog)
    with connected(context) as connection:
        found = connection.can(privilege, **on, principal=principal, roles=with_role)
    answer = "yes" if found.allowed else "no"
    reason = found.reason if found.in_force else "grants are not in force"
    say(context, f"{answer}: {reason}", **asdict(found))
    if not found.allowed:
        raise typer.Exit(ExitStatus.FOUND)


def _privileges(context: typer.Context, arguments: list[str] | None) -> list[str]:
    """The privileges among the arguments of a command. The first may be the root: it is, unless it is a privilege."""
    given = list(arguments or ())
    if context.obj.is_given or not given or given[0] in set(Privilege):
        return given
    return take_root(context, given, ("PRIVILEGE",) * (len(given) - 1))


def _on(table: str | None, namespace: str | None, *, catalog: bool) -> dict[str, Any]:
    """The object that options name, as the methods of a catalog take it."""
    named = {"table": table, "namespace": namespace, "catalog": catalog or None}
    found = {name: value for name, value in named.items() if value is not None}
    if len(found) != 1:
        options = " and ".join(f"--{name}" for name in found) or "none"
        raise refusal(f"expected one of --table, --namespace and --catalog, found {options}")
    return found


def _grantee(to: str | None, to_role: str | None) -> dict[str, Any]:
    """Who options name, as the methods of a catalog take it."""
    if (to is None) == (to_role is None):
        raise refusal(f"expected one of --to and --to-role, found {'none' if to is None else 'both'}")
    return {"principal": to} if to is not None else {"role": to_role}


def _named(values: dict[str, Any]) -> str:
    [(kind, name)] = values.items()
    return kind if name is True else f"{kind} {name}"


def _say(
    context: typer.Context, outcome: GrantOutcome, on: dict[str, Any], grantee: dict[str, Any], *, unchanged: str
) -> None:
    has = ", ".join(outcome.privileges) or "no privilege"
    note = "" if outcome.changed else f" ({unchanged})"
    say(context, f"{_named(grantee)} has {has} on {_named(on)} by grant{note}", **asdict(outcome))


def _say_role(
    context: typer.Context, outcome: GrantOutcome, role: str, grantee: dict[str, Any], verb: str, unchanged: str
) -> None:
    note = "" if outcome.changed else f" ({unchanged})"
    say(context, f"{_named(grantee)} {verb} role {role}{note}", changed=outcome.changed)
