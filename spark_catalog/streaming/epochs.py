"""`Epoch`: one micro-batch of a streaming query, committed at most once."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from namespace_client.access import CatalogAccess
from namespace_client.errors import RetryableConflict
from namespace_client.staged_transaction import StagedTransaction
from spark_catalog.errors import EpochTaken, GraphConflict, GraphError, WriteUnknown
from spark_catalog.streaming.marks import Mark, is_committed, read_mark, stage_mark
from table_data.batch_operations import DELIMITER, TableId

ATTEMPTS: Final = 5
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 2.0


class Write(AbstractContextManager["Write"], Protocol):
    """A write that leaving the block commits: a `GraphWrite` or a `StagedTransaction`."""

    def resend(self) -> object:
        """Send the same batch again."""
        ...


W = TypeVar("W", bound=Write)


@dataclass(frozen=True, slots=True)
class Epoch:
    """One micro-batch of a query.

    Attributes:
        access: The catalog.
        table: Table with the mark of the query.
        number: Number of the epoch.
        checkpoint: Id of the checkpoint that counts the epochs, empty if unknown.
        storage_options: Options of Lance for the object store.
        attempts: How many times the epoch is tried while other commits are in its way.
    """

    access: CatalogAccess
    table: TableId
    number: int
    checkpoint: str
    storage_options: Mapping[str, str]
    attempts: int = ATTEMPTS

    def commit(
        self, begin: Callable[[], W], transaction: Callable[[W], StagedTransaction], fill: Callable[[W], object]
    ) -> bool:
        """Commit a write and the mark of the epoch in one batch, unless the epoch is committed already.

        Args:
            begin: Makes a write that has not begun. Called for each attempt.
            transaction: The transaction that commits a write.
            fill: Stages the rows. Called for each attempt, and not for an epoch that is committed.

        Returns:
            Whether this call committed the epoch.

        Raises:
            EpochTaken: Another driver has committed the epoch meanwhile. Nothing of this call is visible.
            WriteUnknown: The outcome is unknown after the batch was sent again and the mark was looked up.
            GraphConflict: Another commit is in the way after the last attempt, or conflicts irreconcilably.
            InvalidWrite: The mark is of another checkpoint.
            Exception: What `fill` and the write raise.
        """
        for attempt in Retrying(
            stop=stop_after_attempt(self.attempts),
            wait=wait_random_exponential(multiplier=_FIRST_PAUSE, max=_LONGEST_PAUSE),
            retry=retry_if_exception_type(RetryableConflict),
            reraise=True,
        ):
            with attempt:
                write = begin()
                committed = self._try(write, transaction(write), fill)
        return committed

    def _try(self, write: W, transaction: StagedTransaction, fill: Callable[[W], object]) -> bool:
        mark = Mark(self.number, str(uuid.uuid4()), self.checkpoint)
        try:
            with write:
                last = read_mark(transaction, self.table, self.storage_options)
                if is_committed(last, self.table, self.number, self.checkpoint):
                    return False
                stage_mark(self.access, transaction, self.table, mark)
                fill(write)
        except GraphConflict as conflict:
            found = self._newest_mark()
            if found is not None and found.epoch >= self.number:
                raise EpochTaken(DELIMITER.join(self.table), self.number, found.epoch) from conflict
            raise
        except WriteUnknown as unknown:
            if not self._became(mark):
                self._send_again(write, mark, unknown)
        return True

    def _send_again(self, write: Write, mark: Mark, unknown: WriteUnknown) -> None:
        """Send a batch of unknown outcome once more. Raises `unknown` if the outcome stays unknown."""
        try:
            write.resend()
        except GraphError as error:
            if not self._became(mark):
                raise unknown from error

    def _became(self, mark: Mark) -> bool:
        """Whether the newest mark is this one. False if that is not known."""
        try:
            return self._newest_mark() == mark
        except GraphError:
            return False

    def _newest_mark(self) -> Mark | None:
        with StagedTransaction(self.access) as transaction:
            return read_mark(transaction, self.table, self.storage_options)
