"""Staged manifests of one attempt in one object: on a bucket each request costs, so a flip stages them together (N5).

A bundle is a message of `protos/staged_manifests.proto`: for each manifest its staged path, by which rows and records
name it, and its bytes. The key of the bundle follows from the staged path. It goes when no open record has a manifest
in it (M2).

In a directory each manifest is staged alone, since it gets its canonical name by a link. Bundles are read there as
well: a catalog may have been copied from a bucket. A catalog that was never collected has none either: servers of the
release before, which know neither garbage collection nor bundles, may still commit to it (G25).

Modules of the commit path know staged paths alone, and ask here for the objects and keys behind them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from google.protobuf.message import DecodeError

from lance_core.errors import OversizedFile
from lance_core.proto import staged_manifests_pb2 as pb
from lance_core.storage.port import ObjectStore
from lance_core.versions import find_contents
from namespace_server.directory.manifests.sized_cache import SizedCache
from namespace_server.directory.model.entries import RecordEntry
from namespace_server.directory.model.root_layout import bundle_key
from namespace_server.directory.model.snapshot import CatalogSnapshot

logger = logging.getLogger(__name__)

_MOST_BYTES: Final = 8 << 20
"""Bytes of the manifests in one bundle; the others of its attempt are staged alone."""
_KEPT_BYTES: Final = 16 << 20
_NOTHING: Final[Mapping[str, bytes]] = {}


def may_have_bundles(store: ObjectStore, snapshot: CatalogSnapshot) -> bool:
    """Whether manifests that are staged on this snapshot may lie in bundles."""
    return snapshot.collected and not store.local


def objects_to_stage(
    store: ObjectStore, snapshot: CatalogSnapshot, staged: Sequence[tuple[str, bytes]]
) -> Sequence[tuple[str, bytes]]:
    """Keys and bytes to write, so that an attempt on this snapshot has staged these paths."""
    return with_bundle(staged) if may_have_bundles(store, snapshot) else staged


def keys_of_staged(store: ObjectStore, snapshot: CatalogSnapshot, paths: Sequence[str]) -> list[str]:
    """The keys at which an attempt on this snapshot, which alone has these paths, may have staged them."""
    return [*paths, *bundles_of(paths)] if may_have_bundles(store, snapshot) else list(paths)


def is_staged_alone(store: ObjectStore, snapshot: CatalogSnapshot, path: str) -> bool:
    """Whether the object of a staged path holds nothing else, and so may be removed with its record (M2)."""
    return not may_have_bundles(store, snapshot) or bundle_key(path) is None


class ClosedRecords:
    """Objects that may be left of staged manifests whose records are closed (M2). Not thread-safe.

    One flip opens all records that have manifests in a bundle, so a snapshot that has one of them closed has each of
    the others, open or closed. The process that closes the last one removes the bundle.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._bundles: set[str] = set()

    def add(self, records: Iterable[RecordEntry], snapshot: CatalogSnapshot) -> list[str]:
        """Note records that are closed in `snapshot`. Returns the keys to be removed now: copies for answers (M3)."""
        if not records or not may_have_bundles(self._store, snapshot):
            return []
        paths = [path for path in staged_paths(records) if bundle_key(path) is not None]
        self._bundles |= bundles_of(paths)
        return paths

    def take(self, snapshot: CatalogSnapshot) -> set[str]:
        """The other keys to be removed, which are noted no more; none that a record needs that is open in `snapshot`.

        `snapshot` is not older than those of `add`.
        """
        noted, self._bundles = self._bundles, set()
        return noted.difference(bundles_of(staged_paths(snapshot.open_records()))) if noted else noted


def with_bundle(objects: Iterable[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """The objects of one attempt, with its staged manifests in a bundle, as far as that has room for them."""
    written: list[tuple[str, bytes]] = []
    bundles: dict[str, pb.StagedManifests] = {}
    room = _MOST_BYTES
    for path, data in objects:
        key = bundle_key(path)
        if key is not None and len(data) <= room:
            bundles.setdefault(key, pb.StagedManifests()).parts.add(path=path, manifest=data)
            room -= len(data)
        else:
            written.append((path, data))
    return [*written, *((key, bundle.SerializeToString()) for key, bundle in bundles.items())]


class StagedPaths:
    """Finds the bytes under staged paths, in bundles and alone. Thread-safe.

    A bundle that was read is kept: it has the manifests of many tables, and its name is never used twice.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._loading = threading.Lock()
        self._kept: SizedCache[str, Mapping[str, bytes]] = SizedCache(
            _KEPT_BYTES, lambda parts: sum(map(len, parts.values()))
        )

    def copies(self, path: str) -> Iterator[bytes]:
        """The bytes under this staged path: in a bundle, and alone, the likelier first. Raises `StorageError`.

        Each is to be compared with what is expected: a client, too, may have staged something under this path.
        """
        finds = (self.find_bundled, partial(find_contents, self._store))
        for find in reversed(finds) if self._store.local else finds:
            data = find(path)
            if data is not None:
                yield data

    def find_bundled(self, path: str) -> bytes | None:
        """The bytes that a bundle has under this staged path; None if none has it. Raises `StorageError`."""
        key = bundle_key(path)
        return None if key is None else self._load(key).get(path)

    def _load(self, key: str) -> Mapping[str, bytes]:
        with self._loading:  # many tables want one bundle at the same time
            parts = self._kept.get(key)
            if parts is None:
                try:
                    data = self._store.find(key)
                    if data is None:
                        return _NOTHING
                    parts = _decode(data)
                except (DecodeError, OversizedFile) as error:
                    logger.error("%s is damaged: expected staged manifests, found: %s", key, error)
                    return _NOTHING
                if parts:  # else it is damaged, and may be put back
                    self._kept.put(key, parts)
            return parts


def bundles_of(paths: Iterable[str]) -> set[str]:
    """The keys of the bundles that may hold the manifests with these staged paths."""
    return {key for path in paths if (key := bundle_key(path)) is not None}


def staged_paths(records: Iterable[RecordEntry]) -> Iterator[str]:
    """The staged paths of the manifests that these records published."""
    return (party.staged_path for record in records for party in record.participants if party.staged_path)


def _decode(data: bytes) -> Mapping[str, bytes]:
    return {part.path: part.manifest for part in pb.StagedManifests.FromString(data).parts}
