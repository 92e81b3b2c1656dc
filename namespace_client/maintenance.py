"""The result of maintenance of one table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from namespace_client.display import ShownAsTable, number
from namespace_client.names import Name
from table_data.batch_operations import Json, TableId

MaintenanceStatus = Literal["done", "nothing_to_do", "planned", "busy", "given_up", "failed"]
_NUMBERS: Final = (
    "catalog_version",
    "version_before",
    "version",
    "fragments_before",
    "commits",
    "removed_fragments",
    "added_fragments",
    "rewritten_indices",
    "added_segments",
    "removed_segments",
)


@dataclass(frozen=True, slots=True)
class MaintenanceWork:
    """What of a version of a table is worth work.

    Attributes:
        small_fragments: Fragments that are joined with neighbours.
        fragments_with_deletions: Fragments that are written again without their deleted rows.
        bytes: Bytes of the data files of both, as far as they are known.
        indices: Names of the indices that are extended or merged.
        unindexed_rows: Rows that these do not cover. What several do not cover counts several times.
    """

    small_fragments: int
    fragments_with_deletions: int
    bytes: int
    indices: tuple[str, ...]
    unindexed_rows: int

    @classmethod
    def of(cls, row: Json) -> MaintenanceWork:
        """The work as the catalog tells it."""
        return cls(
            int(row["small_fragments"]),
            int(row["fragments_with_deletions"]),
            int(row["bytes"]),
            tuple(map(str, row["indices"])),
            int(row["unindexed_rows"]),
        )

    def __bool__(self) -> bool:
        return bool(self.small_fragments or self.fragments_with_deletions or self.indices)


@dataclass(frozen=True, slots=True, repr=False)
class MaintenanceResult(ShownAsTable):
    """What became of maintenance of a table, or the plan of it.

    Attributes:
        id: Path of the table.
        status: `done`; `nothing_to_do`; `planned`; `busy`: other writers changed it just now; `given_up`: another
            commit won, or the time was over before the first commit; `failed`: for another reason, or the outcome of
            a commit is unknown.
        reason: Why it is `busy`, `given_up` or `failed`; else None.
        catalog_version: The catalog version that was looked at last.
        version_before: The newest version of the table before.
        version: The newest version after it.
        fragments_before: The number of fragments before.
        fragments: The number of fragments after it; None if the table could not be looked at again.
        commits: Commits of fragments and indices, whatever the status is.
        removed_fragments: Fragments that were replaced.
        added_fragments: Fragments that have their rows.
        rewritten_indices: Index segments that were written again for these.
        added_segments: Index segments over all rows.
        removed_segments: Index segments that these replaced.
        found: What was worth work before.
        left: What is worth work now; None as `fragments`.
    """

    id: TableId
    status: MaintenanceStatus
    reason: str | None
    catalog_version: int
    version_before: int
    version: int
    fragments_before: int
    fragments: int | None
    commits: int
    removed_fragments: int
    added_fragments: int
    rewritten_indices: int
    added_segments: int
    removed_segments: int
    found: MaintenanceWork
    left: MaintenanceWork | None

    @classmethod
    def of(cls, table_id: TableId, answer: Json) -> MaintenanceResult:
        """The result that the catalog answers."""
        left: Any = answer.get("left")
        fragments: Any = answer.get("fragments")
        return cls(
            id=table_id,
            status=answer["status"],
            reason=answer.get("reason"),
            fragments=None if fragments is None else int(fragments),
            found=MaintenanceWork.of(answer["found"]),
            left=None if left is None else MaintenanceWork.of(left),
            **{name: int(answer[name]) for name in _NUMBERS},
        )

    def _title(self) -> str:
        reason = "" if self.reason is None else f": {self.reason}"
        return f"{Name(self.id)}: {self.status.replace('_', ' ')}{reason}"

    def __repr__(self) -> str:
        return f"{self._title()}\n{ShownAsTable.__repr__(self)}"

    def _headers(self) -> tuple[str, ...]:
        return ("", "before", "after")

    def _rows(self) -> Iterator[tuple[str, ...]]:
        found, left = self.found, self.left
        yield "version", number(self.version_before), number(self.version)
        yield "fragments", number(self.fragments_before), number(self.fragments)
        for label, name in (
            ("small fragments", "small_fragments"),
            ("fragments with many deleted rows", "fragments_with_deletions"),
            ("bytes of both", "bytes"),
            ("rows not in indices", "unindexed_rows"),
        ):
            yield label, number(getattr(found, name)), "" if left is None else number(getattr(left, name))
