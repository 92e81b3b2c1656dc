"""A temporary shallow clone of one version, for the steps of pylance that need a committed dataset.

Planning needs the indices, and pylance writes index segments, for new fragments or for rows that no segment covers,
only as part of a commit. Both are done on a clone below `_staging/`, which no reader opens. Pylance commits only there.
The new index segments are then moved to the table, and the clone is removed.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from pyroaring import BitMap64

from lance_core import data
from lance_core.commit.handlers.handler import ExclusiveStore
from lance_core.commit.staged import STAGING_DIRECTORY
from lance_core.errors import CorruptFile
from lance_core.format.manifest import ManifestFile, encode_manifest_file
from lance_core.format.naming import index_directory, join_key, manifest_path
from lance_core.storage.port import ObjectStore
from lance_core.table_files import root_path
from lance_core.transaction.apply import apply_transaction
from lance_core.transaction.operations import Clone, CreateIndex, Rewrite, decode_operation, encode_transaction
from lance_core.versions import find_latest, read_manifest


class Scratch:
    """A context manager with a clone of the version `file` of the table or branch at key `base`.

    `next_fragment_id` is the first id that new fragments get in the clone. A clone left by a crash is removed by
    garbage collection.
    """

    def __init__(
        self,
        store: ObjectStore,
        base: str,
        file: ManifestFile,
        storage_options: Mapping[str, str] | None,
        *,
        next_fragment_id: int | None = None,
    ) -> None:
        # These names are unique, so they are written without the commit handler.
        self._store = store.inner if isinstance(store, ExclusiveStore) else store
        self._table = base
        self._base = join_key(STAGING_DIRECTORY, str(uuid.uuid4()), str(uuid.uuid4()))
        self._version = file.version
        self._storage_options = storage_options
        clone = encode_transaction(Clone(root_path(store, base), file.version, None, None), read_version=file.version)
        built = apply_transaction(None, clone, version=file.version, now_ns=time.time_ns(), source=file)
        if next_fragment_id is not None:
            built.manifest.max_fragment_id = next_fragment_id - 1
        self.base_id = built.manifest.base_paths[-1].id
        """The id of the base path through which the clone refers to the table's files."""
        self._manifest = encode_manifest_file(built.manifest, clone, built.indices)

    def __enter__(self) -> Self:
        self._store.put(manifest_path(self._base, self._version), self._manifest, durable=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._store.delete_all([meta.path for meta in self._store.list(self._base)])

    def open(self) -> Any:
        """A pylance handle on the clone."""
        return data.open_published(self._store.object_uri(self._base), self._version, self._storage_options)

    def remap(self, results: Sequence[str]) -> Rewrite:
        """Commit executed tasks to the clone, and return pylance's Rewrite in terms of the table.

        Raises `CorruptFile` if it is not the expected one.
        """
        data.commit_to_scratch(self.open(), results)
        head = read_manifest(self._store, find_latest(self._store, self._base))
        operation = None if head.transaction is None else decode_operation(head.transaction)
        if not isinstance(operation, Rewrite) or len(operation.groups) != len(results):
            where = self._store.object_uri(self._base)
            raise CorruptFile(f"{where}: expected a rewrite of {len(results)} groups, found {head.operation}")
        for group in operation.groups:
            for fragment in group.new_fragments:
                for file in fragment.files:
                    file.ClearField("base_id")
        return operation

    def optimize_indices(self, names: Sequence[str], merged: int) -> CreateIndex | None:
        """Commit segments over rows that these indices do not cover to the clone, each merged with the last segments.

        `merged` is how many of them. Returns pylance's CreateIndex; None if it finds nothing to do. Raises
        `CorruptFile` if it is not the expected one.
        """
        data.optimize_scratch_indices(self.open(), names, merged)
        head = read_manifest(self._store, find_latest(self._store, self._base))
        if head.version == self._version:
            return None
        operation = None if head.transaction is None else decode_operation(head.transaction)
        if not isinstance(operation, CreateIndex) or head.version != self._version + 1:
            where = self._store.object_uri(self._base)
            raise CorruptFile(f"{where}: expected one version with new indices, found {head.operation} {head.version}")
        if elsewhere := [index.name for index in operation.new if index.HasField("base_id")]:
            raise CorruptFile(f"index {elsewhere[0]!r}: expected new files in the clone, found them elsewhere")
        return operation

    def move_indices(self, segments: Iterable[bytes]) -> None:
        """Move index segments with these uuids from the clone to the table."""
        for segment in segments:
            source, target = (index_directory(base, segment) for base in (self._base, self._table))
            for meta in self._store.list(source):
                key = join_key(target, meta.path.removeprefix(f"{source}/"))
                if self._store.local:
                    self._store.rename_if_absent(meta.path, key, durable=False)
                else:
                    self._store.put(key, self._store.get(meta.path))


def with_base(result: str, base_id: int, moved: BitMap64 | None) -> str:
    """An executed task whose new files are below a base path.

    `moved` holds the addresses of the copied rows (fragment id in the upper half, row offset in the lower half), in
    order. Pylance records them only on a handle with indices; None keeps what it recorded.
    """
    content = json.loads(result)
    if moved is not None:
        content["row_addrs"] = list(moved.serialize())
    for fragment in content["new_fragments"]:
        for file in fragment["files"]:
            file["base_id"] = base_id
    return json.dumps(content)


def without_base(task: str, base_id: int) -> str:
    """A planned task in which the files below one base path are the table's own files."""
    content = json.loads(task)
    for fragment in content["task"]["fragments"]:
        for file in (*fragment["files"], fragment.get("deletion_file")):
            if file is not None and file["base_id"] == base_id:
                file["base_id"] = None
    return json.dumps(content)
