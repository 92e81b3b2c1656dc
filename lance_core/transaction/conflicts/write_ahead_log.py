"""Conflict rules for UpdateMemWalState: the generations of the write-ahead log's shards are compared."""

from __future__ import annotations

from collections.abc import Iterable

from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.conflicts.verdicts import COMPATIBLE, Verdict, incompatible, retryable
from lance_core.transaction.operations import UpdateMemWalState

_INDEPENDENT = frozenset({"create_index", "update_config", "rewrite", "reserve_fragments", "update_bases"})


def judge_log_state(ours: UpdateMemWalState, name: str, theirs: pb.Transaction) -> Verdict:
    """The verdict on an UpdateMemWalState: rows may have changed only by merging from the log."""
    match name:
        case "update_mem_wal_state":
            return judge_sstables(ours.compacted_sstables, theirs.update_mem_wal_state.compacted_sstables)
        case "update":
            return judge_sstables(ours.compacted_sstables, theirs.update.compacted_sstables)
    return COMPATIBLE if name in _INDEPENDENT else incompatible(f"it changed rows or schema outside the log ({name})")


def judge_sstables(ours: Iterable[pb.CompactedSsTable], theirs: Iterable[pb.CompactedSsTable]) -> Verdict:
    """The verdict on merging `ours` after `theirs`: in a shard only a later generation may follow, and it is redone."""
    committed = {entry.shard_id.uuid: entry.generation for entry in theirs}
    for entry in ours:
        generation = committed.get(entry.shard_id.uuid)
        if generation is not None:
            shard = entry.shard_id.uuid.hex()
            if generation >= entry.generation:
                return incompatible(f"it already merged generation {generation} of log shard {shard}")
            return retryable(f"it merged generation {generation} of log shard {shard}")
    return COMPATIBLE
