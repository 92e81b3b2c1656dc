"""A sorted set of names as an immutable B+tree: an edit copies the path to what it changes and shares the rest.

Leaves are tuples of at most `LEAF_LIMIT` names, inner nodes have at most `NODE_LIMIT` children, and all leaves lie at
the same depth. A node is replaced only by an edit that changes a name below it, so two versions of a set share all
other nodes. After a node loses names it is joined with a neighbour when it is less than a quarter full.

Names are in the order of Python's strings, which is that of their UTF-8 bytes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Final, TypeVar

LEAF_LIMIT: Final = 64
NODE_LIMIT: Final = 64
_FILL: Final = 48
"""Names of a leaf and children of a node that is built: there is room for as many insertions as a third of them."""
_JOIN_BELOW: Final = 16

T = TypeVar("T")


class _Inner:
    """A node above leaves or other nodes. `firsts` holds the first name below each child, `size` counts all names."""

    __slots__ = ("children", "firsts", "size")

    def __init__(self, children: tuple[_Node, ...], firsts: tuple[str, ...], size: int) -> None:
        self.children = children
        self.firsts = firsts
        self.size = size

    def with_child(self, at: int, child: _Node) -> _Inner:
        """The node with this child in the place of one of its own."""
        children, firsts, first = self.children, self.firsts, _first(child)
        if firsts[at] != first:
            firsts = (*firsts[:at], first, *firsts[at + 1 :])
        size = self.size - _size(children[at]) + _size(child)
        return _Inner((*children[:at], child, *children[at + 1 :]), firsts, size)


_Leaf = tuple[str, ...]
_Node = _Leaf | _Inner


class SortedNames(Collection[str]):
    """An immutable set of names, iterated in ascending order.

    `len` is O(1); membership and `edit` of one name are O(log n); iteration from any name on begins after O(log n)
    steps. Equal to a `SortedNames` or a tuple with the same names in the same order.
    """

    __slots__ = ("_root",)

    def __init__(self, root: _Node = ()) -> None:
        self._root = root

    @classmethod
    def from_sorted(cls, names: Sequence[str]) -> SortedNames:
        """The set of these names, which ascend without repetition, in O(n)."""
        return cls(_root_over(_pieces(tuple(names), LEAF_LIMIT, _FILL)))

    def __len__(self) -> int:
        return _size(self._root)

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        node = self._root
        while isinstance(node, _Inner):
            node = node.children[max(bisect_right(node.firsts, name) - 1, 0)]
        at = bisect_left(node, name)
        return at < len(node) and node[at] == name

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self.leaves())

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, SortedNames | tuple):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"SortedNames({list(self)!r})"

    def starting_at(self, name: str) -> Iterator[str]:
        """The names from `name` on, which is among them if it is in the set."""
        return chain.from_iterable(_leaves_from(self._root, name, bisect_left))

    def after(self, name: str) -> Iterator[str]:
        """The names that follow `name`."""
        return chain.from_iterable(_leaves_from(self._root, name, bisect_right))

    def first(self, count: int, *, after: str | None = None) -> list[str]:
        """The first `count` names, of those that follow `after` if it is given. Copies leaves, not single names."""
        names: list[str] = []
        for leaf in self.leaves() if after is None else _leaves_from(self._root, after, bisect_right):
            names += leaf
            if len(names) >= count:
                break
        del names[count:]
        return names

    def edit(self, *, add: Iterable[str] = (), remove: Iterable[str] = ()) -> SortedNames:
        """The set with the names of `add` and without those of `remove`; a name in both is there afterwards.

        Returns the set itself when nothing changes. k names cost O(k log n), and touch O(k log n) nodes.
        """
        added = frozenset(add)
        names = sorted(added.union(remove))
        if not names:
            return self
        replaced = _edit(self._root, names, 0, len(names), added)
        if len(replaced) == 1 and replaced[0] is self._root:
            return self
        return SortedNames(_root_over(replaced))

    def leaves(self) -> Iterator[tuple[str, ...]]:
        """The leaves in order, as they are shared between versions of the set. An empty set may have none."""
        return _leaves(self._root)


def _size(node: _Node) -> int:
    return node.size if isinstance(node, _Inner) else len(node)


def _first(node: _Node) -> str:
    return node.firsts[0] if isinstance(node, _Inner) else node[0]


def _width(node: _Node) -> int:
    """The number of names in a leaf, of children in an inner node."""
    return len(node.children) if isinstance(node, _Inner) else len(node)


def _root_over(nodes: Sequence[_Node]) -> _Node:
    """One node above these, which lie at the same depth."""
    while len(nodes) > 1:
        nodes = _parents_of(tuple(nodes))
    root: _Node = nodes[0] if nodes else ()
    while isinstance(root, _Inner) and len(root.children) == 1:
        root = root.children[0]
    return root


def _parents_of(children: tuple[_Node, ...]) -> list[_Node]:
    """The inner nodes above these, as few as their width allows."""
    return [
        _Inner(group, tuple([_first(child) for child in group]), sum(map(_size, group)))
        for group in _pieces(children, NODE_LIMIT, _FILL)
    ]


def _pieces(items: tuple[T, ...], limit: int, fill: int) -> list[tuple[T, ...]]:
    """The items in one piece if that is within the limit, else in even pieces of about `fill`."""
    if len(items) <= limit:
        return [items] if items else []
    count = -(-len(items) // fill)
    bounds = [len(items) * at // count for at in range(count + 1)]
    return [items[begin:end] for begin, end in pairwise(bounds)]


def _edit(node: _Node, names: list[str], begin: int, end: int, added: frozenset[str]) -> list[_Node]:
    """What takes the place of a node, at the same depth, when `names[begin:end]` are added or removed below it."""
    if isinstance(node, _Inner):
        return _edit_inner(node, names, begin, end, added)
    if end - begin == 1:
        name = names[begin]
        at = bisect_left(node, name)
        there = at < len(node) and node[at] == name
        if there is (name in added):
            return [node]
        leaf = (*node[:at], *node[at + 1 :]) if there else (*node[:at], name, *node[at:])
    else:
        changed = names[begin:end]
        left = set(node).difference(changed)
        left.update(name for name in changed if name in added)
        leaf = tuple(sorted(left))
        if leaf == node:
            return [node]
    return [*_pieces(leaf, LEAF_LIMIT, _FILL)]


def _edit_inner(node: _Inner, names: list[str], begin: int, end: int, added: frozenset[str]) -> list[_Node]:
    edits: list[tuple[int, list[_Node]]] = []
    while begin < end:
        at = max(bisect_right(node.firsts, names[begin]) - 1, 0)
        stop = end if at + 1 == len(node.firsts) else bisect_left(names, node.firsts[at + 1], begin, end)
        replaced = _edit(node.children[at], names, begin, stop, added)
        if len(replaced) != 1 or replaced[0] is not node.children[at]:
            edits.append((at, replaced))
        begin = stop
    if not edits:
        return [node]
    at, replaced = edits[0]
    if len(edits) == 1 and len(replaced) == 1 and _width(replaced[0]) >= _JOIN_BELOW:
        return [node.with_child(at, replaced[0])]
    children: list[_Node] = []
    firsts: list[str] = []
    kept, size, narrow = 0, node.size, False
    for at, replaced in edits:
        children += node.children[kept:at]
        children += replaced
        firsts += node.firsts[kept:at]
        firsts += map(_first, replaced)
        size += sum(map(_size, replaced)) - _size(node.children[at])
        narrow = narrow or any(_width(child) < _JOIN_BELOW for child in replaced)
        kept = at + 1
    children += node.children[kept:]
    firsts += node.firsts[kept:]
    if narrow:
        return _parents_of(tuple(_joined(children)))
    if not 0 < len(children) <= NODE_LIMIT:
        return _parents_of(tuple(children))
    return [_Inner(tuple(children), tuple(firsts), size)]


def _joined(children: list[_Node]) -> list[_Node]:
    """The same nodes, those that became small joined with a neighbour."""
    if len(children) < 2 or min(map(_width, children)) >= _JOIN_BELOW:
        return children
    joined = [children[0]]
    for child in children[1:]:
        before = joined[-1]
        if _width(before) >= _JOIN_BELOW and _width(child) >= _JOIN_BELOW:
            joined.append(child)
        else:
            joined[-1:] = _join(before, child)
    return joined


def _join(left: _Node, right: _Node) -> Sequence[_Node]:
    if isinstance(left, _Inner) and isinstance(right, _Inner):
        return _parents_of(tuple(_joined([*left.children, *right.children])))
    if isinstance(left, _Inner) or isinstance(right, _Inner):
        raise TypeError("nodes of different depths")
    return _pieces((*left, *right), LEAF_LIMIT, _FILL)


def _leaves(node: _Node) -> Iterator[_Leaf]:
    if isinstance(node, _Inner):
        for child in node.children:
            yield from _leaves(child)
    elif node:
        yield node


def _leaves_from(node: _Node, name: str, bisect: Callable[[_Leaf, str], int]) -> Iterator[_Leaf]:
    """The leaves with the names from `name` on (`bisect_left`) or behind it (`bisect_right`), without those before."""
    if isinstance(node, _Inner):
        at = max(bisect_right(node.firsts, name) - 1, 0)
        yield from _leaves_from(node.children[at], name, bisect)
        for child in node.children[at + 1 :]:
            yield from _leaves(child)
    else:
        yield node[bisect(node, name) :]
