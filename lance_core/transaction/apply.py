"""From the head and a transaction to the next manifest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from google.protobuf.timestamp_pb2 import Timestamp
from pyroaring import BitMap

from lance_core.errors import InvalidTransaction, UnsupportedFeature
from lance_core.format.features import Feature
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import transaction_name
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.features import (
    check_continuable,
    has_stable_row_ids,
    set_flags,
    writes_transaction_files,
)
from lance_core.transaction.fields import TOMBSTONE, check_schema, descendants, set_field_metadata
from lance_core.transaction.operations import (
    Append,
    Clone,
    Delete,
    Overwrite,
    Update,
    UpdateConfig,
    decode_operation,
    fragment_ids,
)
from lance_core.transaction.reachable import is_file_path
from lance_core.transaction.stamps import stamp_moved_rows, stamp_new_rows, stamp_rewritten_columns

WRITER_LIBRARY = "lance-namespace-server"
"""Not "lance": that name makes stock readers look for the traces of bugs in its old releases."""
WRITER_VERSION = "0.1.0"

DEFAULT_FILE_FORMAT = "2.2"

_NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class NextVersion:
    """A manifest that was built, without section offsets, and the index list that goes with it (None: no index)."""

    manifest: pb.Manifest
    indices: pb.IndexSection | None


def apply_transaction(
    head: ManifestFile | None,
    transaction: pb.Transaction,
    *,
    version: int,
    now_ns: int,
    branch: str | None = None,
    stable_row_ids: bool = False,
) -> NextVersion:
    """Build version `version` from the head and a transaction that was judged, and rebased, up to it.

    Without a head this is the first version of a new table: an Overwrite, on `branch`, with or without stable row
    ids; with one, both are the head's. The timestamp is `now_ns` (since the epoch), but later than the head's in any
    case. Nothing is changed in place. Raises `InvalidTransaction` when the transaction contradicts the head or itself
    (unknown fragments, files of another format version, a field that is gone), `UnsupportedFeature` for a head that
    we must not write to and for operations that are not built here.
    """
    operation = decode_operation(transaction)
    manifest = pb.Manifest()
    if head is None:
        if not isinstance(operation, Overwrite):
            name = transaction.WhichOneof("operation")
            raise InvalidTransaction(f"transaction {transaction.uuid}: {name} as the first version, expected overwrite")
        if branch is not None:
            manifest.branch = branch
        if stable_row_ids:
            manifest.reader_feature_flags = manifest.writer_feature_flags = int(Feature.STABLE_ROW_IDS)
    else:
        check_continuable(head.manifest)
        manifest.CopyFrom(head.manifest)
        _clear_what_belongs_to_one_version(manifest)
    manifest.version = version
    manifest.tag = transaction.tag
    manifest.timestamp.CopyFrom(_later(now_ns, head))
    manifest.writer_version.CopyFrom(pb.Manifest.WriterVersion(library=WRITER_LIBRARY, version=WRITER_VERSION))
    if writes_transaction_files(manifest):
        manifest.transaction_file = transaction_name(transaction.read_version, transaction.uuid)
    indices = head.indices if head is not None else None
    match operation:
        case Append():
            manifest.fragments.extend(_number_fragments(manifest, operation.fragments))
        case Delete():
            _replace_fragments(manifest, operation.updated, operation.removed_ids, new_files=False)
        case Update():
            indices = _update(manifest, operation, indices)
        case Overwrite():
            _overwrite(manifest, operation, first=head is None)
            indices = None
        case UpdateConfig():
            _update_config(manifest, operation)
        case Clone():
            raise UnsupportedFeature("clone cannot be applied to a manifest: its writer builds the first version")
    set_flags(manifest)
    return NextVersion(manifest, indices if indices is not None and indices.indices else None)


def _clear_what_belongs_to_one_version(manifest: pb.Manifest) -> None:
    # A field that we do not know may be about this version's bytes; stock writers drop it as well.
    manifest.DiscardUnknownFields()
    for name in ("index_section", "transaction_section", "transaction_section_deprecated", "transaction_file"):
        manifest.ClearField(name)


def _later(now_ns: int, head: ManifestFile | None) -> Timestamp:
    moment = now_ns if head is None else max(now_ns, head.timestamp_ns + 1)
    return Timestamp(seconds=moment // _NANOSECONDS, nanos=moment % _NANOSECONDS)


def _number_fragments(
    manifest: pb.Manifest, fragments: Sequence[pb.DataFragment], *, moved_rows: bool = False
) -> list[pb.DataFragment]:
    """Copies of new fragments under fresh ids, and the manifest's high-water marks moved.

    With `moved_rows` they may carry the row ids of rows that an Update moved into them.
    """
    file_version = _file_version(manifest)
    stable = has_stable_row_ids(manifest)
    next_id = _next_fragment_id(manifest)
    added: list[pb.DataFragment] = []
    for fragment in fragments:
        _check_new_fragment(fragment, file_version)
        copy = pb.DataFragment()
        copy.CopyFrom(fragment)
        copy.id = next_id
        next_id += 1
        if not (moved_rows and stable):
            _clear_row_ids(copy)
        added.append(copy)
    if stable and moved_rows:
        manifest.next_row_id = stamp_moved_rows(added, manifest.fragments, manifest.next_row_id, manifest.version)
    elif stable:
        manifest.next_row_id = stamp_new_rows(added, manifest.next_row_id, manifest.version)
    if next_id:
        manifest.max_fragment_id = next_id - 1
    return added


def _next_fragment_id(manifest: pb.Manifest) -> int:
    mark = manifest.max_fragment_id if manifest.HasField("max_fragment_id") else -1
    return max(mark, max((fragment.id for fragment in manifest.fragments), default=-1)) + 1


def _clear_row_ids(fragment: pb.DataFragment) -> None:
    for sequence in ("row_ids", "last_updated_at_versions", "created_at_versions"):
        fragment.ClearField(f"inline_{sequence}")
        fragment.ClearField(f"external_{sequence}")


def _check_new_fragment(fragment: pb.DataFragment, version: tuple[int, int]) -> None:
    if fragment.HasField("deletion_file"):
        raise InvalidTransaction("a new fragment has a deletion file, whose name would need an id it does not have yet")
    if not fragment.files or not fragment.physical_rows:
        raise InvalidTransaction(
            f"a new fragment has {len(fragment.files)} data files and {fragment.physical_rows} rows: expected some"
        )
    _check_files(fragment.files, version)


def _check_files(files: Iterable[pb.DataFile], version: tuple[int, int]) -> None:
    for file in files:
        found = (file.file_major_version, file.file_minor_version)
        if found != version:
            raise InvalidTransaction(
                f"data file {file.path} has format version {found[0]}.{found[1]}: expected the table's "
                f"{version[0]}.{version[1]}"
            )
        if not is_file_path(file.path):
            raise InvalidTransaction(f"data file {file.path!r}: expected a path below the table's data directory")
        if len(file.fields) != len(file.column_indices):
            raise InvalidTransaction(
                f"data file {file.path} has {len(file.column_indices)} column indices for {len(file.fields)} fields"
            )


def _file_version(manifest: pb.Manifest) -> tuple[int, int]:
    name = manifest.data_format.version
    if not name:
        versions = {
            (file.file_major_version, file.file_minor_version) for entry in manifest.fragments for file in entry.files
        }
        if len(versions) == 1:
            return versions.pop()
    major, _, minor = name.partition(".")
    if major != "2" or not minor.isdigit():
        raise UnsupportedFeature(f"version {manifest.version} has data file format {name!r}: expected 2.x")
    return int(major), int(minor)


def _replace_fragments(
    manifest: pb.Manifest, updated: Sequence[pb.DataFragment], removed_ids: Iterable[int], *, new_files: bool
) -> None:
    places = {fragment.id: place for place, fragment in enumerate(manifest.fragments)}
    removed = frozenset(removed_ids)
    missing = (removed | fragment_ids(updated)) - places.keys()
    if missing:
        raise InvalidTransaction(f"fragment {min(missing)} is not in the table (version {manifest.version - 1})")
    both = removed & fragment_ids(updated)
    if both or len(fragment_ids(updated)) != len(updated):
        raise InvalidTransaction(f"fragment {min(both, default=updated[0].id)} is named twice by one transaction")
    for fragment in updated:
        current = manifest.fragments[places[fragment.id]]
        _check_updated_fragment(current, fragment, new_files=new_files)
        current.CopyFrom(fragment)
    for place in sorted((places[identifier] for identifier in removed), reverse=True):
        del manifest.fragments[place]


def _check_updated_fragment(current: pb.DataFragment, fragment: pb.DataFragment, *, new_files: bool) -> None:
    if fragment.physical_rows != current.physical_rows:
        raise InvalidTransaction(
            f"fragment {fragment.id} has {fragment.physical_rows} rows: expected the table's {current.physical_rows}"
        )
    if not new_files and [_file_key(file) for file in fragment.files] != [_file_key(file) for file in current.files]:
        raise InvalidTransaction(f"fragment {fragment.id} has other data files than in the table")
    deleted = fragment.deletion_file.num_deleted_rows
    if deleted > fragment.physical_rows:
        raise InvalidTransaction(f"fragment {fragment.id} has {deleted} of {fragment.physical_rows} rows deleted")
    if deleted < current.deletion_file.num_deleted_rows:
        raise InvalidTransaction(
            f"fragment {fragment.id} has {deleted} rows deleted: expected no fewer than the table's "
            f"{current.deletion_file.num_deleted_rows}"
        )


def _file_key(file: pb.DataFile) -> tuple[str, int | None]:
    return file.path, file.base_id if file.HasField("base_id") else None


def _update(manifest: pb.Manifest, operation: Update, indices: pb.IndexSection | None) -> pb.IndexSection | None:
    updated = operation.updated
    if operation.rewrites_columns:
        updated = tuple(_without_dead_files(fragment) for fragment in updated)
        for fragment in updated:
            _check_files(fragment.files, _file_version(manifest))
        if has_stable_row_ids(manifest):
            updated = tuple(stamp_rewritten_columns(fragment, operation, manifest.version) for fragment in updated)
    # Rows that move keep the creation version that their old fragment records: stamped before that may go.
    added = _number_fragments(manifest, operation.new, moved_rows=True)
    _replace_fragments(manifest, updated, operation.removed_ids, new_files=operation.rewrites_columns)
    manifest.fragments.extend(added)
    return _uncover(manifest, indices, operation)


def _without_dead_files(fragment: pb.DataFragment) -> pb.DataFragment:
    """A copy without the data files of which every column was superseded."""
    copy = pb.DataFragment()
    copy.CopyFrom(fragment)
    del copy.files[:]
    copy.files.extend(file for file in fragment.files if any(field != TOMBSTONE for field in file.fields))
    return copy


def _uncover(manifest: pb.Manifest, indices: pb.IndexSection | None, operation: Update) -> pb.IndexSection | None:
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


def _overwrite(manifest: pb.Manifest, operation: Overwrite, *, first: bool) -> None:
    if operation.initial_bases and not first:
        raise InvalidTransaction("overwrite with initial base paths: expected none, for the table exists")
    check_schema(operation.schema)
    next_id = _next_fragment_id(manifest)
    if next_id:
        manifest.max_fragment_id = next_id - 1
    del manifest.fragments[:]
    del manifest.fields[:]
    manifest.fields.extend(operation.schema)
    manifest.schema_metadata.clear()
    manifest.schema_metadata.update(operation.schema_metadata)
    manifest.config.update(operation.config_upserts)
    manifest.base_paths.extend(operation.initial_bases)
    versions = {
        f"{file.file_major_version}.{file.file_minor_version}" for entry in operation.fragments for file in entry.files
    }
    if len(versions) > 1:
        raise InvalidTransaction(f"overwrite with data files of format versions {sorted(versions)}: expected one")
    if versions or not manifest.data_format.version:
        version = versions.pop() if versions else DEFAULT_FILE_FORMAT
        manifest.data_format.CopyFrom(pb.Manifest.DataStorageFormat(file_format="lance", version=version))
    known = {field.id for field in operation.schema}
    for fragment in operation.fragments:
        for file in fragment.files:
            unknown = set(file.fields) - known
            if unknown:
                raise InvalidTransaction(f"data file {file.path} has field {min(unknown)}, which the schema has not")
    manifest.fragments.extend(_number_fragments(manifest, operation.fragments))


def _update_config(manifest: pb.Manifest, operation: UpdateConfig) -> None:
    if operation.config is not None:
        operation.config.apply_to(manifest.config)
    if operation.table_metadata is not None:
        operation.table_metadata.apply_to(manifest.table_metadata)
    if operation.schema_metadata is not None:
        operation.schema_metadata.apply_to_bytes(manifest.schema_metadata)
    fields = {field.id: field for field in manifest.fields}
    for number, update in operation.field_metadata.items():
        if number not in fields:
            raise InvalidTransaction(f"metadata for field {number}, which version {manifest.version - 1} has not")
        set_field_metadata(fields[number], update)
