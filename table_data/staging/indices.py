"""New indices of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import lance
from pyroaring import BitMap

from lance_core.format.manifest import ManifestFile
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.indices import covered_fragments
from lance_core.transaction.operations import CreateIndex
from table_data.errors import InvalidCall


def stage_index(
    dataset: lance.LanceDataset,
    file: ManifestFile,
    column: str,
    index_type: str,
    name: str | None,
    *,
    replace: bool,
    parameters: Mapping[str, Any],
) -> CreateIndex:
    """Build an index over all rows of this version, as one segment.

    Raises `InvalidCall` for a table without rows, and for an existing index unless `replace` is set.
    """
    fragments = [fragment.id for fragment in file.manifest.fragments]
    if not fragments:
        raise InvalidCall(f"an index over {column!r} of a table without rows: expected some")
    wanted = name or f"{column}_idx"
    present = [] if file.indices is None else [index for index in file.indices.indices if index.name == wanted]
    if present and not replace:
        raise InvalidCall(f"index {wanted!r} exists; replace=True puts another in its place")
    made = lance.LanceDataset.create_index_uncommitted(
        dataset, column, index_type, name=wanted, replace=True, fragment_ids=fragments, **parameters
    )
    message = _index_message(made)
    if set(covered_fragments(message)) != set(fragments):
        raise AssertionError(f"index {wanted!r} covers {covered_fragments(message)}, expected {fragments}")
    return CreateIndex((message,), tuple(present))


def _index_message(index: Any) -> pb.IndexMetadata:
    kind, details = index.index_details
    message = pb.IndexMetadata(
        uuid=pb.UUID(uuid=bytes.fromhex(str(index.uuid).replace("-", ""))),
        fields=index.fields,
        name=index.name,
        dataset_version=index.dataset_version,
        fragment_bitmap=_bitmap(index.fragment_ids),
        index_version=index.index_version,
        created_at=int(index.created_at.timestamp() * 1000),
        covering_fields=index.covering_fields,
    )
    message.index_details.type_url = kind
    message.index_details.value = details
    for file in index.files or ():
        message.files.add(path=file.path, size_bytes=file.size_bytes)
    if index.base_id is not None:
        message.base_id = index.base_id
    return message


def _bitmap(fragments: Any) -> bytes:
    return bytes(BitMap(fragments).serialize())
