"""The events of a catalog: each of its versions, once and in order, as one that follows it sees them."""

from __future__ import annotations

import logging
import random
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from namespace_client.access import CatalogAccess
from namespace_client.error_codes import ErrorCode
from namespace_client.errors import (
    CatalogClosed,
    CatalogUnavailable,
    CatalogUnreachable,
    CommitRejected,
    CommitUnknown,
    IncompatibleConflict,
    InvalidCall,
)
from namespace_client.history import CatalogBatch, CatalogChange
from namespace_client.names import Name
from table_data.batch_operations import CursorAdvance, Json
from table_data.errors import require_count

_log = logging.getLogger(__name__)
KINDS: Final = ("committed", "adopted", "unmanaged", "housekeeping", "cursors", "hidden")
"""Of events: what made a catalog version, see `CatalogEvent`."""
_NOT_WORTH_A_MOVE: Final = frozenset({"cursors", "hidden"})
"""Kinds of events for which no cursor is moved: consumers would make events for each other by that, for ever."""
_ADVANCE_EVERY: Final = 1.0
"""Seconds between two moves of a cursor while there are events: each is a catalog version of its own."""
_FIRST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 10.0
_NO_WAIT_PAUSE: Final = 0.5


@dataclass(frozen=True, slots=True)
class ChangedTable:
    """What a catalog version did to the versions of a table.

    Attributes:
        name: Path of the table.
        branch: Name of the branch, None for the main branch.
        before: Version before; None for a table or branch that had none.
        after: Version after; None for a table that was dropped.
        rows: By how many rows it is larger, negative if smaller; None if that is not known.
        dropped: Whether the table was dropped.
    """

    name: Name
    branch: str | None = None
    before: int | None = None
    after: int | None = None
    rows: int | None = None
    dropped: bool = False

    @classmethod
    def of(cls, row: Json) -> ChangedTable:
        """A table of an event. Raises `KeyError` or `TypeError` if it is none."""
        return cls(
            Name(row["id"]),
            row.get("branch"),
            row.get("before"),
            row.get("after"),
            row.get("rows"),
            bool(row.get("dropped")),
        )


@dataclass(frozen=True, slots=True)
class CatalogEvent:
    """A catalog version, as an event.

    Attributes:
        version: Its number. Events are told in the order of these numbers, without a gap.
        kind: What made it: `committed` (batches), `adopted` (table versions that were committed around the catalog, and
            taken in), `unmanaged` (a stock client, without a catalog server), `housekeeping` (work of a server on its
            own rows), `cursors` (consumers of events, which moved on), or `hidden` (what the reader may not see).
        committed_at: When it was committed.
        batches: The batches that it committed.
        tables: The tables that got versions, or were dropped.
        adopted: Table versions that were committed around the catalog, and that this version took in.
        cloud_event: The whole event (CloudEvents 1.0, in the JSON format).
    """

    version: int
    kind: str
    committed_at: datetime
    batches: tuple[CatalogBatch, ...]
    tables: tuple[ChangedTable, ...]
    adopted: tuple[CatalogChange, ...]
    cloud_event: Json

    @classmethod
    def of(cls, row: Json) -> CatalogEvent:
        """An event on the wire. Raises `KeyError`, `TypeError` or `ValueError` if it is none."""
        data = row["data"]
        return cls(
            int(data["catalog_version"]),
            str(data["kind"]),
            datetime.fromisoformat(row["time"]),
            tuple(CatalogBatch.of(each) for each in data["batches"]),
            tuple(ChangedTable.of(each) for each in data["tables"]),
            tuple(CatalogChange.of({"operation": "adopt", **each}) for each in data.get("adopted") or ()),
            row,
        )


