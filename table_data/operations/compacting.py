"""Compaction of a table. The namespace specification has no operation for it: maintenance asks for these."""

from __future__ import annotations

from collections.abc import Mapping

from lance_core.compaction import CompactionOptions
from lance_core.transaction.operations import ReserveFragments
from table_data.arrow.body import ArrowBody
from table_data.batch_operations import Json
from table_data.errors import InvalidCall
from table_data.operations.kinds import ChangeKind
from table_data.table_changes import TableChanges


def reserve_fragments(changes: TableChanges, request: Json, _rows: ArrowBody | None) -> Json:
    """Reserve `count` fragment ids, the highest of the version that this commits."""
    changes.require_head()
    changes.take("reserve_fragments", ReserveFragments(request["count"]), message=None)
    return {}


def compact_table(changes: TableChanges, request: Json, _rows: ArrowBody | None) -> Json:
    """Rewrite fragments, and the index segments that cover them. Answers how many.

    `options` are those of `CompactionOptions`. `reserved` has the `first` and the `count` of the fragment ids that were
    reserved for the new fragments of an indexed table. With these ids the change is rebased over commits that do not
    touch the rewritten fragments.
    """

    def reserved(count: int) -> int:
        given = request.get("reserved") or {"first": 0, "count": 0}
        if count > given["count"]:
            raise InvalidCall(f"{changes.name}: expected {count} reserved fragment ids, found {given['count']}")
        return int(given["first"])

    done = changes.compact(CompactionOptions(**request["options"]), message=None, reserve=reserved)
    if done is None:
        return {"removed_fragments": 0, "added_fragments": 0, "rewritten_indices": 0}
    return {
        "removed_fragments": done.removed_fragments,
        "added_fragments": done.added_fragments,
        "rewritten_indices": len(done.transaction.rewrite.rewritten_indices),
    }


CHANGES: Mapping[str, ChangeKind] = {
    "reserve_fragments": ChangeKind(reserve_fragments, repeatable=True, independent=True),
    "compact_table": ChangeKind(compact_table, repeatable=False),
}
