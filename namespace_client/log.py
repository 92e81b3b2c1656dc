"""The log of a catalog: a line for each batch, newest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from namespace_client.display import ShownAsTable, number, signed, visible, when
from namespace_client.events import CatalogEvent
from namespace_client.history import CatalogBatch, CatalogChange, CatalogVersion, HistoryFilter
from namespace_client.names import Name

_HEADERS: Final = ("version", "time", "by", "message", "tables", "rows")
_SHOWN: Final = 3
"""Tables of one line that its text names."""
_KINDS: Final = {
    "adopted": "committed around the catalog, and taken in",
    "unmanaged": "made without the catalog",
    "housekeeping": "the server's own rows",
}


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A line of the log: a batch, or a catalog version that has none.

    Attributes:
        version: The catalog version that it is part of.
        committed_at: When that was committed.
        kind: `batch`; or of a version without batches what made it: `adopted`, `unmanaged` or `housekeeping`.
        batch: The batch.
        changes: The changes of the batch that the history tells, at most 200; or the adopted ones.
        num_changes: How many changes there are.
    """

    version: int
    committed_at: datetime
    kind: str
    batch: CatalogBatch | None
    changes: tuple[CatalogChange, ...]
    num_changes: int

    @property
    def message(self) -> str:
        """The message of the batch, or what made the version."""
        return _KINDS.get(self.kind, "") if self.batch is None else self.batch.message or ""

    @property
    def principal(self) -> str:
        """The principal that sent the batch, empty if that is not known."""
        return "" if self.batch is None else self.batch.principal or ""

    @property
    def tables(self) -> tuple[Name, ...]:
        """The tables and namespaces that it changed, each once, in the order of the changes."""
        named = (name for each in self.changes for name in (each.name, each.new_name) if name is not None)
        return tuple(dict.fromkeys(named))

    @property
    def namespaces(self) -> frozenset[Name]:
        """Those of `tables` that are namespaces."""
        named = (name for each in self.changes if each.is_of_namespace for name in (each.name, each.new_name))
        return frozenset(name for name in named if name is not None)

    @property
    def added(self) -> int:
        """By how many rows tables became larger, as far as the history tells."""
        return sum(each.rows for each in self.changes if each.rows is not None and each.rows > 0)

    @property
    def removed(self) -> int:
        """By how many rows tables became smaller, as a negative number."""
        return sum(each.rows for each in self.changes if each.rows is not None and each.rows < 0)

    @property
    def operations(self) -> tuple[str, ...]:
        """What it did, each once: kinds of changes of rows, else operations."""
        return tuple(dict.fromkeys(each.change or each.operation for each in self.changes))


class CatalogLog(ShownAsTable, list[LogEntry]):
    """Lines of the log, newest first. As text it is a table.

    Attributes:
        below: The catalog version below which the log goes on, None where it is at its end.
        searched: The oldest catalog version that was looked at, None if there was none.
    """

    __slots__ = ("below", "searched")

    def __init__(self, entries: Iterable[LogEntry] = (), below: int | None = None, searched: int | None = None) -> None:
        super().__init__(entries)
        self.below = below
        self.searched = searched

    def _headers(self) -> Sequence[str]:
        return _HEADERS

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for each in self:
            names = [visible(str(name)) for name in each.tables[:_SHOWN]]
            more = len(each.tables) - _SHOWN
            tables = ", ".join(names) + (f", and {number(more)} more" if more > 0 else "")
            rows = " ".join(signed(value) for value in (each.added, each.removed) if value)
            yield (
                str(each.version),
                when(each.committed_at),
                visible(each.principal),
                visible(each.message),
                tables,
                rows,
            )


def entries_of(version: CatalogVersion) -> Iterator[LogEntry]:
    """The lines of a catalog version, the last batch first."""
    for batch in reversed(version.batches):
        yield LogEntry(version.version, version.committed_at, "batch", batch, batch.changes, batch.num_changes)
    if not version.batches:
        kind = "unmanaged" if version.unmanaged else "adopted" if version.adopted else "housekeeping"
        yield LogEntry(version.version, version.committed_at, kind, None, version.adopted, len(version.adopted))


def entries_of_event(event: CatalogEvent) -> list[LogEntry]:
    """The lines of an event, the last batch first; none for what its reader may not see."""
    if event.kind == "hidden":
        return []
    version = CatalogVersion(
        event.version, event.committed_at, event.batches, event.adopted, unmanaged=event.kind == "unmanaged"
    )
    return list(entries_of(version))


def read_log(
    versions: Iterable[CatalogVersion],
    picked: HistoryFilter | None = None,
    *,
    limit: int | None = None,
    since: datetime | None = None,
    within: int | None = None,
    housekeeping: bool = False,
) -> CatalogLog:
    """Lines of catalog versions, which come newest first.

    Args:
        versions: The versions. No more of them are taken than are needed.
        picked: Which batches are wanted, all if None.
        limit: After how many lines it ends, with the version of the last one.
        since: Where it ends: with the first version that was committed before.
        within: How many versions are looked at, at most.
        housekeeping: Whether versions of the server's own rows have lines, too.
    """
    looked = _Looked(since, within)
    taken = looked.at(versions)
    found: list[LogEntry] = []
    for version in taken if picked is None else picked.matching(taken):
        lines = list(entries_of(version))
        found += lines if housekeeping or lines[0].kind != "housekeeping" else []
        if limit is not None and len(found) >= limit:
            return CatalogLog(found, looked.last, looked.last)
    return CatalogLog(found, looked.last if looked.is_cut else None, looked.last)


class _Looked:
    """Counts the versions that are looked at. `is_cut` says that there may be more."""

    def __init__(self, since: datetime | None, within: int | None) -> None:
        self._since = since
        self._within = within
        self.last: int | None = None
        self.is_cut = False

    def at(self, versions: Iterable[CatalogVersion]) -> Iterator[CatalogVersion]:
        for count, version in enumerate(versions, 1):
            if self._since is not None and version.committed_at < self._since:
                return
            self.last = version.version
            yield version
            if count == self._within:
                self.is_cut = True
                return
