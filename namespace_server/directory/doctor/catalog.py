"""The catalog itself: the versions of `__manifest`, its rows, pins, tombstones, and the contents of `_staging/`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, Final

import orjson

from lance_core.amounts import counted
from lance_core.errors import CorruptFile, LanceCoreError, NotFound
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.format.naming import parse_manifest_name, versions_directory
from lance_core.storage.port import ObjectMeta, ObjectStore
from lance_core.versions import find_contents
from namespace_server.access.grants import object_name
from namespace_server.access.subjects import ordered
from namespace_server.directory.doctor.findings import Finding
from namespace_server.directory.gc.plan import list_runs, read_plan
from namespace_server.directory.gc.purges import find_left_behind
from namespace_server.directory.gc.report import words_of
from namespace_server.directory.manifest_table.peers import PEER_PROPERTY, read_introduction
from namespace_server.directory.manifest_table.schema import COLLECTED, GRANTED, WRITER_FLAGS_KEY
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.manifests.manifest_reader import is_row
from namespace_server.directory.model.entries import DROPPED, PURGED, PURGING, Entry, RecordEntry, VersionEntry
from namespace_server.directory.model.errors import CatalogTooNew
from namespace_server.directory.model.root_layout import (
    HIGH_WATER_MARKS,
    KEPT_VERSIONS,
    MANIFEST_TABLE,
    NEWEST_VERSION_NOTE,
    QUARANTINE,
    RESERVED,
    kept_version_key,
)
from namespace_server.directory.model.snapshot import CatalogSnapshot

_TOLERANCE: Final = timedelta(hours=1)
_VERSIONS: Final = versions_directory(MANIFEST_TABLE)
_RECENT: Final = 256
"""Versions, from the newest one back, by which it is judged which servers commit now."""


def check_versions(store: ObjectStore, now: datetime) -> tuple[CatalogSnapshot | None, list[Finding]]:
    """The newest snapshot, None if it cannot be read, and the findings on the versions.

    Each version from the oldest kept one on is read: one request each, and two listings. Raises `StorageError`,
    `CatalogTooNew`.
    """
    found: list[Finding] = []
    files = _files_by_version(store)
    if not files:
        return None, [_without_versions(store)]
    newest = max(files)
    try:
        snapshot = ManifestTable(store).refresh_by_listing()
        decoded = list(snapshot.entries())
    except CatalogTooNew:
        raise  # a sound catalog of a later release
    except (LanceCoreError, ValueError) as error:
        return None, [Finding("catalog-unreadable", files[newest].path, f"version {newest}: {error}")]
    files |= _files_by_version(store)  # versions that were committed, or removed, since the first listing
    ids = Counter(entry.object_id for entry in decoded)
    found += [_rows(files[newest], f"object id {name!r} has {count} rows") for name, count in ids.items() if count > 1]
    found += _check_history(store, files, snapshot)
    found += _check_newest(store, snapshot, files, now)
    return snapshot, found


def _without_versions(store: ObjectStore) -> Finding:
    """The finding on a root without any version of a catalog: it is damaged, or no catalog was made yet."""
    traces = (store.first(MANIFEST_TABLE), store.first(HIGH_WATER_MARKS), store.first(KEPT_VERSIONS))
    trace = next((meta.path for meta in traces if meta is not None), None)
    if trace is None and _noted(store) is not None:
        trace = NEWEST_VERSION_NOTE
    if trace is not None:
        return Finding("catalog-unreadable", _VERSIONS, f"expected a catalog, found no version of it, but {trace}")
    tables = sorted(name for name in store.directories("") if name not in RESERVED)
    if tables:
        text = f"no catalog here, but {len(tables)} directories, such as {tables[0]}"
        return Finding("no-catalog-of-tables", _VERSIONS, text)
    return Finding("no-catalog", _VERSIONS, "no catalog here yet")


def _files_by_version(store: ObjectStore) -> dict[int, ObjectMeta]:
    named = ((parse_manifest_name(meta.path.rpartition("/")[2]), meta) for meta in store.list(_VERSIONS))
    return {name[0]: meta for name, meta in named if name is not None}


def _rows(newest: ObjectMeta, text: str) -> Finding:
    return Finding("catalog-rows-disagree", newest.path, text)


def _check_history(store: ObjectStore, files: Mapping[int, ObjectMeta], snapshot: CatalogSnapshot) -> Iterator[Finding]:
    """Versions from the oldest kept one on are there, can be read, and follow each other (invariant 4)."""
    oldest, broken, made = snapshot.collector.oldest, False, list[str]()
    first = min((version for version in files if version >= oldest), default=snapshot.version)
    if not snapshot.collector.run:
        oldest = first  # without a collector a stock client may have removed old versions
    for version in range(oldest, snapshot.version + 1):
        if version not in files:
            place = f"{_VERSIONS}/{version}"
            yield Finding(
                "catalog-gap", place, f"versions {oldest} to {snapshot.version} are kept; {version} is missing"
            )
            broken = True
            continue
        try:
            file = parse_manifest_file(store.get(files[version].path), expected_version=version)
        except NotFound:
            continue  # removed meanwhile
        except LanceCoreError as error:
            yield Finding("catalog-version-unreadable", files[version].path, str(error))
            broken = True
            continue
        read = None if file.transaction is None else file.transaction.read_version
        if read is not None and read != version - 1:
            text = f"expected a commit over version {version - 1}, found one over {read}"
            yield Finding("catalog-phantom", files[version].path, text)
        if file.transaction is not None:
            made.append(file.transaction.transaction_properties.get(PEER_PROPERTY, ""))
        yield from _check_row_files(store, version, file)
    yield from _check_servers(made[-_RECENT:])
    if not broken:
        yield from _check_steps(store, snapshot, files)


def _check_servers(introductions: Iterable[str]) -> Iterator[Finding]:
    """Servers of which not all share a secret do not commit by turns. One that follows another one is no such case."""
    found = [each for each in map(read_introduction, introductions) if each is not None]
    order = [peer for peer, _ in groupby(peer for peer, _ in found)]
    if len(order) != len(set(order)) and not all(proof for _, proof in found):
        servers = sorted({f"{peer.instance} at {peer.url}" for peer, _ in found})
        text = f"{len(servers)} servers committed by turns, of which not all have a secret: {', '.join(servers[:4])}"
        yield Finding("servers-take-turns", _VERSIONS, text)


def _check_row_files(store: ObjectStore, version: int, file: ManifestFile) -> Iterator[Finding]:
    try:
        _require_row_files(store, file)
    except NotFound as error:
        yield Finding("catalog-version-unreadable", f"{_VERSIONS}/{version}", f"a file of its rows is missing: {error}")


def _require_row_files(store: ObjectStore, file: ManifestFile) -> None:
    """Raise `NotFound` unless the files of a catalog version's rows are there."""
    names = {f"{MANIFEST_TABLE}/data/{each.path}" for fragment in file.manifest.fragments for each in fragment.files}
    store.require(sorted(names))


