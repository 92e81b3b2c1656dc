"""What the server keeps in memory takes as much memory as is counted."""

from __future__ import annotations

import tracemalloc

from lance_core.format.manifest import build_manifest_file
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.memory import MemoryStore
from lance_core.storage.wrappers.counting import CountingStore
from namespace_server.answer import json_bytes
from namespace_server.directory.manifests.manifest_cache import ManifestCache
from namespace_server.directory.manifests.manifest_reader import ManifestReader
from namespace_server.directory.model.entries import VersionEntry

LIMIT = 1 << 20


def manifest(version: int, fragments: int) -> pb.Manifest:
    found = pb.Manifest(version=version)
    for number in range(fragments):
        found.fragments.add(id=number, physical_rows=10).files.add(path=f"{number}.lance")
    return found


def test_the_cache_counts_what_messages_take_beside_the_bytes_of_their_files() -> None:
    cache = ManifestCache(ManifestReader(MemoryStore()), limit=LIMIT)
    entries = []
    for version in range(1, 401):
        data, file = build_manifest_file(manifest(version, 3), pb.Transaction(uuid="u", append=pb.Transaction.Append()))
        entry = VersionEntry(("t",), None, version, "t", len(data), file.identity.sha256, "u", 0)
        cache.put(entry, file)
        entries.append(entry)
    kept = [entry for entry in entries if cache.get(entry) is not None]
    assert entries[-1] in kept
    assert 0 < len(kept) < LIMIT // 8192  # of some hundred bytes each, whose messages take ten times as much
    assert cache.state.size <= LIMIT


def test_no_more_is_fetched_at_once_than_half_of_the_cache_holds() -> None:
    store = CountingStore(MemoryStore())
    cache = ManifestCache(ManifestReader(store), limit=LIMIT)
    entries = []
    for version in range(1, 101):
        data, file = build_manifest_file(manifest(version, 3), pb.Transaction(uuid="u", append=pb.Transaction.Append()))
        entry = VersionEntry(("t",), None, version, "t", len(data), file.identity.sha256, "u", 0)
        if version != 2:
            store.put(entry.canonical_path, data)
        entries.append(entry)
    store.gather(list(cache.reads(entries)))
    fetched = [entry for entry in entries if cache.get(entry) is not None]
    assert fetched == [entry for entry in entries[: len(fetched) + 1] if entry.version != 2]
    assert LIMIT // 4 < cache.state.size <= LIMIT // 2
    assert not list(cache.reads(fetched))


def test_kept_json_takes_no_more_memory_than_it_has_bytes() -> None:
    value = {"name": "x" * 300}
    tracemalloc.start()
    try:
        kept = [json_bytes(value) for _ in range(500)]
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 500 * 600
    assert kept[0] == b'{"name":"' + b"x" * 300 + b'"}'
