"""Commands on the rows of tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lance_core.amounts import counted
from namespace_server.cli.command import ExitStatus, refusal
from namespace_server.cli.connection import connected, file_options, table_paths
from namespace_server.cli.listing import At, BranchName, TagName, Version
from namespace_server.cli.options import at_point
from namespace_server.cli.output import print_json, say
from namespace_server.cli.progress import ProgressLine

if TYPE_CHECKING:
    import lance
    import pyarrow as pa

    from namespace_server.cli.loading import TablePlan

Where = Annotated[str | None, typer.Option("--where", metavar="SQL", help="Only rows that match: 'price > 10'.")]
Columns = Annotated[str | None, typer.Option("--columns", metavar="A,B", help="Only these columns.")]
TableName = Annotated[str, typer.Argument(metavar="TABLE", help="A table: shop.orders.")]
Format = Annotated[
    str | None, typer.Option("--format", help="parquet, arrow, csv or jsonl, in place of the end of the name.")
]
Output = Annotated[
    str | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="File to write, also s3://, gs:// or az://; - is standard output. Else rows are printed.",
    ),
]
SCREEN: Final = 20
"""Rows that are shown on the terminal unless --limit says how many."""


def read(
    context: typer.Context,
    table: TableName,
    output: Output = None,
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
    goes to standard output. A file appears when it is whole; text is compressed if its name ends in .gz, .zst or .bz2.
    It has the bytes of blob columns, JSON lines as base64; CSV cannot hold them, and the terminal shows what they are.
    """
    from lance_core.format.blobs import is_blob
    from namespace_server.cli.files.destinations import STANDARD_OUTPUT, destination
    from namespace_server.cli.files.formats import delimiter_of, format_of
    from namespace_server.cli.files.row_writers import write_rows
    from namespace_server.cli.row_output import batches_with_progress
    from table_data.arrow.batch_sizes import BATCH_BYTES, in_fewer_rows, table_of
    from table_data.pylance_errors import explained

    kind = None if output is None and file_format is None else format_of(output or "", file_format)
    to_output = output is None or output in STANDARD_OUTPUT
    if kind is not None and to_output and context.obj.as_json:
        raise refusal("--json: goes without --format, unless --output is a file: standard output has the rows then")
    with connected(context) as catalog, ProgressLine() as progress:
        dataset = at_point(catalog, at).dataset(table, branch=branch, tag=tag, version=version)
        chosen = _chosen(columns, dataset)
        if kind is None:
            is_short = limit is None and not context.obj.as_json
            with explained(f"read of {table}"):
                rows = table_of(dataset, columns=chosen, filter=where, limit=SCREEN + 1 if is_short else limit)
            _print(context, rows.slice(0, SCREEN) if is_short else rows)
            if is_short and rows.num_rows > SCREEN:
                typer.echo(f"the first {SCREEN} rows; --limit says how many, --output writes all", err=True)
            return
        blobs = [field.name for field in dataset.schema if is_blob(field) and field.name in (chosen or [field.name])]
        if blobs and kind == "csv":
            raise refusal(f"CSV: column {blobs[0]} holds bytes; choose --columns without it, or another format")

        def scan(most: int | None = None) -> pa.RecordBatchReader:
            return dataset.scanner(
                columns=chosen,
                filter=where,
                limit=limit,
                batch_size=most,
                batch_size_bytes=BATCH_BYTES,  # a column of a batch must stay below 2 GiB
                blob_handling="all_binary",
            ).to_reader()

        with explained(f"read of {table}"):
            total = dataset.count_rows(where)
            reader = scan()
        total = total if limit is None else min(total, limit)
        batches = batches_with_progress(_explained(in_fewer_rows(reader, scan), table), progress, "read", total)
        with destination(output, file_options(context)) as stream:
            write_rows(stream, kind, reader.schema, batches, delimiter_of(output or ""))
    if not to_output:
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
        typer.Argument(
            metavar="TABLE=FILE...",
            help="A table and files for it: shop.orders=orders.parquet. Also a directory, a pattern such as "
            "'day/*.csv', s3://, gs://, az:// or https://, and - for standard input.",
        ),
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
        typer.Option(
            "--vector",
            metavar="COLUMN",
            help="Lists in this column of a new table are float32 vectors; may be repeated.",
        ),
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMNS",
            help="Types of columns of a new table: 'zip string, price decimal(10,2)', or a JSON, Parquet or Arrow "
            "file. Others are found.",
        ),
    ] = None,
    as_text: Annotated[
        bool, typer.Option("--text", help="Columns of a new table are texts, but for those of --schema.")
    ] = False,
    delimiter: Annotated[
        str | None,
        typer.Option("--delimiter", metavar="CHARACTER", help="What divides the cells of CSV; 'tab' is one."),
    ] = None,
    nulls: Annotated[
        list[str] | None,
        typer.Option(
            "--null",
            metavar="TEXT",
            help="A cell of CSV that is null if it is not quoted, beside an empty one; with '' quoted ones are, too.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read all rows, say the columns or what is refused, and load nothing.")
    ] = False,
    file_format: Format = None,
    message: Annotated[
        str | None, typer.Option("-m", "--message", help="Text that is kept with the batch, for `log`.")
    ] = None,
    branch: BranchName = None,
) -> None:
    """Load files into tables: all of them in one batch, or none.

    The cells of CSV and the values of JSON are read as the types of a table that is there; one that does not fit is
    refused with its file and line. For a new table the types are found in all values, and said before the commit.
    """
    from namespace_server.cli.files.schemas import read_schema
    from namespace_server.cli.files.sources import SourceFinder
    from namespace_server.cli.interrupts import Interrupts
    from namespace_server.cli.loading import LoadOptions, check_table, find_items, load_table, parse_keys, plan_loads

    if mode not in _MODES:
        raise refusal(f"--mode {mode}: expected one of {', '.join(_MODES)}")
    if (mode == "upsert") != bool(on):
        raise refusal("--mode upsert goes with --on KEY, and --on with --mode upsert")
    if branch is not None and mode == "create":
        raise refusal("--branch: goes without --mode create")
    options = LoadOptions(
        mode,
        vectors=vectors or (),
        branch=branch,
        schema=None if schema is None else read_schema(schema),
        as_text=as_text,
        delimiter=_delimiter(delimiter),
        nulls=nulls or (),
    )
    loaded: dict[str, dict[str, int]] = {}
    with (
        Interrupts() as interrupts,
        SourceFinder(file_format, file_options(context)) as finder,
        connected(context, new=mode == "create") as catalog,
        ProgressLine() as progress,
    ):
        found = find_items(items, finder)
        tables = list(dict.fromkeys(each.table for each in found))
        options = replace(options, keys=parse_keys(on or [], tables))
        for parent in {path[:-1] for path in table_paths(context, tables)} if mode == "create" else ():
            catalog.namespaces(parent)  # or it is refused here, before the files are read
        tx = catalog.begin(message=message)
        if dry_run:
            with tx:
                plans = []
                for plan in plan_loads(tx, found, options):
                    plans.append(plan)
                    check_table(tx, plan, options, progress, interrupts.check)
                tx.abandon()
            if context.obj.as_json:
                print_json({"tables": {plan.table: _columns_of(plan) for plan in plans}})
            else:
                _say_plans(plans)
                typer.echo("nothing is loaded")
            return
        with interrupts.explained(), tx:
            plans = []
            for plan in plan_loads(tx, found, options):
                plans.append(plan)
                loaded[plan.table] = load_table(tx, plan, options, progress, interrupts.check)
            if not context.obj.as_json:
                _say_plans(each for each in plans if each.is_guessed)
            interrupts.hold()
        version = tx.result.catalog_version
    if context.obj.as_json:
        print_json({"catalog_version": version, "tables": loaded, "found_types": _types(plans)})
    else:
        for name, counts in loaded.items():
            typer.echo(f"{name}: " + ", ".join(f"{counted(count, 'row')} {what}" for what, count in counts.items()))
        typer.echo(f"catalog version {version}")
    if interrupts.came:
        raise refusal(f"interrupted after the commit: catalog version {version} has the rows", ExitStatus.INTERRUPTED)


def _delimiter(given: str | None) -> str | None:
    named = {"tab": "\t", "\\t": "\t"}.get(given or "", given)
    if named is not None and (len(named) != 1 or not named.isascii() or named in {'"', "\r", "\n"}):
        raise refusal(f"--delimiter {given}: expected one character, or tab")
    return named


def _say_plans(plans: Iterable[TablePlan]) -> None:
    for plan in plans:
        typer.echo(plan.described())


def _types(plans: Sequence[TablePlan]) -> dict[str, dict[str, str]]:
    return {plan.table: _columns_of(plan) for plan in plans if plan.is_guessed}


def _columns_of(plan: TablePlan) -> dict[str, str]:
    return {field.name: str(field.type) for field in plan.schema}


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
