"""Commands on a catalog and its database."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from namespace_server.cli.options import (
    Config,
    Durability,
    LogLevel,
    ManifestStore,
    Root,
    StorageOptions,
    TableManifestStore,
    commit_handler,
    duration,
    storage_options,
)
from namespace_server.cli.output import print_report
from namespace_server.cli.progress import ProgressLine


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
) -> None:
    """Give a database the schema of a manifest store, or move it to another revision, up or down. All or nothing."""
    from namespace_server.store.schema import migrate as move  # SQLAlchemy is loaded only where it is used

    before, after = move(manifest_store, revision)
    typer.echo(f"schema {after or 'none'}" + (", as before" if before == after else f", was {before or 'none'}"))


def orphans(
    root: Annotated[str, typer.Argument(metavar="ROOT", help="Directory or URI of a catalog.")],
    table: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="Judge only this table, shop.orders, also if its location is not the catalog's; may be repeated.",
            show_default=False,
        ),
    ] = None,
    older_than: Annotated[
        str,
        typer.Option(
            metavar="AGE",
            help="Age of an orphan: 14d, 36h, 90m. Nothing tells a younger file from that of a writer that has not "
            "committed yet.",
        ),
    ] = "7d",
    as_json: Annotated[bool, typer.Option("--json", help="Everything that was found, as JSON.")] = False,
    storage_option: StorageOptions = None,
    manifest_store: TableManifestStore = None,
) -> None:
    """List the files of a catalog's tables that nothing names: neither a row of the catalog nor a manifest.

    Failed tasks, aborted writes and lost commits leave such files. Nothing is removed and nothing is committed; servers
    and writers may go on. Younger files are only counted. Files of unknown names, tables whose manifests cannot be
    understood, and directories of no table are reported and not judged.
    """
    with commit_handler(manifest_store) as handler:
        from lance_core.commit.handlers.handler import handle
        from lance_core.storage.opening import open_store
        from namespace_client.names import absolute
        from namespace_server.directory.orphans import find_orphans

        with (
            closing(handle(open_store(root, storage_options(storage_option)), handler)) as store,
            ProgressLine() as progress,
        ):
            report = find_orphans(
                store,
                now=datetime.now(UTC),
                older_than=duration("--older-than", older_than),
                tables=[absolute(name) for name in table or ()],
                progress=progress,
            )
    print_report(report, as_json=as_json)


@contextmanager
def _importing() -> Iterator[None]:
    """Import within what stays for good: the collector of cycles never looks at it, now or later.

    That would take a fifth of the time to start.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
