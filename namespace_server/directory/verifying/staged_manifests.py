"""Verification of manifests that clients staged: parsed, and compared with what the request says of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

from lance_namespace.errors import InvalidInputError

from lance_core.commit.durability import added_files
from lance_core.errors import CorruptFile, NotFound, OversizedFile
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.format.naming import branch_base, parse_manifest_name, parse_staged_name, versions_directory
from lance_core.format.outline import fragments_of
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.keys import is_key
from lance_core.storage.port import ObjectMeta, ObjectStore, size_and_date
from lance_core.transaction.base_files import unknown_base
from namespace_server.directory.model.object_ids import join
from namespace_server.directory.model.operations import CreateTableVersion
from namespace_server.directory.model.root_layout import is_built_manifest, is_in_staging
from namespace_server.directory.planning.plan_builder import Finding, StagedManifest
from namespace_server.directory.verifying.added_files import AddedFileChecks
from namespace_server.directory.verifying.allowed_locations import AllowedLocations

_FRESH = timedelta(hours=1)


class StagedManifestChecks:
    """Reads staged manifests. `stage_max_age` bounds their age (S2), `allowed` says where base paths may lead."""

    def __init__(
        self, store: ObjectStore, added: AddedFileChecks, allowed: AllowedLocations, stage_max_age: timedelta
    ) -> None:
        self._store = store
        self._added = added
        self._allowed = allowed
        self._stage_max_age = stage_max_age

    def verify(
        self, operation: CreateTableVersion, location: str, known_head: Callable[[], ManifestFile | None]
    ) -> tuple[Finding, Iterable[str]]:
        """A staged manifest and all that its transaction adds (S1). `known_head` gives the manifest of the head.

        In a bucket these are looked at beside staging; for what was staged long ago at once (S3).
        """
        base = branch_base(location, operation.branch)
        key, data, meta = self._read(operation, base)
        age = datetime.now(UTC) - meta.last_modified
        if age > self._stage_max_age:
            raise _unusable(operation, f"the manifest was staged {age} ago, stage again")
        file, transaction = _decoded(operation, data)
        # Of the head one has to know what it has already: not for an append, which names nothing that was there before.
        head = None if file.operation == "append" else known_head()
        added = added_files(self._store, base, transaction, head, file)
        outside = unknown_base(transaction, file.outline.base_paths)
        if outside is not None:
            raise _unusable(operation, f"{outside[0]} lies in base {outside[1]}, which is no base path of the manifest")
        schema = tuple(file.outline.fields)
        seen = self._added.check(operation, added, schema, now=age > _FRESH)
        dates = {key: size_and_date(meta).written, **(seen or {})}
        refused = self._allowed.refused_bases(file.outline.base_paths)
        staged = StagedManifest(
            key, data, file, meta.e_tag, age, location, refused, added, schema, seen is not None, dates
        )
        return staged, [key, *added]

    def _read(self, operation: CreateTableVersion, base: str) -> tuple[str, bytes, ObjectMeta]:
        """Key, bytes and date of a staged manifest, which must lie where clients may stage."""
        key = operation.manifest_path
        if key is None or not _is_staging_place(key, base):
            raise _unusable(
                operation,
                f"manifest_path {operation.path_as_sent!r} must be a staged manifest in the table's own "
                "_versions directory, or lie under _staging",
            )
        # The directories above are looked at with the files that its transaction adds.
        if (reason := self._allowed.link_outside(key)) is not None:
            raise _unusable(operation, f"no staged manifest: {reason}")
        try:
            data, meta = self._store.get_with_meta(key, at_most=operation.manifest_size)
        except NotFound as error:
            raise _unusable(operation, f"no staged manifest at {operation.path_as_sent!r}") from error
        except OversizedFile as error:
            if error.bound == operation.manifest_size:
                said = f"manifest_size says {error.bound} bytes, the file has {error.size}"
            else:
                said = f"{operation.path_as_sent!r} cannot be used: {error.reason}"
            raise _unusable(operation, said) from error
        if operation.manifest_size is not None and operation.manifest_size != len(data):
            raise _unusable(operation, f"manifest_size says {operation.manifest_size} bytes, the file has {len(data)}")
        return key, data, meta


def _decoded(operation: CreateTableVersion, data: bytes) -> tuple[ManifestFile, pb.Transaction]:
    """A staged manifest that is one of its chain, and its transaction."""
    try:
        file = parse_manifest_file(data, expected_version=operation.version, lazily=True)
        if file.operation != "append" or file.version == 1:
            fragments_of(file.outline)  # of an append to a head, planning decodes what the head does not have
    except CorruptFile as error:
        raise _unusable(operation, f"{operation.path_as_sent!r} cannot be used: {error}") from error
    if file.transaction is None:
        raise _unusable(operation, "the staged manifest carries no inline transaction")
    if file.branch != operation.branch:
        raise _unusable(
            operation,
            f"the manifest belongs to branch {file.branch or 'main'}, the request names {operation.branch or 'main'}",
        )
    return file, file.transaction


def _unusable(operation: CreateTableVersion, reason: str) -> InvalidInputError:
    place = f"version {operation.version} of table {join(operation.id)}"
    if operation.branch is not None:
        place += f" on branch {operation.branch}"
    return InvalidInputError(f"{place}: {reason}")


def _is_staging_place(key: str, base: str) -> bool:
    directory, _, name = key.rpartition("/")
    if not is_key(key):
        return False
    if is_in_staging(key):
        return parse_manifest_name(name) is None and not is_built_manifest(key)
    return directory == versions_directory(base) and parse_staged_name(name) is not None
