"""The names of all tables by parts of them: an index of blocks, each with the text of its names and a sieve of it.

A search looks into the blocks whose sieve has all groups of one, two and three bytes of what is looked for, and there
at their text; so its time is that of the blocks that may match, not of the tables. An edit makes those blocks anew that
it changes, and shares the rest.

A block of some hundred names takes, for each of them, the bytes of its id, 16 bytes of references, and 2 to 4 bytes of
sieve.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from namespace_server.directory.model.object_ids import DELIMITER, ObjectId

_BLOCK: Final = 512
"""Names of a block that is made; one that an edit makes twice as long is divided."""
_SIEVE_BITS: Final = 13
"""A sieve has two to this power of bits for groups of two and three bytes, and one for each byte."""
_SIEVE_BYTES: Final = ((1 << _SIEVE_BITS) + 256) // 8
_GROUP: Final = 3
_MULTIPLIER: Final = np.uint32(2_654_435_761)
_BEGIN, _PARENT = "\n", "\0"
"""A line of a text: these two around the name, then the namespace."""
_PLAIN: Final = {ord(_BEGIN): " ", ord(_PARENT): " "}

Key = tuple[ObjectId, str]
"""The namespace of a table, and its name in it; the order of the index."""


def words_of(text: str) -> list[str]:
    """The words of what is looked for: what separates names, and spaces, separate them."""
    return text.casefold().translate(_PLAIN).replace(".", " ").replace(DELIMITER, " ").split()


class _Block(NamedTuple):
    """Names in order, each with its namespace, and their lines as one text."""

    parents: tuple[ObjectId, ...]
    names: tuple[str, ...]
    text: str
    sieve: NDArray[np.uint8]

    def keys(self) -> list[Key]:
        return list(zip(self.parents, self.names, strict=True))

    def lines(self, looked_for: str) -> Iterator[tuple[int, str]]:
        """The lines with this text, by their number."""
        text = self.text
        at = text.find(looked_for)
        number = counted = 0
        while 0 <= at < len(text) - 1:  # the last character ends the last line
            begin = at if looked_for[0] == _BEGIN else text.rfind(_BEGIN, 0, at)
            end = text.find(_BEGIN, begin + 1)
            number += text.count(_BEGIN, counted, begin)
            counted = begin
            yield number, text[begin : end + 1]
            at = text.find(looked_for, end)


class NameIndex:
    """The tables of one catalog version by parts of their names. Immutable."""

    __slots__ = ("_blocks", "_firsts", "_sieves")

    def __init__(self, blocks: Sequence[_Block]) -> None:
        self._blocks = tuple(blocks)
        self._firsts = [(block.parents[0], block.names[0]) for block in blocks]
        self._sieves = np.array([block.sieve for block in blocks], np.uint8).reshape(len(blocks), _SIEVE_BYTES)

    @classmethod
    def of(cls, tables: Iterable[tuple[ObjectId, Collection[str]]]) -> NameIndex:
        """The index of the tables below each namespace: namespaces in order, each with its names in order."""
        blocks: list[_Block] = []
        parents: list[ObjectId] = []
        names: list[str] = []
        for parent, below in tables:
            names += below
            parents += [parent] * len(below)
            if len(names) >= _BLOCK:
                whole = len(names) - len(names) % _BLOCK
                blocks += [_block(parents[at : at + _BLOCK], names[at : at + _BLOCK]) for at in range(0, whole, _BLOCK)]
                del parents[:whole], names[:whole]
        if names:
            blocks.append(_block(parents, names))
        return cls(blocks)

    def __len__(self) -> int:
        return sum(len(block.names) for block in self._blocks)

    def edited(self, changes: dict[ObjectId, bool]) -> NameIndex:
        """The index with the tables that are there after some changes, and without those that are not."""
        if not self._blocks:
            return _sorted_index({(path[:-1], path[-1]) for path, there in changes.items() if there})
        by_block: defaultdict[int, dict[Key, bool]] = defaultdict(dict)
        for path, there in changes.items():
            key = (path[:-1], path[-1])
            by_block[max(bisect_right(self._firsts, key) - 1, 0)][key] = there
        blocks: list[_Block] = []
        kept = 0
        for at in sorted(by_block):
            blocks += self._blocks[kept:at]
            blocks += _edited_block(self._blocks[at], by_block[at])
            kept = at + 1
        return NameIndex([*blocks, *self._blocks[kept:]])

    def search(
        self,
        words: Sequence[str],
        most: int,
        *,
        below: Sequence[ObjectId] | None = None,
        beside: NameIndex | None = None,
        wanted: Callable[[ObjectId], bool] | None = None,
    ) -> list[ObjectId]:
        """The tables whose ids have all words, in any case and order; at most `most`, the best first.

        Those that are called as the last word come first, then those whose name begins with it, then the others; of
        each kind in the order of their namespaces, and those of `beside` last.

        Args:
            words: As `words_of` gives them; without any, all tables are found.
            most: How many.
            below: The namespaces below which to look, none of them below another one; everywhere if None.
            beside: Where to look as well: it has no table below one of these namespaces.
            wanted: What else has to be true of a table.
        """
        found: dict[ObjectId, None] = {}
        beside = NameIndex(()) if beside is None else beside
        for first, others in _kinds(words):
            for path in chain(self.matches(first, others, below), beside.matches(first, others)):
                if path not in found and (wanted is None or wanted(path)):
                    found[path] = None
                if len(found) >= most:
                    return list(found)
        return list(found)

    def matches(self, first: str, others: Sequence[str], below: Sequence[ObjectId] | None = None) -> Iterator[ObjectId]:
        """The tables whose line, of name and namespace between separators, has all of these texts; see `search`."""
        may = self._may_have([first, *others])
        if below is None:
            yield from self._below(np.flatnonzero(may), first, others, ())
            return
        for root in below:
            begin = max(bisect_left(self._firsts, (root, "")) - 1, 0)
            end = bisect_left(self._firsts, ((*root[:-1], root[-1] + _PARENT), "")) if root else len(self._blocks)
            yield from self._below(begin + np.flatnonzero(may[begin:end]), first, others, root)

    def _below(self, blocks: NDArray[np.intp], first: str, others: Sequence[str], root: ObjectId) -> Iterator[ObjectId]:
        depth = len(root)
        for block in map(self._blocks.__getitem__, blocks.tolist()):
            for number, line in block.lines(first):
                parent = block.parents[number]
                if parent[:depth] == root and all(word in line for word in others):
                    yield (*parent, block.names[number])

    def _may_have(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Of each block, whether it may have all of these texts in one line."""
        may = np.ones(len(self._blocks), np.bool_)
        for bit in np.unique(np.concatenate([_bits_of(text) for text in texts])).tolist():
            may &= (self._sieves[:, bit >> 3] >> (bit & 7) & 1).astype(np.bool_)
        return may


