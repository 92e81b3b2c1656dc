"""Intents: jobs that may commit later than the collections of a catalog allow, registered and renewed.

A catalog removes files that nothing names, once they are older than its `gc.uncommitted.grace`, and refuses commits
that name them. An intent keeps what a job writes and reads as it was when the intent was registered. It ends with the
job; that of a job that died ends by the first collection after its time is over.
"""

from __future__ import annotations

import heapq
import logging
import os
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import count
from types import TracebackType
from typing import Final, Self

from namespace_client.access import CatalogAccess
from namespace_client.errors import ClientError
from table_data.batch_operations import IntentEnd, IntentRegistration, TableOfIntent

logger = logging.getLogger(__name__)

LASTING: Final = timedelta(days=1)
"""How long an intent is registered for: so long may a job that died hold garbage."""
EVERY: Final = timedelta(minutes=10)
"""How often it is renewed."""
_AGAIN: Final = timedelta(minutes=1)
_PATIENCE: Final = 10.0
_MANY: Final = 1_000


class Intent:
    """The registration of a job. Thread-safe. Used once, as a context manager.

    It is registered at the begin of the block, renewed in the background, and ended at its end. A renewal that fails is
    repeated; if all fail for as long as `lasting`, the intent may end before the job, whose commit is then refused if
    it names files that are too old.

    Example:
        ```python
        with catalog.intent(["orders", "customers"], reason="nightly load") as intent:
            ...  # hours later: the batch that commits the files
        ```

    Args:
        access: The catalog.
        tables: Function that gives the tables of the job. It is called for each renewal, in a thread of its own.
        lasting: How long a renewal is for: an hour to 30 days.
        every: How often it is renewed.
        reason: Text that is kept with it.
    """

    def __init__(
        self,
        access: CatalogAccess,
        tables: Callable[[], Sequence[TableOfIntent]],
        *,
        lasting: timedelta = LASTING,
        every: timedelta = EVERY,
        reason: str | None = None,
    ) -> None:
        self.id = str(uuid.uuid4())
        self._access = access
        self._tables = tables
        self._lasting = lasting
        self._every = every
        self._reason = reason
        self._lock = threading.Lock()
        self._sent = False
        self._over = False

    def __enter__(self) -> Self:
        self.register()
        self.renew_after(self._every)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    @property
    def is_registered(self) -> bool:
        """Whether a registration was sent. It may have failed."""
        return self._sent

    @property
    def end_operation(self) -> IntentEnd:
        """The operation that ends it, for the batch of the job: then both happen in one step."""
        return IntentEnd(self.id)

    def register(self) -> None:
        """Register the job, or renew its registration. Without tables, or when the job is over, nothing is sent.

        Raises:
            CommitRejected: The catalog refused it: with code 4 if a table is not there, 11 if a version that the job
                reads is not.
            CatalogUnreachable: The catalog did not respond.
            CommitUnknown: The outcome is unknown.
        """
        with self._lock:
            tables = () if self._over else tuple(self._tables())
            if not tables:
                return
            self._sent = True
            operation = IntentRegistration(self.id, tables, int(self._lasting.total_seconds()), self._reason)
            self._access.commit([operation], idempotency_key=str(uuid.uuid4()), message=None)

    def renew_after(self, pause: timedelta) -> None:
        """Have it registered or renewed after this time, and from then on as often as it takes, in the background."""
        _RENEWALS.add(self, pause)

    def renew(self) -> timedelta | None:
        """Renew it once. Returns when to do it again; None if the job is over. Raises nothing."""
        try:
            self.register()
        except ClientError as error:
            logger.warning("intent %s was not renewed, and is tried again: %s", self.id, error)
            return None if self._over else min(self._every, _AGAIN)
        return None if self._over else self._every if self._sent else min(self._every, _AGAIN)

    def stop(self) -> None:
        """Renew it no more. Waits for a renewal that is on its way, for ten seconds at most."""
        self._over = True
        self._tables = tuple
        if self._lock.acquire(timeout=_PATIENCE):
            self._lock.release()

    def end(self) -> None:
        """End it, if it was registered. If the catalog is not reached, a collection ends it when its time is over."""
        self.stop()
        if not self._sent:
            return
        try:
            self._access.commit([self.end_operation], idempotency_key=str(uuid.uuid4()), message=None)
        except ClientError as error:
            logger.warning("intent %s ends when its time is over: %s", self.id, error)


class _Renewals:
    """The intents of this process that are renewed, by one thread, which begins with the first of them.

    It keeps no intent alive: a job that was forgotten ends its own.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: list[tuple[float, int, weakref.ref[Intent]]] = []
        self._numbers = count()
        self._thread: threading.Thread | None = None
        self._full = _MANY

    def add(self, intent: Intent, pause: timedelta) -> None:
        """Renew an intent after this time."""
        with self._changed:
            due = time.monotonic() + pause.total_seconds()
            heapq.heappush(self._due, (due, next(self._numbers), weakref.ref(intent)))
            if len(self._due) > self._full:  # most are of transactions that are over since
                self._due = [item for item in self._due if item[2]() is not None]
                heapq.heapify(self._due)
                self._full = 2 * len(self._due) + _MANY
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="intents", daemon=True)
                self._thread.start()
            elif self._due[0][0] == due:
                self._changed.notify()

    def _run(self) -> None:
        while True:
            intent = self._next()()
            try:
                pause = None if intent is None else intent.renew()
            except Exception:
                logger.exception("an intent is not renewed any more")
                pause = None
            if intent is not None and pause is not None:
                self.add(intent, pause)
            del intent

    def _next(self) -> weakref.ref[Intent]:
        """The next intent that is due; waits until it is."""
        with self._changed:
            while not self._due or self._due[0][0] > time.monotonic():
                self._changed.wait(self._due[0][0] - time.monotonic() if self._due else None)
            return heapq.heappop(self._due)[2]


_RENEWALS = _Renewals()


def _forget() -> None:
    """A forked process has no thread that renews, and no job of its parent."""
    global _RENEWALS  # noqa: PLW0603
    _RENEWALS = _Renewals()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
