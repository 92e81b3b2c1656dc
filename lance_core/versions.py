"""Which versions a table or branch has, and reading them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from lance_core.errors import CorruptFile, NotFound, ReferenceNotFound, UnsupportedFeature
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
    """Where a committed version lies. `size` (bytes) and `e_tag` are None when they were not asked for."""

    path: str
    version: int
    scheme: NamingScheme
    size: int | None = None
    e_tag: str | None = None


def find_latest(store: ObjectStore, base: str) -> ManifestLocation:
    """The newest version below `base`, by listing; never from the hint, which is only advice.

    With V2 names that is the first canonical key, so one request is enough where keys are listed in order; with V1
    names it is the greatest of all. Raises `ReferenceNotFound` when there is none, `UnsupportedFeature` when both
    kinds of names were met on the way.
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
    """Every version below `base`, ascending. Raises `UnsupportedFeature` when both kinds of names are there."""
    locations = sorted(_list_manifests(store, base), key=lambda location: location.version)
    schemes = {location.scheme: location for location in locations}
    if len(schemes) > 1:
        _refuse_mixture(base, schemes[NamingScheme.V1], schemes[NamingScheme.V2])
    return locations


def read_manifest(store: ObjectStore, location: ManifestLocation, *, lazily: bool = False) -> ManifestFile:
    """Read and parse the manifest of a known version; `lazily` as in `parse_manifest_file`.

    Raises `NotFound` when it is gone, `CorruptFile` when the file is not that version.
    """
    return parse_found(store, location, store.get(location.path), lazily=lazily)


def parse_found(store: ObjectStore, location: ManifestLocation, data: bytes, *, lazily: bool = False) -> ManifestFile:
    """Parse the file that was read from `location`. Raises `CorruptFile`, naming it, when it is not that version."""
    try:
        return parse_manifest_file(data, expected_version=location.version, lazily=lazily)
    except CorruptFile as error:
        raise CorruptFile(f"{store.object_uri(location.path)}: {error}") from error


def read_version(
    store: ObjectStore, base: str, version: int, scheme: NamingScheme | None = None, *, lazily: bool = False
) -> tuple[ManifestLocation, ManifestFile]:
    """Find and read one version: one request if its scheme is V2 or given, else two. `lazily` as in `read_manifest`.

    Raises `ReferenceNotFound` when it is not there, `CorruptFile` when the file is not that version.
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
    """`file` with its transaction, read from the `.txn` file unless it is inline.

    The result is `file` itself when the transaction is there already or cannot be had: neither inline nor as a file.
    Raises `CorruptFile` when the `.txn` file is no transaction.
    """
    name = file.outline.transaction_file
    if file.transaction is not None or parse_transaction_name(name) is None:
        return file
    path = join_key(base, TRANSACTIONS_DIRECTORY, name)
    try:
        transaction = pb.Transaction.FromString(store.get(path))
    except NotFound:
        return file
    except DecodeError as error:
        raise CorruptFile(f"{store.object_uri(path)}: not a transaction: {error}") from error
    return file.with_transaction(transaction)


def _first_manifest(store: ObjectStore, base: str) -> ManifestLocation | None:
    """What the first key is, which on a bucket is a short question; None in a directory, which is read as a whole."""
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
