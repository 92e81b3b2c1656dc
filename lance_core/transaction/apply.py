"""Builds the next manifest from the head and a transaction."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

from google.protobuf.timestamp_pb2 import Timestamp

from lance_core.errors import InvalidTransaction
from lance_core.format.features import Feature
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import transaction_name
from lance_core.format.outline import AnyManifest, FragmentFacts, add_fragments
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.base_files import unknown_base
from lance_core.transaction.cloning import clone_manifest
from lance_core.transaction.compaction import rewrite_fragments
from lance_core.transaction.conflicts.whole_tables import base_clash
from lance_core.transaction.features import (
    check_continuable,
    has_stable_row_ids,
    set_flags,
    writes_transaction_files,
)
from lance_core.transaction.fields import check_schema, set_field_metadata
from lance_core.transaction.fragments import (
    check_files,
    file_version,
    next_fragment_id,
    number_fragments,
    replace_data,
    replace_fragments,
    require_unshared,
    without_dead_files,
)
from lance_core.transaction.heads import LAST_BASE_ID, LAST_CHOSEN_BASE_ID, reservable_fragment_ids
from lance_core.transaction.indices import create_indices, record_compaction, uncover, without_dead_indices
from lance_core.transaction.operations import (
    Append,
    Clone,
    CreateIndex,
    DataReplacement,
    Delete,
    Merge,
    Operation,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMemWalState,
    decode_operation,
)
from lance_core.transaction.schemas import merge, project
from lance_core.transaction.stamps import stamp_rewritten_columns

WRITER_LIBRARY = "lance-namespace-server"
"""Not "lance": for that name stock readers apply workarounds for bugs of old releases."""
WRITER_VERSION = "0.1.0"

DEFAULT_FILE_FORMAT = "2.2"

_KEEPING_FRAGMENTS = (UpdateConfig, CreateIndex, ReserveFragments, UpdateBases, UpdateMemWalState)
"""Operations that change no fragment."""

_ON_OUTLINES = (Append, Overwrite, Delete, Update, Restore, *_KEEPING_FRAGMENTS)
"""Operations that need no fragments of the previous version to be decoded, except those they name."""

_NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class NextVersion:
    """A new manifest, without section offsets, its index list (None: no index), and the facts about its fragments.

    The facts are None where nothing is known of them without a look at all fragments.

    Fragments that the operation does not touch stay in the form that the head had them in, encoded or decoded.
    """

    manifest: AnyManifest
    indices: pb.IndexSection | None
    facts: FragmentFacts | None = None


def apply_transaction(
    head: ManifestFile | None,
    transaction: pb.Transaction,
    *,
    version: int,
    now_ns: int,
    branch: str | None = None,
    stable_row_ids: bool = False,
    data_storage_version: str | None = None,
    source: ManifestFile | None = None,
) -> NextVersion:
    """Build the next version from the head and a transaction that was judged and rebased up to the head.

    No argument is changed.

    Args:
        head: The version to build on; None for a first version, which is an Overwrite or a Clone.
        transaction: The transaction.
        version: The number of the new version. A Clone keeps the number of the version that it copies.
        now_ns: The commit time in nanoseconds since the epoch. The timestamp is later than the head's in any case.
        branch: The branch of a first version; None for main.
        stable_row_ids: Whether a new table has stable row ids.
        data_storage_version: The format of the data files of a new table; None for that of the files it begins with.
        source: The version that a Restore goes back to or a Clone copies.

    Returns:
        The new manifest and index list.

    Raises:
        InvalidTransaction: The transaction contradicts the head or itself: unknown fragments or fields, data files of
            another format version.
        UnsupportedFeature: The head uses a feature that this engine does not write, or the operation is not supported.
    """
    operation = decode_operation(transaction)
    if isinstance(operation, Clone):
        if head is not None:
            raise InvalidTransaction(
                f"transaction {transaction.uuid}: clone onto version {head.version}, expected none"
            )
        manifest: AnyManifest
        manifest, indices = clone_manifest(operation, source, branch)
        _clear_what_belongs_to_one_version(manifest)
    elif head is None:
        begun = _begin_table(transaction, operation, branch, stable_row_ids, data_storage_version)
        manifest, indices = begun, None
    else:
        check_continuable(head.outline, head.facts)
        origin = _restored(head, operation, source) if isinstance(operation, Restore) else head
        before = origin.outline if isinstance(operation, _ON_OUTLINES) else origin.manifest
        manifest, indices = deepcopy(before), origin.indices
        _clear_what_belongs_to_one_version(manifest)
        if origin is not head:
            _keep_marks(manifest, head.outline)
    manifest.version = version
    manifest.tag = transaction.tag
    manifest.timestamp.CopyFrom(_later(now_ns, head))
    manifest.writer_version.CopyFrom(pb.Manifest.WriterVersion(library=WRITER_LIBRARY, version=WRITER_VERSION))
    if writes_transaction_files(manifest):
        manifest.transaction_file = transaction_name(transaction.read_version, transaction.uuid)
    facts: FragmentFacts | None = None
    match operation:
        case Append() if head is not None:
            added = number_fragments(manifest, operation.fragments, highest=head.facts.highest)
            require_unshared(manifest, added)
            add_fragments(manifest, added)
            facts = head.facts.followed_by(added)
        case Delete() if head is not None:
            replaced = replace_fragments(manifest, operation.updated, operation.removed_ids, new_files=False)
            facts = head.facts.with_changed(replaced, operation.updated)
        case Update() if head is not None:
            indices, facts = _update(manifest, operation, indices, head.facts)
        case _:
            indices = _change(manifest, indices, operation, first=head is None)
            facts = head.facts if head is not None and isinstance(operation, _KEEPING_FRAGMENTS) else None
    outside = unknown_base(transaction, manifest.base_paths)
    if outside is not None:
        raise InvalidTransaction(f"{outside[0]} lies in base {outside[1]}, which is no base path of the table")
    set_flags(manifest, facts)
    return NextVersion(manifest, indices if indices is not None and indices.indices else None, facts)


def _begin_table(
    transaction: pb.Transaction,
    operation: Operation,
    branch: str | None,
    stable_row_ids: bool,
    data_storage_version: str | None,
) -> pb.Manifest:
    if not isinstance(operation, Overwrite):
        name = transaction.WhichOneof("operation")
        raise InvalidTransaction(f"transaction {transaction.uuid}: {name} as the first version, expected overwrite")
    manifest = pb.Manifest()
    if branch is not None:
        manifest.branch = branch
    if stable_row_ids:
        manifest.reader_feature_flags = manifest.writer_feature_flags = Feature.STABLE_ROW_IDS
    if data_storage_version is not None:
        manifest.data_format.file_format, manifest.data_format.version = "lance", data_storage_version
    return manifest


def _change(
    manifest: AnyManifest, indices: pb.IndexSection | None, operation: Operation, *, first: bool
) -> pb.IndexSection | None:
    """Apply the operation to a copy of the previous manifest, in place. Returns the resulting index list."""
    match operation:
        case Overwrite():
            _overwrite(manifest, operation, first=first)
            return None
        case UpdateConfig():
            _update_config(manifest, operation)
        case CreateIndex():
            return create_indices(manifest, indices, operation)
        case ReserveFragments():
            _reserve_fragments(manifest, operation)
        case UpdateBases():
            _add_bases(manifest, operation)
        case UpdateMemWalState():
            return record_compaction(manifest, indices, operation.compacted_sstables)
        case Restore() | Clone():
            pass
        case _:
            assert isinstance(manifest, pb.Manifest)
            return _change_fragments(manifest, indices, operation)
    return indices


def _change_fragments(
    manifest: pb.Manifest, indices: pb.IndexSection | None, operation: Operation
) -> pb.IndexSection | None:
    match operation:
        case Project():
            project(manifest, operation)
            return without_dead_indices(manifest, indices)
        case Merge():
            rewritten = merge(manifest, operation)
            return without_dead_indices(manifest, uncover(manifest, indices, rewritten))
        case DataReplacement():
            return uncover(manifest, indices, replace_data(manifest, operation))
        case Rewrite():
            return rewrite_fragments(manifest, indices, operation)
    return indices


def _restored(head: ManifestFile, operation: Restore, source: ManifestFile | None) -> ManifestFile:
    if source is None or source.version != operation.version:
        raise ValueError(f"restore of version {operation.version} without that version's manifest")
    check_continuable(source.outline)
    if source.branch != head.branch:
        raise InvalidTransaction(
            f"version {source.version} is of branch {source.branch or 'main'}, the head of {head.branch or 'main'}"
        )
    return source


def _keep_marks(manifest: AnyManifest, head: AnyManifest) -> None:
    """Keep the high-water marks of the head, so that a Restore never leads to ids being used twice."""
    manifest.next_row_id = max(manifest.next_row_id, head.next_row_id)
    if head.HasField("max_fragment_id"):
        mark = manifest.max_fragment_id if manifest.HasField("max_fragment_id") else 0
        manifest.max_fragment_id = max(mark, head.max_fragment_id)


def _clear_what_belongs_to_one_version(manifest: AnyManifest) -> None:
    # Unknown fields may describe the bytes of the previous version; stock writers drop them as well.
    manifest.DiscardUnknownFields()
    for name in ("index_section", "transaction_section", "transaction_section_deprecated", "transaction_file"):
        manifest.ClearField(name)


def _later(now_ns: int, head: ManifestFile | None) -> Timestamp:
    moment = now_ns if head is None else max(now_ns, head.timestamp_ns + 1)
    return Timestamp(seconds=moment // _NANOSECONDS, nanos=moment % _NANOSECONDS)


def _update(
    manifest: AnyManifest, operation: Update, indices: pb.IndexSection | None, facts: FragmentFacts
) -> tuple[pb.IndexSection | None, FragmentFacts | None]:
    """Apply an Update. `facts` are those of the head. Returns the resulting index list and the facts afterwards."""
    updated = operation.updated
    if operation.rewrites_columns:
        updated = tuple(without_dead_files(fragment) for fragment in updated)
        for fragment in updated:
            check_files(fragment.files, file_version(manifest))
        if has_stable_row_ids(manifest):
            updated = tuple(stamp_rewritten_columns(fragment, operation, manifest.version) for fragment in updated)
    # Moved rows keep the creation version recorded in their old fragment, so stamp before it may be removed.
    added = number_fragments(manifest, operation.new, moved_rows=True, highest=facts.highest)
    replaced = replace_fragments(manifest, updated, operation.removed_ids, new_files=operation.rewrites_columns)
    require_unshared(manifest, added)
    add_fragments(manifest, added)
    modified = frozenset(operation.fields_modified)
    indices = uncover(manifest, indices, {fragment.id: modified for fragment in operation.updated})
    indices = record_compaction(manifest, indices, operation.compacted_sstables)
    return indices, facts.with_changed(replaced, [*updated, *added])


def _overwrite(manifest: AnyManifest, operation: Overwrite, *, first: bool) -> None:
    if operation.initial_bases and not first:
        raise InvalidTransaction("overwrite with initial base paths: expected none, because the table exists")
    check_schema(operation.schema)
    next_id = next_fragment_id(manifest)
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
    begun = manifest.data_format.version if first else ""
    if begun and versions - {begun}:
        raise InvalidTransaction(f"overwrite with data files of format version {min(versions)}: expected {begun}")
    if versions or not manifest.data_format.version:
        version = versions.pop() if versions else DEFAULT_FILE_FORMAT
        manifest.data_format.CopyFrom(pb.Manifest.DataStorageFormat(file_format="lance", version=version))
    known = {field.id for field in operation.schema}
    for fragment in operation.fragments:
        for file in fragment.files:
            unknown = set(file.fields) - known
            if unknown:
                raise InvalidTransaction(f"data file {file.path} has field {min(unknown)}, which is not in the schema")
    added = number_fragments(manifest, operation.fragments)
    require_unshared(manifest, added)
    add_fragments(manifest, added)


def _update_config(manifest: AnyManifest, operation: UpdateConfig) -> None:
    if operation.config is not None:
        operation.config.apply_to(manifest.config)
    if operation.table_metadata is not None:
        operation.table_metadata.apply_to(manifest.table_metadata)
    if operation.schema_metadata is not None:
        operation.schema_metadata.apply_to_bytes(manifest.schema_metadata)
    fields = {field.id: field for field in manifest.fields}
    for number, update in operation.field_metadata.items():
        if number not in fields:
            raise InvalidTransaction(f"metadata for field {number}, which is not in version {manifest.version - 1}")
        set_field_metadata(fields[number], update)


def _reserve_fragments(manifest: AnyManifest, operation: ReserveFragments) -> None:
    # Id 0 is never reserved, because in a transaction it means an id that is not assigned yet.
    mark = max(next_fragment_id(manifest) - 1, 0)
    most = reservable_fragment_ids(mark)
    if operation.count > most:
        raise InvalidTransaction(
            f"{operation.count} fragment ids are reserved after fragment {mark}: expected at most {most}, so that "
            "later commits have ids left"
        )
    manifest.max_fragment_id = mark + operation.count


def _add_bases(manifest: AnyManifest, operation: UpdateBases) -> None:
    for added in operation.new_bases:
        reason = base_clash([added], manifest.base_paths)
        if reason is not None:
            raise InvalidTransaction(f"version {manifest.version - 1} has {reason} already")
        base = manifest.base_paths.add()
        base.CopyFrom(added)
        if not added.id:
            highest = max(entry.id for entry in manifest.base_paths)
            if highest == LAST_BASE_ID:
                raise InvalidTransaction(f"base path {added.path!r}: no id is left after {highest}")
            base.id = highest + 1
        elif added.id > LAST_CHOSEN_BASE_ID:
            raise InvalidTransaction(
                f"base path {added.path!r} has id {added.id}: expected at most {LAST_CHOSEN_BASE_ID}, because "
                "later ids are assigned above it"
            )
