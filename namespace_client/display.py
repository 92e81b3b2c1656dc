"""Results as text, and as HTML for notebooks."""

from __future__ import annotations

import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Final

from lance_core.amounts import counted

_HIDDEN: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})
"""Categories of characters that cannot be seen, or that change how those around them are seen."""
_PERIODS: Final = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))
_LEFT: Final = 'style="text-align:left"'


def when(moment: datetime | None) -> str:
    """A time to the second, in the time zone of this machine."""
    return "" if moment is None else moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def when_utc(moment: datetime | None) -> str:
    """A time to the second, in UTC: for readers of whom the time zone is not known."""
    return "" if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def ago(seconds: float) -> str:
    """A period in its largest whole unit: `3 minutes`."""
    for length, unit in _PERIODS:
        count = int(seconds // length)
        if count >= 1:
            return counted(count, unit)
    return "0 seconds"


def number(value: float | None) -> str:
    """A number with its thousands apart, empty for None."""
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def signed(value: int | None) -> str:
    """A difference with its sign, empty for None."""
    return "" if value is None else f"{value:+,}"


def visible(text: str, *, lines: bool = False) -> str:
    """A text with escapes for the characters that cannot be seen or that turn others around; `lines` may stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        each if unicodedata.category(each) not in _HIDDEN or (lines and each in "\n\t") else _escaped(each)
        for each in text
    )


def folded(text: str, most: int) -> str:
    """A text of at most so many characters: of a longer one the beginning and the end, around an ellipsis."""
    if len(text) <= most:
        return text
    end = most // 4
    return f"{text[: most - end - 1]}\N{HORIZONTAL ELLIPSIS}{text[-end:] if end else ''}"


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


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


class ShownAsTable(ABC):
    """A result that is a table: as text, and in notebooks as HTML below its title."""

    __slots__ = ()

    @abstractmethod
    def _headers(self) -> Sequence[str]:
        """The names of the columns."""

    @abstractmethod
    def _rows(self) -> Iterable[Sequence[object]]:
        """The cells of each row."""

    def _title(self) -> str:
        return ""

    def table_parts(self) -> tuple[Sequence[str], Iterable[Sequence[object]], str]:
        """Headers, rows and title: what it is shown as, on a terminal, as text and in a notebook."""
        return self._headers(), self._rows(), self._title()

    def __repr__(self) -> str:
        headers, rows, _ = self.table_parts()
        return text_table(headers, rows)

    def _repr_html_(self) -> str:
        return html_table(*self.table_parts())
