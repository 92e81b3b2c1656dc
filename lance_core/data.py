"""Encodes, decodes and describes rows through pylance. Never commits to a table.

The only module of the engine that imports pylance. Private or undocumented parts of pylance are used in one place each:
the schema conversion of `LanceSchema`, the in-memory store of `LanceFileSession`, the exact commit time of a version.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import lance
import pyarrow as pa
import pyarrow.compute as pc
from lance.file import LanceFileReader, LanceFileSession
from lance.fragment import FragmentMetadata
from lance.optimize import Compaction, CompactionTask, RewriteResult
from lance.schema import LanceSchema

from lance_core.errors import CorruptFile, LanceCoreError, StorageError, UnsupportedFeature
from lance_core.format.manifest import ManifestFile, serialized_manifest
from lance_core.format.schema import check_depth
from lance_core.proto import lance_table_pb2 as pb

DATA_STORAGE_VERSION = "2.2"
"""The data file version of new tables."""

_DICTIONARY = b"dict:"
"""The prefix of the logical type of a dictionary column."""
_COMPRESSION = b"lance-encoding:compression"
T = TypeVar("T")

_DELETION_KINDS = {"array": pb.DeletionFile.ARROW_ARRAY, "bitmap": pb.DeletionFile.BITMAP}
_READ_BATCH_ROWS = 65_536
_DESCRIPTOR = ["kind", "position", "size", "blob_id", "blob_uri"]
_EXTERNAL_BLOB = 3
"""The kind, in the descriptor of a blob, of one that is a file elsewhere."""
_DECODED_BYTES = 16 << 20
_READ_AHEAD_BYTES = 64 << 20
FEW_ROWS = 64
"""Rows of a batch where a column of more of them would have 2 GiB; see `is_too_long`."""
_file_numbers = itertools.count()


def encode_rows(table: pa.Table, version: str = DATA_STORAGE_VERSION) -> bytes:
    """The bytes of an uncompressed data file that holds `table`, built in memory. Thread-safe.

    Not compressed, because training a compressor costs ten times as much as writing a small file. Field metadata that
    requests a compression is respected. Raises `UnsupportedFeature` for a type that the format does not have.
    """
    session = _memory_session()
    name = f"{next(_file_numbers)}.lance"
    schema = pa.schema([_uncompressed(field) for field in table.schema], metadata=table.schema.metadata)
    with _refusals("rows cannot be encoded", UnsupportedFeature):
        writer = session.open_writer(name, schema=schema, version=version)
        writer.write_batch(table.cast(schema))
        writer.close()
    try:
        return bytes(session.read_range(name, 0, writer.size_bytes))
    finally:
        session.delete_file(name)


def read_rows(data: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """All rows of a data file, with the given top-level columns. Raises `CorruptFile` if it cannot be read.

    A few kinds of damage end the process: pylance panics inside of Arrow's C interface, or allocates a damaged length.
    """
    with tempfile.NamedTemporaryFile(prefix="lance-", suffix=".lance") as file:
        file.write(data)
        file.flush()
        with _refusals(f"data file of {len(data)} bytes cannot be read", CorruptFile):
            reader = LanceFileReader(file.name, columns=None if columns is None else list(columns))
            return reader.read_all(batch_size=_READ_BATCH_ROWS).to_table()


def schema_fields(schema: pa.Schema) -> list[pb.Field]:
    """The fields of an Arrow schema for a new table, in pre-order with ids from 0.

    Raises `UnsupportedFeature` for a type that the format does not have.
    """
    with _refusals("schema cannot be stored", UnsupportedFeature):
        _, (_, *fields) = LanceSchema.from_pyarrow(schema).__reduce__()
    return [pb.Field.FromString(field) for field in fields]


def arrow_schema(fields: Iterable[pb.Field], metadata: Mapping[str, bytes] | None = None) -> pa.Schema:
    """The Arrow schema of stored fields; `metadata` is `Manifest.schema_metadata`.

    Raises `UnsupportedFeature` for a logical type that this version of pylance does not support, `CorruptFile` for
    fields that are nested too deeply.
    """
    fields = list(fields)
    check_depth(fields)
    encoded = json.dumps({key: list(value) for key, value in (metadata or {}).items()})
    with _refusals("schema cannot be read", UnsupportedFeature):
        schema = LanceSchema._from_protos(encoded, *(field.SerializeToString() for field in fields))  # noqa: SLF001
        return schema.to_pyarrow()


def fragment_message(fragment: FragmentMetadata) -> pb.DataFragment:
    """The protobuf message of a fragment of pylance. Raises `UnsupportedFeature` if it has data overlays."""
    if fragment.overlays:
        raise UnsupportedFeature(f"fragment {fragment.id} has {len(fragment.overlays)} data overlays, expected none")
    message = pb.DataFragment(
        id=fragment.id, physical_rows=fragment.physical_rows, files=[_data_file(file) for file in fragment.files]
    )
    if (deletion := fragment.deletion_file) is not None:
        message.deletion_file.CopyFrom(_deletion_file(deletion.asdict()))
    if fragment.row_id_meta is not None:
        _set_sequence(message, "row_ids", fragment.row_id_meta.asdict())
    if fragment.created_at_version_meta is not None:
        _set_sequence(message, "created_at_versions", json.loads(fragment.created_at_version_meta.json()))
    if fragment.last_updated_at_version_meta is not None:
        _set_sequence(message, "last_updated_at_versions", json.loads(fragment.last_updated_at_version_meta.json()))
    return message


def open_staged(uri: str, file: ManifestFile, storage_options: Mapping[str, str] | None = None) -> lance.LanceDataset:
    """A pylance handle on a version that need not be published; `uri` is the root of its table or branch.

    It can scan, filter, take rows and stage new fragments. It has no indices. It must never commit: its commit would
    have a wrong number and naming scheme, which makes the table unreadable.
    """
    options = None if storage_options is None else dict(storage_options)
    manifest = serialized_manifest(file)
    return lance.LanceDataset(unpublished_uri(uri, manifest), serialized_manifest=manifest, storage_options=options)


def unpublished_uri(uri: str, manifest: bytes) -> str:
    """The URI through which pylance opens a version whose manifest file may not exist; see `serialized_manifest`.

    Pylance opens the file of the version for each table with a dictionary column, though since version 2.0 of the data
    format no dictionary is in there: it reads nothing. Through its object store interface the file is not opened before
    something is read. Files of a local table are opened at once otherwise.
    """
    scheme, separator, path = uri.partition("://")
    if _DICTIONARY not in manifest or (separator and scheme != "file"):
        return uri
    return f"file-object-store://{path if separator else quote(str(Path(uri).absolute()))}"


def count_staged(
    uri: str, file: ManifestFile, storage_options: Mapping[str, str] | None = None, *, decode: bool = False
) -> int:
    """The rows of a version that a scan by pylance gives; see `open_staged`.

    A scan reads the deletion files; with `decode` also all columns, of blobs their descriptors. Raises `StorageError`
    if it fails. A few kinds of damage in data files end the process instead.
    """
    with _refusals(f"{uri}: version {file.version} cannot be read"):
        return _counted(
            open_staged(uri, file, storage_options),
            columns=None if decode else [],
            with_row_id=True,
            batch_size_bytes=_DECODED_BYTES if decode else None,
        )


def external_blobs(
    uri: str,
    file: ManifestFile,
    columns: Sequence[str],
    fragment: int,
    storage_options: Mapping[str, str] | None = None,
) -> set[tuple[int, str]]:
    """The files outside of a table that values of blob columns name, by their descriptors; deleted rows included.

    Each is the id of a base path of the version and a path below that, or 0 and a URI. `columns` are names of top-level
    columns. See `open_staged`; raises `StorageError`.
    """
    found: set[tuple[int, str]] = set()
    with _refusals(f"{uri}: blobs of version {file.version} cannot be listed"):
        dataset = open_staged(uri, file, storage_options)
        chosen = dataset.get_fragment(fragment)
        batches = dataset.scanner(
            columns=list(columns),
            fragments=[] if chosen is None else [chosen],
            blob_handling="blobs_descriptions",
            with_row_id=True,
            include_deleted_rows=True,
        ).to_batches()
        for batch in batches:
            for name in columns:
                found |= _external_of(batch.column(name))
    return found


def _external_of(column: pa.Array) -> set[tuple[int, str]]:
    """The same of one column, in which descriptors may be nested."""
    kind = column.type
    if isinstance(kind, pa.ExtensionType):
        return _external_of(column.storage)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _external_of(column.flatten())
    if not pa.types.is_struct(kind):
        return set()
    names = [field.name for field in kind]
    if names != _DESCRIPTOR:
        return {each for values in column.flatten() for each in _external_of(values)}
    parts = dict(zip(names, column.flatten(), strict=True))
    is_external = pc.fill_null(pc.equal(parts["kind"], _EXTERNAL_BLOB), False)
    chosen = pa.table({name: pc.filter(parts[name], is_external) for name in ("blob_id", "blob_uri")})
    distinct = chosen.group_by(["blob_id", "blob_uri"]).aggregate([])
    return set(zip(distinct["blob_id"].to_pylist(), distinct["blob_uri"].to_pylist(), strict=True))


def open_published(uri: str, version: int, storage_options: Mapping[str, str] | None = None) -> lance.LanceDataset:
    """A pylance handle on a published version; `uri` is the root of its table or branch."""
    return lance.dataset(
        uri, version=version, storage_options=None if storage_options is None else dict(storage_options)
    )


def plan_compaction(dataset: lance.LanceDataset, options: Mapping[str, Any]) -> list[str]:
    """Compaction tasks as pylance's JSON, each for a group of neighbouring fragments. Writes nothing."""
    with _refusals(f"{dataset.uri}: compaction cannot be planned"):
        return [task.json() for task in Compaction.plan(dataset, dict(options)).tasks]