def _check_steps(store: ObjectStore, snapshot: CatalogSnapshot, files: Mapping[int, ObjectMeta]) -> Iterator[Finding]:
    """The newest version has the rows of the one before it, with the changes that it states."""
    if snapshot.version - 1 < snapshot.collector.oldest:
        return
    try:
        [(before, changes)] = list(ManifestTable(store).steps(snapshot.version - 1, snapshot.version))
    except (LanceCoreError, ValueError):
        return  # removed meanwhile, or reported above
    if changes is None:
        return
    after, loaded = _by_id(before.apply(changes)), _by_id(snapshot)
    wrong = sorted(name for name in after.keys() | loaded.keys() if after.get(name) != loaded.get(name))
    if wrong:
        text = f"{len(wrong)} rows differ from the changes of version {snapshot.version}, first {wrong[0]!r}"
        yield _rows(files[snapshot.version], text)


def _by_id(snapshot: CatalogSnapshot) -> dict[str, Entry]:
    """Entries without the paths that were staged, of some of which a loaded snapshot keeps a digest only."""
    return {
        entry.object_id: replace(entry, staged_path=None) if isinstance(entry, VersionEntry) else entry
        for entry in snapshot.entries()
    }


def _check_newest(
    store: ObjectStore, snapshot: CatalogSnapshot, files: Mapping[int, ObjectMeta], now: datetime
) -> Iterator[Finding]:
    """No trace of a later version exists (F7), and the horizon is not in the future (G28)."""
    witnesses = {name: int(name) for name in store.names(HIGH_WATER_MARKS) if name.isdigit()}
    noted = _noted(store)
    witnesses |= {} if noted is None else {NEWEST_VERSION_NOTE: noted}
    for record in snapshot.records():
        witnesses[f"record {record.batch_uuid}"] = record.catalog_version or 0
    name, version = max(witnesses.items(), key=lambda item: item[1], default=("", 0))
    if version > snapshot.version:
        text = f"{name} names version {version}, the newest on storage is {snapshot.version}"
        yield Finding("catalog-went-back", files[snapshot.version].path, text)
    horizon = datetime.fromtimestamp(snapshot.collector.horizon, UTC)
    if horizon > now + _TOLERANCE:
        yield Finding("horizon-in-future", MANIFEST_TABLE, f"the horizon is {horizon:%Y-%m-%dT%H:%M:%SZ}")
    yield from _check_dates(snapshot, files[snapshot.version], now)
    if snapshot.collector.run or snapshot.policy is not None:
        data = store.find(files[snapshot.version].path)  # it is gone if a hundred others came meanwhile
        metadata = {} if data is None else parse_manifest_file(data).manifest.table_metadata
        flags = metadata.get(WRITER_FLAGS_KEY, "0")
        found = int(flags) if flags.isdigit() else 0
        if data is not None and snapshot.collector.run and not found & COLLECTED:
            yield Finding("writer-flag-missing", files[snapshot.version].path, f"writer flags {flags}, expected bit 33")
        if data is not None and snapshot.policy is not None and not found & GRANTED:
            yield Finding("grants-flag-missing", files[snapshot.version].path, f"writer flags {flags}, expected bit 34")


