"""What a merge does with rows by their keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Matched = Literal["update", "keep", "fail", "delete"]
NotMatched = Literal["insert", "ignore"]
NotMatchedBySource = Literal["keep", "delete"]


@dataclass(frozen=True, slots=True)
class MergeClauses:
    """What becomes of a row of the table that has a match, of a new row that has none, and of the rest of the table.

    `condition` (SQL over `source` and `target`) restricts the update, `delete_condition` the deletion.
    """

    on: tuple[str, ...]
    matched: Matched = "update"
    condition: str | None = None
    not_matched: NotMatched = "insert"
    not_matched_by_source: NotMatchedBySource = "keep"
    delete_condition: str | None = None

    @property
    def inserts(self) -> bool:
        """Whether rows may be added."""
        return self.not_matched == "insert"


@dataclass(frozen=True, slots=True)
class MergeCounts:
    """Rows that a merge touched."""

    inserted: int
    updated: int
    deleted: int
