"""The one module of the client that calls pylance: it computes what an operation does, writes the files, and describes
them as an operation of the engine. It never commits, and nothing that it writes is visible before somebody does.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import lance
import numpy as np
import pyarrow as pa
from lance.fragment import write_fragments
from pyroaring import BitMap

from lance_core.data import fragment_message, schema_fields
from lance_core.format.manifest import ManifestFile, serialized_manifest
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.fields import descendants
from lance_core.transaction.indices import covered_fragments
from lance_core.transaction.operations import CreateIndex, Delete, Merge, Overwrite, Update
from lance_core.transaction.row_ids import encode_row_ids
from namespace_client.descriptions import delete_operation, new_fragments, overwrite_operation, update_operation
from namespace_client.errors import InvalidCall
from namespace_client.merging import MergeClauses

MAX_CLAIMED_KEYS = 65_536
"""So many keys a merge claims one by one; of more it is too large a message, and the table's version is asserted."""

_ADDRESS = "_rowaddr"
_ROW_ID = "_rowid"
_OFFSET_BITS = 32
_COMMITTING = (
    *("add_bases", "add_columns", "alter_columns", "cleanup_old_versions", "commit_existing_index_segments"),
    *("create_branch", "create_index", "create_scalar_index", "delete", "delete_config_keys", "drop_columns"),
    *("drop_index", "initialize_mem_wal", "insert", "mem_wal_writer", "merge", "merge_insert"),
    *("migrate_manifest_paths_v2", "optimize", "replace_field_metadata", "replace_schema", "replace_schema_metadata"),
    *("restore", "truncate_table", "update", "update_config", "update_field_metadata", "update_metadata"),
    "update_schema_metadata",
)


class ReadOnlyTable(lance.LanceDataset):  # type: ignore[misc]
    """Pylance's handle on a version, for reading.

    What it would commit goes around the transaction; and from a version that is not published, it makes the table
    unreadable. So its methods that commit raise `InvalidCall`. `lance.write_dataset` must not be given it either.
    """


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(*_: object, **__: object) -> Any:
        raise InvalidCall(f"{name} on a handle of a transaction: it is for reading; call the transaction's methods")

    return refuse


for _name in _COMMITTING:
    setattr(ReadOnlyTable, _name, property(_refusing(_name)) if _name == "optimize" else _refusing(_name))


def open_version(uri: str, version: int, options: Mapping[str, str]) -> lance.LanceDataset:
    """A handle for reading on a published version; `uri` is the root of its table or branch."""
    return ReadOnlyTable(uri, version=version, storage_options=dict(options) or None)