def _kinds(words: Sequence[str]) -> list[tuple[str, list[str]]]:
    """What a line must have to match, best first: a text to look for, and others that it must have as well."""
    if not words:
        return [(_BEGIN, [])]
    *before, last = words
    rarest = max(words, key=len)
    rest = list(words)
    rest.remove(rarest)
    return [(f"{_BEGIN}{last}{_PARENT}", before), (f"{_BEGIN}{last}", before), (rarest, rest)]


def _line(parent: ObjectId, name: str) -> str:
    folded = name.casefold()
    return f"{_BEGIN}{folded.translate(_PLAIN)}{_PARENT}{DELIMITER.join(parent).casefold().translate(_PLAIN)}"


def _block(parents: Sequence[ObjectId], names: Sequence[str]) -> _Block:
    ends: dict[ObjectId, str] = {parent: _PARENT + DELIMITER.join(parent) for parent in dict.fromkeys(parents)}
    text = _BEGIN + _BEGIN.join([name + ends[parent] for parent, name in zip(parents, names, strict=True)])
    text = text.casefold()
    if text.count(_BEGIN) != len(names) or text.count(_PARENT) != len(names):  # names that other writers made
        text = "".join(map(_line, parents, names))
    text += _BEGIN
    sieve = np.zeros(8 * _SIEVE_BYTES, np.uint8)
    sieve[_bits_of(text)] = 1
    return _Block(tuple(parents), tuple(names), text, np.packbits(sieve, bitorder="little"))


def _bits_of(text: str) -> NDArray[np.uint32]:
    """The bits of a sieve for all groups of one, two and three bytes of a text."""
    codes = np.frombuffer(text.encode(errors="replace"), np.uint8).astype(np.uint32)
    return np.concatenate([_bits(codes, length) for length in range(1, _GROUP + 1)])


def _bits(codes: NDArray[np.uint32], length: int) -> NDArray[np.uint32]:
    """Those for groups of so many bytes: a bit of its own for each byte, hashed ones for the others."""
    if length == 1:
        return codes + np.uint32(1 << _SIEVE_BITS)
    count = max(len(codes) - length + 1, 0)
    groups = np.full(count, length, np.uint32)
    for at in range(length):
        groups = groups << np.uint32(8) | codes[at : at + count]
    return groups * _MULTIPLIER >> np.uint32(32 - _SIEVE_BITS)


def _edited_block(block: _Block, changes: dict[Key, bool]) -> list[_Block]:
    left = block.keys()
    for key, there in changes.items():
        at = bisect_left(left, key)
        if (at < len(left) and left[at] == key) is not there:
            left[at : at + (not there)] = [key] if there else []
    return _divided(left)


def _divided(keys: Sequence[Key]) -> list[_Block]:
    """Blocks of these names: one, as long as it is not twice as long as others are made."""
    if not keys:
        return []
    count = 1 if len(keys) <= 2 * _BLOCK else -(-len(keys) // _BLOCK)
    bounds = [len(keys) * at // count for at in range(count + 1)]
    pieces = (keys[begin:end] for begin, end in pairwise(bounds))
    return [_block([parent for parent, _ in piece], [name for _, name in piece]) for piece in pieces]


def _sorted_index(keys: Collection[Key]) -> NameIndex:
    return NameIndex(_divided(sorted(keys)))
