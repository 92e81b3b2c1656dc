"""A model of a table as plain Python values, and the verdicts that its operations may get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Value = float | str | None
Row = Mapping[str, Value]

COMMITTED, RETRYABLE, INCOMPATIBLE = "committed", "retryable", "incompatible"


@dataclass(frozen=True)
class State:
    """One version: rows by id, columns in order (`id` first), and the config."""

    rows: Mapping[int, Row]
    columns: tuple[str, ...]
    config: Mapping[str, str] = field(default_factory=dict)

    def with_rows(self, rows: Mapping[int, Row]) -> State:
        return State({key: self._fit(row) for key, row in rows.items()}, self.columns, self.config)

    def with_columns(self, columns: tuple[str, ...]) -> State:
        return State(self.rows, columns, self.config).with_rows(self.rows)

    def _fit(self, row: Row) -> Row:
        """A row that was written for other columns: what it lacks is null, what it has too much is not seen."""
        return {name: row.get(name) for name in self.columns if name != "id"}


@dataclass(frozen=True)
class Change:
    """An operation as a verdict needs it. `rows` are the ids that it deletes or rewrites, `key` a config key."""

    kind: str
    rows: frozenset[int] = frozenset()
    fragments: frozenset[int] = frozenset()
    key: str = ""


# Row: what is to be committed; column: what was committed since. `.` follows, R must be done again, I cannot follow,
# d depends on rows, f on fragments, k on the key.
_ORDER = ("append", "delete", "overwrite", "rewrite", "merge", "project", "restore", "update", "config")
_MATRIX = {
    "append": ". . I . . . I . .",
    "delete": ". d I f R . I d .",
    "overwrite": ". . R . . . . . .",
    "rewrite": ". f I f R . I f .",
    "merge": "R R I R R I I R .",
    "project": ". . I . R R I . .",
    "restore": ". . . . . . . . .",
    "update": ". d I f R . I d .",
    "config": ". . . . . . . . k",
}


def permitted(ours: Change, committed: Sequence[Change]) -> set[str]:
    """The verdicts that `ours` may get after `committed`, in order.

    More than one where the vectors of one fragment may merge, and where rows clash and more was committed after that:
    rows are looked at in order by one engine, after everything else by the other.
    """
    verdicts: set[str] = set()
    may_follow = True
    for theirs in committed:
        cell = _MATRIX[ours.kind].split()[_ORDER.index(theirs.kind)]
        certain = _decide(cell, ours, theirs)
        verdicts |= certain - {COMMITTED}
        may_follow = may_follow and COMMITTED in certain
        if COMMITTED not in certain and cell != "d":
            break
    return verdicts | ({COMMITTED} if may_follow else set())


def _decide(cell: str, ours: Change, theirs: Change) -> set[str]:
    match cell:
        case "R":
            return {RETRYABLE}
        case "I":
            return {INCOMPATIBLE}
        case "f" if ours.fragments & theirs.fragments:
            return {RETRYABLE}
        case "d" if ours.rows & theirs.rows:
            return {RETRYABLE}
        case "d" if ours.fragments & theirs.fragments:
            # Other rows of one fragment: they merge, unless one of the two removes the fragment.
            return {COMMITTED, RETRYABLE}
        case "k" if ours.key == theirs.key:
            return {INCOMPATIBLE}
    return {COMMITTED}