def open_local(uri: str, file: ManifestFile, options: Mapping[str, str]) -> lance.LanceDataset:
    """A handle for reading on a version that only this process knows. It does not see the indices."""
    return ReadOnlyTable(uri, serialized_manifest=serialized_manifest(file), storage_options=dict(options) or None)


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge does, how many rows it touches; `guard` says why its keys are not all claimed one by one."""

    operation: Update | Delete
    inserted: int
    updated: int
    deleted: int
    guard: str | None


def reader_of(data: Any, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
    """Rows as a stream: an Arrow table, batch, reader, dataset or scanner, a pandas DataFrame, a list or dict of rows.

    `schema` is that of rows that bring none. Raises `InvalidCall` for anything else.
    """
    match data:
        case pa.RecordBatchReader():
            return data
        case pa.Table():
            return data.to_reader()
        case pa.RecordBatch():
            return pa.Table.from_batches([data]).to_reader()
        case list():
            named = dict.fromkeys(name for row in data for name in row)
            return pa.Table.from_pylist(data, schema=_part_of(schema, named)).to_reader()
        case dict():
            return pa.table(data, schema=_part_of(schema, data)).to_reader()
        case lance.LanceDataset():
            return data.scanner().to_reader()
        case _ if hasattr(data, "to_reader"):
            return data.to_reader()
        case _ if hasattr(data, "scanner"):
            return data.scanner().to_reader()
        case _ if hasattr(data, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(data)
    raise InvalidCall(f"rows of type {type(data).__name__}: expected Arrow data, a DataFrame, a list or dict of rows")


def _part_of(schema: pa.Schema | None, names: Iterable[str]) -> pa.Schema | None:
    """The types of the columns that rows name: those that they do not name are left out, and not set to null."""
    wanted = list(names)
    if schema is None or not wanted or not all(name in schema.names for name in wanted):
        return schema if not wanted else None
    return pa.schema([schema.field(name) for name in wanted])


def stage_rows(dataset: lance.LanceDataset, data: Any) -> tuple[pb.DataFragment, ...]:
    """New fragments with these rows, in the schema of the table; none for no rows."""
    return new_fragments(write_fragments(reader_of(data, dataset.schema), dataset, mode="append"))


def stage_table(
    uri: str, data: Any, schema: pa.Schema | None, data_version: str, options: Mapping[str, str], *, exists: bool
) -> Overwrite:
    """These rows, with their schema (or `schema`), as the whole of a table. Without rows a schema is enough."""
    if data is None:
        if schema is None:
            raise InvalidCall("a table needs rows or a schema, found neither")
        data = schema.empty_table()
    reader = reader_of(data, schema)
    if schema is not None and reader.schema != schema:
        reader = pa.RecordBatchReader.from_batches(schema, _cast(reader, schema))
    stored = reader.schema
    fragments = write_fragments(
        reader,
        uri,
        mode="overwrite" if exists else "create",
        data_storage_version=data_version,
        storage_options=dict(options) or None,
    )
    return overwrite_operation(stored, fragments)


def stage_delete(dataset: lance.LanceDataset, predicate: str) -> tuple[Delete, int]:
    """The rows that match, marked as deleted, and their number."""
    scanner = dataset.scanner(columns=[], filter=predicate, with_row_address=True)
    offsets: defaultdict[int, list[int]] = defaultdict(list)
    rows = 0
    for batch in scanner.to_reader():
        rows += batch.num_rows
        _collect(offsets, batch.column(_ADDRESS))
    updated, removed = _without_rows(dataset, offsets)
    return Delete(updated, removed, predicate), rows


def stage_update(
    dataset: lance.LanceDataset, manifest: pb.Manifest, assignments: Mapping[str, str], where: str | None
) -> tuple[Update, int]:
    """The rows that match, written again with new values (SQL expressions by column), and their number."""
    schema = dataset.schema
    unknown = [name for name in assignments if name not in schema.names]
    if unknown or not assignments:
        raise InvalidCall(f"update of columns {list(assignments)}: expected some of {schema.names}")
    blobs = [field.name for field in manifest.fields if _is_blob(field)]
    if blobs:
        raise InvalidCall(f"update of rows with blob columns {blobs}, which cannot be written again; use merge")
    stable = dataset.has_stable_row_ids
    columns = {name: assignments.get(name, f"`{name}`") for name in schema.names}
    scanner = dataset.scanner(columns=columns, filter=where, with_row_address=True, with_row_id=stable)
    offsets: defaultdict[int, list[int]] = defaultdict(list)
    ids: list[np.ndarray[Any, np.dtype[np.uint64]]] = []

    def moved() -> Iterator[pa.RecordBatch]:
        for batch in scanner.to_reader():
            _collect(offsets, batch.column(_ADDRESS))
            if stable:
                ids.append(batch.column(_ROW_ID).to_numpy())
            yield _fit(batch, schema)

    reader = pa.RecordBatchReader.from_batches(schema, moved())
    new = new_fragments(write_fragments(reader, dataset, mode="append"))
    if stable:
        new = _with_row_ids(new, np.concatenate(ids) if ids else np.empty(0, np.uint64))
    updated, removed = _without_rows(dataset, offsets)
    changed = descendants(manifest.fields, {field.id for field in manifest.fields if _is_top(field, assignments)})
    return Update(updated, removed, new, value_fields=tuple(sorted(changed))), sum(map(len, offsets.values()))


def stage_merge(dataset: lance.LanceDataset, manifest: pb.Manifest, data: Any, clauses: MergeClauses) -> Merged:
    """Rows merged into the table by key (`merge_insert`)."""
    on = list(clauses.on)
    unknown = [name for name in on if name not in dataset.schema.names]
    if unknown or not on:
        raise InvalidCall(f"merge on {on}: expected columns among {dataset.schema.names}")
    source = reader_of(data, dataset.schema)
    missing = [name for name in on if name not in source.schema.names]
    if missing:
        raise InvalidCall(f"merge on {on}: the rows have no column {missing[0]!r}, only {source.schema.names}")
    builder = _merge_builder(dataset, clauses)
    hashes: set[int] = set()

    def seen() -> Iterator[pa.RecordBatch]:
        for batch in source:
            if clauses.inserts and len(hashes) <= MAX_CLAIMED_KEYS:
                hashes.update(_key_hashes(batch, on))
            yield batch

    transaction, counts = builder.execute_uncommitted(pa.RecordBatchReader.from_batches(source.schema, seen()))
    inserted, updated, deleted = (int(counts[f"num_{kind}_rows"]) for kind in ("inserted", "updated", "deleted"))
    operation = transaction.operation
    if isinstance(operation, lance.LanceOperation.Delete):
        gone = delete_operation(operation.updated_fragments, operation.deleted_fragment_ids, operation.predicate)
        return Merged(gone, inserted, updated, deleted, None)
    claim, guard = None, None
    if clauses.inserts and inserted:
        if len(hashes) > MAX_CLAIMED_KEYS:
            guard = f"it inserts some of more than {MAX_CLAIMED_KEYS} keys, too many to compare with those of others"
        else:
            fields = {field.name: field.id for field in manifest.fields if field.parent_id == -1}
            claim = pb.Transaction.KeyExistenceFilter(field_ids=[fields[name] for name in on])
            claim.exact.key_hashes.extend(sorted(hashes))
    return Merged(update_operation(operation, claim), inserted, updated, deleted, guard)


def _merge_builder(dataset: lance.LanceDataset, clauses: MergeClauses) -> Any:
    builder = lance.LanceDataset.merge_insert(dataset, list(clauses.on))
    match clauses.matched:
        case "update":
            builder = builder.when_matched_update_all(clauses.condition)
        case "fail":
            builder = builder.when_matched_fail()
        case "delete":
            builder = builder.when_matched_delete()
    if clauses.inserts:
        builder = builder.when_not_matched_insert_all()
    if clauses.not_matched_by_source == "delete":
        builder = builder.when_not_matched_by_source_delete(clauses.delete_condition)
    return builder


def stage_columns(
    dataset: lance.LanceDataset, manifest: pb.Manifest, columns: Any, read_columns: Sequence[str] | None
) -> Merge:
    """The table with columns added: SQL expressions by name, a function over batches, or a schema for all nulls."""
    if isinstance(columns, pa.Field):
        columns = pa.schema([columns])
    if isinstance(columns, (Mapping, pa.Schema)):
        _check_new_names(dataset.schema.names, columns if isinstance(columns, Mapping) else columns.names)
    fragments = dataset.get_fragments()
    if isinstance(columns, Mapping) and not fragments:
        computed = dataset.scanner(columns=dict(columns)).to_table().schema
        columns = pa.schema([computed.field(name).with_nullable(True) for name in columns])
    if isinstance(columns, pa.Schema):
        added = _renumbered(schema_fields(columns), _next_field_id(manifest))
        return _with_fields(manifest, (*manifest.fields, *added), tuple(manifest.fragments))
    if not fragments:
        raise InvalidCall("columns computed by a function for a table without rows: give a schema instead")
    read = None if read_columns is None else list(read_columns)
    made = [fragment.merge_columns(columns, columns=read) for fragment in fragments]
    _, (_, *fields) = made[0][1].__reduce__()
    return _with_fields(
        manifest,
        tuple(pb.Field.FromString(field) for field in fields),
        tuple(fragment_message(fragment) for fragment, _ in made),
    )


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
    """An index over all rows of the table as it is here, as one segment."""
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


def _collect(offsets: defaultdict[int, list[int]], addresses: pa.Array) -> None:
    numbers = addresses.to_numpy()
    fragments = numbers >> np.uint64(_OFFSET_BITS)
    for fragment in np.unique(fragments):
        chosen = numbers[fragments == fragment] & np.uint64((1 << _OFFSET_BITS) - 1)
        offsets[int(fragment)] += chosen.tolist()


def _without_rows(
    dataset: lance.LanceDataset, offsets: Mapping[int, Sequence[int]]
) -> tuple[tuple[pb.DataFragment, ...], tuple[int, ...]]:
    """Fragments with complete deletion files for these rows and those before, and the fragments with no row left."""
    updated: list[pb.DataFragment] = []
    removed: list[int] = []
    for identifier in sorted(offsets):
        left = dataset.get_fragment(identifier).delete_rows(offsets[identifier])
        if left is None:
            removed.append(identifier)
        else:
            updated.append(fragment_message(left))
    return tuple(updated), tuple(removed)


def _with_row_ids(
    fragments: tuple[pb.DataFragment, ...], ids: np.ndarray[Any, np.dtype[np.uint64]]
) -> tuple[pb.DataFragment, ...]:
    """The rows kept their order, and their ids go with them."""
    start = 0
    for fragment in fragments:
        fragment.inline_row_ids = encode_row_ids(ids[start : start + fragment.physical_rows])
        start += fragment.physical_rows
    return fragments


def _fit(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [batch.column(field.name).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(reader: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    absent = [name for name in schema.names if name not in reader.schema.names]
    surplus = [name for name in reader.schema.names if name not in schema.names]
    if absent or surplus:
        raise InvalidCall(f"rows with columns {reader.schema.names}: expected {schema.names}")
    for batch in reader:
        yield _fit(batch, schema)


def _key_hashes(batch: pa.RecordBatch, on: Sequence[str]) -> Iterator[int]:
    """64 bits for each key. Pylance merges only rows whose keys have the types of the table."""
    for key in zip(*(batch.column(name).to_pylist() for name in on), strict=True):
        yield int.from_bytes(hashlib.blake2b(repr(key).encode(), digest_size=8).digest(), "big")


def _is_blob(field: pb.Field) -> bool:
    return "lance-encoding:blob" in field.metadata or field.extension_name.startswith("lance.blob")


def _is_top(field: pb.Field, names: Mapping[str, str]) -> bool:
    return field.parent_id == -1 and field.name in names


def _next_field_id(manifest: pb.Manifest) -> int:
    """Ids of dropped columns still stand in data files, and are not used again."""
    used = {field.id for field in manifest.fields}
    for fragment in manifest.fragments:
        for file in fragment.files:
            used.update(file.fields)
    return max(used, default=-1) + 1


def _renumbered(fields: Sequence[pb.Field], first: int) -> list[pb.Field]:
    for field in fields:
        field.id += first
        if field.parent_id != -1:
            field.parent_id += first
    return list(fields)


def _check_new_names(present: Sequence[str], wanted: Iterable[str]) -> None:
    names = list(wanted)
    double = [name for name in names if name in present]
    if double or not names:
        raise InvalidCall(f"new columns {names}: expected some that are not among {list(present)}")


def _with_fields(manifest: pb.Manifest, fields: tuple[pb.Field, ...], fragments: tuple[pb.DataFragment, ...]) -> Merge:
    before = {field.id for field in manifest.fields}
    nullable = all(field.nullable for field in fields if field.id not in before)
    return Merge(fragments, fields, preserves_nullability=nullable)


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
