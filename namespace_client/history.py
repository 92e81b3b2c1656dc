"""The history of the catalog: its versions, and the batches that made them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from namespace_client.display import ShownAsTable, when
from namespace_client.errors import InvalidCall
from namespace_client.names import Name
from table_data.batch_operations import Json, TableId

_HEADERS: Final = ("version", "time", "message", "principal", "changes")
_SHOWN: Final = 5
"""Changes of one batch that the text of a history names."""

_OF_ALL_BELOW: Final = frozenset({"drop_namespace", "undrop_namespace"})
_OF_NO_TABLE: Final = frozenset(
    {
        "pin_catalog_version",
        "unpin_catalog_version",
        "advance_cursor",
        "delete_cursor",
        "register_intent",
        "end_intent",
        "alter_transaction",
    }
)


@dataclass(frozen=True, slots=True)
class CatalogChange:
    """One change of a batch.

    Attributes:
        operation: Name of the operation: `declare_table`, `commit_transaction`, `rename_table`.
        name: Path of the table or namespace that it is about, None for pins and the like.
        new_name: Path that it has afterwards, of a rename or an undrop.
        change: Kind of change of the rows or the schema, of an operation that made a version: `Append`, `Delete`.
        version: Version of the table that it made or names.
        branch: Name of the branch, None for the main branch.
        tag: Name of the tag that it is about.
        pin: Name of the pin that it is about.
        cursor: Name of the cursor that it is about.
        rows: By how many rows the version that it made is larger, negative if smaller; None if the history does not
            tell.
    """

    operation: str
    name: Name | None = None
    new_name: Name | None = None
    change: str | None = None
    version: int | None = None
    branch: str | None = None
    tag: str | None = None
    pin: str | None = None
    cursor: str | None = None
    rows: int | None = None

    @property
    def is_of_namespace(self) -> bool:
        """Whether `name` is that of a namespace."""
        return "namespace" in self.operation

    @classmethod
    def of(cls, row: Json) -> CatalogChange:
        """An operation of a batch in the list of catalog versions. Raises `KeyError` or `TypeError` if it is none."""
        return cls(
            row.get("operation") or "",
            _name(row.get("id")),
            _name(row.get("new_id")),
            row.get("change"),
            row.get("version"),
            row.get("branch"),
            row.get("tag"),
            row.get("pin"),
            row.get("cursor"),
            row.get("rows"),
        )

    def may_be_about(self, table: TableId) -> bool:
        """Whether it can have changed a table, by its name or that of a namespace above it."""
        if self.name is None:
            return self.operation not in _OF_NO_TABLE
        return any(name is not None and table[: len(name)] == name for name in (self.name, self.new_name))

    def is_about(self, table: TableId) -> bool:
        """Whether it is about a table, or about a namespace above it as a whole."""
        if self.operation in _OF_ALL_BELOW and self.name is not None:
            return table[: len(self.name)] == self.name
        return table in (self.name, self.new_name)

    def __str__(self) -> str:
        what = self.change or self.operation
        about = [str(part) for part in (self.name, self.tag, self.pin, self.cursor) if part is not None]
        if self.branch is not None:
            about.append(f"(branch {self.branch})")
        moved = "" if self.new_name is None else f" to {self.new_name}"
        return " ".join([what, *about]) + moved


@dataclass(frozen=True, slots=True)
class CatalogBatch:
    """A batch in the history.

    Attributes:
        transaction_id: Id of the batch.
        message: Text that was sent with it.
        principal: The principal that sent it, None if the server knows no principals.
        changes: Its changes, in order, without assertions; at most the first 200. Empty if the history lacks them.
        num_changes: Number of all its changes.
        origin: Where its request came from, in an audited history: `client` (address), `user_agent` (what the client
            says of itself, never evidence) and `request_id`. Empty otherwise, and for work without a server.
        granted: The grants by which its operations were allowed, in an audited history: `operation_index`, `privilege`,
            `kind` and `object`, and `reason`.
    """

    transaction_id: str
    message: str | None
    principal: str | None
    changes: tuple[CatalogChange, ...]
    num_changes: int
    origin: Mapping[str, str] = field(default_factory=dict)
    granted: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(cls, row: Json) -> CatalogBatch:
        """A batch in the list of catalog versions. Raises `KeyError` or `TypeError` if it is none."""
        changes = tuple(CatalogChange.of(each) for each in row.get("operations") or ())
        count = int(row.get("num_operations") or len(changes))
        origin = dict(row.get("origin") or {})
        granted = tuple(dict(each) for each in row.get("granted") or ())
        return cls(row["transaction_id"], row.get("message"), row.get("principal"), changes, count, origin, granted)

    @property
    def tables(self) -> tuple[Name, ...]:
        """Paths of the tables and namespaces that it changed, each once, in the order of the changes."""
        named = (name for change in self.changes for name in (change.name, change.new_name) if name is not None)
        return tuple(dict.fromkeys(named))


@dataclass(frozen=True, slots=True)
class CatalogVersion:
    """A version of the catalog.

    Attributes:
        version: Its number.
        committed_at: When it was committed.
        batches: The batches that it committed. There are none where the server worked on its own rows.
        adopted: Changes of tables that another writer committed without the catalog, and that this version took in.
        unmanaged: Whether a stock client made this version without a catalog server.
    """

    version: int
    committed_at: datetime
    batches: tuple[CatalogBatch, ...]
    adopted: tuple[CatalogChange, ...] = ()
    unmanaged: bool = False

    @classmethod
    def of(cls, row: Json) -> CatalogVersion:
        """A row of the list of catalog versions. Raises `KeyError`, `TypeError` or `ValueError` if it is none."""
        return cls(
            int(row["version"]),
            moment(row["timestamp_millis"]),
            tuple(CatalogBatch.of(each) for each in row["batches"]),
            tuple(CatalogChange.of({"operation": "adopt", **each}) for each in row.get("adopted") or ()),
            bool(row.get("unmanaged")),
        )

    def may_have_changed(self, table: TableId) -> bool:
        """Whether this version can have changed a table or one of its branches. False only if the history is complete.

        What a server does to its own rows changes no table: it removes those of versions and branches that are gone.
        """
        if self.unmanaged or any(not each.changes or len(each.changes) < each.num_changes for each in self.batches):
            return True
        changes = [*self.adopted, *(change for batch in self.batches for change in batch.changes)]
        return any(change.may_be_about(table) for change in changes)


@dataclass(slots=True)
class HistoryFilter:
    """Picks of a history what a principal did, and what changed a table, also under its earlier names.

    `None` stands for all. Versions are shown to it newest first.
    """

    principal: str | None = None
    table: TableId | None = None
    _names: set[TableId] = field(default_factory=set)

    def matching(self, versions: Iterable[CatalogVersion]) -> Iterator[CatalogVersion]:
        """The versions of which something is picked, with the batches and adopted changes that are."""
        self._names = set() if self.table is None else {self.table}
        for version in versions:
            batches = tuple(batch for batch in reversed(version.batches) if self._picks(batch))[::-1]
            adopted = () if self.principal is not None else tuple(filter(self._is_about, version.adopted))
            if batches or adopted:
                yield replace(version, batches=batches, adopted=adopted)

    def _picks(self, batch: CatalogBatch) -> bool:
        found = [self._is_about(change) for change in reversed(batch.changes)]
        is_complete = len(batch.changes) >= batch.num_changes
        return self.principal in {None, batch.principal} and (any(found) or not self._names or not is_complete)

    def _is_about(self, change: CatalogChange) -> bool:
        """Whether a change is about the table. Before it, the table may have had another name."""
        found = not self._names or any(map(change.is_about, self._names))
        if found and self._names and change.name is not None and change.new_name in self._names:
            self._names.add(change.name)
        return found


class CatalogHistory(ShownAsTable, list[CatalogVersion]):
    """Catalog versions, newest first. As text it is a table."""

    __slots__ = ()

    def _headers(self) -> Sequence[str]:
        return _HEADERS

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for entry in self:
            if not entry.batches:
                changes = "made without the catalog" if entry.unmanaged else "the server's own rows"
                yield str(entry.version), when(entry.committed_at), "", "", _listed(entry.adopted, 0) or changes
            for batch in entry.batches:
                row = (batch.message or "", batch.principal or "", _listed(batch.changes, batch.num_changes))
                yield str(entry.version), when(entry.committed_at), *row


def _listed(changes: Sequence[CatalogChange], count: int) -> str:
    more = max(count, len(changes)) - _SHOWN
    return ", ".join(map(str, changes[:_SHOWN])) + (f", and {more} more" if more > 0 else "")


def moment(millis: int) -> datetime:
    """A timestamp of the wire."""
    return datetime.fromtimestamp(int(millis) / 1000, UTC)


def in_utc(time: datetime) -> datetime:
    """A time in UTC; one without a time zone is local time. Raises `InvalidCall` for one that is no year of it."""
    try:
        return time.astimezone(UTC)
    except (OverflowError, ValueError, OSError):
        raise InvalidCall(f"{time.isoformat()}: expected a time from year 1 to 9999 in UTC, found another") from None


def _name(parts: list[str] | None) -> Name | None:
    return None if parts is None else Name(parts)