def execute_compaction(dataset: lance.LanceDataset, task: str) -> str:
    """Write the data files of a compaction task. Returns its result as pylance's JSON. Commits nothing."""
    with _refusals(f"{dataset.uri}: fragments cannot be compacted"):
        return str(CompactionTask.from_json(task).execute(dataset).json())


def compacted_rows(dataset: lance.LanceDataset, result: str) -> tuple[int, int]:
    """The rows that an executed task was to copy, and those that its new fragments give back; see `decoded_rows`."""
    executed = RewriteResult.from_json(result)
    return sum(each.num_rows for each in executed.original_fragments), decoded_rows(dataset, executed.new_fragments)


def is_too_long(error: Exception) -> bool:
    """Whether pylance says that a column of a batch has more than 2 GiB.

    It guesses the bytes of the first batch from those that are stored, which are far fewer where values are the same.
    """
    return "Offset overflow" in str(error)


def scanned(scan: Callable[[int | None], T]) -> T:
    """The result of a scan, with as many rows in a batch as pylance takes; with few where a column is too long."""
    try:
        return scan(None)
    except Exception as error:
        if not is_too_long(error):
            raise
        return scan(FEW_ROWS)


def _counted(dataset: lance.LanceDataset, **options: Any) -> int:
    """The rows of a scan with these options."""

    def count(most: int | None) -> int:
        return sum(batch.num_rows for batch in dataset.scanner(batch_size=most, **options).to_batches())

    return scanned(count)


