"""The index list that goes with a manifest in the making."""

from __future__ import annotations

from collections import defaultdict

from pyroaring import BitMap

from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.fields import descendants
from lance_core.transaction.operations import Update


def uncover(manifest: pb.Manifest, indices: pb.IndexSection | None, operation: Update) -> pb.IndexSection | None:
    """Take fragments whose indexed columns were rewritten out of the coverage of those indices."""
    if indices is None or not operation.fields_modified or not operation.updated:
        return indices
    modified = set(operation.fields_modified)
    rewritten = BitMap(fragment.id for fragment in operation.updated)
    pruned = pb.IndexSection()
    pruned.CopyFrom(indices)
    for index in pruned.indices:
        depends_on = descendants(manifest.fields, {*index.fields, *index.covering_fields})
        if index.fragment_bitmap and depends_on & modified:
            index.fragment_bitmap = (BitMap.deserialize(index.fragment_bitmap) - rewritten).serialize()
    return pruned


FRAGMENT_REUSE = "__lance_frag_reuse"
MEM_WAL = "__lance_mem_wal"
SYSTEM_INDICES = frozenset({FRAGMENT_REUSE, MEM_WAL})
"""Names of indices that hold the table's own bookkeeping. They index no field."""


def without_dead_indices(manifest: pb.Manifest, indices: pb.IndexSection | None) -> pb.IndexSection | None:
    """Drop indices over fields that the schema no longer has, and segments that no longer cover a fragment.

    Of an index none of whose segments covers any, the oldest segment stays to say that it exists; of a vector index,
    which cannot be empty, none does.
    """
    if indices is None:
        return None
    fields = {field.id for field in manifest.fields}
    fragments = BitMap(fragment.id for fragment in manifest.fragments)
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


def covered_fragments(index: pb.IndexMetadata) -> BitMap:
    """Ids of the fragments that a segment covers, whether they still exist or not; none when it does not say."""
    return BitMap.deserialize(index.fragment_bitmap) if index.fragment_bitmap else BitMap()
