"""What a catalog did: its history and its log, how versions differ, and what its server has refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Final

from namespace_client.audit import RefusedAttempts
from namespace_client.catalog_overview import CatalogOverview
from namespace_client.differences import CatalogDiff, compare
from namespace_client.error_codes import ErrorCode
from namespace_client.errors import CommitRejected, InvalidCall, NotFound
from namespace_client.events import CatalogEvent
from namespace_client.grant_changes import CatalogGrants
from namespace_client.health import SERIES, ServerHealth, read_health
from namespace_client.history import CatalogHistory, CatalogVersion, HistoryFilter, in_utc
from namespace_client.http import CatalogServer
from namespace_client.log import CatalogLog, read_log
from namespace_client.names import AnyName
from namespace_client.wire import present
from table_data.batch_operations import DELIMITER
from table_data.errors import require_count

if TYPE_CHECKING:
    from namespace_client.row_differences import RowDiff

_PAGE: Final = 500
"""Catalog versions that are asked for at once, at most."""
_FIRST: Final = 100
_FEWEST: Final = 3
"""Those that are asked for first, where lines are picked and where they are not."""


class CatalogPast(CatalogGrants):
    """The part of `Catalog` that tells what it did."""

    def history(
        self,
        limit: int | None = None,
        *,
        below: int | None = None,
        principal: str | None = None,
        table: AnyName | None = None,
        audited: bool = False,
    ) -> CatalogHistory:
        """The kept catalog versions, newest first, with the batches that made them.

        Args:
            limit: How many at most, all if None.
            below: A catalog version; only those before it are returned.
            principal: Only batches that this principal sent.
            table: Only batches that changed this table, also under the names that it had before.
            audited: Whether batches tell where their requests came from. Of a server only auditors may ask for it.

        Raises:
            InvalidCall: `limit` or `below` is no whole number from 0 on.
            AccessRefused: The caller is no auditor.
        """
        limit = None if limit is None else require_count("limit", limit)
        below = None if below is None else require_count("below", below)
        is_filtered = principal is not None or table is not None
        page = _PAGE if limit is None or is_filtered else min(limit, _PAGE)
        found = self.access.history(below=below, page=None if limit is None else page, audited=audited)
        if is_filtered:
            found = HistoryFilter(principal, None if table is None else self._path(table)).matching(found)
        return CatalogHistory(islice(found, limit))

    def refused_attempts(
        self,
        limit: int | None = 100,
        *,
        principal: str | None = None,
        name: AnyName | None = None,
        decision: str | None = None,
    ) -> RefusedAttempts:
        """What the server has refused, and changes of unknown outcome, newest first. For auditors alone.

        Args:
            limit: How many at most, all if None.
            principal: Only attempts of this principal.
            name: Only attempts at this namespace or table, or one below it.
            decision: Only attempts of this decision, see `RefusedAttempt`.

        Raises:
            InvalidCall: It is a catalog in this process.
            AccessRefused: The caller is no auditor.
            CommitRejected: The server refused the request, or records nothing that can be read.
        """
        limit = None if limit is None else require_count("limit", limit)
        about = None if name is None else DELIMITER.join(self._path(name))
        wanted = present(principal=principal, object=about, decision=decision, limit=limit or None)
        return RefusedAttempts(islice(self.access.refused_attempts(wanted), limit))

    def log(
        self,
        limit: int | None = 50,
        *,
        below: int | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        principal: str | None = None,
        table: AnyName | None = None,
        within: int | None = None,
        housekeeping: bool = False,
    ) -> CatalogLog:
        """A line for each batch, newest first: when, by whom, with which message, of which tables, with rows ±.

        Args:
            limit: After how many lines it ends, all if None. Batches of one catalog version stay together.
            below: A catalog version; only those before it are told.
            since: Only what was committed from then on.
            until: Only what was committed by then. Times without a time zone are local time.
            principal: Only batches that this principal sent.
            table: Only batches that changed this table, also under the names that it had before.
            within: How many catalog versions are looked at, at most: a filter may find nothing in very many.
            housekeeping: Whether catalog versions that hold the server's own rows alone have lines, too.

        Returns:
            The lines. Its `below` continues the log.

        Raises:
            InvalidCall: `limit`, `below` or `within` is no whole number from 0 on, or a time has no year in UTC.
            CatalogUnreachable: The catalog did not respond.
        """
        limit, below, within = (
            None if value is None else require_count(name, value)
            for name, value in (("limit", limit), ("below", below), ("within", within))
        )
        if limit == 0 or within == 0:
            return CatalogLog(below=below)
        if until is not None:
            newest = self._newest_by(in_utc(until))
            below = min(newest + 1, newest + 1 if below is None else below)
        picked = None
        if principal is not None or table is not None:
            picked = HistoryFilter(principal, None if table is None else self._path(table))
        page = _PAGE if limit is None else _FIRST if picked is not None else min(limit, _FEWEST)
        return read_log(
            self._recent(below, page, limit or 0),
            picked,
            limit=limit,
            since=None if since is None else in_utc(since),
            within=within,
            housekeeping=housekeeping,
        )

    def diff(
        self, before: int, after: int, *, skip: int = 0, limit: int | None = None, within: int | None = None
    ) -> CatalogDiff:
        """What differs between two catalog versions: tables, their versions, rows and columns.

        The cost follows from what changed between them. Only where events do not tell that, since they are not kept or
        a writer had no catalog server, the lists of all tables are compared: differences of properties alone are not
        found then.

        Args:
            before: The earlier version.
            after: The later version.
            skip: How many of the tables that may differ are left out at the beginning: the `next` of a page before.
            limit: How many of them are described, all if None.
            within: How many events are read between the two at most, and how many tables are listed where events do
                not tell all; any number if None.

        Raises:
            InvalidCall: `before` is later than `after`; or there are more than `within` versions between them, and
                more tables.
            EventsGone: The versions between them are not kept, and there are more than `within` tables.
            NotFound: One of the two versions is not kept.
            CatalogUnreachable: The catalog did not respond.
        """
        for name, value in (("before", before), ("after", after), ("skip", skip)):
            require_count(name, value)
        return compare(self.access, before, after, skip=skip, limit=limit, within=within)

    def row_diff(
        self,
        table: AnyName,
        before: int,
        after: int,
        *,
        old_name: AnyName | None = None,
        limit: int = 20,
        compared: int = 5_000,
    ) -> RowDiff:
        """Rows of a table that only one of two catalog versions has: how many, and the first of them.

        It is exact: files that both have hold the same rows, and of the others values are compared. Rows that were only
        added, or only removed, are counted, however many they are. The catalog reads the rows: this process needs no
        access to storage.

        Args:
            table: Name of the table in the later version.
            before: The earlier catalog version.
            after: The later one.
            old_name: Its name in the earlier version, if it is another one.
            limit: How many rows of each version are given at most.
            compared: How many rows of each version are read at most, where values have to be compared. If there are
                more, the result says that they were not.

        Raises:
            NotFound: There is no such table in one of the versions, or it has no version there.
            CommitRejected: The catalog refused the read.
            CatalogUnreachable: The catalog did not respond.
        """
        from namespace_client.row_differences import compare_rows

        for name, value in (("before", before), ("after", after), ("compared", compared)):
            require_count(name, value)
        old_id = None if old_name is None else self._path(old_name)
        return compare_rows(
            self.access, self._path(table), before, after, old_id=old_id, limit=limit, compared=compared
        )

    def event(self, version: int) -> CatalogEvent:
        """What a catalog version did: its batches, and the versions of tables before and after.

        Raises:
            NotFound: There is no such version, or it is not kept, or all that it did is hidden from the caller.
            CatalogUnreachable: The catalog did not respond.
        """
        require_count("version", version)
        try:
            found = [] if version == 0 else self.access.events(version - 1, limit=1).events
        except CommitRejected as error:
            if error.code != ErrorCode.INVALID_INPUT:
                raise
            found = []  # it is far above the newest one
        event = CatalogEvent.of(found[0]) if found else None
        if event is None or event.version != version or event.kind == "hidden":
            raise NotFound(
                f"catalog version {version}: expected one that is kept, found none",
                code=ErrorCode.TABLE_VERSION_NOT_FOUND,
            )
        return event

    def maker(self, table: AnyName, version: int, *, branch: str | None = None, within: int = 5_000) -> int | None:
        """The catalog version that made a version of a table, None if it is not among the newest `within`.

        A version that is named twice, as a table of an earlier one's name has, is the newest of them.
        """
        path = self._path(table)
        picked = HistoryFilter(None, path)
        for found in picked.matching(islice(self.access.history(page=_PAGE), within)):
            for change in (*found.adopted, *(each for batch in found.batches for each in batch.changes)):
                if change.version == version and change.branch == branch and change.change is not None:
                    return found.version
        return None

    def figures(self) -> CatalogOverview:
        """What is in the catalog: tables, rows, bytes, versions, and the tables that are worth maintenance.

        Rows and what follows from them are of the tables that are known. Each call looks at up to 256 tables whose
        newest version is not, for some tenths of a second: so a small catalog is known at once, and of a large one more
        with each call.

        Raises:
            AccessRefused: The caller may not see all of the catalog, or is not known.
            CommitRejected: The catalog cannot be read.
            CatalogUnreachable: The server did not respond.
        """
        return self.access.figures()

    def health(self) -> ServerHealth:
        """How the server is: what it holds, how fast it commits, what is behind, and what to do about it.

        Raises:
            InvalidCall: It is a catalog in this process.
            AccessRefused: The caller may not see all of the catalog, or is not known.
            CommitRejected: The server measures nothing.
            CatalogUnreachable: The server did not respond.
        """
        if not isinstance(self.access, CatalogServer):
            raise InvalidCall("health: expected a server, found a catalog in this process")
        return read_health(self.access.client.fetch("GET", "/metrics", parameters={"name[]": SERIES}).text)

    def _recent(self, below: int | None, first: int, lines: int) -> Iterator[CatalogVersion]:
        """The kept versions below one, newest first.

        So many are asked for at first; then as many as have the rest of the lines, if they are like those; and then
        more at once. Under load a version holds the batches of many clients: a few have all the lines that are wanted.
        """
        size, count, seen, found = first, first, 0, 0
        while count == size:
            count = 0
            for version in islice(self.access.history(below=below, page=size), size):
                count, below = count + 1, version.version
                found += max(len(version.batches), 1)
                yield version
            seen += count
            if count == size:
                left = lines - found
                size = count = min(-(-left * seen // found) if left > 0 else 4 * size, _PAGE)

    def _newest_by(self, moment: datetime) -> int:
        """A version that is the newest of those that were committed by a time, or below all that are kept.

        The versions are ascending in time: bisection.
        """
        low, high = 0, self.access.state().version
        while low < high:
            middle = (low + high + 1) // 2
            entry = next(self.access.history(below=middle + 1, page=1), None)
            if entry is None or (entry.version == middle and entry.committed_at <= moment):
                low = middle  # below the oldest that is kept there is none
            else:
                high = middle - 1
        return low

    def _version_by(self, moment: datetime) -> int:
        """The newest version that was committed by a time. Raises `NotFound` where none is kept."""
        low = self._newest_by(moment)
        entry = next(self.access.history(below=low + 1, page=1), None)
        if entry is None:
            raise NotFound(
                f"no catalog version of {moment.isoformat()} or before is kept",
                code=ErrorCode.TABLE_VERSION_NOT_FOUND,
            )
        return entry.version
