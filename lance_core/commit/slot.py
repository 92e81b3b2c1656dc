"""Claims a slot, the canonical name of a version, by put-if-absent (rule F1: only an occupied slot is an answer)."""

from __future__ import annotations

from dataclasses import dataclass, field

from tenacity import Retrying, retry_if_result, stop_after_attempt, wait_random_exponential

from lance_core.errors import AlreadyExists, StorageError, StorageUnknown
from lance_core.storage.port import ObjectStore


@dataclass(frozen=True, slots=True)
class SlotWon:
    """The slot holds the given bytes. `e_tag` is None if the store has none or its answer was lost."""

    e_tag: str | None


@dataclass(frozen=True, slots=True)
class SlotLost:
    """The slot holds other bytes than the given ones, which will not be written any more.

    `answer_was_lost`: an answer was lost before, so the given bytes may have been in the slot and removed since.
    """

    data: bytes
    answer_was_lost: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class SlotUnknown:
    """Retries exhausted while the slot looked vacant. The bytes may be written now or later; clean up nothing."""

    reason: str


SlotOutcome = SlotWon | SlotLost | SlotUnknown

ATTEMPTS = 8
"""The largest number of writes of one claim."""
LONGEST_WAIT = 0.5
"""The longest pause between two of them in seconds, before jitter."""

_PENDING = SlotUnknown("")


def claim_slot(store: ObjectStore, path: str, data: bytes) -> SlotOutcome:
    """Write `data` to `path` if the key is vacant, durably.

    After a lost answer the slot is read, and if it is vacant the same bytes are sent again. A vacant slot is never a
    failure, because a delayed write may still be applied.

    Args:
        store: The store.
        path: The key to claim.
        data: The bytes. They must be unique to this attempt, as a manifest is by the uuid of its transaction: equal
            bytes in the slot count as success.

    Returns:
        The outcome: won, lost or unknown.

    Raises:
        StorageError: The store refused the write before any answer was lost. Nothing was written.
    """
    claim = _Claim(store, path, data)
    outcome = claim.attempt()  # without tenacity, which costs more than a local write
    if outcome is _PENDING:
        outcome = Retrying(
            stop=stop_after_attempt(ATTEMPTS - 1),
            wait=wait_random_exponential(multiplier=0.01, max=LONGEST_WAIT),
            retry=retry_if_result(lambda outcome: outcome is _PENDING),
            retry_error_callback=lambda _: _PENDING,
        )(claim.attempt)
    if outcome is _PENDING:
        return SlotUnknown(f"{path}: still vacant after {ATTEMPTS} writes; last: {claim.last_error}")
    return outcome


class _Claim:
    """One claim and its state: whether an answer was lost, and the last error."""

    def __init__(self, store: ObjectStore, path: str, data: bytes) -> None:
        self.store = store
        self.path = path
        self.data = data
        self.answer_was_lost = False
        self.last_error: StorageError | None = None

    def attempt(self) -> SlotOutcome:
        """Write once; read the slot if the write gave no clear answer."""
        try:
            return SlotWon(self.store.put_if_absent(self.path, self.data))
        except AlreadyExists as error:
            self.last_error = error
        except StorageUnknown as error:
            self.answer_was_lost = True
            self.last_error = error
        except StorageError as error:
            if not self.answer_was_lost:
                raise
            self.last_error = error
        return self.read()

    def read(self) -> SlotOutcome:
        """The outcome that the content of the slot shows; pending if it is vacant or cannot be read."""
        try:
            found = self.store.find(self.path)
        except StorageError as error:
            self.last_error = error
            return _PENDING
        if found is None:
            return _PENDING
        return SlotWon(None) if found == self.data else SlotLost(found, self.answer_was_lost)
