"""Retention that properties of tables and namespaces state, over the settings of the catalog. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, pairwise
from typing import Final, TypeVar

from namespace_server.directory.model.entries import VersionEntry
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.durations import parse_duration

T = TypeVar("T")

TABLES_AGE: Final = "gc.tables.age"
TABLES_COUNT: Final = "gc.tables.count"
DROPPED_WINDOW: Final = "gc.dropped.window"
OFF: Final = "off"
LEAST_AGE: Final = timedelta(hours=1)
"""No version goes that was superseded later, and no dropped table."""


def read_age(text: str) -> timedelta | None:
    """The duration of a text such as 30d; None for `off`. Raises `ValueError` for another, or less than an hour."""
    if text == OFF:
        return None
    age = parse_duration(text)
    if age < LEAST_AGE:
        raise ValueError(f"{text} is too little, expected at least 1h")
    return age


def read_count(text: str) -> int | None:
    """The number of a text such as 20; None for `off`. Raises `ValueError` for another, or 0."""
    if text == OFF:
        return None
    if not (text.isascii() and text.isdigit() and int(text)):
        raise ValueError(f"{text}: expected a number of at least 1, or {OFF}")
    return int(text)


def read_window(text: str) -> timedelta:
    """The duration of a text such as 30d. Raises `ValueError` for another, or less than an hour."""
    age = read_age(text)
    if age is None:
        raise ValueError(f"{text}: expected a duration such as 30d")
    return age


READERS: Final[Mapping[str, Callable[[str], object]]] = {
    TABLES_AGE: read_age,
    TABLES_COUNT: read_count,
    DROPPED_WINDOW: read_window,
}
"""The properties of tables and namespaces that override settings of the catalog."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Retention of a table: versions superseded less than `age` ago, and the newest `count` of each branch."""

    age: timedelta
    count: int


def kept_of(snapshot: CatalogSnapshot, table_id: ObjectId, age: timedelta | None, count: int | None) -> Kept | None:
    """The retention of a table, by the settings `age` and `count` of the catalog; None if all versions are kept.

    Raises `ValueError` for a property that is wrong.
    """
    age = stated(snapshot, table_id, TABLES_AGE, read_age, age)
    count = stated(snapshot, table_id, TABLES_COUNT, read_count, count)
    return None if age is None and count is None else Kept(age or LEAST_AGE, count or 1)


def catalog_retention(snapshot: CatalogSnapshot) -> tuple[timedelta | None, int | None]:
    """The settings of the catalog `gc.tables.age` and `gc.tables.count`, for `kept_of`. Raises `ValueError`."""
    settings = snapshot.collector.settings
    return read_age(settings.get(TABLES_AGE, OFF)), read_count(settings.get(TABLES_COUNT, OFF))


def versions_beyond(
    snapshot: CatalogSnapshot, table_id: ObjectId, kept: Kept, now: datetime, future: datetime
) -> Iterator[tuple[VersionEntry, VersionEntry]]:
    """The versions of a table that its retention does not keep, each with the one after it, by the rows alone.

    Never a head, or one from which a branch began. Which ones tags name, or a job reads, is not looked at. A time after
    `future` says nothing.
    """
    latest_ms, future_ms = (int(each.timestamp() * 1_000) for each in (now - kept.age, future))
    branches = snapshot.branches(table_id)
    begun = {next(iter(snapshot.versions(table_id, branch))).version for branch in branches}
    for branch in (None, *branches):
        rows = list(snapshot.versions(table_id, branch))
        for row, successor in islice(pairwise(rows), max(len(rows) - kept.count, 0)):
            is_old = successor.timestamp_ms < latest_ms or successor.timestamp_ms > future_ms
            if is_old and row.version not in begun:
                yield row, successor


def check_properties(properties: Mapping[str, str]) -> None:
    """Raise `ValueError`, naming it, for a property `gc.*` that is none of these, or whose value is wrong."""
    for name, text in properties.items():
        if name.startswith("gc."):
            if name not in READERS:
                raise ValueError(f"property {name}: expected one of {', '.join(READERS)}")
            try:
                READERS[name](text)
            except ValueError as error:
                raise ValueError(f"property {name}: {error}") from None


def stated(snapshot: CatalogSnapshot, table_id: ObjectId, name: str, read: Callable[[str], T], otherwise: T) -> T:
    """The value of the nearest property of this name: of the table, its namespace, the one above; else `otherwise`.

    Raises `ValueError`, naming the property, for a value that is wrong.
    """
    table = snapshot.table(table_id)
    holders = [None if table is None else table.properties]
    for depth in range(len(table_id) - 1, 0, -1):
        namespace = snapshot.namespace(table_id[:depth])
        holders.append(None if namespace is None else namespace.properties)
    for properties in holders:
        text = (properties or {}).get(name)
        if text is not None:
            try:
                return read(text)
            except ValueError as error:
                raise ValueError(f"property {name}: {error}") from None
    return otherwise
