"""What commands print: tables and JSON on standard output.

On a terminal a table has colours and folds what is too wide; `NO_COLOR` turns the colours off. Elsewhere it is plain
text in columns, in full width and without escape sequences. JSON is one document.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import typer


def print_json(value: object) -> None:
    """Print one JSON document. What JSON has no type for is printed as a text."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def print_table(
    headings: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Sequence[str] = (), title: str | None = None
) -> None:
    """Print rows below their headings; `numbers` are the headings of columns that are aligned to the right."""
    texts = [[_text(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _print_rich(headings, texts, numbers, title)
        return
    if title:
        typer.echo(title)
    lines = [list(headings), *texts]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    for line in lines:
        cells = (
            cell.rjust(width) if heading in numbers else cell.ljust(width)
            for heading, cell, width in zip(headings, line, widths, strict=True)
        )
        typer.echo("  ".join(cells).rstrip())


def _print_rich(
    headings: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[str], title: str | None
) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    if title:
        console().print(Text(title, style="bold"))
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    for place, heading in enumerate(headings):
        is_number = heading in numbers
        table.add_column(
            Text(heading),
            justify="right" if is_number else "left",
            no_wrap=is_number,
            overflow="fold",
            style="cyan" if place == 0 else None,
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console().print(table)


def console() -> Any:
    """The terminal on standard output, by rich: it knows its width, and whether it has colours."""
    from rich.console import Console

    return Console(highlight=False)


def _text(cell: object) -> str:
    """A cell: numbers with separators between thousands, control characters visible, nothing for None."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in str(cell))
