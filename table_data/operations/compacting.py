"""Compaction of a table, and of its indices, for maintenance. The namespace specification has no operation for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.transaction import operations
from table_data.arrow.body import ArrowBody
from table_data.batch_operations import Result
from table_data.errors import InvalidCall
from table_data.table_changes import TableChanges

if TYPE_CHECKING:
    from table_data.requests.table_requests import CompactTable, OptimizeIndices, ReserveFragmentIds


def reserve_fragments(changes: TableChanges, request: ReserveFragmentIds, _rows: ArrowBody | None) -> Result:
    """Reserve `count` fragment ids, the highest of the version that this commits."""
    changes.require_head()
    changes.take("reserve_fragments", operations.ReserveFragments(request["count"]), message=None)
    return {}


def compact_table(changes: TableChanges, request: CompactTable, _rows: ArrowBody | None) -> Result:
    """Rewrite fragments, and the index segments that cover them. Answers how many.

    With the fragment ids that were reserved for the new fragments of an indexed table, the change is rebased over
    commits that do not touch the rewritten fragments.
    """

    def reserved(count: int) -> int:
        given = request["reserved"]
        if count > given["count"]:
            raise InvalidCall(f"{changes.name}: expected {count} reserved fragment ids, found {given['count']}")
        return given["first"]

    done = changes.compact(request["options"], message=None, reserve=reserved)
    if done is None:
        return {"removed_fragments": 0, "added_fragments": 0, "rewritten_indices": 0}
    return {
        "removed_fragments": done.removed_fragments,
        "added_fragments": done.added_fragments,
        "rewritten_indices": len(done.transaction.rewrite.rewritten_indices),
    }


def optimize_indices(changes: TableChanges, request: OptimizeIndices, _rows: ArrowBody | None) -> Result:
    """Make one segment over all rows of each of the indices `names`. Answers how many segments came and went."""
    made = changes.optimize_indices(request["names"], message=None)
    return {
        "added_segments": 0 if made is None else len(made.new),
        "removed_segments": 0 if made is None else len(made.removed),
    }
