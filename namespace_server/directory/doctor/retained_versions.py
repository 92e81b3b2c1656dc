"""Versions of tables that the newest catalog version does not have: of dropped tables, and of pinned catalog versions.

Of what other earlier versions of the catalog name a client's own clean-up may remove the files at any time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from lance_core.errors import CorruptFile, NotFound, ReferenceNotFound
from lance_core.format.manifest import parse_manifest_file
from lance_core.storage.port import ObjectStore
from namespace_server.directory.doctor.files import HEAD_CODES, TableFindings
from namespace_server.directory.doctor.findings import BRANCH_DELETED, Finding
from namespace_server.directory.manifest_table.table import ManifestTable
from namespace_server.directory.manifests.deleted_branches import is_deleted_branch
from namespace_server.directory.manifests.manifest_reader import ManifestReader
from namespace_server.directory.model.entries import DROPPED, Participant, VersionEntry, place_of
from namespace_server.directory.model.errors import CatalogDamaged
from namespace_server.directory.model.object_ids import join
from namespace_server.directory.model.snapshot import CatalogSnapshot


class _Kept(NamedTuple):
    """A row that the newest catalog version does not have. `keeper` says what keeps it, `code` what its loss is."""

    row: VersionEntry
    keeper: str
    code: str


def check_kept_tables(
    store: ObjectStore, snapshot: CatalogSnapshot, *, heads: bool = False, locations: Collection[str] | None = None
) -> Iterator[Finding]:
    """The findings on versions that dropped tables and pins keep. Raises `StorageError`.

    Requests: those of a catalog version for each that something keeps; for each location one for each thousand files;
    one for each version, and two for each branch of a dropped table. With `heads`, only the newest versions of dropped
    tables are looked at; with `locations`, only these.
    """
    found: dict[str, dict[tuple[str | None, int], _Kept]] = {}
    for kept in _kept_rows(store, snapshot, heads=heads):
        if locations is None or kept.row.location in locations:
            found.setdefault(kept.row.location, {}).setdefault((kept.row.branch, kept.row.version), kept)
    for location, rows in found.items():
        files = TableFindings(store, location)
        for kept in rows.values():
            yield from _check(store, snapshot, files, kept)


def _kept_rows(store: ObjectStore, snapshot: CatalogSnapshot, *, heads: bool) -> Iterator[_Kept]:
    """Rows that tombstones and pins keep, those of tombstones first; each catalog version is read once."""
    dropped: dict[int, list[Participant]] = {}
    for record in snapshot.records(DROPPED):
        dropped.setdefault(record.catalog_version, []).extend(record.participants)
    pinned = {} if heads else {pin.version: pin.name for pin in snapshot.pins()}
    versions = (dropped.keys() | pinned.keys()) - {0}
    if not versions:
        return
    table = ManifestTable(store)
    table.refresh_by_listing()
    for version in sorted(versions):
        try:
            before = table.kept(version)
        except (ReferenceNotFound, CatalogDamaged):
            continue  # a finding of its own
        for party in dropped.get(version, ()):
            yield from _rows_of_dropped(store, before, party, heads=heads)
        if version in pinned:
            yield from _rows_of_pin(before, f"pin {pinned[version]}", snapshot)


def _rows_of_dropped(
    store: ObjectStore, before: CatalogSnapshot, party: Participant, *, heads: bool
) -> Iterator[_Kept]:
    """The rows of a dropped table, as they were before it was dropped."""
    keeper = f"dropped table {join(party.table_id)}"
    for rows in _chains(before, party.location):
        if is_deleted_branch(store, before, rows[-1]):
            yield _Kept(rows[-1], keeper, BRANCH_DELETED)
            continue
        for row in rows[-1:] if heads else rows:
            yield _Kept(row, keeper, "dropped-table-lost" if row is rows[-1] else "kept-version-lost")


def _rows_of_pin(pinned: CatalogSnapshot, keeper: str, newest: CatalogSnapshot) -> Iterator[_Kept]:
    """The rows of a pinned catalog version that the newest one does not have."""
    for entry in filter(None, map(pinned.table, pinned.all_tables())):
        for rows in _chains(pinned, entry.location):
            yield from (_Kept(row, keeper, "kept-version-lost") for row in rows if not newest.has_version(row))


def _chains(snapshot: CatalogSnapshot, location: str) -> Iterator[Sequence[VersionEntry]]:
    table_id = snapshot.table_at(location)
    if table_id is not None:
        for branch in snapshot.chains(table_id):
            if rows := list(snapshot.versions(table_id, branch)):
                yield rows


def _check(store: ObjectStore, snapshot: CatalogSnapshot, files: TableFindings, kept: _Kept) -> Iterator[Finding]:
    row = kept.row

    def finding(place: str, text: str) -> Finding:
        return Finding(kept.code, place, f"{kept.keeper}: {text}", join(row.table_id))

    if kept.code == BRANCH_DELETED:
        yield finding(row.base, "a client deleted the branch; the table comes back without it")
        return
    staged = row.staged_path or snapshot.open_path(place_of(row))
    try:
        data = ManifestReader(store).read(replace(row, staged_path=staged))
        file = parse_manifest_file(data, expected_version=row.version)
    except NotFound:
        yield finding(row.canonical_path, f"expected the manifest of version {row.version}, did not find it")
        return
    except CorruptFile as error:
        yield finding(row.canonical_path, error.reason)
        return
    for each in files.check(row, file, is_head=True):
        if each.code in HEAD_CODES.values():
            yield finding(each.place, each.text)
