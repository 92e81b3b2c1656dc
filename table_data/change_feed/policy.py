"""`ChangePolicy`: what versions mean to a reader of changes that do more than add rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from table_data.errors import InvalidCall

Meaning = Literal["fail", "ignore", "rows"]


@dataclass(frozen=True, slots=True)
class ChangePolicy:
    """The meaning of versions that do more than add rows: an error, nothing, or rows with their type of change.

    Attributes:
        updates: "fail"; "ignore": updated rows are left out; "rows": they are read.
        deletes: "fail"; "ignore": deleted rows are left out; "rows": they are read as of the version before.
        overwrites: "fail"; "ignore": overwrites and restores are left out; "rows": the rows that they remove are
            deleted rows, and those that they bring are inserted or updated rows.
        has_images: Whether an updated row comes twice, as it was before and after.
    """

    updates: Meaning = "fail"
    deletes: Meaning = "fail"
    overwrites: Meaning = "fail"
    has_images: bool = False

    @property
    def has_types(self) -> bool:
        """Whether rows come with the type of their change."""
        return "rows" in (self.updates, self.deletes, self.overwrites)

    @property
    def needs_row_ids(self) -> bool:
        """Whether only stable row ids identify these changes."""
        return self.has_images or "rows" in (self.deletes, self.overwrites)


def refuse(meaning: Meaning, name: str, does: str, option: str, *also: Meaning) -> None:
    """Raise `InvalidCall` for a change of a version, unless it is to be ignored or is among the possible ones.

    Args:
        meaning: What the policy says of it.
        name: Name of the version.
        does: What the version does.
        option: Name of the option.
        also: Other meanings that are possible for this version.
    """
    if meaning not in ("ignore", *also):
        allowed = " or ".join(f"{option}={value}" for value in ("ignore", *also))
        raise InvalidCall(f"{name}: {does}: expected only added rows, or option {allowed}")
