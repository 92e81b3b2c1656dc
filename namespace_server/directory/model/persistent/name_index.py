"""The names of all tables by parts of them: an index of blocks, each with the text of its names and filters of it.

A search looks into the blocks whose sieve has all groups of one, two and three bytes of what is looked for, and there
at the lines whose digests have them. So its time is that of the blocks that may match, not of the tables; and words
that are each in very many names, but never together, pass few digests. An edit makes those blocks anew that it changes,
and shares the rest.

A block of some hundred names takes, for each of them, the bytes of its id, 16 bytes of references, 24 of digests, and
2 to 4 bytes of sieve.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from namespace_server.directory.model.object_ids import DELIMITER, ObjectId

_BLOCK: Final = 512
"""Names of a block that is made; one that an edit makes twice as long is divided."""
_SIEVE_BITS: Final = 13
"""A sieve has two to this power of bits for groups of two and three bytes, and one for each byte."""
_SIEVE_BYTES: Final = ((1 << _SIEVE_BITS) + 256) // 8
_DIGEST_BITS: Final = 6
"""A digest of a line has two to this power of bits for groups of each length."""
_LENGTHS: Final = (1, 2, 3)
"""Bytes of a group."""
_MULTIPLIER: Final = np.uint32(2_654_435_761)
_BEGIN, _PARENT = "\n", "\0"
"""A line of a text: these two around the name, then the namespace."""
_PLAIN: Final = {ord(_BEGIN): " ", ord(_PARENT): " "}

Key = tuple[ObjectId, str]
"""The namespace of a table, and its name in it; the order of the index."""


def _go_on() -> None:
    """Without a pause."""


def words_of(text: str) -> list[str]:
    """The words of what is looked for: what separates names, and spaces, separate them."""
    return text.casefold().translate(_PLAIN).replace(".", " ").replace(DELIMITER, " ").split()


class _Block(NamedTuple):
    """Names in order, each with its namespace; their lines as one text; and, by length of groups, digests of lines."""

    parents: tuple[ObjectId, ...]
    names: tuple[str, ...]
    text: str
    sieve: NDArray[np.uint8]
    digests: NDArray[np.uint64]

    def keys(self) -> list[Key]:
        return list(zip(self.parents, self.names, strict=True))

    def matches(self, pattern: _LinePattern) -> list[int]:
        """The numbers of the lines that match."""
        if pattern.begin and _BEGIN + pattern.begin not in self.text:
            return []
        found: list[int] = np.flatnonzero(((self.digests & pattern.digest) == pattern.digest).all(axis=0)).tolist()
        if found:
            lines = self.text[1:].split(_BEGIN)
            for text in pattern.texts:
                found = [number for number in found if text in lines[number]]
            found = [number for number in found if lines[number].startswith(pattern.begin)]
        return found


class _LinePattern:
    """What a line is to have: a beginning, and texts anywhere in it."""

    __slots__ = ("begin", "bits", "digest", "texts")

    def __init__(self, begin: str, texts: Sequence[str]) -> None:
        self.begin = begin
        self.texts = texts
        hashes = [_hashes(text) for text in (f"{_BEGIN}{begin}", *texts)]
        self.bits = np.unique(np.concatenate([_sieve_bits(each) for each in hashes]))
        self.digest = np.bitwise_or.reduce([_digest(each) for each in hashes])[:, np.newaxis]


class NameIndex:
    """The tables of one catalog version by parts of their names. Immutable."""

    __slots__ = ("_blocks", "_firsts", "_sieves")

    def __init__(self, blocks: Sequence[_Block]) -> None:
        self._blocks = tuple(blocks)
        self._firsts = [(block.parents[0], block.names[0]) for block in blocks]
        self._sieves = np.array([block.sieve for block in blocks], np.uint8).reshape(len(blocks), _SIEVE_BYTES)

    @classmethod
    def of(cls, tables: Iterable[tuple[ObjectId, Iterable[str]]], pause: Callable[[], None] = _go_on) -> NameIndex:
        """The index of the tables below each namespace: namespaces in order, each with its names in order.

        `pause` is called after each block, which takes a fraction of a millisecond.
        """
        blocks: list[_Block] = []
        keys = ((parent, name) for parent, names in tables for name in names)
        while piece := list(islice(keys, _BLOCK)):
            blocks.append(_block(piece))
            pause()
        return cls(blocks)

    def __len__(self) -> int:
        return sum(len(block.names) for block in self._blocks)

    def edited(self, changes: dict[ObjectId, bool], pause: Callable[[], None] = _go_on) -> NameIndex:
        """The index with the tables that are there after some changes, and without those that are not.

        `pause` is called after each block that changes.
        """
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
            pause()
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
        for kind in _kinds(words):
            for path in chain(self.matches(kind, below), beside.matches(kind)):
                if path not in found and (wanted is None or wanted(path)):
                    found[path] = None
                if len(found) >= most:
                    return list(found)
        return list(found)

    def matches(self, pattern: _LinePattern, below: Sequence[ObjectId] | None = None) -> Iterator[ObjectId]:
        """The tables whose line, of name and namespace, matches; see `search`."""
        may = self._may_have(pattern)
        if below is None:
            yield from self._below(np.flatnonzero(may), pattern, ())
            return
        for root in below:
            begin = max(bisect_left(self._firsts, (root, "")) - 1, 0)
            end = bisect_left(self._firsts, ((*root[:-1], root[-1] + _PARENT), "")) if root else len(self._blocks)
            yield from self._below(begin + np.flatnonzero(may[begin:end]), pattern, root)

    def _below(self, blocks: NDArray[np.intp], pattern: _LinePattern, root: ObjectId) -> Iterator[ObjectId]:
        depth = len(root)
        for block in map(self._blocks.__getitem__, blocks.tolist()):
            for number in block.matches(pattern):
                parent = block.parents[number]
                if parent[:depth] == root:
                    yield (*parent, block.names[number])

    def _may_have(self, pattern: _LinePattern) -> NDArray[np.bool_]:
        """Of each block, whether it may have a line that matches."""
        may = np.ones(len(self._blocks), np.bool_)
        for bit in pattern.bits.tolist():
            may &= (self._sieves[:, bit >> 3] >> (bit & 7) & 1).astype(np.bool_)
        return may


def _kinds(words: Sequence[str]) -> list[_LinePattern]:
    """What a line must have to match, best first."""
    if not words:
        return [_LinePattern("", ())]
    *before, last = words
    return [_LinePattern(last + _PARENT, before), _LinePattern(last, before), _LinePattern("", words)]


def _line(parent: ObjectId, name: str) -> str:
    folded = name.casefold()
    return f"{_BEGIN}{folded.translate(_PLAIN)}{_PARENT}{DELIMITER.join(parent).casefold().translate(_PLAIN)}"


def _block(keys: Sequence[Key]) -> _Block:
    parents, names = zip(*keys, strict=True)
    ends: dict[ObjectId, str] = {parent: _PARENT + DELIMITER.join(parent) for parent in dict.fromkeys(parents)}
    text = _BEGIN + _BEGIN.join([name + ends[parent] for parent, name in zip(parents, names, strict=True)])
    text = text.casefold()
    if text.count(_BEGIN) != len(names) or text.count(_PARENT) != len(names):  # names that other writers made
        text = "".join(map(_line, parents, names))
    text += _BEGIN
    hashes = _hashes(text)
    sieve = np.zeros(8 * _SIEVE_BYTES, np.uint8)
    sieve[_sieve_bits(hashes)] = 1
    begins = np.flatnonzero(_codes(text) == ord(_BEGIN))[:-1]
    return _Block(parents, names, text, np.packbits(sieve, bitorder="little"), _digest(hashes, begins))


def _codes(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(errors="replace"), np.uint8)


def _hashes(text: str) -> list[NDArray[np.uint32]]:
    """By their lengths, the hashes of the groups of bytes of a text, in order."""
    codes = _codes(text).astype(np.uint32)
    found, groups = [], np.zeros(len(codes) + 1, np.uint32)
    for length in _LENGTHS:
        groups = groups[:-1] << np.uint32(8) | codes[length - 1 :]
        found.append((groups | np.uint32(length << 24)) * _MULTIPLIER)
    return found


def _sieve_bits(hashes: Sequence[NDArray[np.uint32]]) -> NDArray[np.intp]:
    """The bits of a sieve for groups with these hashes."""
    return np.concatenate([each >> np.uint32(32 - _SIEVE_BITS) for each in hashes]).astype(np.intp)


def _digest(hashes: Sequence[NDArray[np.uint32]], begins: NDArray[np.intp] | None = None) -> NDArray[np.uint64]:
    """The digest of groups with these hashes, a number for each length; with `begins` one for each of these lines."""
    bits = [np.uint64(1) << (each >> np.uint32(32 - _DIGEST_BITS)).astype(np.uint64) for each in hashes]
    if begins is None:
        return np.array([np.bitwise_or.reduce(each) for each in bits], np.uint64)
    return np.array([np.bitwise_or.reduceat(each, begins) for each in bits], np.uint64)


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
    return [_block(keys[begin:end]) for begin, end in pairwise(bounds)]


def _sorted_index(keys: Collection[Key]) -> NameIndex:
    return NameIndex(_divided(sorted(keys)))
