"""What differs between two catalog versions: tables, their versions, rows and columns.

Which tables may differ is read from the events between the two; each of these is described at both. So the cost follows
from what changed, and not from how many tables there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from namespace_client.access import CatalogAccess
from namespace_client.display import ShownAsTable, number, signed, visible
from namespace_client.error_codes import ErrorCode
from namespace_client.errors import AccessRefused, InvalidCall, NotFound
from namespace_client.events import CatalogEvent
from namespace_client.names import Name
from table_data.batch_operations import Json, TableId

_HEADERS: Final = ("", "table", "version", "rows", "columns")
_PAGE: Final = 500
_BROUGHT_BACK: Final = "undrop_namespace"
_NO_VERSION: Final = "none"

Side = Mapping[str, Any]


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
        rows: By how many rows it is larger, negative if smaller; None if that is not known.
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
        unknown: Catalog versions between them that do not tell all that they did: those of writers without a catalog
            server, and with batches of which the history has the beginning. Tables that only they changed are missing.
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
    """The tables that may differ, by what events tell of them."""

    rows: dict[TableId, int | None] = field(default_factory=dict)
    back: set[TableId] = field(default_factory=set)
    unknown: list[int] = field(default_factory=list)

    def add(self, event: CatalogEvent) -> None:
        """Take in what an event tells."""
        if event.kind == "unmanaged":
            self.unknown.append(event.version)
        for table in event.tables:
            known = self.rows.get(table.name, 0)
            if table.branch is None:
                self.rows[table.name] = None if known is None or table.rows is None else known + table.rows
        for change in (each for batch in event.batches for each in batch.changes):
            if change.operation == _BROUGHT_BACK and change.name is not None:
                self.back.add(change.new_name or change.name)
            elif change.operation.endswith("_table"):
                for name in (change.name, change.new_name):
                    if name is not None:
                        self.rows.setdefault(name, None if change.new_name else 0)
        if any(batch.num_changes > len(batch.changes) for batch in event.batches):
            self.unknown.append(event.version)


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
        within: How many versions may be between the two, any number if None.

    Raises:
        InvalidCall: `before` is later than `after`, or there are more versions between them.
        EventsGone: The versions between them are not kept.
    """
    if before > after:
        raise InvalidCall(f"before, after: expected an earlier version and a later one, found {before} and {after}")
    if within is not None and after - before > within:
        raise InvalidCall(
            f"before, after: expected at most {within:,} catalog versions between them, found {after - before:,}"
        )
    candidates = _Candidates()
    for event in _events(access, before, after):
        candidates.add(event)
    for namespace in candidates.back:
        for table in _tables_below(access, namespace, after):
            candidates.rows.setdefault(table, None)
    names = sorted(candidates.rows)
    chosen = names[skip : None if limit is None else skip + limit]
    was = {name: side for name in chosen if (side := _described(access, name, before)) is not None}
    now = {name: side for name in chosen if (side := _described(access, name, after)) is not None}
    end = skip + len(chosen)
    return CatalogDiff(
        before,
        after,
        tuple(_differences(was, now, candidates.rows)),
        len(names),
        end if end < len(names) else None,
        tuple(candidates.unknown),
    )


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
    request: Json = {"id": list(table), "vend_credentials": False}
    try:
        return access.read("describe_table", request | {"load_detailed_metadata": True}, at=at)
    except NotFound:
        return None
    except AccessRefused as error:
        if error.code != ErrorCode.PERMISSION_DENIED:
            raise
    try:
        return access.read("describe_table", request, at=at)
    except NotFound:
        return None


def _differences(
    was: Mapping[TableId, Side], now: Mapping[TableId, Side], rows: Mapping[TableId, int | None]
) -> Iterator[TableDifference]:
    """The differences, by the names after. A table is the same one if its location is."""
    old_names = {side["location"]: name for name, side in was.items()}
    new_names = {side["location"]: name for name, side in now.items()}
    for name in sorted(was.keys() | now.keys()):
        new, old_name = now.get(name), name
        if new is not None:
            old_name = old_names.get(new["location"], name)
        old = was.get(old_name)
        if new is not None and old is not None and old["location"] == new["location"]:
            columns = tuple(_columns(old.get("schema"), new.get("schema")))
            if old_name != name:
                yield _difference("renamed", name, old_name, old, new, rows.get(name), columns)
            elif old.get("version") != new.get("version") or old.get("properties") != new.get("properties"):
                yield _difference("changed", name, None, old, new, rows.get(name), columns)
            continue
        if name in was and was[name]["location"] not in new_names:
            yield _difference("dropped", name, None, was[name], None, None, ())
        if new is not None and new["location"] not in old_names:
            yield _difference("added", name, None, None, new, rows.get(name), ())


def _difference(
    kind: str,
    name: TableId,
    old_name: TableId | None,
    old: Side | None,
    new: Side | None,
    rows: int | None,
    columns: tuple[ColumnDifference, ...],
) -> TableDifference:
    was, now = (None if side is None else side.get("version") for side in (old, new))
    return TableDifference(kind, Name(name), None if old_name is None else Name(old_name), was, now, rows, columns)


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
