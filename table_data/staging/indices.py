"""New indices of a table."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from math import gcd
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import lance
import pyarrow as pa
from lance.file import LanceFileSession
from lance.indices import IndexConfig
from pyroaring import BitMap

from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import index_directory
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.opening import open_store
from lance_core.transaction.indices import SYSTEM_INDICES, covered_fragments
from lance_core.transaction.operations import CreateIndex
from lance_core.versions import find_latest, read_manifest
from table_data.errors import IndexAlreadyExists, IndexNotFound, InvalidCall
from table_data.staging.index_parameters import SCALAR

_SUB_VECTORS = 16


def stage_index(
    dataset: lance.LanceDataset,
    file: ManifestFile,
    column: str,
    index_type: str,
    name: str | None,
    *,
    replace: bool,
    parameters: Mapping[str, Any],
    empty: bool = False,
) -> CreateIndex:
    """Build an index over all rows of this version, as one segment.

    `index_type` and `parameters` are those of `index_type_of` and `index_arguments`. Without a number of sub-vectors
    there are 16, or fewer where these do not divide the dimension.

    Raises `InvalidCall` for a table without rows unless the index may be `empty`, `IndexAlreadyExists` for an existing
    index unless `replace` is set.
    """
    fragments = [fragment.id for fragment in file.manifest.fragments]
    if not fragments and not empty:
        raise InvalidCall(f"an index over {column!r} of a table without rows: expected some")
    wanted = name or f"{column}_idx"
    if wanted in SYSTEM_INDICES:
        raise InvalidCall(f"index {wanted!r}: expected a name that Lance does not use itself")
    present = segments_of(file, wanted)
    if present and not replace:
        raise IndexAlreadyExists(f"index {wanted!r} exists; replace=True puts another in its place")
    if not fragments and index_type == "BITMAP":
        return CreateIndex((_empty_bitmap(dataset, column, wanted),), tuple(present))
    arguments = dict(parameters)
    if index_type.endswith("PQ"):
        arguments.setdefault("num_sub_vectors", gcd(_dimension(dataset, column), _SUB_VECTORS))
    kind: str | IndexConfig = index_type
    if index_type in SCALAR and index_type != "INVERTED" and arguments:
        kind, arguments = IndexConfig(index_type, arguments), {}
    # Pylance refuses the name of an index over another column, though it is to be replaced: so another name is built.
    made = lance.LanceDataset.create_index_uncommitted(
        dataset, column, kind, name=uuid4().hex, replace=True, fragment_ids=fragments, **arguments
    )
    if fragments and index_type == "INVERTED":
        # Its files are partial until segments, here a single one, are merged.
        made = dataset.merge_existing_index_segments([made])
    message = _index_message(made, wanted)
    covered = set(covered_fragments(message))
    # Of fewer rows than product quantization learns from, pylance makes an index that covers none, and searches all.
    if covered != set(fragments) and not (index_type.endswith("PQ") and not covered):
        raise AssertionError(f"index {wanted!r} covers {covered_fragments(message)}, expected {fragments}")
    return CreateIndex((message,), tuple(present))


def stage_index_removal(file: ManifestFile, name: str) -> CreateIndex:
    """Remove an index. Raises `IndexNotFound`."""
    present = [] if name in SYSTEM_INDICES else segments_of(file, name)
    if not present:
        raise IndexNotFound(f"index {name!r}: expected one of the table's, found none of this name")
    return CreateIndex((), tuple(present))


def default_index_name(file: ManifestFile, field: int, path: str, index_type: str) -> str:
    """The name of an index that was given none: `{path}_idx`, with a number if that is an index of another kind.

    Over the same field, an index of one kind has one name, so that it is not built twice.
    """
    base = f"{path}_idx"
    kind = "vector" if index_type.startswith("IVF") else index_type.replace("_", "").lower()
    for number in itertools.count(1):
        name = base if number == 1 else f"{base}_{number}"
        present = segments_of(file, name)
        if all(list(index.fields) == [field] and _kind(index) == kind for index in present):
            return name
    raise AssertionError("numbers do not end")


def _kind(index: pb.IndexMetadata) -> str:
    return index.index_details.type_url.rpartition(".")[2].removesuffix("IndexDetails").lower()


def segments_of(file: ManifestFile, name: str) -> list[pb.IndexMetadata]:
    """The segments of an index, none if there is no index of this name."""
    return [] if file.indices is None else [index for index in file.indices.indices if index.name == name]


def _empty_bitmap(dataset: lance.LanceDataset, column: str, name: str) -> pb.IndexMetadata:
    """A BITMAP index over no rows.

    Pylance builds it only in a call that commits: in an empty table with the same columns, whose index files are taken.
    """
    with TemporaryDirectory() as directory:
        place, store = f"{directory}/copy", open_store(directory, durability="none")
        copy = lance.write_dataset(
            dataset.schema.empty_table(), place, data_storage_version=dataset.data_storage_version
        )
        copy.create_scalar_index(column, "BITMAP", name=name)
        [made] = segments_of(read_manifest(store, find_latest(store, "copy")), name)
        index = index_directory("", made.uuid.uuid)
        session = LanceFileSession(dataset.uri, dataset.latest_storage_options())
        for each in made.files:
            session.upload_file(f"{place}/{index}/{each.path}", f"{index}/{each.path}")
    made.dataset_version = dataset.version
    made.fields[:] = [dataset.lance_schema.field(column).id()]
    return made


def _dimension(dataset: lance.LanceDataset, column: str) -> int:
    """The dimension of the vectors in a column, or in the lists in it; that of no vectors if it has none."""
    field = dataset.lance_schema.field_case_insensitive(column)
    kind = pa.null() if field is None else field.to_arrow().type
    while pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    return kind.list_size if pa.types.is_fixed_size_list(kind) else _SUB_VECTORS


def _index_message(index: Any, name: str) -> pb.IndexMetadata:
    kind, details = index.index_details
    message = pb.IndexMetadata(
        uuid=pb.UUID(uuid=bytes.fromhex(str(index.uuid).replace("-", ""))),
        fields=index.fields,
        name=name,
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
