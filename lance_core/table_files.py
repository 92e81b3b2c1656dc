"""The manifests, data and deletion files of one table or branch, located through base paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple
from urllib.parse import unquote

from pyroaring import BitMap

from lance_core.errors import InvalidTransaction, UnsupportedFeature
from lance_core.format.deletion import (
    FragmentDeletions,
    decode_deletion_file,
    delete_rows,
    deletion_file_path,
    largest_deletion_file,
)
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.format.naming import (
    NamingScheme,
    data_path,
    index_directory,
    join_key,
    manifest_path,
    parse_transaction_name,
    transaction_path,
)
from lance_core.format.outline import AnyManifest, find_fragments
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.port import ObjectStore
from lance_core.storage.retries import put_with_retries
from lance_core.transaction.indices import SYSTEM_INDICES, covers_nothing
from lance_core.transaction.reachable import UNSTATED, StatedFile

_BaseOf = Callable[[pb.DataFile | pb.DeletionFile | pb.IndexMetadata], tuple[str | None, bool]]
"""The root below which a file lies, None outside of the store, and whether it is that of a table."""


def root_path(store: ObjectStore, base: str) -> str:
    """The root at the key `base` as manifests and transactions name it: a path for local files, else a URI.

    Not percent-encoded, as stock writers write it. `TableFiles.key_of` is the inverse.
    """
    uri = unquote(store.object_uri(base))
    return uri.removeprefix("file://") if store.uri.startswith("file://") else uri


class PlacedFile(NamedTuple):
    """A file that a version names, and what the version says of it.

    `key` is None for one below a base path outside the store. Of a segment of an index that does not list its files, as
    older writers leave it, `key` is the directory of it, with a slash at its end.
    """

    key: str | None
    kind: Literal["data", "deletion", "index", "transaction"]
    stated: StatedFile


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The files of one table or branch.

    Attributes:
        store: The store that holds it.
        base: The key of its root.
        open_root: Opens the store of a root outside `store`, by its path or URI. Without it such roots are refused.
    """

    store: ObjectStore
    base: str
    open_root: Callable[[str], ObjectStore] | None = None

    def deleted_rows(self, manifest: AnyManifest, fragment: pb.DataFragment) -> BitMap:
        """The offsets of the deleted rows of `fragment`, a fragment of `manifest` or of a transaction on it.

        Raises:
            NotFound: The deletion file does not exist.
            CorruptFile: The file is not a deletion file.
            UnsupportedFeature: The file is in a root that cannot be opened.
        """
        if not fragment.HasField("deletion_file"):
            return BitMap()
        message = fragment.deletion_file
        store, base = self._root(manifest, message.base_id) if message.HasField("base_id") else (self.store, self.base)
        key = deletion_file_path(base, fragment.id, message)
        data = store.get(key, at_most=largest_deletion_file(fragment.physical_rows))
        return decode_deletion_file(message, data, physical_rows=fragment.physical_rows)

    def delete_rows(
        self, manifest: AnyManifest, rows: Mapping[int, BitMap]
    ) -> tuple[tuple[pb.DataFragment, ...], tuple[int, ...]]:
        """Write deletion files that add these rows, by fragment id, to those that are deleted in `manifest`.

        The files are not durable: a commit makes them so (rule S1). Two requests for each fragment, in parallel.

        Returns:
            The fragments with their new deletion files, and the ids of those without rows left, both in order of ids.

        Raises:
            InvalidTransaction: The version does not have such a row.
            StorageUnknown: A file may have been written; no version names it.
            StorageError, CorruptFile, UnsupportedFeature: as `deleted_rows`.
        """
        wanted = sorted(rows)
        fragments = find_fragments(manifest, rows.keys())
        for number in wanted:
            _check_rows(manifest, number, fragments.get(number), rows[number])

        def delete(number: int) -> FragmentDeletions | None:
            fragment = fragments[number]
            deleted = self.deleted_rows(manifest, fragment) | rows[number]
            changed = delete_rows(fragment, deleted, read_version=manifest.version)
            if changed is not None:
                put_with_retries(self.store, changed.path(self.base), changed.data, durable=False)
            return changed

        changed = self.store.map(delete, wanted)
        removed = tuple(number for number, left in zip(wanted, changed, strict=True) if left is None)
        return tuple(left.fragment for left in changed if left is not None), removed

    def manifest(self, version: int) -> ManifestFile:
        """A committed version, read by its canonical name in either naming scheme. Raises `NotFound`, `CorruptFile`."""
        data = self.store.find(manifest_path(self.base, version, NamingScheme.V2))
        if data is None:
            data = self.store.get(manifest_path(self.base, version, NamingScheme.V1))
        return parse_manifest_file(data, expected_version=version, lazily=True)

    def cloned(self, path: str, version: int) -> ManifestFile:
        """A version of the table or branch whose root is at `path`, as a Clone names it.

        Raises `NotFound`, `CorruptFile`, and `UnsupportedFeature` if the root is outside the store.
        """
        key = self.key_of(path)
        if key is None:
            raise UnsupportedFeature(f"clone of {path}, which is not in {self.store.uri}")
        return TableFiles(self.store, key).manifest(version)

    def placed(self, version: ManifestFile) -> Iterator[PlacedFile]:
        """The files that a version names: data, deletion and index files, and its transaction file.

        Indices that hold metadata of the table itself have no files that a version could list. Raises
        `UnsupportedFeature` for a file of no known base.
        """
        manifest = version.manifest
        bases = {entry.id: (self.key_of(entry.path), entry.is_dataset_root) for entry in manifest.base_paths}

        def base_of(named: pb.DataFile | pb.DeletionFile | pb.IndexMetadata) -> tuple[str | None, bool]:
            if not named.HasField("base_id"):
                return self.base, True
            if named.base_id not in bases:
                raise UnsupportedFeature(f"version {manifest.version} has no base path {named.base_id}")
            return bases[named.base_id]

        for fragment in manifest.fragments:
            yield from _files_of_fragment(fragment, base_of)
        for index in version.indices.indices if version.indices is not None else ():
            yield from _files_of_index(index, base_of(index)[0])
        if named := parse_transaction_name(manifest.transaction_file):
            yield PlacedFile(transaction_path(self.base, *named), "transaction", UNSTATED)

    def data_key(self, manifest: AnyManifest, file: pb.DataFile) -> str | None:
        """The key of a data file of a version; None if it is outside the store, or below no known base."""
        if not file.HasField("base_id"):
            return data_path(self.base, file.path)
        base = next((entry for entry in manifest.base_paths if entry.id == file.base_id), None)
        key = None if base is None else self.key_of(base.path)
        return None if base is None or key is None else _data_key(key, file, is_table=base.is_dataset_root)

    def base_key(self, manifest: AnyManifest, base_id: int) -> str:
        """The key of the root that a base path names. Raises `UnsupportedFeature` unless it is inside the store."""
        for entry in manifest.base_paths:
            if entry.id == base_id:
                key = self.key_of(entry.path) if entry.is_dataset_root else None
                if key is None:
                    raise UnsupportedFeature(f"base path {base_id} ({entry.path}) is not a table in {self.store.uri}")
                return key
        raise UnsupportedFeature(f"version {manifest.version} has no base path {base_id}")

    def _root(self, manifest: AnyManifest, base_id: int) -> tuple[ObjectStore, str]:
        """The store and the key of the root that a base path names. Raises as `base_key`."""
        if self.open_root is None:
            return self.store, self.base_key(manifest, base_id)
        for entry in manifest.base_paths:
            if entry.id == base_id and entry.is_dataset_root and self.key_of(entry.path) is None:
                return self.open_root(entry.path), ""
        return self.store, self.base_key(manifest, base_id)

    def key_of(self, path: str) -> str | None:
        """The key of a root that is given as a path or URI; None if it is outside the store."""
        root = unquote(self.store.uri).rstrip("/")
        path = unquote(path).rstrip("/") if "://" in path else path.rstrip("/")
        if path == root:
            return ""
        if path.startswith(root + "/"):
            return path[len(root) + 1 :]
        local = path.removeprefix("file://") if self.store.uri.startswith("file://") else path
        if "://" in local:
            return None
        key = self.store.relative_path(local)
        return self.store.linked_path(local) if key is None else key


