"""What differs between two catalog versions: tables, their versions, rows and columns.

Which tables may differ is read from the events between the two; each of these is described at both. So the cost follows
from what changed, and not from how many tables there are. Where events do not tell it, since they are not kept or a
writer had no catalog server, the lists of all tables at both versions do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from namespace_client.access import CatalogAccess
from namespace_client.display import ShownAsTable, number, signed, visible
from namespace_client.error_codes import ErrorCode
from namespace_client.errors import AccessRefused, EventsGone, InvalidCall, NotFound
from namespace_client.events import CatalogEvent
from namespace_client.names import Name
from namespace_client.wire import pages_of
from table_data.batch_operations import Json, TableId, TableState

_HEADERS: Final = ("", "table", "version", "rows", "columns")
_PAGE: Final = 500
_BROUGHT_BACK: Final = "undrop_namespace"
_COUNTED: Final = frozenset({"declare_table", "set_table_properties"})
"""Operations on a table after which events still tell by how many rows the table of this name is larger."""
_NO_VERSION: Final = "none"

Side = Mapping[str, Any]
"""A table as one of the versions describes it, with its path as `id`."""


@dataclass(frozen=True, slots=True)
class ColumnDifference:
    """A column that differs: its name, and its types before and after; None where it is not there."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class TableDifference:
    """A table that differs.

    Attributes:
        kind: `added`, `dropped`, `renamed` or `changed`. A renamed table may be changed, too.
        name: Its name, in the later version if it is there.
        old_name: Its name in the earlier version, if it is another one.
        before: Its version in the earlier catalog version, None if it had none.
        after: Its version in the later one.
        rows: By how many rows it is larger, negative if smaller; None if that is not known to the caller.
        columns: The columns that differ.
    """

    kind: str
    name: Name
    old_name: Name | None = None
    before: int | None = None
    after: int | None = None
    rows: int | None = None
    columns: tuple[ColumnDifference, ...] = ()


@dataclass(frozen=True, repr=False)
class CatalogDiff(ShownAsTable):
    """What differs between two catalog versions. As text it is a table.

    Attributes:
        before: The earlier catalog version.
        after: The later one.
        tables: The tables that differ, by name: those of this page.
        num_candidates: Tables that may differ, those of other pages included.
        next: How many of these are before the next page, None on the last one.
        unknown: Catalog versions between them that do not tell all that they did, where there are too many tables to
            compare the lists of them (`within`). Tables that only these versions changed are missing.
    """

    before: int
    after: int
    tables: tuple[TableDifference, ...]
    num_candidates: int
    next: int | None = None
    unknown: tuple[int, ...] = ()

    def _headers(self) -> Sequence[str]:
        return _HEADERS

    def _title(self) -> str:
        return f"catalog versions {self.before} and {self.after}"

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for each in self.tables:
            name = str(each.name) if each.old_name is None else f"{each.old_name} is {each.name}"
            versions = " → ".join(number(version) or _NO_VERSION for version in (each.before, each.after))
            columns = "; ".join(
                f"{column.name}: {column.before or _NO_VERSION} → {column.after or _NO_VERSION}"
                for column in each.columns
            )
            yield each.kind, visible(name), versions, signed(each.rows), visible(columns)


