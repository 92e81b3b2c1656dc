"""What a merge does with rows by their keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from namespace_client.errors import InvalidCall

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

    def __post_init__(self) -> None:
        for name, choices in (
            ("matched", Matched),
            ("not_matched", NotMatched),
            ("not_matched_by_source", NotMatchedBySource),
        ):
            if getattr(self, name) not in get_args(choices):
                raise InvalidCall(f"{name} {getattr(self, name)!r}: expected one of {', '.join(get_args(choices))}")
        if self.condition is not None and self.matched != "update":
            raise InvalidCall(f"condition {self.condition!r} is for matched='update', found {self.matched!r}")
        if self.delete_condition is not None and self.not_matched_by_source != "delete":
            raise InvalidCall(f"delete_condition {self.delete_condition!r} is for not_matched_by_source='delete'")

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
