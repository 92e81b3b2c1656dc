"""The columns of a feed of changes, which are those of its last version, at the versions before it.

A column is known by the id of its field, so that its values before it was renamed are its values still. An overwrite
begins anew with ids, so columns before one are the same only if they have the same name, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.fields import TOP_LEVEL
from table_data.change_feed.versions import PublishedVersion

Tree = tuple[Any, ...]
"""A field with those in it: ids, names and types. The name of a column itself is not part of it."""


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column of a version. `leaves` are the ids of all fields in it, and its own."""

    id: int
    name: str
    tree: Tree
    leaves: frozenset[int]


def stored_columns(version: PublishedVersion) -> dict[int, StoredColumn]:
    """The columns of a version, by the ids of their fields, in their order."""
    below: dict[int, list[pb.Field]] = {}
    for field in version.file.outline.fields:
        below.setdefault(field.parent_id, []).append(field)
    return {field.id: _column(field, below) for field in below.get(TOP_LEVEL, ())}


def _column(field: pb.Field, below: Mapping[int, list[pb.Field]]) -> StoredColumn:
    tree = _tree(field, below)
    return StoredColumn(field.id, field.name, tree, frozenset(_ids(tree)))


def _tree(field: pb.Field, below: Mapping[int, list[pb.Field]]) -> Tree:
    return (
        field.id,
        field.logical_type,
        *((child.name, *_tree(child, below)) for child in below.get(field.id, ())),
    )


def _ids(tree: Tree) -> Iterator[int]:
    yield tree[0]
    for child in tree[2:]:
        yield from _ids(child[1:])


class FeedColumns:
    """The columns of a feed: those of `wanted`, or all, of its last version.

    `overwritten_after` says whether a version above a number, up to the last one, is an overwrite.
    """

    def __init__(
        self,
        last: PublishedVersion,
        wanted: Iterable[str] | None,
        overwritten_after: Callable[[int], bool] = lambda _: False,
    ) -> None:
        by_name = {column.name: column for column in stored_columns(last).values()}
        self.columns = tuple(by_name.values() if wanted is None else (by_name[name] for name in wanted))
        self.fields = frozenset().union(*(column.leaves for column in self.columns))
        self._overwritten_after = overwritten_after

    def sources(self, version: PublishedVersion) -> list[str | None]:
        """What each column is called in a version; None if it is not there, or was of another type."""
        stored = stored_columns(version)
        return [self._source(column, stored.get(column.id), version.version) for column in self.columns]

    def _source(self, column: StoredColumn, stored: StoredColumn | None, version: int) -> str | None:
        if stored is None or stored.tree != column.tree:
            return None
        return None if stored.name != column.name and self._overwritten_after(version) else stored.name

    def introduces_values(self, after: PublishedVersion, before: PublishedVersion) -> bool:
        """Whether a column is there after a version, was not before it, and has values in some data file."""
        pairs = zip(self.columns, self.sources(before), self.sources(after), strict=True)
        new = [column.leaves for column, was, now in pairs if was is None and now is not None]
        fields = frozenset().union(*new)
        return bool(fields) and any(
            not fields.isdisjoint(file.fields) for fragment in after.manifest.fragments for file in fragment.files
        )