@dataclass(slots=True)
class _Candidates:
    """The tables that may differ.

    Attributes:
        rows: By how many rows each is larger, as far as events tell it; else None.
        back: Namespaces that came back, with tables that no event names.
        unknown: Versions of which the events do not tell all.
    """

    rows: dict[TableId, int | None] = field(default_factory=dict)
    back: set[TableId] = field(default_factory=set)
    unknown: list[int] = field(default_factory=list)

    def add(self, event: CatalogEvent) -> None:
        """Take in what an event tells."""
        is_cut = any(batch.num_changes > len(batch.changes) for batch in event.batches)
        if is_cut or event.kind == "unmanaged":
            self.unknown.append(event.version)
        for table in event.tables:
            known = self.rows.get(table.name, 0)
            if table.branch is None:
                self.rows[table.name] = None if known is None or table.rows is None else known + table.rows
        for change in (each for batch in event.batches for each in batch.changes):
            if change.operation == _BROUGHT_BACK and change.name is not None:
                self.back.add(change.new_name or change.name)
            elif change.operation in _COUNTED and change.name is not None:
                self.rows.setdefault(change.name, 0)
            elif change.operation.endswith("_table"):
                self.rows |= {name: None for name in (change.name, change.new_name) if name is not None}

    def take_lists(self, before: Iterable[TableState], after: Iterable[TableState]) -> None:
        """Take in all tables of which the lists tell other things. A table is the same one if its location is."""
        was, now = ({each.uri: each for each in tables} for tables in (before, after))
        self.rows = dict.fromkeys(self.rows)
        for uri in was | now:
            old, new = was.get(uri), now.get(uri)
            if old is None or new is None or (old.id, old.version) != (new.id, new.version):
                self.rows |= {each.id: None for each in (old, new) if each is not None}
        self.unknown = []


def compare(
    access: CatalogAccess,
    before: int,
    after: int,
    *,
    skip: int = 0,
    limit: int | None = None,
    within: int | None = None,
) -> CatalogDiff:
    """Compare two catalog versions.

    Args:
        access: The catalog.
        before: The earlier version.
        after: The later version.
        skip: How many of the tables that may differ are left out at the beginning.
        limit: How many of them are described, all if None.
        within: How many events are read between the two at most, and how many tables are listed where events do not
            tell all; any number if None.

    Raises:
        InvalidCall: `before` is later than `after`; or there are more versions between them, and more tables.
        EventsGone: The versions between them are not kept, and there are more tables.
        NotFound: One of the two versions is not kept.
    """
    if before > after:
        raise InvalidCall(f"before, after: expected an earlier version and a later one, found {before} and {after}")
    candidates = _candidates(access, before, after, within)
    names = sorted(candidates.rows)
    chosen = names[skip : None if limit is None else skip + limit]
    was = {name: side for name in chosen if (side := _described(access, name, before)) is not None}
    now = {name: side for name in chosen if (side := _described(access, name, after)) is not None}
    counts = _RowCounts(access, before, after, candidates.rows)
    end = skip + len(chosen)
    return CatalogDiff(
        before,
        after,
        tuple(_differences(was, now, counts)),
        len(names),
        end if end < len(names) else None,
        tuple(candidates.unknown),
    )


def _candidates(access: CatalogAccess, before: int, after: int, within: int | None) -> _Candidates:
    found = _Candidates()
    missing: InvalidCall | EventsGone | None = None
    if within is not None and after - before > within:
        missing = InvalidCall(
            f"before, after: expected at most {within:,} catalog versions between them, found {after - before:,}"
        )
    else:
        try:
            for event in _events(access, before, after):
                found.add(event)
        except EventsGone as error:
            missing = error
    for namespace in found.back:
        found.rows |= dict.fromkeys(_tables_below(access, namespace, after))
    if missing is not None or found.unknown:
        versions = [version for version in (before, after) if version]  # version 0 has no tables
        if within is None or not any(_has_more_tables(access, version, within) for version in versions):
            found.take_lists(*(access.pins(each).tables.values() if each else () for each in (before, after)))
        elif missing is not None:
            raise missing
    return found


def _has_more_tables(access: CatalogAccess, at: int, most: int) -> bool:
    count = 0
    for page in pages_of(lambda more: access.read("list_all_tables", more, at=at)):
        count += len(page.get("tables") or ())
        if count > most:
            return True
    return False


def _events(access: CatalogAccess, before: int, after: int) -> Iterator[CatalogEvent]:
    position = before
    while position < after:
        page = access.events(position, limit=min(_PAGE, after - position))
        events = [CatalogEvent.of(row) for row in page.events]
        yield from (event for event in events if event.version <= after)
        if page.last <= position:
            raise NotFound(
                f"catalog version {after}: expected one that is there, found {page.newest} to be the newest",
                code=ErrorCode.TABLE_VERSION_NOT_FOUND,
            )
        position = page.last


