"""The rows, manifests and references of a catalog that is restored under another root. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from lance_core.errors import CorruptFile
from lance_core.format.manifest import encode_manifest_file, parse_manifest_file
from lance_core.format.naming import MAIN_BRANCH
from lance_core.format.refs import (
    BRANCHES_DIRECTORY,
    TAGS_DIRECTORY,
    decode_branch,
    decode_tag,
    encode_branch,
    encode_tag,
)
from lance_core.proto import lance_table_pb2 as pb
from namespace_server.directory.model.collector_rows import CollectorEntry, CursorEntry, IntentEntry, PinEntry
from namespace_server.directory.model.entries import (
    DROPPED,
    EXPIRING,
    PURGING,
    REMOVING,
    Entry,
    Place,
    RecordEntry,
    VersionEntry,
    place_of,
)
from namespace_server.directory.model.snapshot import CatalogSnapshot


class RestoredManifest(NamedTuple):
    """The manifest of a version as it stands in the restored catalog."""

    size: int
    sha256: str


def mended_manifest(data: bytes, roots: Mapping[str, str]) -> bytes:
    """A manifest with the base paths of another root: `roots` has the new path of each that is named so far.

    A manifest that names none is unchanged, byte by byte. Paths that are not in `roots` stay as they are.
    """
    file = parse_manifest_file(data)
    transaction = None if file.transaction is None else pb.Transaction.FromString(file.transaction.SerializeToString())
    named = [entry for entry in file.manifest.base_paths if roots.get(entry.path, entry.path) != entry.path]
    is_clone = transaction is not None and transaction.WhichOneof("operation") == "clone"
    if not named and not (is_clone and transaction is not None and transaction.clone.ref_path in roots):
        return data
    manifest = pb.Manifest()
    manifest.CopyFrom(file.manifest)
    for entry in manifest.base_paths:
        entry.path = roots.get(entry.path, entry.path)
    if is_clone and transaction is not None:
        transaction.clone.ref_path = roots.get(transaction.clone.ref_path, transaction.clone.ref_path)
    return encode_manifest_file(manifest, transaction, file.indices)


def mended_reference(key: str, data: bytes, sizes: Mapping[tuple[str | None, int], int]) -> bytes:
    """The content of a reference file with the size of the manifest that it names; `sizes` by branch and version.

    Readers take the size for that of the file. A note, and a reference without a size, is unchanged.
    """
    directory = key.rpartition("/")[0]
    try:
        if directory.endswith(f"/{TAGS_DIRECTORY}"):
            tag = decode_tag(data)
            size = sizes.get((_branch(tag.branch), tag.version), tag.manifest_size)
            return data if size == tag.manifest_size else encode_tag(replace(tag, manifest_size=size))
        if directory.endswith(f"/{BRANCHES_DIRECTORY}"):
            branch = decode_branch(data)
            size = sizes.get((_branch(branch.parent_branch), branch.parent_version), branch.manifest_size)
            return data if size == branch.manifest_size else encode_branch(replace(branch, manifest_size=size))
    except CorruptFile as error:
        raise CorruptFile(f"{key}: {error}") from error
    return data


def restored_entries(snapshot: CatalogSnapshot, manifests: Mapping[Place, RestoredManifest]) -> Iterator[Entry]:
    """The rows of the restored catalog, at the same version: those of `snapshot`, with these manifests of versions.

    * A version without a manifest is left out.
    * Batches are promoted; all of their records are closed.
    * Dropped tables are gone for good: their locations stay taken, and the only files there are those that other
      tables name. A garbage collection takes these when none does any more.
    * What waits for files that are not there goes: removals of branches, expired versions that might come back.
    * Pins, intents and cursors end: the versions, the jobs and the consumers are those of the other root.
    * The collector goes on with its settings; this version is the oldest that is kept.
    """
    for entry in snapshot.entries():
        if isinstance(entry, VersionEntry):
            manifest = manifests.get(place_of(entry))
            if manifest is not None:
                yield replace(
                    entry,
                    size=manifest.size,
                    sha256=manifest.sha256,
                    e_tag=None,
                    staged_path=None,
                    staged_digest=None,
                )
        elif isinstance(entry, RecordEntry):
            if entry.state not in {REMOVING, EXPIRING}:
                yield _restored_record(entry)
        elif isinstance(entry, CollectorEntry):
            yield replace(entry, oldest=snapshot.version)
        elif not isinstance(entry, PinEntry | IntentEntry | CursorEntry):
            yield entry


def _restored_record(entry: RecordEntry) -> RecordEntry:
    if entry.state == "open":
        return replace(entry, state="closed")
    return replace(entry, state=PURGING, properties={}) if entry.state in {DROPPED, PURGING} else entry


def _branch(name: str | None) -> str | None:
    return None if not name or name == MAIN_BRANCH else name
