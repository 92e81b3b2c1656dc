"""Commands on a catalog and its database."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from lance_core.amounts import counted
from namespace_server.cli.command import refusal
from namespace_server.cli.options import Config, Durability, LogLevel, ManifestStore, Root


def serve(
    root: Root = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on (127.0.0.1).")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 takes a free one (2333).")] = None,
    durability: Durability = None,
    manifest_store: ManifestStore = None,
    config: Config = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Listen beyond loopback although no API keys are configured.")
    ] = False,
    tls_certificate: Annotated[
        Path | None, typer.Option(help="PEM file with the server's certificate chain; needs --tls-key.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="PEM file with the certificate's private key.")] = None,
    log_level: LogLevel = None,
) -> None:
    """Serve a catalog over HTTP.

    A directory that cannot be written is refused. A bucket may become writable: then the server starts, and logs it.

    Settings come from the options, then from LANCE_NAMESPACE_* in the environment, then from the file. Ctrl-C or
    SIGTERM ends the server once the requests that it has accepted are answered. SIGHUP reads the API keys
    in the file of `api_keys_file` again.
    """
    with _importing():
        from namespace_server.cli import server

    server.serve(
        config,
        root=root,
        host=host,
        port=port,
        durability=durability,
        manifest_store=manifest_store,
        insecure=insecure or None,
        tls_certificate=tls_certificate,
        tls_key=tls_key,
        log_level=log_level,
    )


def adopt(
    root: Root = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Also stop plain dataset writers from changing the catalog.")
    ] = False,
    durability: Durability = None,
    manifest_store: ManifestStore = None,
    config: Config = None,
    log_level: LogLevel = None,
) -> None:
    """Take over a catalog that stock clients made, so that this server keeps its table versions.

    A root without any table is refused: nothing is made there.
    """
    from namespace_server.cli import server

    given = {"root": root, "durability": durability, "manifest_store": manifest_store, "log_level": log_level}
    server.adopt(config, strict=strict, **given)


def migrate(
    manifest_store: Annotated[
        str,
        typer.Option(
            envvar="LANCE_NAMESPACE_MANIFEST_STORE", help="The database: sqlite:///file or postgresql+psycopg://…"
        ),
    ],
    revision: Annotated[
        str, typer.Option(help="Where to: head, base (nothing of ours), or a revision in between.")
    ] = "head",
    yes: Annotated[
        bool, typer.Option("-y", "--yes", help="Do not ask, where tables are dropped with what is in them.")
    ] = False,
) -> None:
    """Give a database the schema of a manifest store, or move it to another revision, up or down. All or nothing.

    Down to `base` the rows are dropped that decide commits: it asks first. End the servers that use the database.
    """
    from namespace_server.store.schema import migrate as move  # SQLAlchemy is loaded only where it is used
    from namespace_server.store.schema import rows_lost

    if not yes and (held := rows_lost(manifest_store, revision)):
        lost = f"{counted(held, 'row')}, which decide the commits of all catalogs that use this database"
        if not sys.stdin.isatty():
            raise refusal(f"--revision {revision}: expected --yes, since it drops {lost}")
        if not typer.confirm(f"Drop {lost}?", err=True):
            raise refusal(f"--revision {revision}: nothing was dropped")
    before, after = move(manifest_store, revision)
    typer.echo(f"schema {after or 'none'}" + (", as before" if before == after else f", was {before or 'none'}"))


@contextmanager
def _importing() -> Iterator[None]:
    """Import modules that stay for good: the collector of cycles never looks at their objects, now or later.

    That would take a fifth of the time to start.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
