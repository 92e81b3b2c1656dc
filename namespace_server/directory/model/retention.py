"""Retention that properties of tables and namespaces state, over the settings of the catalog. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final, TypeVar

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
