"""Commands on the rows of tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lance_core.amounts import counted
from namespace_server.cli.command import refusal
from namespace_server.cli.connection import connected
from namespace_server.cli.listing import At, BranchName, TagName, Version
from namespace_server.cli.moments import at_point
from namespace_server.cli.output import print_json, say
from namespace_server.cli.progress import ProgressLine

if TYPE_CHECKING:
    import lance
    import pyarrow as pa

Where = Annotated[str | None, typer.Option("--where", metavar="SQL", help="Only rows that match: 'price > 10'.")]
Columns = Annotated[str | None, typer.Option("--columns", metavar="A,B", help="Only these columns.")]
TableName = Annotated[str, typer.Argument(metavar="TABLE", help="A table: shop.orders.")]
Format = Annotated[
    str | None, typer.Option("--format", help="parquet, arrow, csv or jsonl, in place of the end of the name.")
]
SCREEN: Final = 20
"""Rows that are shown on the terminal unless --limit says how many."""


def read(
    context: typer.Context,
    table: TableName,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="File to write; else they are printed.", dir_okay=False),
    ] = None,
    file_format: Format = None,
    where: Where = None,
    columns: Columns = None,
    limit: Annotated[int | None, typer.Option(min=0, help="At most so many rows.")] = None,
    branch: BranchName = None,
    tag: TagName = None,
    version: Version = None,
    at: At = None,
) -> None:
    """Read rows, to the terminal or to a Parquet, Arrow, CSV or JSON-lines file.

    Printed as a table they are at most 20, unless --limit says how many. With --format and without --output the file
    goes to standard output. A file appears when it is whole. It has the bytes of blob columns, JSON lines as base64;
    CSV cannot hold them, and the terminal shows what they are.
    """
    from lance_core.format.blobs import is_blob
    from namespace_server.cli.row_files import format_of, write_rows
    from namespace_server.cli.row_output import batches_with_progress
    from table_data.arrow.batch_sizes import BATCH_BYTES
    from table_data.pylance_errors import explained

    kind = None if output is None and file_format is None else format_of(output or Path(), file_format)
    with connected(context) as catalog, ProgressLine() as progress:
        dataset = at_point(catalog, at).dataset(table, branch=branch, tag=tag, version=version)
        chosen = _chosen(columns, dataset)
        if kind is None:
            is_short = limit is None and not context.obj.as_json
            with explained(f"read of {table}"):
                rows = dataset.to_table(columns=chosen, filter=where, limit=SCREEN + 1 if is_short else limit)
            _print(context, rows.slice(0, SCREEN) if is_short else rows)
            if is_short and rows.num_rows > SCREEN:
                typer.echo(f"the first {SCREEN} rows; --limit says how many, --output writes all", err=True)
            return
        blobs = [field.name for field in dataset.schema if is_blob(field) and field.name in (chosen or [field.name])]
        if blobs and kind == "csv":
            raise refusal(f"CSV: column {blobs[0]} holds bytes; choose --columns without it, or another format")
        with explained(f"read of {table}"):
            total = dataset.count_rows(where)
            reader = dataset.scanner(
                columns=chosen,
                filter=where,
                limit=limit,
                batch_size_bytes=BATCH_BYTES,  # a column of a batch must stay below 2 GiB
                blob_handling="all_binary",
            ).to_reader()
        total = total if limit is None else min(total, limit)
        batches = batches_with_progress(_explained(reader, table), progress, "read", total)
        write_rows(output, kind, reader.schema, batches)
    if output is not None:
        say(context, f"{output}: {counted(total, 'row')}", file=str(output), rows=total)


def query(
    context: typer.Context,
    table: TableName,
    vector: Annotated[
        str | None, typer.Option("--vector", metavar="JSON", help="Nearest to this vector, such as '[0.1, 0.9]'.")
    ] = None,
    vector_file: Annotated[
        Path | None,
        typer.Option("--vector-file", metavar="FILE", help="... to the vector in a JSON file.", dir_okay=False),
    ] = None,
    text: Annotated[
        str | None, typer.Option("--text", metavar="WORDS", help="With these words, by a full-text index.")
    ] = None,
    column: Annotated[
        str | None, typer.Option("--column", help="Column that is searched (the only one that can be).")
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="So many rows, the best first.")] = 10,
    where: Where = None,
    columns: Columns = None,
    branch: BranchName = None,
    tag: TagName = None,
    version: Version = None,
    at: At = None,
) -> None:
    """Find rows by a vector or by words. `--where` applies before the search."""
    if sum(each is not None for each in (vector, vector_file, text)) != 1:
        raise refusal("expected one of --vector, --vector-file and --text")
    from table_data.pylance_errors import explained
    from table_data.queries.searches import search_options

    with connected(context) as catalog:
        dataset = at_point(catalog, at).dataset(table, branch=branch, tag=tag, version=version)
        given = vector if vector_file is None else vector_file.read_text("utf-8")
        search, score = search_options(dataset.schema, _vector(given or "") if text is None else text, column, k)
        names = _chosen(columns, dataset)
        shown = None if names is None else [*names, score]
        with explained(f"query of {table}"):
            found = dataset.to_table(columns=shown, filter=where, prefilter=where is not None, **search)
    _print(context, found)


def load(
    context: typer.Context,
    items: Annotated[
        list[str],
        typer.Argument(metavar="TABLE=FILE...", help="A table and a file for it, such as shop.orders=orders.parquet."),
    ],
    mode: Annotated[
        str,
        typer.Option(
            help="append: add rows; create: make the tables; overwrite: replace all rows and the schema; upsert: "
            "replace rows of the same key, and add the others."
        ),
    ] = "append",
    on: Annotated[
        list[str] | None,
        typer.Option(
            "--on", metavar="KEY", help="Key columns for upsert: id, or orders=id,line for one table; may be repeated."
        ),
    ] = None,
    vectors: Annotated[
        list[str] | None,
        typer.Option("--vector", metavar="COLUMN", help="Lists in this column are float32 vectors; may be repeated."),
    ] = None,
    file_format: Format = None,
    message: Annotated[
        str | None, typer.Option("-m", "--message", help="Text that is kept with the batch, for `log`.")
    ] = None,
    branch: BranchName = None,
) -> None:
    """Load files into tables: all of them in one batch, or none.

    Columns of CSV and JSON lines are cast to the types of a table that is there. Several files of one table are loaded
    one after another.
    """
    from namespace_server.cli.loading import LoadItem, load_all, parse_items, parse_keys

    if mode not in _MODES:
        raise refusal(f"--mode {mode}: expected one of {', '.join(_MODES)}")
    if (mode == "upsert") != bool(on):
        raise refusal("--mode upsert goes with --on KEY, and --on with --mode upsert")
    pairs: Sequence[LoadItem] = parse_items(items, file_format)
    keys = parse_keys(on or [], pairs)
    with connected(context, new=mode == "create") as catalog, ProgressLine() as progress:
        with catalog.begin(message=message) as tx:
            loaded = load_all(tx, pairs, mode, keys, vectors or [], branch, progress)
        version = tx.result.catalog_version
    if context.obj.as_json:
        print_json({"catalog_version": version, "tables": loaded})
        return
    for name, counts in loaded.items():
        typer.echo(f"{name}: " + ", ".join(f"{counted(count, 'row')} {what}" for what, count in counts.items()))
    typer.echo(f"catalog version {version}")


_MODES: Final = ("append", "create", "overwrite", "upsert")


def _explained(batches: Iterable[pa.RecordBatch], table: str) -> Iterator[pa.RecordBatch]:
    """The batches, with errors of pylance in words."""
    from table_data.pylance_errors import explained

    with explained(f"read of {table}"):
        yield from batches


def _chosen(columns: str | None, dataset: lance.LanceDataset) -> list[str] | None:
    if columns is None:
        return None
    chosen = [name.strip() for name in columns.split(",") if name.strip()]
    unknown = [name for name in chosen if name.split(".")[0] not in dataset.schema.names]
    if unknown or not chosen:
        raise refusal(f"--columns {columns}: expected columns among {', '.join(dataset.schema.names)}")
    return chosen


def _vector(text: str) -> list[float]:
    try:
        found = json.loads(text)
        return [float(number) for number in found]
    except (ValueError, TypeError):
        raise refusal(f"vector: expected a JSON array of numbers, found {text[:40]!r}") from None


def _print(context: typer.Context, rows: pa.Table) -> None:
    from namespace_server.cli.row_output import json_rows, print_rows

    if context.obj.as_json:
        print_json(json_rows(rows))
    else:
        print_rows(rows)
