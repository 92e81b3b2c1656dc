"""The command that says whether a root can be used."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

import typer

from namespace_server.cli.options import StorageOptions, TableManifestStore, commit_handler, storage_options
from namespace_server.cli.output import print_report
from namespace_server.cli.progress import ProgressLine


def check(
    root: Annotated[str, typer.Argument(metavar="ROOT", help="Directory or URI, with or without a catalog.")],
    as_json: Annotated[bool, typer.Option("--json", help="The report as JSON.")] = False,
    storage_option: StorageOptions = None,
    manifest_store: TableManifestStore = None,
) -> None:
    """Say within seconds whether a directory or bucket can be the root of a catalog, and what a batch will cost there.

    Permissions, conditional writes by 16 writers at one time, reads, listings, deletes, copies, the clock, the time of
    requests, and the catalog that is there, if any. Small objects are written in a new directory below `_staging/` and
    removed; nothing else is touched, and servers may go on. A directory that is not there is not made. Exit status: 0
    it can be used, perhaps with warnings; 1 it must not be used; 2 it was not checked.
    """
    with commit_handler(manifest_store) as handler:
        from lance_core.commit.handlers.handler import handle
        from lance_core.storage.opening import open_store
        from namespace_server.directory.root_check import RootCheck

        with (
            closing(handle(open_store(root, storage_options(storage_option)), handler)) as store,
            ProgressLine() as progress,
        ):
            report = RootCheck(store, progress).check()
    print_report(report, as_json=as_json)
    status = {True: 0, False: 1, None: 2}[report.usable]
    if status:
        raise typer.Exit(status)
