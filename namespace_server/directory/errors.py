"""What the catalog raises: the published namespace errors, with what a client needs to act on them.

Codes and statuses are those of the Lance namespace spec (0-23). Two kinds carry more than a message:

    ConcurrentModificationError (14)
    └── BatchConflict           `failures`: which operation met which version, and what to do
    ServiceUnavailableError (17)
    ├── CommitOutcomeUnknown    the batch may or may not be committed; `detail` is its uuid; repeat it as it is
    └── CatalogBusy             nothing was committed, by us, so far; repeat the batch
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lance_namespace.errors import ConcurrentModificationError, ServiceUnavailableError


@dataclass(frozen=True, slots=True)
class ConflictDetail:
    """One operation that could not be carried out, and why.

    `actual` is the head version found, `winner_transaction_id` the transaction that made it.
    """

    operation_index: int
    id: tuple[str, ...]
    branch: str | None
    expected: int | None
    actual: int | None
    winner_transaction_id: str | None
    hint: str

    def as_json(self) -> dict[str, Any]:
        """The wire form: an entry of `failures` in a 409 body."""
        return {
            "operation_index": self.operation_index,
            "id": list(self.id),
            "branch": self.branch,
            "expected": self.expected,
            "actual": self.actual,
            "winner_transaction_id": self.winner_transaction_id,
            "hint": self.hint,
        }


class BatchConflict(ConcurrentModificationError):
    """A concurrent change stands in the way, and it can be described at this moment (P8)."""

    def __init__(self, message: str, failure: ConflictDetail) -> None:
        super().__init__(message)
        self.failures = [failure.as_json()]


class CommitOutcomeUnknown(ServiceUnavailableError):
    """The store never said whether the flip landed (F1). Repeating the same batch is safe; nothing was cleaned up."""

    def __init__(self, batch_uuid: str, reason: str) -> None:
        super().__init__(f"batch {batch_uuid}: the outcome of its commit is unknown ({reason}); repeat it unchanged")
        self.detail = batch_uuid


class CatalogBusy(ServiceUnavailableError):
    """Every try was lost to other writers (F5). That is no verdict about the batch."""

    def __init__(self, batch_uuid: str, tries: int) -> None:
        super().__init__(f"batch {batch_uuid}: other writers won {tries} times in a row; repeat it unchanged")
        self.detail = batch_uuid
