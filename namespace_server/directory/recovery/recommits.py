"""The operation that commits the transaction of a quarantined file again (M6, P12).

A transaction names fragments by ids that are those of the version that its writer read. Which one that was is not
always known: its number names one version of the catalog, and perhaps others that were moved to quarantine. The
transaction is committed again where every version that can have been read leads to the same change of the head.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from lance_core.commit.restating import names_the_same, restate
from lance_core.errors import CorruptFile, InvalidTransaction, NotFound
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.storage.port import ObjectStore
from lance_core.table_files import TableFiles
from lance_core.transaction.lineage import lineage_break, unseen_deletions
from lance_core.transaction.readings import may_have_read, may_have_read_number
from namespace_server.directory.manifests.committed_transactions import CommittedTransactions
from namespace_server.directory.manifests.manifest_reader import ManifestReader
from namespace_server.directory.manifests.quarantine import QuarantinedFile
from namespace_server.directory.model.entries import VersionEntry
from namespace_server.directory.model.object_ids import ChainKey
from namespace_server.directory.model.operations import CommitTransaction
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.reached_bases import bases_of_change, reaches_others

_MOST_CONCURRENT: Final = 10_000
_REMEMBERED: Final = 100_000


@dataclass(frozen=True, slots=True)
class Unmanaged:
    """A file in quarantine, and the manifest in it."""

    item: QuarantinedFile
    file: ManifestFile


Others = dict[int, list[QuarantinedFile]]
"""Quarantined files by the versions that their names say."""


class Trunk(NamedTuple):
    """The last version of the catalog that an unmanaged one surely includes, and its own transactions above that."""

    version: int
    own: frozenset[str]


class Recommits:
    """Finds what the transactions of quarantined files change in the chain that they were committed to."""

    def __init__(self, store: ObjectStore, reader: ManifestReader, transactions: CommittedTransactions) -> None:
        self._store = store
        self._reader = reader
        self._transactions = transactions
        self._built_on: dict[tuple[str, str], bool] = {}
        self._uuids: dict[str, str] = {}

    def operation(
        self, found: Unmanaged, others: Sequence[QuarantinedFile], place: ChainKey, snapshot: CatalogSnapshot
    ) -> CommitTransaction | None:
        """The operation that commits a file's transaction again; None if the chain has it. `others`: its quarantine.

        Deletion files that it needs under other names are written.

        Raises:
            InvalidTransaction: it cannot be committed again, or may mean several things; the message says why.
            StorageError, CorruptFile: this cannot be decided now.
        """
        operation = self._operation(found, others, place, snapshot)
        if operation is not None and snapshot.policy is not None:
            self._check_reach(operation, place, snapshot)
        return operation

    def _check_reach(self, operation: CommitTransaction, place: ChainKey, snapshot: CatalogSnapshot) -> None:
        """Raise `InvalidTransaction` if a transaction of nobody brings files of other tables into its own (GR10)."""
        table, head = snapshot.table(place[0]), snapshot.head(*place)

        def at(version: int) -> ManifestFile | None:
            row = snapshot.version_entry(*place, version)
            return None if row is None else self._load_if_there(row)

        reached = bases_of_change(operation.transaction, None if head is None else self._load(head), at)
        if table is not None and reaches_others(reached, table.location, TableFiles(self._store, "").key_of):
            raise InvalidTransaction("it brings files of other tables into its own, and nobody is named who may")

    def _operation(
        self, found: Unmanaged, others: Sequence[QuarantinedFile], place: ChainKey, snapshot: CatalogSnapshot
    ) -> CommitTransaction | None:
        transaction = found.file.transaction
        assert transaction is not None
        meant = [each for each in others if may_have_read_number(transaction, each.version)]
        views = [each for each in self._read(meant) if self._may_be_read(found, each)]
        if not views:
            row = snapshot.version_entry(*place, transaction.read_version)
            if row is not None:
                self._check_read(found, row, place, snapshot)
            if transaction.HasField("restore"):
                _check_restored(transaction.restore.version, transaction.read_version, others)
            sha256 = None if row is None else row.sha256
            return CommitTransaction(place[0], place[1], transaction, manifest_sha256=sha256)
        by_version = Others()
        for each in others:
            by_version.setdefault(each.version, []).append(each)
        trunks = [self._trunk(each, by_version, place, snapshot) for each in views]
        view, readings = views[0].file, [each.file for each in views[1:]]
        # Up to the trunk, ids of the catalog's versions are those of the views. Above it they may be others.
        for row in snapshot.versions(*place, start=min(each.version for each in trunks) + 1):
            if row.version > transaction.read_version:
                break
            if may_have_read_number(transaction, row.version) and (read := self._read_row(found, row)) is not None:
                readings.append(read)
                trunks.append(Trunk(row.version, frozenset()))
        if any(not names_the_same(transaction, view, each) for each in readings):
            numbers = sorted({view.version, *(each.version for each in readings)})
            raise InvalidTransaction(
                f"it may have been built on any of {len(readings) + 1} versions with the number "
                f"{' or '.join(map(str, numbers))}, and means another change on each"
            )
        trunk = Trunk(min(each.version for each in trunks), frozenset.intersection(*(each.own for each in trunks)))
        if transaction.HasField("restore"):
            _check_restored(transaction.restore.version, trunk.version, others)
        return self._restated(found, view, trunk, place, snapshot)

    def _check_read(self, found: Unmanaged, row: VersionEntry, place: ChainKey, snapshot: CatalogSnapshot) -> None:
        """Raise `InvalidTransaction` unless a file's writer has read this row, and its deletions follow those of it."""
        read = self._read_row(found, row)
        if read is None:
            raise InvalidTransaction(
                f"what it read as version {row.version} is not known: it was not that of the table, and is gone"
            )

        def at(version: int) -> ManifestFile | None:
            known = snapshot.version_entry(*place, version)
            return None if known is None else self._load_if_there(known)

        if (reason := unseen_deletions(read, found.file, at)) is not None:
            raise InvalidTransaction(reason)

    def _restated(
        self, found: Unmanaged, view: ManifestFile, trunk: Trunk, place: ChainKey, snapshot: CatalogSnapshot
    ) -> CommitTransaction | None:
        transaction, head = found.file.transaction, snapshot.head(*place)
        if transaction is None or head is None:
            raise InvalidTransaction("its table has no version any more")
        since = list(snapshot.versions(*place, start=trunk.version + 1))
        if any(row.transaction_uuid == transaction.uuid for row in since):
            return None
        if len(since) != head.version - trunk.version or len(since) > _MOST_CONCURRENT:
            raise InvalidTransaction(f"the versions since {trunk.version}, which it did not see, cannot all be read")
        files = TableFiles(self._store, found.item.base)
        concurrent = [self._transactions.version(row) for row in since if row.transaction_uuid not in trunk.own]
        try:
            restated = restate(transaction, view, self._load(head), concurrent, files)
        except NotFound as error:
            raise InvalidTransaction(f"a version or file that states its changes is gone: {error}") from error
        for key, data in restated.files:
            self._store.put(key, data, durable=True)
        return CommitTransaction(place[0], place[1], restated.transaction, manifest_sha256=head.sha256)

    def _may_be_read(self, found: Unmanaged, view: Unmanaged) -> bool:
        transaction = found.file.transaction
        if transaction is None or view.file.version >= found.file.version:
            return False
        if not may_have_read(transaction, view.file):
            return False
        is_next = view.file.version == found.file.version - 1 == transaction.read_version
        return not is_next or lineage_break(view.file, found.file) is None

    def _read_row(self, found: Unmanaged, row: VersionEntry) -> ManifestFile | None:
        """The manifest of the row that has the number of the version that was read; None if that was another one."""
        transaction = found.file.transaction
        if transaction is None or not may_be_on(found.item, row.version):
            return None
        file = self._load_if_there(row)
        if file is None or not may_have_read(transaction, file):
            return None
        is_next = row.version == found.file.version - 1
        return None if is_next and lineage_break(file, found.file) is not None else file

    def _trunk(self, found: Unmanaged, others: Others, place: ChainKey, snapshot: CatalogSnapshot) -> Trunk:
        """The version at which an unmanaged one left the chain of the catalog. Of several that fit, the lowest.

        It goes down version by version: a writer may have committed thousands on its own. Raises
        `InvalidTransaction` if no place is known.
        """
        number, own, leaves = found.file.version, {found.file.transaction_uuid}, False
        trunk, level = number, [found.item]
        while level:
            number -= 1
            following = dict[str, QuarantinedFile]()
            for item in level:
                on_row = may_be_on(item, number) and self._is_built_on_row(item, snapshot.version_entry(*place, number))
                below = [other for other in others.get(number, ()) if self._is_built_on_file(item, other)]
                if not on_row and not below:
                    raise InvalidTransaction(f"the version below version {number + 1} of its writer is not known")
                if on_row:
                    trunk, leaves = number, True
                following |= {other.name: other for other in below}
            level = list(following.values())
            names = {self._transaction_of(item) for item in level}
            if not leaves and len(names) == 1:  # every way down leads through it
                own |= names
        return Trunk(trunk, frozenset(own - {""}))

    def _is_built_on_row(self, item: QuarantinedFile, row: VersionEntry | None) -> bool:
        try:
            return row is not None and self._is_built_on(item, row.sha256, lambda: self._load(row))
        except (NotFound, CorruptFile):
            return False

    def _is_built_on_file(self, item: QuarantinedFile, other: QuarantinedFile) -> bool:
        return self._is_built_on(item, other.name, lambda: self._reader.quarantine.manifest(other))

    def _is_built_on(self, item: QuarantinedFile, name: str, find: Callable[[], ManifestFile | None]) -> bool:
        """Whether a file is built on another manifest by its content.

        What has this name never changes, so the answer is kept. A row of another writer names no hash, and "" nothing.
        """
        known = self._built_on.get((item.name, name))
        if known is None:
            file, below = self._reader.quarantine.manifest(item), find()
            known = file is not None and below is not None and lineage_break(below, file) is None
            if len(self._built_on) >= _REMEMBERED:
                self._built_on.clear()
            if name:
                self._built_on[item.name, name] = known
        return known

    def _transaction_of(self, item: QuarantinedFile) -> str:
        """The uuid of a file's transaction."""
        known = self._uuids.get(item.name)
        if known is None:
            file = self._reader.quarantine.manifest(item)
            known = "" if file is None else file.transaction_uuid
            if len(self._uuids) >= _REMEMBERED:
                self._uuids.clear()
            self._uuids[item.name] = known
        return known

    def _read(self, items: Sequence[QuarantinedFile]) -> list[Unmanaged]:
        return [Unmanaged(*each) for each in self._reader.quarantine.read(items)]

    def _load_if_there(self, row: VersionEntry) -> ManifestFile | None:
        try:
            return self._load(row)
        except NotFound:
            return None

    def _load(self, row: VersionEntry) -> ManifestFile:
        return parse_manifest_file(self._reader.read(row), expected_version=row.version, lazily=True)


def may_be_on(item: QuarantinedFile, version: int) -> bool:
    """Whether the writer of a file can have read a row of this version; see `unmanaged_from`."""
    first = item.unmanaged_from
    return first is None or version < first


def _check_restored(version: int, newest: int, others: Sequence[QuarantinedFile]) -> None:
    """Raise `InvalidTransaction` unless a Restore names a version of the catalog, and no other had its number."""
    if version > newest or any(each.version == version for each in others):
        raise InvalidTransaction(f"it restores version {version}, and another one of that number was committed by path")
