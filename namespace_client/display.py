"""Results as text, and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from typing import Final

_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB", "PB")
_STEP: Final = 1000
_LEFT: Final = 'style="text-align:left"'


def size(count: int | None) -> str:
    """A number of bytes as people read it; `unknown size` if it is None."""
    if count is None:
        return "unknown size"
    amount, unit = float(count), 0
    while amount >= _STEP and unit < len(_UNITS) - 1:
        amount, unit = amount / _STEP, unit + 1
    return f"{count} {'byte' if count == 1 else 'bytes'}" if not unit else f"{amount:.1f} {_UNITS[unit]}"


def counted(count: int | None, thing: str) -> str:
    """A number of things: `1 row`, `2,000 rows`."""
    return f"unknown {thing}s" if count is None else f"{count:,} {thing}{'' if count == 1 else 's'}"


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
