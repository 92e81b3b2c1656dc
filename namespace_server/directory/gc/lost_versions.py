"""Referenced versions whose manifests were not found: the files that they need are not known (rule G29).

A listing may lack names, and a manifest may be lost while its files are there. So before anything goes the manifest of
each row that no listing had is asked for by its key. Where it is gone the version was removed by a client's clean-up
(M5), or it is lost. A clean-up removes the files of a version before its manifest, its transaction file among them, and
no version that a reference names. So a version is lost if its transaction file is there, or a tag, a branch or a pin
needs it. Where the versions beside it have no transaction files, there is no sign that it was cleaned up: it is lost.

A manifest that cannot be read may name files of other tables, as that of a shallow clone does. Then no location can be
judged. It is taken not to if another version of its table was read and has no base paths, or if its own transaction
file is there and begins the table without any. (Base paths that are added later are for files that the table writes.)
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain
from typing import NamedTuple

from google.protobuf.message import DecodeError

from lance_core.cleanup.survey import FileSurvey
from lance_core.errors import CorruptFile, NotFound, ReferenceNotFound
from lance_core.format.manifest import parse_manifest_file
from lance_core.format.naming import (
    MAIN_BRANCH,
    TRANSACTIONS_DIRECTORY,
    NamingScheme,
    branch_base,
    join_key,
    manifest_path,
    parse_transaction_name,
    transaction_path,
)
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.port import ObjectMeta, ObjectStore
from lance_core.tables.branches import Branches
from lance_core.tables.tags import Tags
from namespace_server.directory.gc.directories import row_of_manifest
from namespace_server.directory.model.entries import DROPPED, VersionEntry, place_of
from namespace_server.directory.model.errors import CatalogDamaged
from namespace_server.directory.model.object_ids import join
from namespace_server.directory.model.snapshot import CatalogSnapshot

NamedVersion = tuple[str | None, int]
"""Branch (None is main) and version."""


class Lost(NamedTuple):
    """Why a location cannot be judged without a manifest, and whether that may name files of other tables."""

    text: str
    may_name_others: bool


def references_of(store: ObjectStore, location: str) -> frozenset[NamedVersion]:
    """The versions that tags of a table name and that its branches began from, as (branch, version).

    Raises `CorruptFile` for a reference that cannot be read, `StorageError`.
    """
    tags, branches = Tags(store, location).list().values(), Branches(store, location).list().values()
    named = [(tag.branch, tag.version) for tag in tags]
    named += [(branch.parent_branch, branch.parent_version) for branch in branches]
    return frozenset((None if branch == MAIN_BRANCH else branch, version) for branch, version in named)


def rows_of(snapshot: CatalogSnapshot) -> Iterator[VersionEntry]:
    """The rows of all versions of all tables."""
    for table_id in snapshot.all_tables():
        for branch in snapshot.chains(table_id):
            yield from snapshot.versions(table_id, branch)


class LostVersions:
    """Looks for the manifests that no listing had, and finds the locations that cannot be judged without them.

    `survey` has read what was listed, and takes what is found. `add` reads the manifest of a committed version at a
    staged path of a location, and says whether it is there. `kept` reads an earlier catalog version.
    """

    def __init__(
        self,
        store: ObjectStore,
        survey: FileSurvey,
        snapshot: CatalogSnapshot,
        add: Callable[[str, str], bool],
        kept: Callable[[int], CatalogSnapshot],
    ) -> None:
        self._store = store
        self._survey = survey
        self._snapshot = snapshot
        self._add = add
        self._pinned = list(_there(kept, {pin.version for pin in snapshot.pins()}))
        self._kept = kept
        self._cleaned: set[str] = set()

    def find(
        self,
        going: Collection[str],
        left_out: Collection[str],
        gone: Collection[tuple[str, str | None]],
        deleted: Iterable[VersionEntry] = (),
    ) -> dict[str, Lost]:
        """The locations of which a version is lost, with the reason.

        Something may go at the locations `going`. Those that are `left_out` are not looked at, nor are
        the chains `gone`, by location and branch, of branches that a client deleted. `deleted` are rows that
        earlier kept versions of the catalog have. Requests: one for each version that no listing had; for each location
        of a version that is not found, and each at which something may go, those that list its references, and of the
        former those that list its transaction files, and three for each gap in its versions.
        """
        rows = chain(rows_of(self._snapshot), deleted, *map(rows_of, self._pinned), self._dropped_rows(left_out))
        unread = {
            row.canonical_path: row
            for row in rows
            if row.location not in left_out
            and (row.location, row.branch) not in gone
            and self._counts(row.location)
            and not self._is_read(row)
        }
        missing = self._missing([row for path, row in unread.items() if path not in self._cleaned])
        lost: dict[str, Lost] = {}
        for location in sorted({row.location for row in missing} | set(going)):
            rows_here = [row for row in missing if row.location == location]
            try:
                referred = references_of(self._store, location)
            except CorruptFile as error:
                if rows_here:
                    lost[location] = Lost(str(error), self.may_name_others(location, rows_here[0]))
                continue
            problems = chain(self._lost_rows(rows_here, referred), self._lost_references(location, referred))
            problem = next(problems, None)
            if problem is None:
                self._cleaned.update(row.canonical_path for row in rows_here)
            else:
                lost[location] = problem
        return lost

    def row_at(self, location: str, path: str) -> VersionEntry | None:
        """The row of a version of a table, or of a dropped one that can come back, whose manifest has this key."""
        if self._snapshot.table_at(location) is None:
            return next((row for row in self._rows_before_drop({location}) if row.canonical_path == path), None)
        return row_of_manifest(self._snapshot, location, path)

    def may_name_others(self, location: str, row: VersionEntry | None) -> bool:
        """Whether a manifest that cannot be read may name files of other tables.

        It is that of `row`, or of a version without a row. At most two requests.
        """
        if location in self._survey.naming_others or location in self._survey.understood:
            return location in self._survey.naming_others
        return row is None or not self._begins_apart(row)

    def _begins_apart(self, row: VersionEntry) -> bool:
        """Whether the transaction file of a version is there, and begins a table that names no files of others."""
        data = self._store.find(transaction_path(row.base, 0, row.transaction_uuid)) if row.transaction_uuid else None
        try:
            found = pb.Transaction() if data is None else pb.Transaction.FromString(data)
        except DecodeError:
            return False
        return found.WhichOneof("operation") == "overwrite" and not found.overwrite.initial_bases

    def _counts(self, location: str) -> bool:
        """Whether files may be needed because of the versions of a location: of a table, or of files of others."""
        return self._snapshot.table_at(location) is not None or self._may_protect(location)

    def _may_protect(self, location: str) -> bool:
        """Whether manifests of a dropped table may name files of others, as far as they were read."""
        if location in self._survey.naming_others:
            return True
        return location not in self._survey.understood and self._store.first(location) is not None

    def _is_read(self, row: VersionEntry) -> bool:
        if self._survey.has_read(row.canonical_path):
            return not row.sha256 or self._survey.with_bases.get(row.canonical_path) in {None, row.sha256}
        staged = self._staged_path(row)
        return staged is not None and self._survey.has_read(staged)

    def _staged_path(self, row: VersionEntry) -> str | None:
        return row.staged_path or self._snapshot.open_path(place_of(row))

    def _dropped_rows(self, left_out: Collection[str]) -> Iterator[VersionEntry]:
        """The rows of dropped tables that can come back, and of which a manifest may name files of other tables."""
        dropped = {party.location for record in self._snapshot.records(DROPPED) for party in record.participants}
        return self._rows_before_drop({each for each in dropped.difference(left_out) if self._may_protect(each)})

    def _rows_before_drop(self, locations: Collection[str]) -> Iterator[VersionEntry]:
        for record in self._snapshot.records(DROPPED):
            if any(party.location in locations for party in record.participants):
                for before in _there(self._kept, {record.catalog_version}):
                    yield from (row for row in rows_of(before) if row.location in locations)

    def _lost_rows(self, missing: Sequence[VersionEntry], referred: Collection[NamedVersion]) -> Iterator[Lost]:
        transactions = cache(self._transactions)
        paths = {row.canonical_path for row in missing}
        for row in missing:
            if (row.branch, row.version) in referred:
                why = "a tag or a branch names it"
            elif any(pinned.has_version(row) for pinned in self._pinned):
                why = "a pin of the catalog keeps it"
            elif self._snapshot.table_at(row.location) is None:
                why = "the dropped table can come back"
            elif row.transaction_uuid in transactions(row.base):
                why = "its transaction file is there"
            elif (found := self._not_cleaned(row, paths)) is not None:
                why = found
            else:
                continue
            text = _text(join(row.table_id), row.branch, row.version, row.canonical_path, why)
            yield Lost(text, self.may_name_others(row.location, row))

    def _not_cleaned(self, row: VersionEntry, missing: Collection[str]) -> str | None:
        """Why a version whose transaction file no listing had was not cleaned up. Of each gap the last one is judged.

        Its name begins with the version that the transaction read: nearly always the one before. The next version
        shows whether those of this chain have such files at all.
        """
        table_id = self._snapshot.table_at(row.location)
        after = None if table_id is None else self._snapshot.version_entry(table_id, row.branch, row.version + 1)
        if after is None or after.canonical_path in missing:
            return None
        if row.transaction_uuid and self._is_there(transaction_path(row.base, row.version - 1, row.transaction_uuid)):
            return "its transaction file is there"
        data = self._store.find(after.canonical_path)
        with suppress(CorruptFile):  # then the location is not judged anyway
            name = "" if data is None else parse_manifest_file(data).outline.transaction_file
            if data is not None and not (name and self._is_there(join_key(row.base, TRANSACTIONS_DIRECTORY, name))):
                return f"version {after.version} has no transaction file, so there is no sign that a client removed it"
        return None

    def _is_there(self, key: str) -> bool:
        return self._store.find(key) is not None

    def _lost_references(self, location: str, referred: Collection[NamedVersion]) -> Iterator[Lost]:
        """Of versions without a row that are named all the same, as by a client that tags by path."""
        table_id = self._snapshot.table_at(location)
        for branch, version in sorted(referred, key=lambda named: (named[0] or "", named[1])):
            if table_id is None or self._snapshot.version_entry(table_id, branch, version) is not None:
                continue
            base = branch_base(location, branch)
            keys = [manifest_path(base, version, scheme) for scheme in NamingScheme]
            if not any(self._survey.has_read(key) or self._survey.add_published(key, location) for key in keys):
                text = _text(join(table_id), branch, version, keys[-1], "a tag or a branch names it")
                yield Lost(text, self.may_name_others(location, None))

    def _missing(self, unread: Sequence[VersionEntry]) -> list[VersionEntry]:
        """Those of the rows that have no manifest under any name. What is found is taken."""
        found = self._store.map(self._find, [row.canonical_path for row in unread])
        missing: list[VersionEntry] = []
        for row, there in zip(unread, found, strict=True):
            if there is not None and row.sha256 in {"", hashlib.sha256(there[0]).hexdigest()}:
                self._survey.take_published(there[1], there[0], row.location)
                continue
            staged = self._staged_path(row)
            if staged is None or not (
                self._add(staged, row.location) or self._survey.add_published(row.canonical_path, row.location)
            ):
                missing.append(row)
        return missing

    def _find(self, path: str) -> tuple[bytes, ObjectMeta] | None:
        try:
            return self._store.get_with_meta(path)
        except NotFound:
            return None

    def _transactions(self, base: str) -> frozenset[str]:
        """The uuids of the transaction files of a chain."""
        found = map(parse_transaction_name, self._store.names(join_key(base, TRANSACTIONS_DIRECTORY)))
        return frozenset(named[1] for named in found if named is not None)


def _there(kept: Callable[[int], CatalogSnapshot], versions: Iterable[int]) -> Iterator[CatalogSnapshot]:
    """These catalog versions, without those that are gone, or damaged: such a one says nothing (`doctor` names it)."""
    for version in sorted(versions):
        with suppress(ReferenceNotFound, CatalogDamaged):
            yield kept(version)


def _text(table: str, branch: str | None, version: int, key: str, why: str) -> str:
    of_branch = "" if branch is None else f" of branch {branch}"
    return f"version {version}{of_branch} of {table}: expected its manifest at {key}, did not find it, and {why}"
