"""The write-ahead log's state against what was committed: by the generations of its shards."""

from __future__ import annotations

from collections.abc import Iterable

from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.conflicts.verdicts import COMPATIBLE, Verdict, incompatible, retryable
from lance_core.transaction.operations import UpdateMemWalState

_INDEPENDENT = frozenset({"create_index", "update_config", "rewrite", "reserve_fragments", "update_bases"})


def judge_log_state(ours: UpdateMemWalState, name: str, theirs: pb.Transaction) -> Verdict:
    """The verdict on an UpdateMemWalState: rows may not have changed but by merging from the log."""
    match name:
        case "update_mem_wal_state":
            return judge_sstables(ours.compacted_sstables, theirs.update_mem_wal_state.compacted_sstables)
        case "update":
            return judge_sstables(ours.compacted_sstables, theirs.update.compacted_sstables)
    return COMPATIBLE if name in _INDEPENDENT else incompatible(f"it changed the table under the log ({name})")


def judge_sstables(ours: Iterable[pb.CompactedSsTable], theirs: Iterable[pb.CompactedSsTable]) -> Verdict:
    """May ours be merged after theirs? Within a shard only a later generation, and that by doing it again."""
    committed = {entry.shard_id.uuid: entry.generation for entry in theirs}
    for entry in ours:
        generation = committed.get(entry.shard_id.uuid)
        if generation is not None:
            shard = entry.shard_id.uuid.hex()
            if generation >= entry.generation:
                return incompatible(f"it already merged generation {generation} of log shard {shard}")
            return retryable(f"it merged generation {generation} of log shard {shard}")
    return COMPATIBLE