def decoded_rows(
    dataset: lance.LanceDataset, fragments: Iterable[FragmentMetadata], columns: Sequence[str] | None = None
) -> int:
    """Read all rows of fragments that no version names yet, and count them. Of blobs only the descriptions are read.

    `dataset` has their schema and place. Takes memory for some batches. Raises `CorruptFile` for what cannot be read.
    """
    new = [fragment for fragment in fragments if fragment.physical_rows]
    if not new:
        return 0
    manifest = pb.Manifest.FromString(dataset._ds.serialized_manifest())  # noqa: SLF001 - what a handle is pickled with
    del manifest.fragments[:]
    manifest.fragments.extend(map(fragment_message, new))
    for number, message in enumerate(manifest.fragments):
        message.id = number
    encoded = serialized_manifest(ManifestFile(b"", manifest, None, None))
    files = ", ".join(file.path for fragment in new for file in fragment.files)
    with _refusals(f"data files {files[:200]} cannot be read again", CorruptFile):
        opened = lance.LanceDataset(
            unpublished_uri(dataset.uri, encoded),
            serialized_manifest=encoded,
            storage_options=dataset._storage_options,  # noqa: SLF001
        )
        chosen = None if columns is None else list(columns)
        return _counted(opened, columns=chosen, batch_size_bytes=_DECODED_BYTES, io_buffer_size=_READ_AHEAD_BYTES)


