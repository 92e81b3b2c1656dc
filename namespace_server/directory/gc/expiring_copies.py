"""Copies of manifests that a run is about to remove (rule G17).

    _staging/gc/<run>/expiring/<uuid>/<former key>

A manifest that a reference names by the time it is gone is put back. Until that is decided its files stay: a run that
finds no manifest looks for copies afterwards, as the search for orphans does below `_staging/`. The process that wrote
a copy removes it if it does not put the manifest back. Others go a day later, with the files of the run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from lance_core.storage.port import ObjectMeta, ObjectStore
from namespace_server.directory.model.root_layout import COLLECTION, EXPIRING


def write_copies(store: ObjectStore, run: str, writer: str, manifests: Mapping[str, bytes]) -> dict[str, str]:
    """Write copies of manifests, by key, for the run whose files lie at `run`; returns their keys, by the same.

    `writer` is a new uuid. Raises `StorageError`.
    """
    keys = {path: f"{run}/{EXPIRING}/{writer}/{path}" for path in manifests}
    store.map(lambda path: store.put_if_absent(keys[path], manifests[path], durable=False), list(manifests))
    return keys


def copies_of(store: ObjectStore, paths: Collection[str]) -> Iterator[ObjectMeta]:
    """The copies of manifests that were at one of these keys, of all runs. One listing. Raises `StorageError`."""
    for meta in store.list(COLLECTION):
        _, found, copy = meta.path.partition(f"/{EXPIRING}/")
        if found and copy.partition("/")[2] in paths:
            yield meta
