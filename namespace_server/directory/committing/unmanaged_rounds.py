"""Unmanaged versions above the heads of a group's chains, from one try to the next (P5). Pure.

A writer by path may commit faster than a group is planned, so that each look at storage shows more than was planned
with. What was found before is adopted then in a flip of its own: the next try has only the rest to read and to check.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from namespace_server.directory.committing.group_planner import FoundAbove
from namespace_server.directory.manifests.stored_versions import FoundVersion
from namespace_server.directory.model.object_ids import ChainKey
from namespace_server.directory.model.snapshot import CatalogSnapshot


@dataclass(frozen=True, slots=True)
class UnmanagedRound:
    """The unmanaged versions with which one try is planned.

    Attributes:
        found: The unmanaged versions above heads, as the last look showed them.
        adopts: Whether the try adopts these, and commits nothing else.
        moving: Chains where a look showed more than the one before it.
        deleted: Branches that a client deleted by path, as far as looks on this snapshot have shown.
    """

    found: FoundAbove = field(default_factory=dict)
    adopts: bool = False
    moving: frozenset[ChainKey] = frozenset()
    deleted: frozenset[ChainKey] = frozenset()

    def following(
        self, above: FoundAbove, *, adopted: bool, judged: Collection[ChainKey], moving: Collection[ChainKey]
    ) -> Self | None:
        """The round of the next try, after a look that showed `above`; None if the try may be committed.

        It may be if nothing has changed. It may also be if more versions came on top of those that it adopts, and none
        of its verdicts rests on those heads (`judged`), or they are given up as `moving`. What came is met by the next
        request for the head, or by promotion, as if it had come after the look (M6).

        Args:
            above: What storage held beside the try.
            adopted: Whether the try adopts anything.
            judged: The chains on whose heads its verdicts rest.
            moving: The chains that were taken to grow all the time when it was planned.
        """
        late = {chain for chain in {*above, *self.found} if not _same(above.get(chain, ()), self.found.get(chain, ()))}
        if not late:
            return None
        grew = all(_begins_with(above.get(chain, ()), self.found.get(chain, ())) for chain in late)
        planned_with = all(self.found.get(chain) for chain in late)
        if grew and (self.adopts or (planned_with and (late.isdisjoint(judged) or late.issubset(moving)))):
            return None
        more = frozenset(late) if planned_with and grew else frozenset()
        return replace(self, found=above, adopts=bool(more) and adopted, moving=self.moving | more)

    def anew(self) -> Self:
        """The first round on a newer snapshot."""
        return replace(self, found={}, adopts=False, deleted=frozenset())

    def adopted_in(self, snapshot: CatalogSnapshot, above: FoundAbove) -> Self:
        """The round after a flip that adopted some of `above`: the rest of it is left."""
        heads = {chain: snapshot.top(*chain) for chain in above}
        left = {
            chain: [each for each in versions if each[1].version > (heads[chain] or (0,))[0]]
            for chain, versions in above.items()
        }
        return replace(self, found={chain: versions for chain, versions in left.items() if versions}, adopts=False)


def _same(one: Sequence[FoundVersion], other: Sequence[FoundVersion]) -> bool:
    """By content: a file that was quarantined may have been followed by another one of its number."""
    return [file.identity for _, file, _ in one] == [file.identity for _, file, _ in other]


def _begins_with(versions: Sequence[FoundVersion], first: Sequence[FoundVersion]) -> bool:
    return _same(versions[: len(first)], first)
