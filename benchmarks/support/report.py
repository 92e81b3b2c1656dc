"""Tables of results: on the terminal and as Markdown files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(slots=True)
class Table:
    """Rows of text under a heading. `notes` stand below it."""

    title: str
    columns: Sequence[str]
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, *cells: object) -> None:
        """Append a row. Raises `ValueError` unless it has one cell per column."""
        if len(cells) != len(self.columns):
            raise ValueError(f"row of {len(cells)} cells in table {self.title!r} of {len(self.columns)} columns")
        self.rows.append([str(cell) for cell in cells])

    def markdown(self) -> str:
        """The table as Markdown with aligned columns."""
        lines = [list(self.columns), *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        text = [
            "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
            for line in lines
        ]
        text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
        notes = ["", *(f"* {note}" for note in self.notes)] if self.notes else []
        return "\n".join([f"## {self.title}", "", *text, *notes, ""])


@dataclass(slots=True)
class Report:
    """What one benchmark found."""

    name: str
    title: str
    method: str
    tables: list[Table]

    def write(self, directory: Path, machine: Sequence[str]) -> Path:
        """Write `<name>.md` into `directory` and return its path."""
        path = directory / f"{self.name}.md"
        described = "\n".join(f"* {line}" for line in machine)
        tables = "\n".join(table.markdown() for table in self.tables)
        path.write_text(f"# {self.title}\n\n{self.method}\n\n{tables}\n## Machine\n\n{described}\n")
        return path


def ratio(ours: float, peer: float) -> str:
    """How many times larger `ours` is, such as '12x'; below 1 with two digits, so that a lead of the peer shows."""
    value = ours / peer
    return f"{value:,.0f}x" if value >= 10 else f"{value:.1f}x" if value >= 1 else f"{value:.2f}x"


def count(value: float) -> str:
    """A whole number with thousands separators."""
    return f"{value:,.0f}"


def milliseconds(seconds: float) -> str:
    """Seconds as milliseconds with three significant digits or so."""
    value = seconds * 1000
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
