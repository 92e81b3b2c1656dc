"""The invariants of the architecture (§8), checked on a root from outside, and by stock pylance beside our own loader.

`check_always` holds at every moment, also right after a crash. `check_quiet` holds once recovery has run.
`check_progress` writes: after it every table has two more versions (invariant 12). Their messages begin with the
number of the invariant.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import lance
import lance_namespace
import pyarrow as pa
import pytest

from lance_core.errors import NotFound, ReferenceNotFound
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.format.naming import NamingScheme, branch_base, manifest_name, parse_manifest_name
from lance_core.proto import staged_manifests_pb2
from lance_core.storage.local import LocalStore
from lance_core.transaction.lineage import lineage_break
from namespace_server.directory.manifest_table.incremental_refresh import IncrementalRefresh
from namespace_server.directory.manifest_table.row_codec import Row, decode_row
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.model.entries import Entry, TableEntry, VersionEntry
from namespace_server.directory.model.snapshot import CatalogSnapshot
from tests.directory.tables import Ground, rows

CATALOG = "__manifest"
COLUMNS = ["object_id", "object_type", "location", "metadata"]


@dataclass(frozen=True)
class Chain:
    """One (table, branch) of a catalog version: its rows, ascending, and what stands under canonical names."""

    table: TableEntry
    branch: str | None
    entries: tuple[VersionEntry, ...]
    canonical: dict[int, ManifestFile]

    @property
    def place(self) -> str:
        return "$".join(self.table.id) + (f" branch {self.branch}" if self.branch else "")

    @property
    def head(self) -> VersionEntry:
        return self.entries[-1]


def check_always(root: Path, *, since: int = 1, step: int = 1, cleaned: bool = False) -> CatalogSnapshot:
    """Invariants 1 to 7 as far as storage shows them; returns the newest snapshot.

    From catalog version `since` on every `step`-th, and the newest, are compared with what stock pylance reads.
    `cleaned`: old versions of the catalog were removed by a clean-up.
    """
    store = LocalStore(root, "none")
    newest = ManifestTable(store).refresh()
    _check_catalog_versions(store, newest, cleaned)
    known = {CATALOG}
    for version in sorted({*range(since, newest.version + 1, step), newest.version}):
        snapshot = newest if version == newest.version else load_version(store, version)
        stored = stock_rows(root, version)
        _check_rows(snapshot, stored)
        _check_manifests(store, snapshot, stored)
        known |= {table.location for table in map(snapshot.table, snapshot.all_tables()) if table is not None}
    _check_no_strangers(store, known, newest)
    for chain in chains(store, newest):
        _check_names(chain)
        _check_lineage(chain)
        if chain.canonical:
            _check_opens(root, chain, max(chain.canonical))
    return newest


def check_quiet(
    root: Path, *, since: int = 1, step: int = 1, cleaned: bool = False, was_away: bool = False
) -> CatalogSnapshot:
    """`check_always`, and what recovery owes: everything promoted, nothing open (10, 11, M2, M7).

    Of a table that `was_away` from the catalog staged manifests may be left, for a garbage collection to remove.
    """
    newest = check_always(root, since=since, step=step, cleaned=cleaned)
    store = LocalStore(root, "none")
    assert not newest.open_records(), f"M7: open records are left: {newest.open_records()}"
    for record in newest.records():
        for party in record.participants:
            if party.staged_path and newest.table_at(party.location) is not None and not was_away:
                assert not _exists(store, party.staged_path), f"M2: {party.staged_path} is left"
    for chain in chains(store, newest):
        top = max(chain.canonical, default=0)
        assert top == chain.head.version, f"11: {chain.place} ends at {top} on storage, at {chain.head.version} in rows"
    _check_stock_namespace(root, newest)
    return newest


def check_progress(root: Path, *, cleaned: bool = False, was_away: bool = False) -> None:
    """A fresh stock writer and a fresh batch commit on every table (12), and the root is sound after it."""
    ground = Ground(root)
    snapshot = ground.catalog.snapshot()
    assert any(snapshot.all_tables()), "12: nothing to write to"
    tables = [list(table_id) for table_id in snapshot.all_tables()]
    before = {tuple(table): ground.head(table) for table in tables}
    data = {tuple(table): _sample(ground, table) for table in tables}
    for table in tables:
        ground.write(table, data[tuple(table)], "append" if ground.head(table) else "create")
    ground.batch(*(ground.transaction(table, data[tuple(table)]) for table in tables))
    after = {tuple(table): ground.head(table) for table in tables}
    assert after == {table: head + 2 for table, head in before.items()}, "12: a fresh write did not arrive"
    ground.catalog.sweep()
    check_same(ground.catalog.snapshot(), check_quiet(root, since=snapshot.version, cleaned=cleaned, was_away=was_away))


def check_same(warm: CatalogSnapshot, cold: CatalogSnapshot) -> None:
    """A snapshot that was led from flip to flip equals one that was loaded (the inline changes are the fragments)."""
    assert warm.version == cold.version
    assert _by_id(warm) == _by_id(cold)


def stock_rows(root: Path, version: int | None = None) -> list[Row]:
    """The rows of `__manifest` as stock pylance reads them."""
    table = lance.dataset(str(root / CATALOG), version=version).to_table(columns=COLUMNS)
    return [Row(*row) for row in zip(*(table.column(name).to_pylist() for name in COLUMNS), strict=True)]


def chains(store: LocalStore, snapshot: CatalogSnapshot) -> Iterator[Chain]:
    """Every chain that has version rows."""
    for table_id in snapshot.all_tables():
        table = snapshot.table(table_id)
        assert table is not None
        for branch in snapshot.chains(table_id):
            entries = tuple(snapshot.versions(table_id, branch))
            if entries:
                yield Chain(table, branch, entries, canonical(store, branch_base(table.location, branch)))


def canonical(store: LocalStore, base: str) -> dict[int, ManifestFile]:
    """The manifests under canonical names below a table or branch, each with the number in its name."""
    found = {}
    for meta in store.list(f"{base}/_versions"):
        named = parse_manifest_name(meta.path.rpartition("/")[2])
        if named is not None:
            found[named[0]] = parse_manifest_file(store.get(meta.path), expected_version=named[0])
    return dict(sorted(found.items()))


def _check_catalog_versions(store: LocalStore, newest: CatalogSnapshot, cleaned: bool) -> None:
    found = canonical(store, CATALOG)
    if cleaned:  # a process that died may have written a version below: it is in no history, and nothing answers it
        first = next(version for version in range(newest.version, 0, -1) if version - 1 not in found)
        for version in [version for version in found if version < first]:
            with pytest.raises(ReferenceNotFound):
                ManifestTable(store).at(version)
            del found[version]
    expected = list(range(1 if not cleaned else first, newest.version + 1))
    assert list(found) == expected, f"4: catalog versions {list(found)} are not contiguous"
    for version, file in found.items():
        assert file.transaction is not None
        assert file.transaction.read_version == version - 1, f"4: catalog version {version} is no compare-and-set"
    uuids = [file.identity.transaction_uuid for file in found.values()]
    assert len(set(uuids)) == len(uuids), "3: a flip was applied twice"


def _check_rows(snapshot: CatalogSnapshot, stored: list[Row]) -> None:
    twice = [object_id for object_id, count in Counter(row.object_id for row in stored).items() if count > 1]
    assert not twice, f"5: catalog version {snapshot.version} holds twice: {twice}"
    theirs = {row.object_id: _plain(decode_row(row)) for row in stored}
    assert _by_id(snapshot) == theirs, f"10: catalog version {snapshot.version} is another one for stock pylance"


def _by_id(snapshot: CatalogSnapshot) -> dict[str, Entry | None]:
    return {entry.object_id: _plain(entry) for entry in snapshot.entries()}


def _plain(entry: Entry | None) -> Entry | None:
    """Without the staged path, of which a loaded snapshot may keep a digest only."""
    return replace(entry, staged_path=None) if isinstance(entry, VersionEntry) else entry


def _check_manifests(store: LocalStore, snapshot: CatalogSnapshot, stored: list[Row]) -> None:
    """Of this catalog version each row's manifest can be read, at one of its two names or in a bundle."""
    for row in stored:
        entry = decode_row(row)
        if not isinstance(entry, VersionEntry):
            continue
        loaded = snapshot.version_entry(entry.table_id, entry.branch, entry.version)
        assert loaded is not None
        assert entry.staged_path is None or loaded.matches_staged_path(entry.staged_path), (
            f"N5: {row.object_id} has another staged path"
        )
        names = [path for path in (entry.canonical_path, entry.staged_path) if path is not None]
        assert any(_is(store, path, entry) for path in names), (
            f"6: {row.object_id} of catalog version {snapshot.version} is at none of {names}"
        )


