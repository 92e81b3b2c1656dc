"""`ChangePolicy`: what versions mean to a reader of changes that do more than add rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Ignorable = Literal["fail", "ignore"]
Updates = Literal["fail", "ignore", "rows"]


@dataclass(frozen=True, slots=True)
class ChangePolicy:
    """What versions that do more than add rows mean: an error, nothing, or rows.

    Attributes:
        updates: "fail"; "ignore": updated rows are left out; "rows": they are read, and all rows with the type of their
            change.
        deletes: "fail" or "ignore".
        overwrites: "fail" or "ignore": of overwrites and restores.
    """

    updates: Updates = "fail"
    deletes: Ignorable = "fail"
    overwrites: Ignorable = "fail"

    @property
    def has_types(self) -> bool:
        """Whether rows come with the type of their change."""
        return self.updates == "rows"
