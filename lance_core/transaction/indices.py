"""The index list of a manifest being built."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from google.protobuf.message import DecodeError
from pyroaring import BitMap

from lance_core.errors import InvalidTransaction
from lance_core.format.bitmaps import decode_bitmap
from lance_core.format.outline import AnyManifest
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.fields import descendants
from lance_core.transaction.heads import LAST_FRAGMENT_ID
from lance_core.transaction.operations import CreateIndex

FRAGMENT_REUSE = "__lance_frag_reuse"
MEM_WAL = "__lance_mem_wal"
_MEM_WAL_DETAILS = "/lance.table.MemWalIndexDetails"
_UUID_BYTES = 16
_ROW_ID_KINDS = ("Bitmap", "LabelList", "Inverted", "NGram", "Vector")
_DETAILS = "IndexDetails"
SYSTEM_INDICES = frozenset({FRAGMENT_REUSE, MEM_WAL})
"""Names of indices that hold metadata of the table itself. They index no field."""


def uncover(
    manifest: AnyManifest, indices: pb.IndexSection | None, rewritten: Mapping[int, AbstractSet[int]]
) -> pb.IndexSection | None:
    """Remove fragments from the coverage of indices over columns that were rewritten in those fragments.

    `rewritten` holds the ids of the rewritten fields by fragment id.
    """
    if indices is None or not any(rewritten.values()):
        return indices
    pruned = pb.IndexSection()
    pruned.CopyFrom(indices)
    for index in pruned.indices:
        if index.fragment_bitmap:
            depends_on = indexed_fields(manifest.fields, index)
            stale = coverage(fragment for fragment, fields in rewritten.items() if depends_on & fields)
            if stale:
                index.fragment_bitmap = (covered_fragments(index) - stale).serialize()
    return pruned


def without_dead_indices(manifest: pb.Manifest, indices: pb.IndexSection | None) -> pb.IndexSection | None:
    """Drop indices over fields that the schema no longer has, and segments that no longer cover a fragment.

    If no segment of an index covers a fragment, its oldest segment is kept as an empty index. A vector index cannot be
    empty and is dropped.
    """
    if indices is None:
        return None
    fields = {field.id for field in manifest.fields}
    fragments = coverage(fragment.id for fragment in manifest.fragments)
    by_name: defaultdict[str, list[pb.IndexMetadata]] = defaultdict(list)
    for index in indices.indices:
        if index.name in SYSTEM_INDICES or fields.issuperset(index.fields):
            by_name[index.name].append(index)
    kept: set[bytes] = set()
    for name, segments in by_name.items():
        live = [segment for segment in segments if covered_fragments(segment) & fragments]
        if name in SYSTEM_INDICES:
            live = segments
        elif not live:
            oldest = min(segments, key=lambda segment: segment.dataset_version)
            live = [] if oldest.index_details.type_url.endswith("VectorIndexDetails") else [oldest]
        kept.update(segment.uuid.uuid for segment in live)
    return pb.IndexSection(indices=[index for index in indices.indices if index.uuid.uuid in kept])


def indexed_fields(fields: Iterable[pb.Field], index: pb.IndexMetadata) -> frozenset[int]:
    """Ids of the fields whose values are in an index, including their descendants."""
    return descendants(fields, {*index.fields, *index.covering_fields})


def create_indices(manifest: AnyManifest, indices: pb.IndexSection | None, operation: CreateIndex) -> pb.IndexSection:
    """Remove segments by uuid and add the new ones. Raises `InvalidTransaction` for a malformed segment."""
    fields = {field.id for field in manifest.fields}
    for index in operation.new:
        missing = set(index.fields) - fields
        if missing:
            raise InvalidTransaction(
                f"index {index.name!r} is over field {min(missing)}, which is not in version {manifest.version - 1}"
            )
        if len(index.uuid.uuid) != _UUID_BYTES or not index.name:
            raise InvalidTransaction(f"index {index.name!r}: expected a name and a uuid of {_UUID_BYTES} bytes")
    gone = {index.uuid.uuid for index in (*operation.removed, *operation.new)}
    kept = [index for index in (indices.indices if indices is not None else ()) if index.uuid.uuid not in gone]
    return pb.IndexSection(indices=[*kept, *operation.new])


def coverage(fragments: Iterable[int]) -> BitMap:
    """The fragment ids as a coverage bitmap, without ids that no fragment can have."""
    return BitMap(identifier for identifier in fragments if identifier <= LAST_FRAGMENT_ID)


def covered_fragments(index: pb.IndexMetadata) -> BitMap:
    """Ids of the fragments that a segment covers, existing or not; empty if the segment has no coverage bitmap.

    Raises `CorruptFile` if the bitmap cannot be decoded.
    """
    if not index.fragment_bitmap:
        return BitMap()
    return decode_bitmap(index.fragment_bitmap, f"coverage of index {index.name!r}")


def covers_nothing(index: pb.IndexMetadata) -> bool:
    """Whether an index of vectors is one of too few rows to learn from: it covers no fragment, and has no files.

    Searches look at all rows then. Raises as `covered_fragments` does.
    """
    is_vector = index.index_details.type_url.endswith(".VectorIndexDetails")
    return is_vector and not index.files and bool(index.fragment_bitmap) and not covered_fragments(index)


def holds_row_ids(index: pb.IndexMetadata) -> bool:
    """Whether a segment of a table with stable row ids refers to rows by id, so that it survives moved rows.

    Zone maps, bloom filters and newer B-trees refer to positions in fragments; unknown kinds are assumed to.
    """
    kind = index.index_details.type_url.rpartition(".")[2].removesuffix(_DETAILS)
    return kind in _ROW_ID_KINDS or (kind == "BTree" and not index.index_version)


def record_compaction(
    manifest: AnyManifest, indices: pb.IndexSection | None, sstables: Sequence[pb.CompactedSsTable]
) -> pb.IndexSection | None:
    """Record the merged generation of each log shard in the index of the write-ahead log, created if it is missing.

    Generations never decrease. Raises `InvalidTransaction` if the details of the index cannot be decoded.
    """
    if not sstables:
        return indices
    before = [index for index in (indices.indices if indices is not None else ()) if index.name == MEM_WAL]
    others = [index for index in (indices.indices if indices is not None else ()) if index.name != MEM_WAL]
    details = pb.MemWalIndexDetails()
    if before:
        try:
            details.MergeFromString(before[0].index_details.value)
        except DecodeError as error:
            raise InvalidTransaction(f"index {MEM_WAL!r} has details that cannot be decoded: {error}") from error
    known = {entry.shard_id.uuid: entry for entry in details.compacted_sstables}
    for sstable in sstables:
        entry = known.get(sstable.shard_id.uuid)
        if entry is None:
            entry = known[sstable.shard_id.uuid] = details.compacted_sstables.add(shard_id=sstable.shard_id)
        entry.generation = max(entry.generation, sstable.generation)
    index = pb.IndexMetadata(
        uuid=pb.UUID(uuid=uuid.uuid4().bytes),
        name=MEM_WAL,
        dataset_version=manifest.version,
        index_version=before[0].index_version if before else 0,
        created_at=manifest.timestamp.ToMilliseconds(),
    )
    index.index_details.type_url = _MEM_WAL_DETAILS
    index.index_details.value = details.SerializeToString(deterministic=True)
    return pb.IndexSection(indices=[*others, index])
