"""Which indices of a version are worth work. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyroaring import BitMap

from lance_core.format.deletion import live_row_count
from lance_core.format.manifest import ManifestFile
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.indices import FRAGMENT_REUSE, SYSTEM_INDICES, covered_fragments
from namespace_server.directory.maintenance.policy import Policy

_NONE: Final = pb.IndexSection()


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """The plan of an optimisation of the indices of a version.

    Attributes:
        names: The indices whose segments, and the rows that they do not cover, become one segment.
        rows: Rows that these indices do not cover. What several do not cover counts several times.
    """

    names: tuple[str, ...]
    rows: int


def plan_indices(file: ManifestFile, policy: Policy) -> IndexPlan | None:
    """The indices that are worth work; None if there are none.

    An index is left alone if it has a segment that does not say which fragments it covers, and so are all indices of a
    version whose indices refer to fragments from before a compaction. Raises `CorruptFile` for a manifest that cannot
    be decoded.
    """
    section = file.indices or _NONE
    names = {index.name for index in section.indices}
    if not policy.optimize_indices or FRAGMENT_REUSE in names or not names - SYSTEM_INDICES:
        return None
    live = {fragment.id: live_row_count(fragment) for fragment in file.manifest.fragments}
    least = max(policy.unindexed_rows, policy.unindexed_share * sum(live.values()))
    chosen, rows = [], 0
    for name in sorted(names - SYSTEM_INDICES):
        segments = [index for index in section.indices if index.name == name]
        if not all(index.fragment_bitmap for index in segments):
            continue
        covered = BitMap().union(*map(covered_fragments, segments))
        uncovered = sum(count for fragment, count in live.items() if fragment not in covered)
        if uncovered >= least or len(segments) > policy.max_segments:
            chosen.append(name)
            rows += uncovered
    return IndexPlan(tuple(chosen), rows) if chosen else None