def _tables_below(access: CatalogAccess, namespace: TableId, at: int) -> Iterator[TableId]:
    """The tables in a namespace and below it; none where it is not there any more."""
    try:
        yield from ((*namespace, name) for name in access.tables(namespace, at=at))
        for child in access.namespaces(namespace, at=at):
            yield from _tables_below(access, (*namespace, child), at)
    except NotFound:
        return


def _described(access: CatalogAccess, table: TableId, at: int) -> Side | None:
    """A table at a catalog version, None if it is not there. Its columns are told to those who may read it."""
    if not at:
        return None
    request: Json = {"id": list(table), "vend_credentials": False}
    try:
        return {**access.read("describe_table", request | {"load_detailed_metadata": True}, at=at), "id": table}
    except NotFound:
        return None
    except AccessRefused as error:
        if error.code != ErrorCode.PERMISSION_DENIED:
            raise
    try:
        return {**access.read("describe_table", request, at=at), "id": table}
    except NotFound:
        return None


@dataclass(frozen=True, slots=True)
class _RowCounts:
    """By how many rows tables are larger: as events tell it, else by two counts."""

    access: CatalogAccess
    before: int
    after: int
    told: Mapping[TableId, int | None]

    def difference(self, old: Side | None, new: Side | None) -> int | None:
        """That of a table, None where it is not there; None if it has no version that the caller may read."""
        if new is not None and (told := self.told.get(new["id"])) is not None:
            return told
        was, now = self._count(old, self.before), self._count(new, self.after)
        return None if was is None or now is None else now - was

    def _count(self, side: Side | None, at: int) -> int | None:
        if side is None:
            return 0
        if side.get("version") is None:
            return None
        return int(self.access.table_value("count_table_rows", side["id"], at=at))


def _differences(
    was: Mapping[TableId, Side], now: Mapping[TableId, Side], counts: _RowCounts
) -> Iterator[TableDifference]:
    """The differences, by the names after. A table is the same one if its location is."""
    before = {side["location"]: side for side in was.values()}
    after = {side["location"] for side in now.values()}
    for name in sorted(was.keys() | now.keys()):
        gone, new = was.get(name), now.get(name)
        if gone is not None and gone["location"] not in after:
            yield TableDifference("dropped", Name(name), before=gone.get("version"), rows=counts.difference(gone, None))
        if new is not None:
            old = before.get(new["location"])
            if old is None:
                yield TableDifference("added", Name(name), after=new.get("version"), rows=counts.difference(None, new))
            elif any(old.get(each) != new.get(each) for each in ("id", "version", "properties")):
                yield _changed(old, new, counts)


def _changed(old: Side, new: Side, counts: _RowCounts) -> TableDifference:
    before, after = old.get("version"), new.get("version")
    return TableDifference(
        "changed" if old["id"] == new["id"] else "renamed",
        Name(new["id"]),
        None if old["id"] == new["id"] else Name(old["id"]),
        before,
        after,
        0 if before is not None and before == after else counts.difference(old, new),
        tuple(_columns(old.get("schema"), new.get("schema"))),
    )


def _columns(old: Json | None, new: Json | None) -> Iterator[ColumnDifference]:
    was, now = _types(old), _types(new)
    for name in was | now:
        if was.get(name) != now.get(name):
            yield ColumnDifference(name, was.get(name), now.get(name))


def _types(schema: Json | None) -> dict[str, str]:
    """The types of the columns of a schema of the specification, by name."""
    fields: Sequence[Json] = (schema or {}).get("fields") or ()
    return {each["name"]: _type(each["type"]) + ("" if each.get("nullable", True) else " not null") for each in fields}


def _type(kind: Json) -> str:
    """A type in words: `list<item: int64>`, `fixed_size_list<item: float32>[8]`."""
    fields: Sequence[Json] = kind.get("fields") or ()
    inner = ", ".join(f"{each['name']}: {_type(each['type'])}" for each in fields)
    length = kind.get("length")
    return str(kind["type"]) + (f"<{inner}>" if fields else "") + (f"[{length}]" if length is not None else "")
