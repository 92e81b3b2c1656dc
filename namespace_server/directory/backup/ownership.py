"""Which catalog a destination of backups belongs to.

A destination belongs to one catalog, by the identity of that, which lies in `catalog.json`: written by put-if-absent
before anything else. A move of the root keeps the identity. So does a copy of all of its files, of which either is
changed by itself then: a catalog goes on with the backups of a destination only if the newest one is part of its own
history, and is not that of a root which is still there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, cast

from lance_namespace.errors import InvalidInputError

from lance_core.commit.slot import SlotLost, SlotUnknown, claim_slot
from lance_core.errors import CorruptFile, LanceCoreError, NotFound, StorageUnknown
from lance_core.format.manifest import parse_manifest_file
from lance_core.format.naming import manifest_path
from lance_core.storage.opening import open_store
from lance_core.storage.port import ObjectStore
from namespace_server.directory.backup.records import (
    BackupRecord,
    decode_file,
    encode_file,
    list_backups,
    read_inventory,
    read_record,
    read_records,
    readable_records,
)
from namespace_server.directory.manifest_table.newest_version import NewestVersion
from namespace_server.directory.manifest_table.schema import IDENTITY_KEY, OnDisk
from namespace_server.directory.model.root_layout import MANIFEST_TABLE, kept_version_key
from namespace_server.directory.model.snapshot import CatalogSnapshot

OWNER_KEY: Final = "catalog.json"
_WAY_OUT: Final = "back it up to a destination of its own"

OpenRoot = Callable[[str], ObjectStore]
"""Opens the store at a URI."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The catalog that a destination belongs to.

    Attributes:
        identity: What names it.
        adopted: The ids of backups of earlier releases, which name no catalog, and were shown to be of this one.
        root: The root from which it was claimed; '' in files of earlier releases.
    """

    identity: str
    adopted: tuple[str, ...] = ()
    root: str = ""

    def encode(self) -> bytes:
        """The content of its file."""
        return encode_file({"identity": self.identity, "adopted": self.adopted, "root": self.root})


def read_owner(destination: ObjectStore) -> Owner | None:
    """The owner of a destination; None if it states none. Raises `CorruptFile`, `StorageError`."""
    try:
        values = decode_file(destination, OWNER_KEY)
        return Owner(values["identity"], tuple(values["adopted"]), values.get("root", ""))
    except NotFound:
        return None
    except (KeyError, TypeError) as error:
        uri = destination.object_uri(OWNER_KEY)
        raise CorruptFile(f"{uri}: expected the catalog that owns it: {error!r}") from error


def find_record(destination: ObjectStore, backup_id: str | None) -> BackupRecord:
    """The record of a backup, by default of the newest one.

    Raises:
        NotFound: There is no such backup; the message names those that are there.
        InvalidInputError: No backup is named, and the destination has those of several catalogs, or of two copies of
            one.
        CorruptFile, StorageError: It cannot be read.
    """
    there = list_backups(destination)
    if not there:
        raise NotFound(f"{destination.uri}: expected a backup, found no record of one")
    if backup_id is not None:
        if backup_id not in there:
            raise NotFound(f"{destination.uri}: expected backup {backup_id}, found {', '.join(there[-5:])}")
        return read_record(destination, backup_id)
    records, damaged = readable_records(destination)
    if damaged:
        raise CorruptFile(f"{damaged[0]}: which backup is the newest of its catalog is not known: name one with --id")
    owner = None
    with suppress(CorruptFile):  # it states only to whom backups of earlier releases belong
        owner = read_owner(destination)
    newest = newest_of_each(records, owner)
    if len(newest) > 1:
        named = ", ".join(f"{record.id} of {record.root}" for record in newest)
        raise InvalidInputError(
            f"{destination.uri}: expected backups of one catalog, found those of {len(newest)}, the newest ones "
            f"{named}: name one with --id"
        )
    if text := two_copies(records):
        raise InvalidInputError(f"{destination.uri}: {text}: name one with --id")
    return records[-1]


def newest_of_each(records: Iterable[BackupRecord], owner: Owner | None) -> Sequence[BackupRecord]:
    """The newest backup of each catalog. Those of earlier releases are distinguished by their roots."""
    found: dict[str, BackupRecord] = {}
    for record in records:
        adopted = owner is not None and record.id in owner.adopted
        found[owner.identity if adopted and owner is not None else record.identity or record.root] = record
    return list(found.values())


def two_copies(records: Iterable[BackupRecord]) -> str | None:
    """The evidence that backups are of two copies of a catalog, which have one identity; None without any.

    In one history a catalog version has one manifest, and none has an earlier date than one before it. Copies that went
    on apart break that, unless the one had stopped before the other went on.
    """
    latest: dict[str, BackupRecord] = {}
    for record in sorted(records, key=lambda each: (each.catalog_version, each.timestamp_ms)):
        before = latest.get(record.identity, record) if record.identity else record
        is_same = before.catalog_version == record.catalog_version
        if is_same and before.catalog.state != record.catalog.state:
            text = f"catalog version {record.catalog_version} of the one is not that of the other"
        elif before.timestamp_ms > record.timestamp_ms:
            text = f"version {before.catalog_version} of the one is younger than {record.catalog_version} of the other"
        else:
            latest[record.identity] = record
            continue
        return f"backups {before.id} of {before.root} and {record.id} of {record.root} are of two copies: {text}"
    return None


@dataclass(frozen=True, slots=True)
class Claim:
    """Claims a destination for a catalog, at its newest version `snapshot`.

    Attributes:
        store: The root of the catalog.
        destination: The destination.
        snapshot: The newest version.
        open_root: Opens the root that an earlier backup was made of.
    """

    store: ObjectStore
    destination: ObjectStore
    snapshot: CatalogSnapshot
    open_root: OpenRoot = open_store

    @property
    def identity(self) -> str:
        """The identity of the catalog."""
        return cast("OnDisk", self.snapshot.disk).identity

    def make(self) -> None:
        """Claim the destination, unless it is claimed for this catalog already.

        A few requests, and one for each backup of a destination that is not claimed yet.

        Raises:
            InvalidInputError: It belongs to another catalog; or it cannot be shown that its backups are of this one.
            CorruptFile, StorageError, StorageUnknown: Nothing was decided; the call may be repeated.
        """
        owner = read_owner(self.destination)
        if owner is None:
            records = read_records(self.destination)
            for record in newest_of_each(records, None):
                self._check_own(record, is_named=False)
            adopted = tuple(record.id for record in records if not record.identity)
            owner = self._put(Owner(self.identity, adopted, self.store.uri))
        if owner.identity != self.identity:
            raise InvalidInputError(
                f"{self.destination.uri} belongs to catalog {owner.identity}, and {self.store.uri} is catalog "
                f"{self.identity}, as one that was restored has a name of its own: {_WAY_OUT}"
            )
        for backup_id in reversed(list_backups(self.destination)):
            with suppress(CorruptFile):  # a verification names it
                self._check_own(read_record(self.destination, backup_id), is_named=True)
                break
        else:
            self._check_first(owner)

    def _put(self, owner: Owner) -> Owner:
        outcome = claim_slot(self.destination, OWNER_KEY, owner.encode())
        if isinstance(outcome, SlotUnknown):
            raise StorageUnknown(f"{self.destination.object_uri(OWNER_KEY)}: {outcome.reason}")
        found = read_owner(self.destination) if isinstance(outcome, SlotLost) else owner
        return owner if found is None else found

    def _check_own(self, record: BackupRecord, *, is_named: bool) -> None:
        """Raise unless a backup is of this catalog. `is_named`: the destination belongs to one of its identity."""
        if record.identity not in {"", self.identity}:
            raise self._refusal(record, f"is of catalog {record.identity}, this one is {self.identity}")
        stated, own = self._stated_hash(record), self._manifest_hash(record.catalog_version)
        if None not in {own, stated} and own != stated:
            raise self._refusal(record, f"has another catalog version {record.catalog_version} than this root")
        if record.catalog_version > self.snapshot.version:
            text = f"has catalog version {record.catalog_version}, the newest of this root is {self.snapshot.version}"
            raise self._refusal(record, text)
        is_shown = is_named or (own is not None and own == stated)
        root = self._root(record.root)
        try:
            if root is not None and self.store.contains(root) and root.contains(self.store):
                is_shown = is_shown or any(self._is_location(part.location) for part in record.tables)
            elif root is not None and self._is_there(root, record, stated):
                raise self._refusal(record, "is of a catalog that is still there, of which this one is a copy")
        finally:
            if root is not None:
                root.close()
        if not is_shown:
            raise self._refusal(record, "names no catalog, and this root does not have that version any more")

    def _check_first(self, owner: Owner) -> None:
        """Raise if the root that claimed a destination without a backup is there still, and this one is a copy."""
        root = self._root(owner.root) if owner.root else None
        if root is None:
            return
        try:
            if not (self.store.contains(root) and root.contains(self.store)) and self._is_same_catalog(root):
                raise InvalidInputError(
                    f"{self.destination.uri} belongs to the catalog at {owner.root}, which is still there, and of "
                    f"which {self.store.uri} is a copy: {_WAY_OUT}"
                )
        finally:
            root.close()

    def _refusal(self, record: BackupRecord, text: str) -> InvalidInputError:
        return InvalidInputError(
            f"{self.destination.uri}: backup {record.id} of {record.root} {text}: backups of {self.store.uri} would "
            f"follow those of another catalog: {_WAY_OUT}"
        )

    def _is_location(self, location: str) -> bool:
        return self.snapshot.table_at(location) is not None or self.snapshot.tombstone_at(location) is not None

    def _manifest_hash(self, version: int) -> str | None:
        """The SHA-256 of the manifest of a catalog version; None if it is not kept."""
        scheme = cast("OnDisk", self.snapshot.disk).scheme
        for key in (manifest_path(MANIFEST_TABLE, version, scheme), kept_version_key(version)):
            if (data := self.store.find(key)) is not None:
                return hashlib.sha256(data).hexdigest()
        return None

    def _stated_hash(self, record: BackupRecord) -> str | None:
        """The SHA-256 of the manifest of the catalog version of a backup; None if its inventory cannot be read."""
        with suppress(NotFound, CorruptFile):
            [stated] = read_inventory(self.destination, MANIFEST_TABLE, record.catalog.state).versions
            return stated.sha256
        return None

    def _root(self, uri: str) -> ObjectStore | None:
        try:
            return self.open_root(uri)
        except (LanceCoreError, ValueError):
            return None

    def _is_there(self, root: ObjectStore, record: BackupRecord, sha256: str | None) -> bool:
        """Whether the catalog of a backup is at a root still. One that does not answer counts as gone."""
        scheme = cast("OnDisk", self.snapshot.disk).scheme
        with suppress(LanceCoreError):
            data = root.find(manifest_path(MANIFEST_TABLE, record.catalog_version, scheme))
            if data is not None and hashlib.sha256(data).hexdigest() == sha256:
                return True
        return self._is_same_catalog(root)

    def _is_same_catalog(self, root: ObjectStore) -> bool:
        """Whether a catalog of the same identity is at a root. One that does not answer counts as gone."""
        try:
            newest = NewestVersion(root, MANIFEST_TABLE).find()
            if newest is None:
                return False
            file = parse_manifest_file(root.get(manifest_path(MANIFEST_TABLE, *newest)))
        except LanceCoreError:
            return False
        return bool(file.manifest.table_metadata.get(IDENTITY_KEY) == self.identity)