def _check_dates(snapshot: CatalogSnapshot, newest: ObjectMeta, now: datetime) -> Iterator[Finding]:
    """The newest version, and the heads of tables, are not dated in the future (G30)."""
    latest_ms = int((max(newest.last_modified, now) + _TOLERANCE).timestamp() * 1_000)
    chains = ((table_id, branch) for table_id in snapshot.all_tables() for branch in snapshot.chains(table_id))
    heads = (snapshot.head(*chain) for chain in chains)
    ahead = [head for head in heads if head is not None and head.timestamp_ms > latest_ms]
    if snapshot.timestamp_ms > latest_ms or ahead:
        dated_ms = max([snapshot.timestamp_ms, *(head.timestamp_ms for head in ahead)])
        text = (
            f"the store dates it {newest.last_modified:%Y-%m-%dT%H:%M:%SZ}; it, or the newest version of one of "
            f"{counted(len(ahead), 'table or branch', 'tables and branches')}, says {_moment(dated_ms)}"
        )
        yield Finding("dated-ahead", newest.path, text)


def _moment(time_ms: int) -> str:
    try:
        return f"{datetime.fromtimestamp(time_ms / 1_000, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (OverflowError, ValueError, OSError):
        return f"{time_ms:,} ms since the epoch"


def _noted(store: ObjectStore) -> int | None:
    data = store.find(NEWEST_VERSION_NOTE)
    try:
        found: Any = None if data is None else orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return found["version"] if isinstance(found, dict) and isinstance(found.get("version"), int) else None


def check_kept(store: ObjectStore, snapshot: CatalogSnapshot) -> Iterator[Finding]:
    """Pins and dropped tables have the catalog versions that they need (G6, G10, G13)."""
    copies = {meta.path for meta in store.list(KEPT_VERSIONS)}
    oldest = snapshot.collector.oldest

    def problem(version: int) -> str | None:
        if version >= oldest:
            return None if version <= snapshot.version else f"version {version} is above the newest"
        key = kept_version_key(version)
        if key not in copies:
            return f"version {version} is below {oldest}, the oldest that is kept, and has no copy"
        try:
            _require_row_files(store, parse_manifest_file(store.get(key), expected_version=version))
        except LanceCoreError as error:
            return str(error)
        return None

    for pin in snapshot.pins():
        if (text := problem(pin.version)) is not None:
            yield Finding("pin-without-version", f"pin {pin.name}", text)
    for record in snapshot.records(DROPPED):
        if record.catalog_version and (text := problem(record.catalog_version)) is not None:
            yield Finding("tombstone-without-version", f"tombstone {record.batch_uuid}", text)