def load_version(store: LocalStore, version: int) -> CatalogSnapshot:
    """A catalog version as a reader without any earlier snapshot reads it."""
    path = f"{CATALOG}/_versions/{manifest_name(version)}"
    file = parse_manifest_file(store.get(path), expected_version=version)
    return IncrementalRefresh(store, CATALOG).follow(CatalogSnapshot(), file, NamingScheme.V2, 0.0)


def _check_no_strangers(store: LocalStore, known: set[str], newest: CatalogSnapshot) -> None:
    """Only in the locations of tables, `known` from the catalog or dropped, stand canonical names."""
    for meta in store.list(""):
        location, marker, name = meta.path.partition("/_versions/")
        if marker and parse_manifest_name(name) is not None and not location.startswith("_staging/foreign/"):
            location = location.partition("/tree/")[0].partition("/_staging/")[0]  # a compaction's clone lies there
            dropped = newest.tombstone_at(location) is not None
            assert location in known or dropped, f"2: {meta.path} is of no table of the catalog"


def _check_names(chain: Chain) -> None:
    """Canonical names are contiguous, none is beyond the head, and each is the row's of that number."""
    found = list(chain.canonical)
    assert found == list(range(found[0], found[0] + len(found))) if found else True, f"11: {chain.place} has {found}"
    beyond = [version for version in found if version > chain.head.version]
    assert not beyond, f"2: {chain.place} has {beyond} on storage before the flip; its head is {chain.head.version}"
    for entry in chain.entries:
        file = chain.canonical.get(entry.version)
        assert file is None or file.identity == entry.identity, f"6: {entry.canonical_path} is not the row's"


