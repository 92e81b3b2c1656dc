"""The command `inspect`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from namespace_server.cli.command import refusal
from namespace_server.cli.options import StorageOptions, storage_options


def inspect(
    target: Annotated[str, typer.Argument(metavar="PATH-OR-URI", help="A table, or one of its files.")],
    version: Annotated[int | None, typer.Option(help="Version of the table (the newest).")] = None,
    ref: Annotated[str | None, typer.Option(help="Tag or branch of the table (main).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Everything that is there, as JSON.")] = False,
    storage_option: StorageOptions = None,
) -> None:
    """Show what a manifest, transaction, deletion or reference file says, or a version of a table."""
    from lance_core.errors import ReferenceNotFound
    from namespace_server.cli.inspection import inspect_uri, render_text

    options = storage_options(storage_option)
    try:
        found = inspect_uri(target, version=version, ref=ref, storage_options=options)
    except ReferenceNotFound as error:
        if not _is_root(target, options):
            raise
        raise refusal(
            f"{target}: expected a table, found the root of a catalog. `lance-namespace ls --root {target}` lists its "
            f"tables, and `lance-namespace inspect {target.rstrip('/')}/__manifest` shows the catalog itself"
        ) from error
    typer.echo(json.dumps(found, indent=2) if as_json else render_text(found), nl=as_json)


def _is_root(target: str, options: dict[str, str]) -> bool:
    """Whether there is a catalog at a path or URI."""
    from lance_core.errors import LanceCoreError
    from lance_core.storage.opening import open_store
    from lance_core.versions import find_latest
    from namespace_server.directory.model.root_layout import MANIFEST_TABLE

    try:
        return bool(find_latest(open_store(target, options), MANIFEST_TABLE))
    except LanceCoreError:
        return False
