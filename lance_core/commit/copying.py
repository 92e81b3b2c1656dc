"""Copies the files of a version to another root, inside the store where possible. Used by deep clones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from lance_core.errors import NotFound, ReferenceNotFound, UnsupportedFeature
from lance_core.format.deletion import deletion_file_path
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import DATA_DIRECTORY, data_path, index_directory, join_key
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.opening import open_store
from lance_core.storage.port import ObjectStore
from lance_core.table_files import TableFiles
from lance_core.transaction.reachable import is_file_path


@dataclass(frozen=True, slots=True)
class Origin:
    """The version to clone, of the table or branch at the key `base` of `store`.

    Base paths outside `store` are opened with `storage_options`.
    """

    store: ObjectStore
    base: str
    file: ManifestFile
    storage_options: Mapping[str, str] | None = None


def copy_files(origin: Origin, target: ObjectStore, base: str) -> None:
    """Copy the data, deletion and index files of a version to the root at the key `base` of `target`, durably.

    Files under other roots (of branches, shallow clones, other base paths) are copied too. A file that exists at the
    target with the same size is not copied again: such files have random names and never change.

    Raises:
        ReferenceNotFound: A file of the version no longer exists.
        UnsupportedFeature: Two files would get the same name.
    """
    _Copies(origin, target, base).make()


@dataclass(frozen=True, slots=True)
class _Root:
    """A root with files of a version, at the key `base` of `store`. Unless `is_table`, data files are in it."""

    store: ObjectStore
    base: str
    is_table: bool = True

    def data_file(self, path: str) -> str:
        return data_path(self.base, path) if self.is_table else join_key(self.base, *path.split("/"))

    def data_sizes(self) -> dict[str, int]:
        """Sizes in bytes of all data files, by key."""
        directory = join_key(self.base, DATA_DIRECTORY) if self.is_table else self.base
        return {meta.path: meta.size for meta in self.store.list(directory)}


@dataclass(frozen=True, slots=True)
class _Copy:
    """One file to be copied to a key of the target. `size` is in bytes, None if unknown."""

    root: _Root
    source: str
    size: int | None


@dataclass(slots=True)
class _Copies:
    """Plans and makes the copies of the files of one version."""

    origin: Origin
    target: ObjectStore
    target_base: str
    _roots: dict[int | None, _Root] = field(default_factory=dict)
    _sizes: dict[int | None, dict[str, int]] = field(default_factory=dict)
    _planned: dict[str, _Copy] = field(default_factory=dict)

    def make(self) -> None:
        for fragment in self.origin.file.manifest.fragments:
            self._plan_fragment(fragment)
        indices = self.origin.file.indices
        for index in indices.indices if indices is not None else ():
            self._plan_index(index)
        there = {meta.path: meta.size for meta in self.target.list(self.target_base)}
        wanted = [
            (key, copy) for key, copy in self._planned.items() if copy.size is None or there.get(key) != copy.size
        ]
        try:
            self.target.map(lambda item: self._copy(*item), wanted)
        except NotFound as error:
            raise self._gone(error) from error
        self.target.sync(self._planned)

    def _copy(self, key: str, copy: _Copy) -> None:
        # Each copy is durable: a later call takes a file of the right size for complete.
        self.target.copy(copy.source, key, origin=copy.root.store, durable=True)

    def _plan_fragment(self, fragment: pb.DataFragment) -> None:
        for name in ("row_ids", "created_at_versions", "last_updated_at_versions"):
            if fragment.HasField(f"external_{name}"):
                raise UnsupportedFeature(f"fragment {fragment.id} keeps its {name} in a file, expected them inline")
        for file in fragment.files:
            base_id = file.base_id if file.HasField("base_id") else None
            root = self._root(base_id)
            key = self._checked(root.data_file, file.path)
            sizes = self._data_sizes(base_id)
            if key not in sizes:
                raise self._gone(f"{root.store.object_uri(key)}: expected a data file, found none")
            self._plan(root, key, data_path(self.target_base, file.path), sizes[key])
            # Large values are stored beside the file, in a directory of the same name.
            stem = key.removesuffix(".lance")
            for beside in _below(sizes, stem):
                target = data_path(self.target_base, file.path.removesuffix(".lance") + beside.removeprefix(stem))
                self._plan(root, beside, target, sizes[beside])
        if fragment.HasField("deletion_file"):
            message = fragment.deletion_file
            root = self._table_root(message.base_id if message.HasField("base_id") else None)
            source, target = (deletion_file_path(base, fragment.id, message) for base in (root.base, self.target_base))
            self._plan(root, source, target, None)

    def _plan_index(self, index: pb.IndexMetadata) -> None:
        root = self._table_root(index.base_id if index.HasField("base_id") else None)
        directory = index_directory(root.base, index.uuid.uuid)
        sizes = {meta.path: meta.size for meta in root.store.list(directory)}
        for file in index.files:
            if self._checked(partial(join_key, directory), file.path) not in sizes:
                raise self._gone(f"{root.store.object_uri(directory)}/{file.path}: expected a file, found none")
        for key, size in sizes.items():
            target = index_directory(self.target_base, index.uuid.uuid) + key.removeprefix(directory)
            self._plan(root, key, target, size)

    def _plan(self, root: _Root, source: str, target: str, size: int | None) -> None:
        copy = _Copy(root, source, size)
        other = self._planned.setdefault(target, copy)
        if (other.root, other.source) != (root, source):
            raise UnsupportedFeature(
                f"{other.root.store.object_uri(other.source)} and {root.store.object_uri(source)} would both become "
                f"{self.target.object_uri(target)}"
            )

    def _root(self, base_id: int | None) -> _Root:
        if base_id not in self._roots:
            self._roots[base_id] = self._find_root(base_id)
        return self._roots[base_id]

    def _table_root(self, base_id: int | None) -> _Root:
        root = self._root(base_id)
        if not root.is_table:
            raise UnsupportedFeature(f"base path {base_id} is not a table, but has deletion or index files")
        return root

    def _find_root(self, base_id: int | None) -> _Root:
        if base_id is None:
            return _Root(self.origin.store, self.origin.base)
        for entry in self.origin.file.manifest.base_paths:
            if entry.id == base_id:
                key = TableFiles(self.origin.store, self.origin.base).key_of(entry.path)
                if key is not None:
                    return _Root(self.origin.store, key, entry.is_dataset_root)
                return _Root(open_store(entry.path, self.origin.storage_options), "", entry.is_dataset_root)
        raise UnsupportedFeature(f"version {self.origin.file.version} has no base path {base_id}")

    def _data_sizes(self, base_id: int | None) -> dict[str, int]:
        if base_id not in self._sizes:
            self._sizes[base_id] = self._root(base_id).data_sizes()
        return self._sizes[base_id]

    def _checked(self, name: Callable[[str], str], path: str) -> str:
        if not is_file_path(path):
            raise UnsupportedFeature(f"version {self.origin.file.version} names a file {path!r} outside its directory")
        return name(path)

    def _gone(self, what: object) -> ReferenceNotFound:
        place = self.origin.store.object_uri(self.origin.base)
        return ReferenceNotFound(f"clone of version {self.origin.file.version} of {place}: a file is missing: {what}")


def _below(keys: Mapping[str, int], directory: str) -> Iterator[str]:
    return (key for key in keys if key.startswith(f"{directory}/"))
