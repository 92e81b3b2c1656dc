"""Results as text, and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from typing import Final

_LEFT: Final = 'style="text-align:left"'


def when(moment: datetime | None) -> str:
    """A time to the second, in the time zone of this machine."""
    return "" if moment is None else moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def text_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows of cells in columns of equal width."""
    lines = [list(headers), *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def html_table(headers: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> str:
    """Rows of cells as a table of HTML."""
    head = "".join(f"<th {_LEFT}>{escape(name)}</th>" for name in headers)
    lines = ("".join(f"<td {_LEFT}>{escape(str(cell))}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    caption = f"<p>{escape(title)}</p>" if title else ""
    return f"{caption}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
