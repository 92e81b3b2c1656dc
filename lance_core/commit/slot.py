"""Claiming a version: strict compare-and-set by put-if-absent (F1)."""

from __future__ import annotations

from dataclasses import dataclass, field

from tenacity import Retrying, retry_if_result, stop_after_attempt, wait_random_exponential

from lance_core.errors import AlreadyExists, OutcomeUnknown, StorageError
from lance_core.storage.port import ObjectStore


@dataclass(frozen=True, slots=True)
class SlotWon:
    """The slot holds our bytes. `e_tag` is None when the store has none or the answer that held it was lost."""

    e_tag: str | None


@dataclass(frozen=True, slots=True)
class SlotLost:
    """The slot holds other bytes than ours, which will not be written any more.

    `doubted`: an answer was lost before, so ours may have stood there and been removed since.
    """

    data: bytes
    doubted: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class SlotUnknown:
    """Patience ended before the slot was seen occupied. Ours may be there now or later; clean up nothing."""

    reason: str


SlotOutcome = SlotWon | SlotLost | SlotUnknown

LONGEST_WAIT = 0.5

_PENDING = SlotUnknown("")


def claim_slot(
    store: ObjectStore,
    path: str,
    data: bytes,
    *,
    attempts: int = 8,
    longest_wait: float | None = None,
    durable: bool = True,
) -> SlotOutcome:
    """Write `data` to `path` if that is vacant.

    Only an occupied slot is an answer. After a lost answer the slot is read, and if it is vacant the same bytes are
    sent again: a vacant slot is never a failure, for a delayed write may still land in it. `attempts` bounds the
    writes, `longest_wait` (seconds, `LONGEST_WAIT` by default) the pause between them, which has jitter. `data` must
    be unique to this attempt (a manifest is, by its transaction's uuid): equal bytes in the slot mean that we won.
    Raises the `StorageError` of a write that the store refused before any answer was lost; nothing was written then.
    """
    claim = _Claim(store, path, data, durable)
    outcome = claim.attempt()  # outside the loop, whose machinery costs more than a local write
    if outcome is _PENDING and attempts > 1:
        outcome = Retrying(
            stop=stop_after_attempt(attempts - 1),
            wait=wait_random_exponential(multiplier=0.01, max=LONGEST_WAIT if longest_wait is None else longest_wait),
            retry=retry_if_result(lambda outcome: outcome is _PENDING),
            retry_error_callback=lambda _: _PENDING,
        )(claim.attempt)
    if outcome is _PENDING:
        return SlotUnknown(f"{path}: still vacant after {attempts} writes; last: {claim.trouble}")
    return outcome


class _Claim:
    """One claim and what is known of it so far."""

    def __init__(self, store: ObjectStore, path: str, data: bytes, durable: bool) -> None:
        self.store = store
        self.path = path
        self.data = data
        self.durable = durable
        self.in_doubt = False
        self.trouble: StorageError | None = None

    def attempt(self) -> SlotOutcome:
        """Write once, and read if that gave no clear answer."""
        try:
            return SlotWon(self.store.put_if_absent(self.path, self.data, durable=self.durable))
        except AlreadyExists as error:
            self.trouble = error
        except OutcomeUnknown as error:
            self.in_doubt = True
            self.trouble = error
        except StorageError as error:
            if not self.in_doubt:
                raise
            self.trouble = error
        return self.read()

    def read(self) -> SlotOutcome:
        """What the slot holds; pending when it is vacant or cannot be read."""
        try:
            found = self.store.find(self.path)
        except StorageError as error:
            self.trouble = error
            return _PENDING
        if found is None:
            return _PENDING
        return SlotWon(None) if found == self.data else SlotLost(found, self.in_doubt)
