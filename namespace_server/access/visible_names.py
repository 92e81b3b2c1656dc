"""The names below a namespace that grants of one grantee lead to, as a persistent index; and those of several at once.

A grant on `a.b.t` makes `a` visible in the catalog, `b` in `a` and `t` in `b`. A change costs steps by the depth of the
object, and a page as many as it has names, whatever the number of grants and of tables.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from immutables import Map

from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.persistent.name_index import NameIndex
from namespace_server.directory.model.persistent.sorted_names import SortedNames


class MergedNames:
    """The names of several sets as one: sorted, each once. It reads as `SortedNames` does."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Sequence[SortedNames | MergedNames]) -> None:
        self._parts = parts

    def __contains__(self, name: object) -> bool:
        return any(name in part for part in self._parts)

    def __iter__(self) -> Iterator[str]:
        return _once(map(iter, self._parts))

    def __bool__(self) -> bool:
        return any(map(bool, self._parts))

    def after(self, name: str) -> Iterator[str]:
        """The names that follow `name`."""
        return _once(part.after(name) for part in self._parts)

    def starting_at(self, name: str) -> Iterator[str]:
        """The names from `name` on, which is among them if it is in one of the sets."""
        return _once(part.starting_at(name) for part in self._parts)

    def first(self, count: int, *, after: str | None = None) -> list[str]:
        """The first `count` names, of those that follow `after` if it is given."""
        return list(islice(iter(self) if after is None else self.after(after), count))


class VisibleNames(NamedTuple):
    """The names directly below a namespace that may be seen."""

    namespaces: SortedNames | MergedNames
    tables: SortedNames | MergedNames


class VisibleRoots(NamedTuple):
    """What may be seen: all below some namespaces, none of which is below another one, and some tables elsewhere."""

    namespaces: list[ObjectId]
    tables: NameIndex


class _Names(NamedTuple):
    """The names directly below a namespace that grants of one grantee lead to."""

    namespaces: SortedNames = SortedNames()
    tables: SortedNames = SortedNames()

    def __bool__(self) -> bool:
        return bool(len(self.namespaces) or len(self.tables))


_NONE: Final = _Names()


class GrantedPaths:
    """The objects that one grantee has a grant on, in the order of a tree. Immutable."""

    __slots__ = ("_below", "_own")

    def __init__(self, own: Map[ObjectId, None] | None = None, below: Map[ObjectId, _Names] | None = None) -> None:
        self._own: Map[ObjectId, None] = Map() if own is None else own
        self._below: Map[ObjectId, _Names] = Map() if below is None else below

    def __len__(self) -> int:
        return len(self._own)

    def __iter__(self) -> Iterator[ObjectId]:
        return iter(self._own)

    def leads_below(self, namespace: ObjectId) -> bool:
        """Whether there is a grant on something below."""
        return namespace in self._below

    def below(self, namespace: ObjectId) -> _Names:
        """The names directly below a namespace that lead to a grant."""
        found: _Names = self._below.get(namespace, _NONE)
        return found

    def with_object(self, path: ObjectId, *, table: bool) -> GrantedPaths:
        """The same with a grant on an object."""
        below = self._below
        is_table = table
        for depth in range(len(path), 0, -1):
            parent, name = path[: depth - 1], path[depth - 1]
            names: _Names = below.get(parent, _NONE)
            if is_table:
                edited = names._replace(tables=names.tables.edit(add=[name]))
            else:
                edited = names._replace(namespaces=names.namespaces.edit(add=[name]))
            is_table = False
            if edited == names and parent in below:
                break
            below = below.set(parent, edited)
        return GrantedPaths(self._own.set(path, None), below)

    def without_object(self, path: ObjectId) -> GrantedPaths:
        """The same without the grant on an object; names stay that lead to other ones."""
        if path not in self._own:
            return self
        own, below = self._own.delete(path), self._below
        for depth in range(len(path), 0, -1):
            here = path[:depth]
            if here in own or here in below:
                break
            parent, name = here[:-1], [here[-1]]
            names: _Names = below.get(parent, _NONE)
            names = _Names(names.namespaces.edit(remove=name), names.tables.edit(remove=name))
            below = below.set(parent, names) if names else below.delete(parent)
        return GrantedPaths(own, below)


NO_PATHS: Final = GrantedPaths()


def names_of_all(found: Sequence[GrantedPaths], namespace: ObjectId) -> VisibleNames:
    """The names directly below a namespace that the grants of several grantees lead to."""
    names = [each for each in (paths.below(namespace) for paths in found) if each]
    if len(names) == 1:
        return VisibleNames(*names[0])
    return VisibleNames(MergedNames([each.namespaces for each in names]), MergedNames([each.tables for each in names]))


def _once(sorted_names: Iterator[Iterator[str]]) -> Iterator[str]:
    """Sorted names of several iterators, each name once."""
    last: str | None = None
    for name in heapq.merge(*sorted_names):
        if name != last:
            yield name
        last = name
