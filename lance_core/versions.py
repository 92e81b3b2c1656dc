"""Finds, lists and reads the committed versions of a table or branch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from lance_core.errors import CorruptFile, NotFound, OversizedFile, ReferenceNotFound, UnsupportedFeature
from lance_core.format.decoding import decode_message
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.format.naming import (
    DETACHED_BIT,
    TRANSACTIONS_DIRECTORY,
    NamingScheme,
    join_key,
    manifest_path,
    parse_manifest_name,
    parse_transaction_name,
    versions_directory,
)
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.port import ObjectStore


@dataclass(frozen=True, slots=True)
class ManifestLocation:
    """The key of a committed version. `size` (bytes) and `e_tag` are None if they are not known."""

    path: str
    version: int
    scheme: NamingScheme
    size: int | None = None
    e_tag: str | None = None


def find_latest(store: ObjectStore, base: str) -> ManifestLocation:
    """The newest version below `base`, by listing. The version hint is not used, because it may be stale.

    With V2 names the newest version is the first canonical key: one request where keys are listed in order. With V1
    names it is the largest number of all keys.

    Raises:
        ReferenceNotFound: There is no version.
        UnsupportedFeature: Manifests of both naming schemes were found.
    """
    first = _first_manifest(store, base)
    if first is not None and first.scheme is NamingScheme.V2:
        return first
    latest: ManifestLocation | None = None
    for location in _list_manifests(store, base):
        if location.scheme is NamingScheme.V2:
            _refuse_mixture(base, latest, location)
            return location
        if latest is None or location.version > latest.version:
            latest = location
    if latest is None:
        raise ReferenceNotFound(f"{store.object_uri(versions_directory(base))}: expected a manifest, found none")
    return latest


def list_versions(store: ObjectStore, base: str) -> list[ManifestLocation]:
    """Every version below `base`, ascending. Raises `UnsupportedFeature` for manifests of both naming schemes."""
    locations = sorted(_list_manifests(store, base), key=lambda location: location.version)
    schemes = {location.scheme: location for location in locations}
    if len(schemes) > 1:
        _refuse_mixture(base, schemes[NamingScheme.V1], schemes[NamingScheme.V2])
    return locations


def read_manifest(store: ObjectStore, location: ManifestLocation, *, lazily: bool = False) -> ManifestFile:
    """Read and parse the manifest of a version; `lazily` as in `parse_manifest_file`.

    Raises:
        NotFound: The version was removed.
        CorruptFile: The file is not that version.
    """
    return parse_found(store, location, store.get(location.path), lazily=lazily)


def find_contents(store: ObjectStore, key: str) -> bytes | None:
    """The bytes at a key that other writers may have taken; None if there is nothing.

    Empty for a file that is too large to be a manifest: like an empty one it is none, and is not read.
    """
    try:
        return store.find(key)
    except OversizedFile:
        return b""


def read_unless_removed(store: ObjectStore, location: ManifestLocation) -> ManifestFile | None:
    """The manifest of a listed version, parsed lazily; None if it was removed since. Raises `CorruptFile`."""
    try:
        return read_manifest(store, location, lazily=True)
    except NotFound:
        return None


def get_listed(store: ObjectStore, location: ManifestLocation) -> bytes:
    """The bytes of a listed version. Raises `ReferenceNotFound` if it was removed since."""
    try:
        return store.get(location.path)
    except NotFound as error:
        raise ReferenceNotFound(f"{store.object_uri(location.path)}: listed, but removed before it was read") from error


def parse_found(store: ObjectStore, location: ManifestLocation, data: bytes, *, lazily: bool = False) -> ManifestFile:
    """Parse the bytes read from `location`. Raises `CorruptFile`, naming the file, if they are not that version."""
    try:
        return parse_manifest_file(data, expected_version=location.version, lazily=lazily)
    except CorruptFile as error:
        raise CorruptFile(
            f"{store.object_uri(location.path)}: {error}", key=location.path, reason=str(error)
        ) from error


def read_version(
    store: ObjectStore, base: str, version: int, scheme: NamingScheme | None = None, *, lazily: bool = False
) -> tuple[ManifestLocation, ManifestFile]:
    """Find and read one version: one request if its scheme is V2 or given, else two. `lazily` as in `read_manifest`.

    Raises:
        ReferenceNotFound: There is no such version.
        CorruptFile: The file is not that version.
    """
    if not 1 <= version < DETACHED_BIT:
        raise ReferenceNotFound(f"version {version} of {store.object_uri(base)}: expected a number from 1 to 2^63 - 1")
    for candidate in (NamingScheme.V2, NamingScheme.V1) if scheme is None else (scheme,):
        location = ManifestLocation(manifest_path(base, version, candidate), version, candidate)
        try:
            return location, read_manifest(store, location, lazily=lazily)
        except NotFound:
            continue
    raise ReferenceNotFound(f"version {version} of {store.object_uri(base)}: expected a manifest, found none")


def with_transaction(store: ObjectStore, base: str, file: ManifestFile) -> ManifestFile:
    """`file` with its transaction, which is read from the `.txn` file unless it is inline.

    Returns `file` itself if its transaction is inline or cannot be found. Raises `CorruptFile` if the `.txn` file is
    not a transaction.
    """
    name = file.outline.transaction_file
    if file.transaction is not None or parse_transaction_name(name) is None:
        return file
    path = join_key(base, TRANSACTIONS_DIRECTORY, name)
    try:
        transaction = decode_message(pb.Transaction, store.get(path))
    except NotFound:
        return file
    except DecodeError as error:
        reason = f"not a transaction: {error}"
        raise CorruptFile(f"{store.object_uri(path)}: {reason}", key=path, reason=reason) from error
    return file.with_transaction(transaction)


def _first_manifest(store: ObjectStore, base: str) -> ManifestLocation | None:
    """The first key, if it is a manifest. None on a local disk, where a listing reads the whole directory anyway."""
    meta = None if store.local else store.first(versions_directory(base))
    parsed = None if meta is None else parse_manifest_name(meta.path.rpartition("/")[2])
    return None if meta is None or parsed is None else ManifestLocation(meta.path, *parsed, meta.size, meta.e_tag)


def _list_manifests(store: ObjectStore, base: str) -> Iterator[ManifestLocation]:
    directory = versions_directory(base)
    for meta in store.list(directory):
        parsed = parse_manifest_name(meta.path.removeprefix(f"{directory}/"))
        if parsed is not None:
            version, scheme = parsed
            yield ManifestLocation(meta.path, version, scheme, meta.size, meta.e_tag)


def _refuse_mixture(base: str, first: ManifestLocation | None, second: ManifestLocation) -> None:
    if first is not None:
        raise UnsupportedFeature(
            f"{versions_directory(base)} holds {first.path.rpartition('/')[2]} and {second.path.rpartition('/')[2]}: "
            "expected one naming scheme"
        )
