"""The output of commands: tables and JSON on standard output.

On a terminal a table has colours, folds wide cells, and is without empty columns. Where it does not fit even so,
each row is printed as lines: nothing is cut. `NO_COLOR` turns the colours off. Elsewhere it is plain text in columns,
in full width and without escape sequences. JSON is one document.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Protocol

import typer

if TYPE_CHECKING:
    from namespace_client.display import ShownAsTable


def print_json(value: object) -> None:
    """Print one JSON document. Times are texts of ISO 8601."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, default=_iso))


def say(context: typer.Context, text: str, **fields: object) -> None:
    """Print the result: a line of text, or with `--json` these fields."""
    if context.obj.as_json:
        print_json(fields)
    else:
        typer.echo(text)


class Report(Protocol):
    """The result of a long command."""

    def as_json(self) -> object:
        """The whole report, for programs."""
        ...

    def lines(self) -> Iterable[str]:
        """The report as text."""
        ...


def print_report(report: Report, *, as_json: bool) -> None:
    """Print a report, as lines or as one JSON document."""
    for line in (json.dumps(report.as_json(), indent=2),) if as_json else report.lines():
        typer.echo(line)


def _iso(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def print_table(
    headings: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Sequence[str] = (), title: str | None = None
) -> None:
    """Print rows below their headings; `numbers` are the headings of columns that are aligned to the right.

    Without rows nothing is printed.
    """
    texts = [[_text(cell) for cell in row] for row in rows]
    if not texts:
        return
    if sys.stdout.isatty():
        _print_rich(headings, texts, numbers, title)
        return
    if title:
        typer.echo(f"\n{title}")
    lines = [list(headings), *texts]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    for line in lines:
        cells = (
            cell.rjust(width) if heading in numbers else cell.ljust(width)
            for heading, cell, width in zip(headings, line, widths, strict=True)
        )
        typer.echo("  ".join(cells).rstrip())


def print_shown(shown: ShownAsTable, *, numbers: Sequence[str] = ()) -> None:
    """Print a result of the client as a table, below its title."""
    headings, rows, title = shown.table_parts()
    typer.echo(title)
    print_table(headings, rows, numbers=numbers)


def _print_rich(
    headings: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[str], title: str | None
) -> None:
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    if title:
        console().print(Text(f"\n{title}", style="bold"))
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    shown = [place for place, _ in enumerate(headings) if any(row[place] for row in rows)]
    widths = {place: max(map(cell_len, (headings[place], *(row[place] for row in rows)))) for place in shown}
    unbroken = {place for place in shown if headings[place] in numbers or widths[place] <= _UNBROKEN}
    least = sum(widths[place] if place in unbroken else _FOLDED for place in shown) + _GAP * (len(shown) - 1)
    if least > console().width and len(shown) > 1:
        _print_rows_one_by_one(headings, rows, shown)
        return
    for place in shown:
        table.add_column(
            Text(headings[place]),
            justify="right" if headings[place] in numbers else "left",
            no_wrap=place in unbroken and len(shown) > 1,
            overflow="fold",
            style="cyan" if place == 0 else None,
        )
    for row in rows:
        table.add_row(*(Text(row[place]) for place in shown))
    console().print(table)


_UNBROKEN: Final = 20
"""Columns of cells that are this wide at most are not folded."""
_FOLDED: Final = 10
"""The least width of a column whose cells are folded."""
_GAP: Final = 3
"""Between two columns."""


def _print_rows_one_by_one(headings: Sequence[str], rows: Sequence[Sequence[str]], shown: Sequence[int]) -> None:
    """Print a table that is wider than the terminal: of each row the first cell, then a line for each other one."""
    from rich.text import Text

    width = max(len(headings[place]) for place in shown[1:])
    for row in rows:
        console().print(Text(row[shown[0]], style="cyan"), soft_wrap=True)
        for place in shown[1:]:
            if row[place]:
                line = Text.assemble("  ", (f"{headings[place]:<{width}}", "bold"), "  ", row[place])
                console().print(line, soft_wrap=True)


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


def print_names(names: Iterable[tuple[str, bool]]) -> None:
    """Print names, one a line; those that are marked in colour."""
    if not sys.stdout.isatty():
        for name, _ in names:
            typer.echo(_text(name))
        return
    from rich.text import Text

    for name, is_marked in names:
        console().print(Text(_text(name), style="bold blue" if is_marked else ""), soft_wrap=True)


def print_fields(fields: Mapping[str, object]) -> None:
    """Print names and values, one a line. Those without a value are left out."""
    shown = {name: _text(", ".join(value) if isinstance(value, list) else value) for name, value in fields.items()}
    width = max((len(name) for name, text in shown.items() if text), default=0)
    for name, text in shown.items():
        if not text:
            continue
        if not sys.stdout.isatty():
            typer.echo(f"{name:<{width}}  {text}")
            continue
        from rich.text import Text

        console().print(Text.assemble((f"{name:<{width}}", "bold"), "  ", text), soft_wrap=True)


def shown_bytes(size: int | None) -> str:
    """A size in words."""
    if size is None:
        return ""
    amount, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{size} B" if unit == "B" else f"{amount:,.1f} {unit}"


def print_lines(lines: Iterable[tuple[str, str]]) -> None:
    """Print lines, each with a style of rich."""
    for text, style in lines:
        if sys.stdout.isatty():
            from rich.text import Text

            console().print(Text(_text(text), style=style), soft_wrap=True)
        else:
            typer.echo(_text(text))


def shown_moment(moment: datetime | None) -> str:
    """A time in UTC, to the second."""
    return "" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"
