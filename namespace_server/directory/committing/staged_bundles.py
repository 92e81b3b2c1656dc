"""Staged manifests of one attempt in one object: on a bucket each request costs, so a flip stages them together (N5).

A bundle is an Arrow file with a row for each manifest: its staged path, by which rows and records name it, and its
bytes. The key of the bundle follows from the staged path. It goes when no open record has a manifest in it (M7).

In a directory each manifest is staged alone, since it gets its canonical name by a link. Bundles are read there as
well: a catalog may have been copied from a bucket. A catalog that was never collected has none either: servers of the
release before, which know neither collections nor bundles, may still commit to it (G25).
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from lance_core.errors import NotFound
from lance_core.storage.port import ObjectMeta, ObjectStore
from namespace_server.directory.model.entries import RecordEntry
from namespace_server.directory.model.root_layout import bundle_key, is_in_staging

logger = logging.getLogger(__name__)

_MOST_BYTES: Final = 8 << 20
"""Bytes of the manifests in one bundle; the others of its attempt are staged alone."""
_KEPT: Final = 4
_NOTHING: Final[Mapping[str, bytes]] = {}


class _Bundle(NamedTuple):
    meta: ObjectMeta
    parts: Mapping[str, bytes]


def with_bundle(objects: Iterable[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """The objects of one attempt, with its staged manifests in a bundle, as far as that has room for them."""
    written: list[tuple[str, bytes]] = []
    parts: list[tuple[str, bytes]] = []
    room = _MOST_BYTES
    for path, data in objects:
        if is_in_staging(path) and bundle_key(path) is not None and len(data) <= room:
            parts.append((path, data))
            room -= len(data)
        else:
            written.append((path, data))
    if parts:
        key = bundle_key(parts[0][0])
        assert key is not None
        written.append((key, _encode(parts)))
    return written


class StagedBundles:
    """Reads manifests from bundles. Thread-safe.

    What was read is kept: one bundle has the manifests of many tables, and its name is never used twice.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, _Bundle] = OrderedDict()

    def find(self, path: str) -> bytes | None:
        """The manifest with this staged path; None if no bundle has it. Raises `StorageError`."""
        bundle = self._load(path)
        return None if bundle is None else bundle.parts.get(path)

    def find_with_meta(self, path: str) -> tuple[bytes, ObjectMeta] | None:
        """The same with key, size and the date of the bundle."""
        bundle = self._load(path)
        data = None if bundle is None else bundle.parts.get(path)
        if bundle is None or data is None:
            return None
        return data, ObjectMeta(path, len(data), None, bundle.meta.last_modified)

    def _load(self, path: str) -> _Bundle | None:
        key = bundle_key(path)
        if key is None:
            return None
        with self._lock:  # several want the same one
            found = self._kept.get(key)
            if found is None:
                try:
                    data, meta = self._store.get_with_meta(key)
                except NotFound:
                    return None
                found = self._kept[key] = _Bundle(meta, _decode(key, data))
                if len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            return found


def bundles_of(records: Iterable[RecordEntry]) -> set[str]:
    """The keys of the bundles that may hold manifests of these records."""
    paths = (party.staged_path for record in records for party in record.participants)
    return {key for path in paths if path and (key := bundle_key(path)) is not None}


def _encode(parts: Sequence[tuple[str, bytes]]) -> bytes:
    paths, manifests = zip(*parts, strict=True)
    batch = pa.record_batch({"path": pa.array(paths, pa.string()), "manifest": pa.array(manifests, pa.binary())})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    encoded: bytes = sink.getvalue().to_pybytes()
    return encoded


def _decode(key: str, data: bytes) -> Mapping[str, bytes]:
    """The manifests of a bundle. Of one that is damaged none can be read: each is compared with its row anyway."""
    try:
        table = pa.ipc.open_file(data).read_all()
        return dict(zip(table["path"].to_pylist(), table["manifest"].to_pylist(), strict=True))
    except (pa.ArrowInvalid, KeyError) as error:
        logger.error("%s is damaged: expected staged manifests in an Arrow file, found: %s", key, error)
        return _NOTHING
