"""The command for changed rows of a table between two catalog versions."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from lance_core.amounts import counted
from namespace_server.cli.command import refusal
from namespace_server.cli.connection import connected, file_options
from namespace_server.cli.listing import BranchName
from namespace_server.cli.output import print_json, say
from namespace_server.cli.progress import ProgressLine
from namespace_server.cli.rows import SCREEN, Columns, Format, Output, TableName

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa


def changes(
    context: typer.Context,
    table: TableName,
    since: Annotated[int | None, typer.Option(min=0, help="Catalog version whose rows are known; 0: none.")] = None,
    cursor: Annotated[
        str | None, typer.Option(metavar="NAME", help="... where this cursor is. It is not moved.")
    ] = None,
    to: Annotated[int | None, typer.Option(min=0, help="Last catalog version (the newest).")] = None,
    output: Output = None,
    file_format: Format = None,
    columns: Columns = None,
    limit: Annotated[int | None, typer.Option(min=0, help="Print at most so many changes.")] = None,
    branch: BranchName = None,
) -> None:
    """Read the rows of a table that changed between two catalog versions, in the order in which they did.

    Each comes with its stable id and what happened to it: insert, delete, update_preimage and update_postimage, with
    the versions of the table and of the catalog. Printed as a table they are at most 20, unless --limit says how many.
    The table needs stable row ids.
    """
    from namespace_server.cli.files.destinations import STANDARD_OUTPUT, destination
    from namespace_server.cli.files.formats import delimiter_of, format_of
    from namespace_server.cli.files.row_writers import write_rows
    from namespace_server.cli.row_output import batches_with_progress

    if (since is None) == (cursor is None):
        raise refusal("expected one of --since and --cursor")
    kind = None if output is None and file_format is None else format_of(output or "", file_format)
    to_output = output is None or output in STANDARD_OUTPUT
    if kind is not None and (limit is not None or (to_output and context.obj.as_json)):
        raise refusal("--limit and --json: go without --format, and --limit without --output")
    chosen = None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]
    with connected(context) as catalog, ProgressLine() as progress:
        reader = catalog.changes(table, since=since, cursor=cursor, to=to, branch=branch, columns=chosen)
        if kind is None:
            _print(context, reader, limit)
            return
        total = 0

        def counting() -> Iterator[pa.RecordBatch]:
            nonlocal total
            for batch in batches_with_progress(reader, progress, "read"):
                total += batch.num_rows
                yield batch

        with destination(output, file_options(context)) as stream:
            write_rows(stream, kind, reader.schema, counting(), delimiter_of(output or ""))
    if not to_output:
        say(context, f"{output}: {counted(total, 'change')}", file=str(output), rows=total)


def _print(context: typer.Context, reader: pa.RecordBatchReader, limit: int | None) -> None:
    import pyarrow as pa

    from namespace_server.cli.row_output import json_rows, print_rows

    is_short = limit is None and not context.obj.as_json
    wanted = SCREEN + 1 if is_short else limit
    rows = pa.Table.from_batches(list(_first(reader, wanted)), reader.schema)
    if context.obj.as_json:
        print_json(json_rows(rows))
        return
    print_rows(rows.slice(0, SCREEN) if is_short else rows)
    if is_short and rows.num_rows > SCREEN:
        typer.echo(f"the first {SCREEN} changes; --limit says how many, --output writes all", err=True)


def _first(reader: pa.RecordBatchReader, most: int | None) -> Iterator[pa.RecordBatch]:
    """The first rows, of which no more are read than are wanted."""
    left = most
    for batch in islice(reader, 0 if most == 0 else None):
        yield batch if left is None else batch.slice(0, left)
        if left is not None and (left := left - batch.num_rows) <= 0:
            return