def rewrite_group(result: str) -> pb.Transaction.Rewrite.RewriteGroup:
    """The old and new fragments of an executed task. The new ones have no ids yet."""
    executed = RewriteResult.from_json(result)
    return pb.Transaction.Rewrite.RewriteGroup(
        old_fragments=[fragment_message(fragment) for fragment in executed.original_fragments],
        new_fragments=[fragment_message(fragment) for fragment in executed.new_fragments],
    )


def commit_to_scratch(dataset: lance.LanceDataset, results: Sequence[str]) -> None:
    """Let pylance commit executed tasks to a temporary clone.

    Never to a table: pylance rewrites index segments only as part of a commit.
    """
    with _refusals(f"{dataset.uri}: indices cannot be rewritten"):
        Compaction.commit(dataset, [RewriteResult.from_json(result) for result in results])


def optimize_scratch_indices(dataset: lance.LanceDataset, names: Sequence[str], merged: int) -> None:
    """Let pylance commit index segments over rows that these indices do not cover, to a temporary clone.

    Never to a table: pylance writes such segments only as part of a commit. Each takes the place of the last `merged`
    segments of its index. Nothing is committed if there is nothing to do.
    """
    with _refusals(f"{dataset.uri}: indices cannot be extended"):
        dataset.optimize.optimize_indices(index_names=list(names), num_indices_to_merge=merged)


@contextmanager
def _refusals(what: str, kind: type[LanceCoreError] = StorageError) -> Iterator[None]:
    """Raise a failure inside pylance as this error. A panic of its native code is not an `Exception`."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, OSError | ValueError | RuntimeError) or type(error).__name__ == "PanicException":
            raise kind(f"{what}: {error}") from error
        raise


@cache
def _memory_session() -> LanceFileSession:
    """An in-memory store, shared by all encoders of this process."""
    return LanceFileSession("memory://")


def _uncompressed(field: pa.Field) -> pa.Field:
    """The field with compression disabled in all its leaves, unless their metadata requests one."""
    metadata = field.metadata or {}
    if _COMPRESSION not in metadata:
        field = field.with_metadata({**metadata, _COMPRESSION: b"none"})
    kind = field.type
    if pa.types.is_struct(kind):
        return field.with_type(pa.struct([_uncompressed(child) for child in kind]))
    if pa.types.is_list(kind):
        return field.with_type(pa.list_(_uncompressed(kind.value_field)))
    if pa.types.is_large_list(kind):
        return field.with_type(pa.large_list(_uncompressed(kind.value_field)))
    return field


def _data_file(file: Any) -> pb.DataFile:
    return pb.DataFile(
        path=str(file.path),
        fields=file.fields,
        column_indices=file.column_indices,
        file_major_version=file.file_major_version,
        file_minor_version=file.file_minor_version,
        file_size_bytes=file.file_size_bytes or 0,
        base_id=file.base_id,
    )


def _deletion_file(deletion: Mapping[str, Any]) -> pb.DeletionFile:
    return pb.DeletionFile(
        file_type=_DELETION_KINDS[deletion["file_type"]],
        read_version=deletion["read_version"],
        id=deletion["id"],
        num_deleted_rows=deletion["num_deleted_rows"],
        base_id=deletion["base_id"],
    )


def _set_sequence(message: pb.DataFragment, name: str, sequence: Mapping[str, Any]) -> None:
    """Set a row sequence from pylance's form `{"inline": [bytes...]}`, whose key may be capitalised."""
    for kind, value in sequence.items():
        if kind.lower() == "inline":
            setattr(message, f"inline_{name}", bytes(value))
        else:
            external = pb.ExternalFile(path=value["path"], offset=value["offset"], size=value["size"])
            getattr(message, f"external_{name}").CopyFrom(external)


def commit_time(dataset: lance.LanceDataset) -> int | None:
    """When the version that is open was committed, in nanoseconds since the epoch. Nothing is read.

    None if pylance does not know it: it gives 0 for a time before 1970 or after April 2262.
    """
    found = int(dataset._ds.current_version()["timestamp"])  # noqa: SLF001 - the public method rounds, to local time
    return found or None
