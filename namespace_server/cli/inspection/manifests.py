"""Describes a manifest: a summary first, then every field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from lance_core.format.features import READABLE, WRITABLE
from lance_core.format.manifest import ManifestFile
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.features import has_stable_row_ids
from namespace_server.cli.inspection.messages import UNKNOWN_FIELDS, bitmap_values, message_values, timestamp_text
from namespace_server.cli.inspection.transactions import describe_transaction

_FLAG_NAMES = {
    0: "deletion files",
    1: "stable row ids",
    2: "current data files",
    3: "table config",
    4: "base paths",
    5: "no transaction files",
    6: "data overlays",
    7: "covering indices",
    8: "mixed data file versions",
    9: "stable row ids with fragment reuse",
    10: "tagged fragment reuse",
    12: "clustering",
    15: "field ids never reused",
    32: "managed by a catalog server",
    40: "strictly managed by a catalog server",
}
_FOOTER_BYTES = 16
_PREFIX_BYTES = 4


def describe_manifest(file: ManifestFile, data: bytes) -> dict[str, Any]:
    """Describe a parsed manifest file; `data` holds its bytes.

    `content` and `indices` hold every field of the messages; all other entries are derived from them. `findings` lists
    in words what other readers cannot read or would reject.
    """
    manifest = file.manifest
    transaction = None if file.transaction is None else describe_transaction(file.transaction)
    writer = manifest.writer_version
    return {
        "version": file.version,
        "branch": file.branch,
        "timestamp": timestamp_text(file.timestamp_ns) if manifest.HasField("timestamp") else None,
        "writer": f"{writer.library} {writer.version}" if manifest.HasField("writer_version") else None,
        "data_format": f"{manifest.data_format.file_format} {manifest.data_format.version}".strip() or None,
        "sha256": file.identity.sha256,
        "flags": {
            "reader": flag_names(manifest.reader_feature_flags),
            "writer": flag_names(manifest.writer_feature_flags),
        },
        "rows": _rows(manifest),
        "transaction_file": manifest.transaction_file or None,
        "transaction": transaction,
        "indices": [_index(index) for index in (file.indices.indices if file.indices is not None else ())],
        "sections": _sections(manifest, data),
        "content": message_values(manifest),
        "findings": list(_findings(file)),
    }


def flag_names(flags: int) -> list[str]:
    """The names and numbers of the bits that are set."""
    return [f"{_FLAG_NAMES.get(bit, 'unknown')} (bit {bit})" for bit in range(flags.bit_length()) if flags >> bit & 1]


def _rows(manifest: pb.Manifest) -> dict[str, int]:
    physical = sum(fragment.physical_rows for fragment in manifest.fragments)
    deleted = sum(fragment.deletion_file.num_deleted_rows for fragment in manifest.fragments)
    files = sum(len(fragment.files) for fragment in manifest.fragments)
    size = sum(file.file_size_bytes for fragment in manifest.fragments for file in fragment.files)
    return {
        "live": physical - deleted,
        "physical": physical,
        "deleted": deleted,
        "fragments": len(manifest.fragments),
        "data_files": files,
        "data_bytes": size,
        "deletion_files": sum(fragment.HasField("deletion_file") for fragment in manifest.fragments),
    }


def _index(index: pb.IndexMetadata) -> dict[str, Any]:
    content = message_values(index)
    kind = index.index_details.type_url.rpartition(".")[2].removesuffix("IndexDetails")
    covers = bitmap_values(index.fragment_bitmap) if index.fragment_bitmap else None
    return {
        "name": index.name,
        "uuid": content.get("uuid"),
        "type": kind or None,
        "fields": list(index.fields),
        "covers": covers,
        "bytes": sum(file.size_bytes for file in index.files),
        "content": content,
    }


def _sections(manifest: pb.Manifest, data: bytes) -> list[dict[str, Any]]:
    """The offset and size of each section with its length prefix, unchecked, so that gaps and overlaps are visible."""
    begins = {"footer": len(data) - _FOOTER_BYTES}
    begins["manifest"] = int.from_bytes(data[-_FOOTER_BYTES : -_FOOTER_BYTES + 8], "little", signed=True)
    for field, what in (
        ("index_section", "indices"),
        ("transaction_section", "transaction"),
        ("transaction_section_deprecated", "transaction (old field)"),
    ):
        if manifest.HasField(field):
            begins[what] = getattr(manifest, field)
    sections = []
    for what, begin in sorted(begins.items(), key=lambda item: item[1]):
        size = _FOOTER_BYTES
        if what != "footer":
            size = _PREFIX_BYTES + int.from_bytes(data[begin : begin + _PREFIX_BYTES], "little")
        sections.append({"section": what, "offset": begin, "bytes": size})
    return sections


def _findings(file: ManifestFile) -> Iterator[str]:
    manifest = file.manifest
    for word, flags, known in (
        ("reader", manifest.reader_feature_flags, READABLE),
        ("writer", manifest.writer_feature_flags, WRITABLE),
    ):
        if unknown := flags & ~known:
            yield f"{word} flags that this engine does not {word[:4]}: {', '.join(flag_names(unknown))}"
    for name in ("fragment_tree", "clustering", "max_allocated_field_id", "max_clustering_id"):
        if manifest.HasField(name):
            yield f"{name} is set, which this engine does not write"
    if not manifest.HasField("timestamp"):
        yield "no timestamp: time travel by time does not find this version"
    if file.transaction is None:
        where = f"only in {manifest.transaction_file}" if manifest.transaction_file else "nowhere: stale writers fail"
        yield f"the transaction is not in this file, {where}"
    if manifest.HasField("transaction_section") and manifest.HasField("transaction_section_deprecated"):
        yield "the transaction has an offset in both its fields: readers use the newer one"
    yield from _fragment_findings(manifest)
    yield from _schema_findings(manifest)
    if manifest.DESCRIPTOR is not None and message_values(manifest).get(UNKNOWN_FIELDS):
        yield "unknown fields: see unknown_fields; the next commit of any writer drops them"


def _fragment_findings(manifest: pb.Manifest) -> Iterator[str]:
    counts = Counter(fragment.id for fragment in manifest.fragments)
    if twice := sorted(identifier for identifier, count in counts.items() if count > 1):
        yield f"fragment ids that occur more than once, whose rows scans drop: {_few(twice)}"
    if manifest.fragments and manifest.HasField("max_fragment_id") and max(counts) > manifest.max_fragment_id:
        yield f"fragment {max(counts)} is above max_fragment_id {manifest.max_fragment_id}: the next append fails"
    overfull = [
        fragment.id
        for fragment in manifest.fragments
        if fragment.deletion_file.num_deleted_rows > fragment.physical_rows
    ]
    if overfull:
        yield f"fragments with more rows deleted than there are: {_few(overfull)}"
    stable = has_stable_row_ids(manifest)
    bare = [fragment.id for fragment in manifest.fragments if stable and fragment.WhichOneof("row_id_sequence") is None]
    if bare:
        yield f"fragments without row ids, on a table with stable row ids, which no reader opens: {_few(bare)}"
    expected = manifest.data_format.version
    other = [
        fragment.id
        for fragment in manifest.fragments
        for file in fragment.files
        if expected and f"{file.file_major_version}.{file.file_minor_version}" != expected
    ]
    if other:
        yield f"fragments with data files that are not of format {expected}: {_few(other)}"


def _schema_findings(manifest: pb.Manifest) -> Iterator[str]:
    known: set[int] = set()
    for field in manifest.fields:
        if field.parent_id != -1 and field.parent_id not in known:
            yield f"field {field.id} is listed before its parent {field.parent_id}, which no reader opens"
        if field.id in known:
            yield f"field id {field.id} occurs twice"
        known.add(field.id)


def _few(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:10]))
    return shown if len(numbers) <= 10 else f"{shown} and {len(numbers) - 10} more"