def _checked_kinds(kinds: Sequence[str]) -> frozenset[str]:
    """Kinds of events. Raises `InvalidCall` for none, and for those that there are not."""
    given = [kinds] if isinstance(kinds, str) else list(kinds)
    unknown = [kind for kind in given if kind not in KINDS]
    if isinstance(kinds, str) or unknown or not given:
        found = repr(kinds if isinstance(kinds, str) else (unknown or "none"))[:80]
        raise InvalidCall(f"kinds: expected a list of some of {', '.join(KINDS)}; found {found}")
    return frozenset(given)


class Pause(Protocol):
    """Waits for a number of seconds."""

    def __call__(self, seconds: float, /) -> object:
        """Wait."""
        ...


class EventFeed:
    """Reads events page by page, and moves a cursor behind them. Blocking.

    With `follow` it waits for those to come, and comes again after an interruption of any length; else it ends at the
    version that is the newest at its beginning. `wait` bounds the seconds of one request.
    """

    def __init__(
        self,
        access: CatalogAccess,
        *,
        since: int | None = None,
        cursor: str | None = None,
        follow: bool = False,
        kinds: Sequence[str] | None = None,
        wait: int = 10,
        pause: Pause = time.sleep,
    ) -> None:
        if since is not None and cursor is not None:
            raise InvalidCall("since, cursor: expected one of them; `advance_cursor` puts a cursor at a version")
        if since is not None:
            require_count("since", since)
        self._access = access
        self._follow = follow
        self._kinds = None if kinds is None else _checked_kinds(kinds)
        self._wait = min(wait, access.longest_wait)
        self._pause = pause
        self._position = since
        self._cursor_name = cursor
        self._cursor: _CursorPosition | None = None
        self._until: int | None = None
        self._is_worth_it = False
        self._failures = 0

    def page(self) -> list[CatalogEvent] | None:
        """The next events, perhaps none yet; None at the end.

        Raises:
            EventsGone: Events that were not seen are not kept any more.
            CommitRejected: The catalog refused the read.
            IncompatibleConflict: Another consumer moved the cursor.
            CatalogUnreachable: The catalog did not respond, and it is not followed.
        """
        try:
            events = self._next()
        except CatalogClosed:
            raise
        except (CatalogUnreachable, CatalogUnavailable):
            if not self._follow:
                raise
            self._failures += 1
            longest = min(_FIRST_PAUSE * 2 ** min(self._failures, 10), _LONGEST_PAUSE)
            self._pause(random.uniform(longest / 2, longest))  # noqa: S311 - no secret
            return []
        self._failures = 0
        return events

    def done(self, event: CatalogEvent) -> None:
        """The consumer is done with an event: the cursor moves behind it, soon."""
        if self._cursor is not None:
            self._cursor.done(event)
            self._cursor.move(within=_ADVANCE_EVERY)

    def close(self) -> None:
        """Move the cursor behind what is done. What cannot be told to the catalog now is told again to the consumer."""
        if self._cursor is not None:
            self._cursor.move()

    def leave(self) -> None:
        """As `close`, where nothing can be raised: a refusal is logged."""
        try:
            self.close()
        except CommitRejected as error:
            _log.warning("%s", error)

    def _next(self) -> list[CatalogEvent] | None:
        if self._position is None:
            self._position = self._begin()
        if self._cursor is not None:  # of the page before all is done
            self._cursor.reached(self._position, is_worth_it=self._is_worth_it)
            self._cursor.move()
        left = None
        if not self._follow and self._until is not None:
            left = self._until - self._position
            if left <= 0:
                return None
        page = self._access.events(self._position, wait=self._wait if self._follow else 0, limit=left)
        if self._until is None:
            self._until = page.newest
        events = [CatalogEvent.of(row) for row in page.events]
        if self._follow and not events and not self._wait:
            self._pause(_NO_WAIT_PAUSE)
        self._position = page.last
        self._is_worth_it = any(event.kind not in _NOT_WORTH_A_MOVE for event in events)
        return events if self._kinds is None else [event for event in events if event.kind in self._kinds]

    def _begin(self) -> int:
        """Where to begin: where the cursor is, or at the newest version. A cursor that is new is put there."""
        if self._cursor_name is None:
            return self._access.events(None).last
        known = _version_of(self._access, self._cursor_name)
        if known is None:
            known = self._access.events(None).last
            _move(self._access, CursorAdvance(self._cursor_name, known))
        self._cursor = _CursorPosition(self._access, self._cursor_name, known)
        return known


