"""Retention settings of garbage collection: they belong to the catalog, and have floors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Any, Final

from namespace_server.directory.model.retention import LEAST_AGE, OFF, read_age, read_count
from namespace_server.durations import format_duration, parse_duration


@dataclass(frozen=True, slots=True)
class GcSettings:
    """The settings of a catalog.

    Attributes:
        grace: `gc.uncommitted.grace`: age from which an unreferenced file may go. A writer that commits by path
            must be done by then.
        catalog_age: `gc.catalog.age`: how long a catalog version is kept after it was superseded.
        catalog_count: `gc.catalog.count`: the newest catalog versions that are kept in any case.
        dropped_window: `gc.dropped.window`: how long a dropped table can come back.
        tables_age: `gc.tables.age`: how long a version of a table is kept after it was superseded; None: it is kept.
        tables_count: `gc.tables.count`: the newest versions of a branch that are kept in any case; None: 1, if there is
            an age. Without both all versions are kept.
        cursors_age: `gc.cursors.age`: how long a catalog version is kept for a cursor after it was superseded; a cursor
            that is behind it is expired, and keeps nothing.
        cursors_count: `gc.cursors.count`: the newest catalog versions that are kept for cursors at most.
        look_every: `gc.orphans.every`: how often the files of a table are listed at least that does not change.
    """

    grace: timedelta = timedelta(days=7)
    catalog_age: timedelta = timedelta(days=7)
    catalog_count: int = 100
    dropped_window: timedelta = timedelta(days=7)
    tables_age: timedelta | None = None
    tables_count: int | None = None
    cursors_age: timedelta = timedelta(days=30)
    cursors_count: int = 100_000
    look_every: timedelta = timedelta(days=7)

    def with_texts(self, texts: Mapping[str, str]) -> GcSettings:
        """These settings with others for those that `texts` names. Raises `ValueError` for a name or value."""
        changed: dict[str, Any] = {}
        for name, text in texts.items():
            if name not in _SETTINGS:
                raise ValueError(f"{name}: no such setting; known: {', '.join(_SETTINGS)}")
            setting = _SETTINGS[name]
            try:
                value = setting.parse(text)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
            if setting.floor is not None and value < setting.floor:
                raise ValueError(f"{name}: {text} is too little, expected at least {setting.format(setting.floor)}")
            changed[setting.field] = value
        return replace(self, **changed)

    def as_texts(self) -> dict[str, str]:
        """The settings by their names, as `with_texts` takes them."""
        return {name: setting.format(getattr(self, setting.field)) for name, setting in _SETTINGS.items()}


@dataclass(frozen=True, slots=True)
class _Setting:
    field: str
    floor: Any
    parse: Callable[[str], Any]
    format: Callable[[Any], str]


def _or_off(format_value: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: OFF if value is None else format_value(value)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text}: expected a number")
    return int(text)


_SETTINGS: Final[Mapping[str, _Setting]] = {
    "gc.uncommitted.grace": _Setting("grace", timedelta(days=1), parse_duration, format_duration),
    "gc.catalog.age": _Setting("catalog_age", LEAST_AGE, parse_duration, format_duration),
    "gc.catalog.count": _Setting("catalog_count", 100, _count, str),
    "gc.dropped.window": _Setting("dropped_window", LEAST_AGE, parse_duration, format_duration),
    "gc.tables.age": _Setting("tables_age", None, read_age, _or_off(format_duration)),
    "gc.tables.count": _Setting("tables_count", None, read_count, _or_off(str)),
    "gc.cursors.age": _Setting("cursors_age", None, parse_duration, format_duration),
    "gc.cursors.count": _Setting("cursors_count", None, _count, str),
    "gc.orphans.every": _Setting("look_every", timedelta(days=1), parse_duration, format_duration),
}
assert {setting.field for setting in _SETTINGS.values()} == {field.name for field in fields(GcSettings)}