def check_grants(_store: ObjectStore, snapshot: CatalogSnapshot) -> Iterator[Finding]:
    """Each grant is on an object that is there, and is what it says."""
    for grant in snapshot.policy.grants() if snapshot.policy is not None else ():
        is_there = (
            snapshot.table(grant.on) is not None if grant.kind == "table" else snapshot.namespace(grant.on) is not None
        )
        if not is_there:
            text = f"{', '.join(ordered(grant.privileges))} to {grant.to}: there is no such {grant.kind}"
            yield Finding("grant-without-object", object_name(grant.kind, grant.on), text)


def check_locations(store: ObjectStore, snapshot: CatalogSnapshot) -> Iterator[Finding]:
    """Each location is of one table, and no current table has that of a dropped one (N1, G15)."""
    holders: dict[str, list[str]] = {}
    for table_id in snapshot.all_tables():
        if (table := snapshot.table(table_id)) is not None:
            holders.setdefault(table.location, []).append("$".join(table_id))
    for location, tables in holders.items():
        if len(tables) > 1:
            yield Finding("shared-location", location, f"of the tables {', '.join(tables)}")
        tombstone = snapshot.tombstone_at(location)
        if tombstone is not None and tombstone.state in {DROPPED, PURGING, PURGED}:
            text = f"is of {tables[0]}, and of a dropped table, tombstone {tombstone.batch_uuid} ({tombstone.state})"
            yield Finding("tombstone-of-table", location, text)
    for directory in store.directories(""):
        known = snapshot.table_at(directory) or snapshot.table_below(directory) or snapshot.tombstone_at(directory)
        if known and (left := find_left_behind(store, snapshot, [directory])):
            yield Finding("left-behind", directory, f"of a table that is purged: {words_of(*left[directory])}")
        if directory not in RESERVED and not known:
            yield Finding("unexplained-directory", directory, "expected the location of a table")


def _recommit_of(file: ManifestFile | None, report: RecordEntry | None, rows: Iterable[VersionEntry]) -> str:
    """The fate of the commit in a quarantined file, in words."""
    made = "" if file is None else file.transaction_uuid
    there = next((row.version for row in rows if made and row.transaction_uuid == made), None)
    what = "what it holds" if file is None else f"its commit ({file.operation}, {made})"
    if there is not None:
        return f"{what} is version {there}"
    if report is None or not report.results:
        return f"{what} is not in the table"
    reason = orjson.loads(report.results).get("reason")
    return (
        f"{what} is not in the table: {reason}" if reason else f"{what} was committed again, in a version that is gone"
    )


def check_staging(store: ObjectStore, snapshot: CatalogSnapshot) -> Iterator[Finding]:
    """No quarantined file is a row's manifest (G22), and plans of garbage collections can be read (G27)."""
    for meta in store.list(QUARANTINE):
        former = meta.path.removeprefix(f"{QUARANTINE}/").partition("/")[2]
        base, marker, _ = former.rpartition("/_versions/")
        if not marker:
            continue
        location, _, branch = base.partition("/tree/")
        table_id, data = snapshot.table_at(location), find_contents(store, meta.path)
        if table_id is None or data is None:
            continue
        try:
            file: ManifestFile | None = parse_manifest_file(data)
        except LanceCoreError:
            file = None
        version = 0 if file is None else file.version
        row = snapshot.version_entry(table_id, branch or None, version)
        if row is not None and is_row(row, data) and find_contents(store, row.canonical_path) != data:
            text = f"is the manifest of version {version}, expected it at {row.canonical_path}"
            yield Finding("quarantined-version", meta.path, text, "$".join(table_id))
        else:
            name = meta.path.removeprefix(f"{QUARANTINE}/").partition("/")[0]
            text = _recommit_of(file, snapshot.record(name), snapshot.versions(table_id, branch or None))
            yield Finding("quarantined-file", meta.path, f"was at {former}; {text}", "$".join(table_id))
    for plan in list_runs(store).unfinished:
        try:
            read_plan(store, plan)
        except CorruptFile as error:
            yield Finding("plan-unreadable", plan, str(error))
        except NotFound:
            continue