class _CursorPosition:
    """Where a cursor is, and where it is to be. Moved by compare-and-set: no two consumers share one unnoticed.

    Transactions of the same connection may move it, too.
    """

    def __init__(self, access: CatalogAccess, name: str, at: int) -> None:
        access.moved_cursors.pop(name, None)  # before it was found there
        self._access = access
        self._name = name
        self._at = at
        self._sent: int | None = None
        self._done = at
        self._is_worth_it = False
        self._moved = time.monotonic()
        self._is_failing = False

    def done(self, event: CatalogEvent) -> None:
        """All up to this event is done. Moves of cursors alone are no reason to move this one: they would never end."""
        self._done = event.version
        self._is_worth_it |= event.kind not in _NOT_WORTH_A_MOVE

    def reached(self, version: int, *, is_worth_it: bool) -> None:
        """All up to this version is done, also what the consumer does not ask for."""
        self._done = max(self._done, version)
        self._is_worth_it |= is_worth_it

    def move(self, within: float = 0.0) -> None:
        """Move it, unless that was done less than `within` seconds ago. What fails for now is done the next time."""
        if not self._is_worth_it or time.monotonic() - self._moved < within:
            return
        by_transaction = self._access.moved_cursors.pop(self._name, None)
        if by_transaction is not None:  # of the consumer itself, for one of these events
            self._at, self._sent, self._done = by_transaction, None, max(self._done, by_transaction)
            if self._done == self._at:
                self._is_worth_it = False
                return
        self._moved, target = time.monotonic(), self._done
        try:
            if self._sent is not None:
                self._at = self._found(self._sent)
            self._sent = target
            _move(self._access, CursorAdvance(self._name, target, expected=self._at))
        except (CatalogUnreachable, CatalogUnavailable, CommitUnknown) as error:
            self._say(error)
            return
        except CommitRejected:
            self._sent, self._is_worth_it = None, False  # it is another consumer's now: it is not moved again
            raise
        self._at, self._sent, self._is_worth_it, self._is_failing = target, None, False, False

    def _say(self, error: Exception) -> None:
        """Say that the cursor stays behind, once until it moves again."""
        if not self._is_failing:
            _log.warning("cursor %s stays at catalog version %d for now: %s", self._name, self._at, error)
        self._is_failing = True

    def _found(self, sent: int) -> int:
        """Where it is after a move whose outcome is not known."""
        found = _version_of(self._access, self._name)
        if found not in {self._at, sent}:
            raise IncompatibleConflict(
                f"cursor {self._name}: expected it at catalog version {self._at} or {sent}, found it at {found}",
                code=ErrorCode.CONCURRENT_MODIFICATION,
            )
        return self._at if found == self._at else sent


def _version_of(access: CatalogAccess, name: str) -> int | None:
    """The catalog version at which a cursor is, None if there is none of that name."""
    return next((each.version for each in access.cursors() if each.name == name), None)


def _move(access: CatalogAccess, advance: CursorAdvance) -> None:
    access.commit([advance], idempotency_key=str(uuid.uuid4()), message=None)


def each_event(feed: EventFeed) -> Iterator[CatalogEvent]:
    """The events of a feed, one by one. An event is done when the next one is asked for.

    A refusal to move the cursor is raised at the end, and not where the consumer has left: nobody would catch it there.
    """
    try:
        while (page := feed.page()) is not None:
            for event in page:
                yield event
                feed.done(event)
    except BaseException:  # GeneratorExit, too
        feed.leave()
        raise
    feed.close()
