"""Commands on one table by its path or URI."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from lance_core.amounts import counted
from namespace_server.cli.command import refusal
from namespace_server.cli.options import (
    Branch,
    StorageOptions,
    TableManifestStore,
    commit_handler,
    duration,
    storage_options,
)


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


def compact(
    uri: Annotated[str, typer.Argument(metavar="URI", help="A table.")],
    target_rows: Annotated[int, typer.Option(help="Rows that a fragment should have.")] = 1 << 20,
    keep_deletions: Annotated[
        bool, typer.Option("--keep-deletions", help="Rewrite no fragment only because rows of it are deleted.")
    ] = False,
    deletions_threshold: Annotated[float, typer.Option(help="Share of deleted rows from which it is rewritten.")] = 0.1,
    max_fragments: Annotated[int | None, typer.Option(help="Rewrite at most so many, the oldest first.")] = None,
    branch: Branch = None,
    storage_option: StorageOptions = None,
    manifest_store: TableManifestStore = None,
) -> None:
    """Rewrite small fragments of a table, and those with deleted rows, into larger ones, as one commit.

    A table of a catalog that keeps its versions is refused: `lance-namespace maintain` compacts it through the catalog.
    """
    with commit_handler(manifest_store) as handler:
        from lance_core.cleanup.guard import managing_catalog_of
        from lance_core.compaction import CompactionOptions
        from lance_core.compaction import compact as compact_uri

        if (catalog := managing_catalog_of(uri, storage_options(storage_option))) is not None:
            root = catalog.removeprefix("file://")
            raise refusal(
                f"{uri}: the catalog at {root} keeps its versions: compact it with `lance-namespace maintain {root} "
                "--table ID`"
            )
        options = CompactionOptions(
            target_rows_per_fragment=target_rows,
            materialize_deletions=not keep_deletions,
            materialize_deletions_threshold=deletions_threshold,
            max_source_fragments=max_fragments,
        )
        done = compact_uri(
            uri, options, branch=branch, storage_options=storage_options(storage_option), commit_handler=handler
        )
    if done.committed is None:
        typer.echo(f"{uri}: nothing to compact, version {done.version}")
        return
    typer.echo(
        f"{uri}: version {done.version}, {counted(done.removed_fragments, 'fragment')} became {done.added_fragments}, "
        f"{counted(done.rewritten_indices, 'index segment')} rewritten"
    )


def cleanup(
    uri: Annotated[str, typer.Argument(metavar="URI", help="A table.")],
    older_than: Annotated[
        str | None, typer.Option(metavar="TIME", help="Remove versions superseded so long ago: 14d, 36h, 90m.")
    ] = None,
    keep: Annotated[int | None, typer.Option(help="Keep so many of the newest versions in any case.")] = None,
    grace: Annotated[
        str, typer.Option(metavar="TIME", help="Age from which a file that no version ever needed may go.")
    ] = "7d",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Remove nothing; list what would go, and why.")] = False,
    branch: Branch = None,
    storage_option: StorageOptions = None,
    manifest_store: TableManifestStore = None,
) -> None:
    """Remove old versions of a table and files that no version needs.

    A version goes when both --older-than and --keep let it; with neither of them only unneeded files do. What a tag
    names or a branch began from always stays. A shallow clone elsewhere is not known here: tag what it needs. Tables of
    a catalog that keeps their versions are refused.
    """
    with commit_handler(manifest_store) as handler:
        from lance_core.cleanup import Retention
        from lance_core.cleanup import cleanup as clean_up

        retention = Retention(None if older_than is None else duration("--older-than", older_than), keep)
        report = clean_up(
            uri,
            retention,
            branch=branch,
            grace=duration("--grace", grace),
            dry_run=dry_run,
            storage_options=storage_options(storage_option),
            commit_handler=handler,
        )
    for version, reason in sorted(report.kept.items()):
        if reason != "the newest version":
            typer.echo(f"kept     version {version}: {reason}")
    gone = "would go" if dry_run else "removed"
    for garbage in (*report.versions, *report.files):
        what = f"version {garbage.version} {garbage.reason}" if garbage.version is not None else garbage.reason
        typer.echo(f"{gone:<8} {garbage.path} ({counted(garbage.size, 'byte')}): {what}")
    amount = f"{counted(len(report.versions), 'version')} and {counted(len(report.files), 'file')}"
    typer.echo(f"{uri}: {amount} {gone}, {counted(report.size, 'byte')}")
