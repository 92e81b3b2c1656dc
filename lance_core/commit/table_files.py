"""Reading what a commit needs to know of a table beyond its head."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from pyroaring import BitMap

from lance_core.errors import UnsupportedFeature
from lance_core.format.deletion import decode_deletion_file, deletion_file_path
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.format.naming import NamingScheme, manifest_path
from lance_core.format.outline import AnyManifest
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.port import ObjectStore


def root_path(store: ObjectStore, base: str) -> str:
    """How manifests and transactions name the root at the key `base`: a path for local files, else a URI.

    Not percent-encoded, as stock writers spell it. `TableFiles.key_of` is the inverse.
    """
    uri = unquote(store.object_uri(base))
    return uri.removeprefix("file://") if store.uri.startswith("file://") else uri


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The files of one table or branch. `base` is the key of its root."""

    store: ObjectStore
    base: str

    def deleted_rows(self, manifest: AnyManifest, fragment: pb.DataFragment) -> BitMap:
        """Row offsets that are deleted in `fragment`, a fragment of `manifest` or of a transaction upon it.

        Raises `NotFound` when the deletion file is gone, `CorruptFile` when it is not one, and `UnsupportedFeature`
        when it lies outside the store.
        """
        if not fragment.HasField("deletion_file"):
            return BitMap()
        message = fragment.deletion_file
        base = self.base_key(manifest, message.base_id) if message.HasField("base_id") else self.base
        data = self.store.get(deletion_file_path(base, fragment.id, message))
        return decode_deletion_file(message, data, physical_rows=fragment.physical_rows)

    def manifest(self, version: int) -> ManifestFile:
        """A committed version, by its canonical name in either scheme. Raises `NotFound`, `CorruptFile`."""
        data = self.store.find(manifest_path(self.base, version, NamingScheme.V2))
        if data is None:
            data = self.store.get(manifest_path(self.base, version, NamingScheme.V1))
        return parse_manifest_file(data, expected_version=version, lazily=True)

    def cloned(self, path: str, version: int) -> ManifestFile:
        """A version of the table or branch whose root is at `path`, as a Clone names it.

        Raises `NotFound`, `CorruptFile`, and `UnsupportedFeature` when it lies outside the store.
        """
        key = self.key_of(path)
        if key is None:
            raise UnsupportedFeature(f"clone of {path}, which is not in {self.store.uri}")
        return TableFiles(self.store, key).manifest(version)

    def base_key(self, manifest: AnyManifest, base_id: int) -> str:
        """The key of the root that a base path names. Raises `UnsupportedFeature` unless it lies in the store."""
        for entry in manifest.base_paths:
            if entry.id == base_id:
                key = self.key_of(entry.path) if entry.is_dataset_root else None
                if key is None:
                    raise UnsupportedFeature(f"base path {base_id} ({entry.path}) is not a table in {self.store.uri}")
                return key
        raise UnsupportedFeature(f"version {manifest.version} has no base path {base_id}")

    def key_of(self, path: str) -> str | None:
        """The key of a root that is spelled as a path or a URI. None when it lies outside the store."""
        root = unquote(self.store.uri).rstrip("/")
        path = unquote(path).rstrip("/") if "://" in path else path.rstrip("/")
        if path == root:
            return ""
        if path.startswith(root + "/"):
            return path[len(root) + 1 :]
        return self.store.relative_path(path) if "://" not in path else None