def _check_lineage(chain: Chain) -> None:
    files = list(chain.canonical.values())
    for below, file in pairwise(files):
        broken = lineage_break(below, file)
        assert broken is None, f"7: version {file.version} of {chain.place} was not built on the one below: {broken}"
    uuids = [file.identity.transaction_uuid for file in files]
    assert len(set(uuids)) == len(uuids), f"3: a transaction was applied twice to {chain.place}"


def _check_opens(root: Path, chain: Chain, version: int) -> None:
    uri = str(root / branch_base(chain.table.location, chain.branch))
    dataset = lance.dataset(uri)
    assert dataset.version == version, f"10: stock pylance opens {chain.place} at {dataset.version}, not {version}"
    dataset.validate()
    assert dataset.to_table().num_rows == dataset.count_rows()


def _check_stock_namespace(root: Path, snapshot: CatalogSnapshot) -> None:
    """pylance's own directory catalog lists the tables and finds them where we do."""
    stock = lance_namespace.connect("dir", {"root": str(root)})
    for table_id in snapshot.all_tables():
        listed = stock.list_tables(lance_namespace.ListTablesRequest(id=list(table_id[:-1]))).tables
        assert table_id[-1] in listed, f"10: {table_id} is not among {listed}"
        entry = snapshot.table(table_id)
        described = stock.describe_table(lance_namespace.DescribeTableRequest(id=list(table_id)))
        assert entry is not None
        assert described.location.endswith(entry.location), f"10: {described.location} is not at {entry.location}"


def _sample(ground: Ground, table: list[str]) -> pa.Table:
    if not ground.head(table):
        return rows(0, 1)
    data = lance.dataset(namespace_client=ground.namespace, table_id=table).to_table().slice(0, 1)
    return data if data.num_rows else rows(0, 1)


def _is(store: LocalStore, path: str, entry: VersionEntry) -> bool:
    try:
        data = store.get(path)
    except NotFound:
        data = _bundled(store, path)
    return data is not None and len(data) == entry.size and hashlib.sha256(data).hexdigest() == entry.sha256


def _bundled(store: LocalStore, path: str) -> bytes | None:
    """What the bundle of an attempt has under this staged path."""
    staged = re.fullmatch(r"_staging/[0-9a-f-]{36}\.([0-9a-f-]{36})\.[0-9]+-[0-9]+", path)
    data = None if staged is None else store.find(f"_staging/{staged[1]}.manifests")
    if data is None:
        return None
    parts = staged_manifests_pb2.StagedManifests.FromString(data).parts
    return next((part.manifest for part in parts if part.path == path), None)


def _exists(store: LocalStore, path: str) -> bool:
    try:
        store.head(path)
    except NotFound:
        return False
    return True
