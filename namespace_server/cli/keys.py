"""Commands on files of API keys (`api_keys_file`). Servers read a file again within a second after it has changed."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lance_core.amounts import counted
from namespace_server.cli.command import refusal, verbose_command
from namespace_server.cli.options import AsJson
from namespace_server.cli.output import print_json, print_table

if TYPE_CHECKING:
    from namespace_server.rest.key_file import ListedKey

key_commands = typer.Typer(help="API keys in a file of a server.", no_args_is_help=True)

_SHOWN = 12
_File = Annotated[Path, typer.Argument(metavar="FILE", help="File of `api_keys_file`: TOML, or JSON by its name.")]
_Principal = Annotated[str, typer.Argument(metavar="PRINCIPAL", help="Who the keys are for.")]


@key_commands.command()
@verbose_command
def add(file: _File, principal: _Principal, as_json: AsJson = False) -> None:
    """Make a random key for a principal, and print it: it is shown this once. The file gets its digest only.

    A file that is not there is made. A principal may have several keys: to rotate one, add another, give that to the
    clients, then remove the old one.
    """
    from namespace_server.rest.identity import KeyRing
    from namespace_server.rest.key_file import add_entry, hashed, new_key

    key = new_key()
    try:
        KeyRing.parse({key: principal})
        add_entry(file, hashed(key), principal)
    except (OSError, ValueError) as error:
        raise _refused(file, error) from error
    if as_json:
        print_json({"principal": principal, "key": key, "digest": hashed(key)})
    else:
        typer.echo(key)


@key_commands.command("list")
@verbose_command
def list_command(file: _File, as_json: AsJson = False) -> None:
    """List the principals of a file and the digests of their keys. No key is shown."""
    found = _listed(file)
    if as_json:
        print_json([asdict(each) for each in found])
        return
    rows = [(each.principal, each.digest[:_SHOWN], "key" if each.plain else "digest") for each in found]
    print_table(("principal", "digest", "in the file"), rows)


@key_commands.command()
@verbose_command
def remove(
    file: _File,
    principal: _Principal,
    digest: Annotated[
        str | None, typer.Option(metavar="HEX", help="Only the key whose digest begins so, as `list` shows it.")
    ] = None,
) -> None:
    """Remove the keys of a principal from a file. Servers refuse them within a second.

    The last key of a file is not removed: a server that finds none keeps those in force.
    """
    from namespace_server.rest.key_file import remove_entries

    found = _listed(file)
    chosen = [each for each in found if each.principal == principal and each.digest.startswith((digest or "").lower())]
    if not chosen:
        named = f"{principal} with a digest that begins with {digest}" if digest else principal
        raise refusal(f"{file}: expected a key of {named}, found none")
    if len(chosen) == len(found):
        raise refusal(f"{file}: expected a key that stays, found none: add another one first")
    try:
        remove_entries(file, {each.digest for each in chosen})
    except (OSError, ValueError) as error:
        raise _refused(file, error) from error
    typer.echo(f"{principal}: {len(chosen)} of {counted(len(found), 'key')} removed")


def _listed(file: Path) -> list[ListedKey]:
    from namespace_server.rest.key_file import list_keys

    try:
        return list_keys(file)
    except (OSError, ValueError) as error:
        raise _refused(file, error) from error


def _refused(file: Path, error: OSError | ValueError) -> typer.Exit:
    return refusal(f"{file}: {error.strerror if isinstance(error, OSError) else error}")
