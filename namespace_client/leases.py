"""Leases: files of a writer, or the version of a reader, that garbage collection keeps while a job renews them.

A catalog removes unreferenced files, once they are older than its `gc.uncommitted.grace`, and refuses commits
that name them. An intent keeps what a job writes and reads as it was when the intent was registered. It ends with the
job; that of a job that died ends by the first garbage collection after its time is over. A reader pins a catalog
version.
"""

from __future__ import annotations

import heapq
import logging
import math
import os
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import count
from typing import Final, Self

from namespace_client.access import CatalogAccess
from namespace_client.errors import ClientError, InvalidCall
from namespace_client.wire import CommittedBatch
from table_data.batch_operations import (
    BatchOperation,
    IntentEnd,
    IntentRegistration,
    PinRemoval,
    TableOfIntent,
    VersionPin,
)

logger = logging.getLogger(__name__)

LASTING: Final = timedelta(days=1)
"""How long an intent is registered for: so long may a job that died hold garbage."""
READING: Final = timedelta(hours=1)
"""How long the pin of a reader is for."""
EVERY: Final = timedelta(minutes=10)
"""How often a lease is renewed."""
_AGAIN: Final = timedelta(minutes=1)
_LOCK_TIMEOUT: Final = 10.0
_MANY: Final = 1_000


def whole_seconds(lasting: timedelta) -> int:
    """A duration in whole seconds, not shorter. Raises `InvalidCall` for something else."""
    if not isinstance(lasting, timedelta):
        raise InvalidCall(f"lasting: expected a timedelta, found {lasting!r:.40}")
    return math.ceil(lasting.total_seconds())


class Lease:
    """Something that is kept for a job while it is renewed. Thread-safe. Used once, as a context manager.

    It is registered at the begin of the block, renewed in the background, and ended at its end. A renewal that fails is
    repeated.
    """

    def __init__(self, access: CatalogAccess, *, lasting: timedelta, every: timedelta) -> None:
        self._access = access
        self._seconds = whole_seconds(lasting)
        self._every = every
        self._lock = threading.Lock()
        self._sent = False
        self._over = False

    def __enter__(self) -> Self:
        self.register()
        self.renew_after(self._every)
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def is_registered(self) -> bool:
        """Whether a registration was sent. It may have failed."""
        return self._sent

    @property
    def end_operation(self) -> BatchOperation:
        """The operation that ends it, for the batch of the job: then both happen in one step."""
        raise NotImplementedError

    def _registration(self) -> BatchOperation | None:
        """The operation that registers or renews it; None if there is nothing to be kept yet."""
        raise NotImplementedError

    def _registered(self, committed: CommittedBatch) -> None:
        """Note what a registration became."""

    def register(self) -> None:
        """Register or renew it. When the job is over, or has nothing to be kept yet, nothing is sent.

        Raises:
            CommitRejected: The catalog refused it: with code 4 if a table is not there, 11 if a version is not.
            CatalogUnreachable: The catalog did not respond.
            CommitUnknown: The outcome is unknown.
        """
        with self._lock:
            operation = None if self._over else self._registration()
            if operation is None:
                return
            self._sent = True
            self._registered(self._access.commit([operation], idempotency_key=str(uuid.uuid4()), message=None))

    def renew_after(self, pause: timedelta) -> None:
        """Have it registered or renewed after this time, and from then on as often as it takes, in the background."""
        _RENEWALS.add(self, pause)

    def renew(self) -> timedelta | None:
        """Renew it once. Returns when to do it again; None if the job is over. Raises nothing."""
        try:
            self.register()
        except ClientError as error:
            logger.warning("%s was not renewed, and is tried again: %s", self, error)
            return None if self._over else min(self._every, _AGAIN)
        return None if self._over else self._every if self._sent else min(self._every, _AGAIN)

    def stop(self) -> None:
        """Renew it no more. Waits for a renewal that is on its way, for ten seconds at most."""
        self._over = True
        if self._lock.acquire(timeout=_LOCK_TIMEOUT):
            self._lock.release()

    def end(self) -> None:
        """End it, if it was registered. A garbage collection ends it at its time if the catalog is not reached."""
        self.stop()
        if not self._sent:
            return
        try:
            self._access.commit([self.end_operation], idempotency_key=str(uuid.uuid4()), message=None)
        except ClientError as error:
            logger.warning("%s ends when its time is over: %s", self, error)


class Intent(Lease):
    """The registration of a job that takes long: its files, and the versions that it reads, are kept.

    If all renewals fail for as long as `lasting`, it may end before the job, whose commit is then refused if it names
    files that are too old.

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
        super().__init__(access, lasting=lasting, every=every)
        self.id = str(uuid.uuid4())
        self._tables = tables
        self._reason = reason

    def __str__(self) -> str:
        return f"intent {self.id}"

    @property
    def end_operation(self) -> IntentEnd:
        """See `Lease.end_operation`."""
        return IntentEnd(self.id)

    def _registration(self) -> IntentRegistration | None:
        tables = tuple(self._tables())
        return IntentRegistration(self.id, tables, self._seconds, self._reason) if tables else None

    def stop(self) -> None:
        """See `Lease.stop`."""
        super().stop()
        self._tables = tuple


class PinnedVersion(Lease):
    """A catalog version that is kept while a reader uses it: a pin of an hour, which is renewed.

    Attributes:
        version: The catalog version; None until it is pinned, if it is the one that the pin makes.
    """

    def __init__(
        self, access: CatalogAccess, version: int | None, *, every: timedelta = EVERY, reason: str | None = None
    ) -> None:
        super().__init__(access, lasting=READING, every=every)
        self.version = version
        self._name = f"reader-{uuid.uuid4()}"
        self._reason = reason

    def __str__(self) -> str:
        return f"pin {self._name} of catalog version {self.version}"

    @property
    def end_operation(self) -> PinRemoval:
        """See `Lease.end_operation`."""
        return PinRemoval(self._name)

    def _registration(self) -> VersionPin:
        return VersionPin(self._name, self.version, self._seconds, self._reason)

    def _registered(self, committed: CommittedBatch) -> None:
        if self.version is None:
            self.version = committed.catalog_version


class _Renewals:
    """The leases of this process that are renewed, by one thread, which begins with the first of them.

    It keeps no intent alive: a job that was forgotten ends its own.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: list[tuple[float, int, weakref.ref[Lease]]] = []
        self._numbers = count()
        self._thread: threading.Thread | None = None
        self._full = _MANY

    def add(self, lease: Lease, pause: timedelta) -> None:
        """Renew a lease after this time."""
        with self._changed:
            due = time.monotonic() + pause.total_seconds()
            heapq.heappush(self._due, (due, next(self._numbers), weakref.ref(lease)))
            if len(self._due) > self._full:  # most are of transactions that are over since
                self._due = [item for item in self._due if item[2]() is not None]
                heapq.heapify(self._due)
                self._full = 2 * len(self._due) + _MANY
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="leases", daemon=True)
                self._thread.start()
            elif self._due[0][0] == due:
                self._changed.notify()

    def _run(self) -> None:
        while True:
            lease = self._next()()
            try:
                pause = None if lease is None else lease.renew()
            except Exception:
                logger.exception("a lease is not renewed any more")
                pause = None
            if lease is not None and pause is not None:
                self.add(lease, pause)
            del lease

    def _next(self) -> weakref.ref[Lease]:
        """The next lease that is due; waits until it is."""
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