def _files_of_fragment(fragment: pb.DataFragment, base_of: _BaseOf) -> Iterator[PlacedFile]:
    for file in (*fragment.files, *(overlay.data_file for overlay in fragment.overlays)):
        base, is_table = base_of(file)
        key = None if base is None else _data_key(base, file, is_table=is_table)
        yield PlacedFile(key, "data", StatedFile(file.file_size_bytes, fragment.physical_rows, file))
    if fragment.HasField("deletion_file"):
        message = fragment.deletion_file
        base, _ = base_of(message)
        key = None if base is None else deletion_file_path(base, fragment.id, message)
        yield PlacedFile(key, "deletion", StatedFile(rows=fragment.physical_rows, deletion=message))


def _files_of_index(index: pb.IndexMetadata, base: str | None) -> Iterator[PlacedFile]:
    directory = None if base is None else index_directory(base, index.uuid.uuid)
    for listed in index.files:
        key = None if directory is None else join_key(directory, listed.path)
        yield PlacedFile(key, "index", StatedFile(listed.size_bytes))
    has_files = index.index_details.type_url and index.name not in SYSTEM_INDICES and not covers_nothing(index)
    if not index.files and has_files:
        yield PlacedFile(None if directory is None else f"{directory}/", "index", UNSTATED)


def _data_key(base: str, file: pb.DataFile, *, is_table: bool) -> str:
    return data_path(base, file.path) if is_table else join_key(base, file.path)


def _check_rows(manifest: AnyManifest, number: int, fragment: pb.DataFragment | None, rows: BitMap) -> None:
    if fragment is None:
        raise InvalidTransaction(f"fragment {number} is not in the table (version {manifest.version})")
    if 0 < fragment.physical_rows <= rows.max():
        raise InvalidTransaction(f"row {rows.max()} of fragment {number}: expected one of {fragment.physical_rows}")
