"""Clauses of a merge by key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from table_data.errors import InvalidCall

Matched = Literal["update", "keep", "fail", "delete"]
NotMatched = Literal["insert", "ignore"]
NotMatchedBySource = Literal["keep", "delete"]


@dataclass(frozen=True, slots=True)
class MergeClauses:
    """Actions of a merge. Raises `InvalidCall` if they contradict each other.

    Attributes:
        on: Key columns.
        matched: Action for a row of the table with a match among the new rows.
        condition: SQL expression over `source` and `target` that restricts the update of matched rows.
        not_matched: Action for a new row without a match in the table.
        not_matched_by_source: Action for a row of the table without a match among the new rows.
        delete_condition: SQL expression that restricts the deletion of rows that are not matched by the source.
        use_index: Whether indices of the key columns may be used to find matches; None leaves it to pylance.
    """

    on: tuple[str, ...]
    matched: Matched = "update"
    condition: str | None = None
    not_matched: NotMatched = "insert"
    not_matched_by_source: NotMatchedBySource = "keep"
    delete_condition: str | None = None
    use_index: bool | None = None

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
