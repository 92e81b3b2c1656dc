"""Commands on backups of a catalog."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from lance_core.amounts import counted
from namespace_server.cli.command import ExitStatus, refusal
from namespace_server.cli.connection import CatalogTarget, opened_root, root_options, take_root
from namespace_server.cli.options import (
    AsJson,
    Durability,
    StorageOptions,
    TableManifestStore,
    commit_handler,
    parse_point,
    storage_options,
)
from namespace_server.cli.output import print_report, shown_moment
from namespace_server.cli.progress import ProgressLine
from namespace_server.interruption import raise_interrupts

if TYPE_CHECKING:
    from lance_core.storage.port import ObjectStore
    from namespace_server.directory.backup.records import BackupRecord
    from namespace_server.directory.catalog import StoredCatalog

_Destination = Annotated[
    str, typer.Argument(metavar="DESTINATION", help="Directory or URI of backups, of this catalog alone.")
]
_DestinationOptions = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="Option for the object store of the destination; may be repeated. Without any it has those of the root.",
        show_default=False,
    ),
]


def backup(
    context: typer.Context,
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="[ROOT] DESTINATION",
            help="Directory or URI of backups, of this catalog alone. Before it the root, in place of --root.",
        ),
    ],
    at: Annotated[
        str | None,
        typer.Option(metavar="POINT", help="Catalog version, time such as 2026-11-26T10:00Z, or pin (the newest)."),
    ] = None,
    heads: Annotated[
        bool,
        typer.Option("--heads", help="Only the newest version of each branch, and those that tags and branches name."),
    ] = False,
    keep_outside: Annotated[
        bool,
        typer.Option(
            "--keep-outside",
            help="Leave files that tables name elsewhere, by base paths or blobs, where they are; else refused.",
        ),
    ] = False,
    destination_option: _DestinationOptions = None,
) -> None:
    """Back up one version of a catalog: its rows, and all files of its tables.

    Servers and writers may go on: the version is pinned meanwhile. Only files that the destination lacks are copied;
    each is read back and compared. The record of the backup is written last. After a crash at any moment the same
    command goes on where the other ended.
    """
    [destination] = take_root(context, arguments, ("DESTINATION",))
    target: CatalogTarget = context.obj
    with (
        opened_root(context) as catalog,
        _opened(destination, destination_option or list(target.storage_option), target.durability) as store,
        ProgressLine() as progress,
    ):
        from lance_core.storage.opening import open_store
        from namespace_server.directory.backup import BackupRun

        options = dict(root_options(context))
        run = BackupRun(
            catalog,
            store,
            heads=heads,
            keep_outside=keep_outside,
            progress=progress,
            open_root=lambda uri: open_store(uri, options),
            storage_options=options,
        )
        done = run.make(_version_at(catalog, at))
    if target.as_json:
        typer.echo(json.dumps({**done.record.as_json(), "copied": done.copied, "written": done.written}, indent=2))
        return
    for left_out in done.record.left_out:
        typer.echo(f"not in the backup: {left_out.what}: {left_out.reason}")
    for path in done.record.outside:
        typer.echo(f"not in the backup: files below {path}, which tables go on to name")
    typer.echo(f"{_line(done.record)}; {counted(done.copied, 'file')} copied, {counted(done.written, 'byte')}")


def backups(
    destination: _Destination,
    as_json: AsJson = False,
    storage_option: StorageOptions = None,
) -> None:
    """List the backups in a destination, the oldest first, with the root and the identity of the catalog of each.

    A record that cannot be read is named, and the exit status is 3 then. It is 1 where the backups are shown to be of
    two copies of a catalog.
    """
    with _opened(destination, storage_option) as store:
        from namespace_server.directory.backup.ownership import two_copies
        from namespace_server.directory.backup.records import readable_records

        records, damaged = readable_records(store)
    if as_json:
        typer.echo(json.dumps([record.as_json() for record in records], indent=2))
    else:
        for record in records:
            catalog = f", catalog {record.identity}" if record.identity else ""
            typer.echo(f"{_line(record)}; of {record.root}{catalog}")
    for error in damaged:
        typer.echo(f"damaged: {error}", err=True)
    if (text := two_copies(records)) is not None:
        typer.echo(f"warning: {text}", err=True)
    if damaged or text:
        raise typer.Exit(ExitStatus.DAMAGED if damaged else ExitStatus.FOUND)


def verify_backup(
    destination: _Destination,
    backup_id: Annotated[str | None, typer.Argument(metavar="ID", help="Which backup (all).")] = None,
    rows: Annotated[
        bool, typer.Option("--rows", help="Also decode all columns of the newest version of each branch.")
    ] = False,
    as_json: AsJson = False,
    storage_option: StorageOptions = None,
) -> None:
    """Verify backups: the size and hash of every file, its place in the manifests, and a scan of every table.

    Reads all files of the backups, and writes nothing. Exit status: 0 sound; 1 sound, and of two copies of a catalog; 2
    there is no such backup; 3 damage.
    """
    with _opened(destination, storage_option) as store, ProgressLine() as progress:
        from namespace_server.directory.backup import verify

        report = verify(store, backup_id, storage_options(storage_option), progress, decode=rows)
    print_report(report, as_json=as_json)
    if report.problems or report.copies:
        raise typer.Exit(ExitStatus.DAMAGED if report.problems else ExitStatus.FOUND)


def restore(
    destination: _Destination,
    root: Annotated[str, typer.Argument(metavar="ROOT", help="Directory or URI of the new catalog; empty.")],
    backup_id: Annotated[str | None, typer.Option("--id", metavar="ID", help="Which backup (the newest).")] = None,
    as_json: AsJson = False,
    durability: Durability = None,
    storage_option: StorageOptions = None,
    destination_option: _DestinationOptions = None,
    manifest_store: TableManifestStore = None,
) -> None:
    """Restore a backup under an empty root, which may be another one than before, in another store.

    Without --id it is the newest backup; that is refused if the destination has backups of several catalogs, or of two
    copies of one. The catalog has the number of the version that was backed up, which is its oldest, and an identity of
    its own. No server makes a catalog at the root before that is complete. After a crash at any moment the same command
    goes on.
    """
    with (
        _opened(destination, destination_option or storage_option) as store,
        _opened(root, storage_option, durability, manifest_store) as target,
        ProgressLine() as progress,
    ):
        from namespace_server.directory.backup import Restoration

        done = Restoration(store, target, progress=progress).restore(backup_id)
    if as_json:
        report = {**done.record.as_json(), "restored": done.files, "written": done.written}
        typer.echo(json.dumps(report, indent=2))
        return
    record = done.record
    typer.echo(
        f"{root}: catalog version {record.catalog_version}, {counted(len(record.tables), 'table')}, "
        f"of backup {record.id}; {counted(done.files, 'file')}, {counted(done.written, 'byte')} written"
    )


@contextmanager
def _opened(
    uri: str, options: list[str] | None, durability: str | None = None, manifest_store: str | None = None
) -> Iterator[ObjectStore]:
    """A store, open within."""
    from lance_core.commit.handlers.handler import handle
    from lance_core.storage.opening import open_store

    if durability not in {None, "fsync", "none"}:
        raise refusal(f"--durability: expected fsync or none, found {durability}")
    with commit_handler(manifest_store) as handler:
        store = open_store(uri, storage_options(options), durability="none" if durability == "none" else "fsync")
        with closing(handle(store, handler)) as handled:
            raise_interrupts()
            yield handled


def _version_at(catalog: StoredCatalog, at: str | None) -> int | None:
    """The catalog version at a point; None without one."""
    from namespace_server.directory.backup.run import version_at

    point = None if at is None else parse_point(at)
    if isinstance(point, datetime):
        return version_at(catalog, int(point.timestamp() * 1_000))
    if isinstance(point, str):
        pin = catalog.snapshot().pin(point)
        if pin is None:
            raise refusal(f"--at {point}: expected a catalog version, a time such as 2026-11-26T10:00Z, or a pin")
        return pin.version
    return point


def _line(record: BackupRecord) -> str:
    moment = datetime.fromtimestamp(record.timestamp_ms / 1_000, UTC)
    files = sum(part.files for part in record.parts)
    kind = ", newest versions" if record.heads else ""
    return (
        f"{record.id}  catalog version {record.catalog_version} of {shown_moment(moment)}, "
        f"{counted(len(record.tables), 'table')}, {counted(files, 'file')}, {counted(record.size, 'byte')}{kind}"
    )
