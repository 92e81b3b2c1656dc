"""Verification: what storage holds for the operations of a batch, read before the batch is planned.

A client's staged manifest is read, parsed, compared with what the request says of it, and made durable together
with all that its transaction adds (S1). Canonical names above a head are probed for versions that others
committed (P5). Nothing is written.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NamedTuple

from lance_namespace.errors import (
    InternalError,
    InvalidInputError,
    LanceNamespaceError,
    ServiceUnavailableError,
    TableBranchAlreadyExistsError,
)

from lance_core.commit.durability import added_files
from lance_core.errors import CorruptFile, NotFound, StorageError
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.format.naming import (
    MAIN_BRANCH,
    NamingScheme,
    branch_base,
    manifest_path,
    parse_manifest_name,
    parse_staged_name,
    versions_directory,
)
from lance_core.format.outline import fragments_of
from lance_core.format.refs import branch_path, check_branch_name
from lance_core.storage.keys import is_key
from lance_core.storage.port import ObjectStore
from lance_core.tables.branches import Branches, find_children
from lance_core.tables.tags import Tags
from lance_core.versions import ManifestLocation, list_versions, read_manifest
from namespace_server.directory.committing.allowed_locations import AllowedLocations, new_bases
from namespace_server.directory.model.entries import DEREGISTERED, TableEntry, VersionEntry
from namespace_server.directory.model.errors import shown, table_not_found
from namespace_server.directory.model.object_ids import ChainKey, ObjectId, join
from namespace_server.directory.model.operations import (
    Batch,
    CommitTransaction,
    CreateBranch,
    CreateTableVersion,
    DeclareTable,
    DeleteBranch,
    DeleteTableVersions,
    Operation,
    RegisterTable,
    TableOperation,
)
from namespace_server.directory.model.root_layout import is_in_staging
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.foreign_versions import found_entry
from namespace_server.directory.planning.plan_builder import (
    AddedFiles,
    Finding,
    StagedManifest,
    TableReferences,
    VacantLocation,
)
from namespace_server.directory.planning.references import reads_below

logger = logging.getLogger(__name__)


FoundVersion = tuple[str, ManifestFile, str | None]
"""Naming scheme, parsed file, e_tag of a manifest that stands under its canonical name."""

_FRESH = timedelta(hours=1)


_Verified = (
    CreateTableVersion
    | CommitTransaction
    | RegisterTable
    | DeclareTable
    | CreateBranch
    | DeleteBranch
    | DeleteTableVersions
)
_ON_TABLE = (CreateTableVersion, CommitTransaction, CreateBranch, DeleteBranch, DeleteTableVersions)


class _Task(NamedTuple):
    """One operation to verify: the numbers of its batch and of itself, and the location of its table."""

    batch: int
    number: int
    operation: _Verified
    location: str


class Verifier:
    """Looks at staged manifests and datasets.

    `stage_max_age` bounds the age of a staged manifest (S2): clients remove unreferenced data files after a week.
    `known` gives the manifest of a head if it is at hand: what that has already need not be looked at again. `load`
    reads the manifest of a row.
    `allowed` says where tables may lie and base paths may lead: by default below the root.
    """

    def __init__(
        self,
        store: ObjectStore,
        *,
        stage_max_age: timedelta = timedelta(days=3),
        known: Callable[[VersionEntry], ManifestFile | None] = lambda _: None,
        load: Callable[[VersionEntry], ManifestFile],
        allowed: AllowedLocations | None = None,
    ) -> None:
        self._store = store
        self._allowed = AllowedLocations(store) if allowed is None else allowed
        self._known = known
        self._load = load
        self._stage_max_age = stage_max_age

    def verify(self, batches: Sequence[Batch], snapshot: CatalogSnapshot) -> list[dict[int, Finding]]:
        """What storage says about each operation of each batch, by index, in parallel.

        A problem is a finding, not an exception: a replayed batch needs no staged file (P1). Raises `StorageError`
        when the store cannot be read.
        """
        findings: list[dict[int, Finding]] = [{} for _ in batches]
        tasks: list[_Task] = []
        for number, batch in enumerate(batches):
            declared: dict[ObjectId, str] = {}
            for index, operation in enumerate(batch.operations):
                if isinstance(operation, DeclareTable):
                    declared[operation.id] = operation.location
                    if operation.chosen:
                        tasks.append(_Task(number, index, operation, operation.location))
                elif isinstance(operation, RegisterTable):
                    tasks.append(_Task(number, index, operation, operation.location))
                elif isinstance(operation, _ON_TABLE):
                    table = snapshot.table(operation.id)
                    location = declared.get(operation.id) or (None if table is None else table.location)
                    if location is None:
                        findings[number][index] = table_not_found(operation.id)
                    else:
                        tasks.append(_Task(number, index, operation, location))
        durable: list[str] = []
        for task, (finding, keys) in zip(tasks, self._store.map(partial(self._look, snapshot), tasks), strict=True):
            findings[task.batch][task.number] = finding
            durable += keys
        self._store.sync(durable)
        return findings

    def _look(self, snapshot: CatalogSnapshot, task: _Task) -> tuple[Finding, Sequence[str]]:
        """The finding of one operation, and the keys that must be durable before the flip (S1)."""
        try:
            if isinstance(task.operation, CommitTransaction):
                return self._transaction(task.operation, task.location, snapshot)
            if isinstance(task.operation, RegisterTable):
                return self._dataset(task.operation, snapshot), ()
            if isinstance(task.operation, DeclareTable):
                vacant = VacantLocation(task.location, seen=False)
                return (self._look_at_location(task.operation, vacant) if self._store.local else vacant), ()
            if isinstance(task.operation, CreateBranch):
                self._check_place_of_branch(task.operation, task.location, task.operation.branch)
                return AddedFiles(task.location, (), seen=True), ()
            if isinstance(task.operation, DeleteBranch):
                return self._needs_of_branch(task.operation, task.location, snapshot), ()
            if isinstance(task.operation, DeleteTableVersions):
                return self._references(task.operation, task.location), ()
            return self._staged(task.operation, task.location, snapshot)
        except LanceNamespaceError as error:
            return error, ()
        except StorageError as error:  # it is this operation's, and must not fail the batches beside it
            return ServiceUnavailableError(f"table {join(task.operation.id)}: storage cannot be read: {error}"), ()
        except CorruptFile as error:
            return InternalError(f"table {join(task.operation.id)}: a file of it is damaged: {error}"), ()

    def look_again(self, operation: DeleteBranch | DeleteTableVersions, finding: Finding) -> Finding:
        """The finding as the reference files say now: the flip follows, and a later writer sees it (B1, B2).

        What manifests said before stays: those that are committed since are looked at by planning.
        """
        if not isinstance(finding, TableReferences):
            return finding
        try:
            now = self._references(operation, finding.location)
        except StorageError as error:
            return ServiceUnavailableError(f"table {join(operation.id)}: storage cannot be read: {error}")
        except CorruptFile as error:
            return InternalError(f"table {join(operation.id)}: a file of it is damaged: {error}")
        return replace(now, readers=finding.readers, checked=finding.checked)

    def _references(self, operation: DeleteBranch | DeleteTableVersions, location: str) -> TableReferences:
        """The tags of a table, and the children of the branch that is to be deleted. Two listings."""
        tags = Tags(self._store, location).list()
        children: Sequence[str] = ()
        if isinstance(operation, DeleteBranch):
            children = find_children(operation.branch, Branches(self._store, location).list())
        named = tuple(
            (name, None if tag.branch == MAIN_BRANCH else tag.branch, tag.version) for name, tag in tags.items()
        )
        return TableReferences(location, named, tuple(children))

    def _needs_of_branch(self, operation: DeleteBranch, location: str, snapshot: CatalogSnapshot) -> TableReferences:
        """What names or reads a branch: references, and manifests of all other chains of the table; reads them all."""
        found = self._references(operation, location)
        base = branch_base(location, operation.branch)
        others = [
            entry
            for branch in (None, *snapshot.branches(operation.id))
            if branch != operation.branch
            for entry in snapshot.versions(operation.id, branch)
        ]
        readers = self._store.map(lambda entry: self._reads_below(entry, base), others)
        return replace(
            found,
            readers=frozenset(name for name in readers if name is not None),
            checked=frozenset(entry.sha256 for entry in others),
        )

    def _reads_below(self, entry: VersionEntry, base: str) -> str | None:
        """The name of the branch of a version, if it has files below a root; None for one that is gone (M5)."""
        try:
            file = self._known(entry) or self._load(entry)
        except NotFound:
            return None
        return (entry.branch or "main") if reads_below(file, base) else None

    def _transaction(
        self, operation: CommitTransaction, location: str, snapshot: CatalogSnapshot
    ) -> tuple[Finding, Sequence[str]]:
        """The files that a transaction adds; on remote stores they are looked for later (`look_later`)."""
        transaction = operation.transaction
        for reason in self._allowed.refused_bases(new_bases(transaction)).values():
            raise InvalidInputError(f"transaction {transaction.uuid} on table {join(operation.id)}: base path {reason}")
        if transaction.WhichOneof("operation") == "clone" and operation.branch is not None:
            self._check_place_of_branch(operation, location, operation.branch)
        base = branch_base(location, operation.branch)
        added = added_files(self._store, base, transaction, self._known_head(operation, snapshot))
        self._check_added(operation, added, sure=self._store.local)
        return AddedFiles(location, tuple(added), seen=self._store.local), added

    def _check_place_of_branch(self, operation: CommitTransaction | CreateBranch, location: str, branch: str) -> None:
        """The name of a branch that a Clone begins is one that stock clients accept, and is not taken (P4)."""
        name = f"branch {branch} of table {join(operation.id)}"
        try:
            key = branch_path(location, check_branch_name(branch))
        except ValueError as error:
            raise InvalidInputError(f"{name}: {error}") from error
        try:
            self._store.head(key)
        except NotFound:
            return
        raise TableBranchAlreadyExistsError(f"{name} exists: {self._store.object_uri(key)}")

    def _staged(
        self, operation: CreateTableVersion, location: str, snapshot: CatalogSnapshot
    ) -> tuple[Finding, Sequence[str]]:
        """A staged manifest and all that its transaction adds (S1).

        Whether that is there is asked where asking costs nothing, and for what was staged long ago (S3).
        """
        key = operation.manifest_path
        base = branch_base(location, operation.branch)
        if key is None or not _is_staging_place(key, base):
            raise _unusable(
                operation,
                f"manifest_path {operation.path_as_sent!r} must be a staged manifest in the table's own "
                "_versions directory, or lie under _staging",
            )
        try:
            data, meta = self._store.get_with_meta(key)
        except NotFound as error:
            raise _unusable(operation, f"no staged manifest at {operation.path_as_sent!r}") from error
        if operation.manifest_size is not None and operation.manifest_size != len(data):
            raise _unusable(operation, f"manifest_size says {operation.manifest_size} bytes, the file has {len(data)}")
        age = datetime.now(UTC) - meta.last_modified
        if age > self._stage_max_age:
            raise _unusable(operation, f"the manifest was staged {age} ago, stage again")
        try:
            file = parse_manifest_file(data, expected_version=operation.version, lazily=True)
            if file.operation != "append" or file.version == 1:
                fragments_of(file.outline)  # of an append to a head, planning decodes what the head does not have
        except CorruptFile as error:
            raise _unusable(operation, f"{operation.path_as_sent!r} cannot be used: {error}") from error
        if file.transaction is None:
            raise _unusable(operation, "the staged manifest carries no inline transaction")
        if file.branch != operation.branch:
            raise _unusable(
                operation,
                f"the manifest belongs to branch {file.branch or 'main'}, "
                f"the request names {operation.branch or 'main'}",
            )
        # Of the head one has to know what it has already: not for an append, which names nothing that was there before.
        head = None if file.operation == "append" else self._known_head(operation, snapshot)
        added = added_files(self._store, base, file.transaction, head, file)
        self._check_added(operation, added, sure=self._store.local or age > _FRESH)
        refused = self._allowed.refused_bases(file.outline.base_paths)
        return StagedManifest(key, data, file, meta.e_tag, age, location, refused), [key, *added]

    def _known_head(self, operation: TableOperation, snapshot: CatalogSnapshot) -> ManifestFile | None:
        entry = snapshot.head(operation.id, operation.branch)
        return None if entry is None else self._known(entry)

    def _check_added(self, operation: Operation, added: Sequence[str], *, sure: bool) -> None:
        """The files that a transaction adds lie in the table; with `sure` they must exist."""
        outside = next((key for key in added if not is_key(key)), None)
        if outside is not None:
            raise InvalidInputError(
                f"table {join(operation.id)}: {outside!r}, which its transaction adds, is no file of the table"
            )
        missing = self._missing(operation, added) if sure else None
        if missing is not None:
            raise missing

    def look_later(self, operation: Operation, finding: AddedFiles | VacantLocation) -> Finding:
        """The final form of a finding that storage was not asked about yet; many requests, one round trip.

        A transaction that we build must not name files that are not there: of a table that was dropped and made again
        since, they would lie at the other location (N1).
        """
        if isinstance(finding, VacantLocation):
            return self._look_at_location(operation, finding)
        return self._missing(operation, finding.keys) or replace(finding, seen=True)

    def _look_at_location(self, operation: Operation, vacant: VacantLocation) -> Finding:
        """No version of a dataset stands at a location that a client chose; one listing (G15).

        Data files and staged manifests may: clients stage a table's first version there before they declare it.
        """
        try:
            found = self._first_version(vacant.location)
        except StorageError as error:
            return ServiceUnavailableError(f"table {join(operation.id)}: storage cannot be read: {error}")
        if found is None:
            return replace(vacant, seen=True)
        return InvalidInputError(
            f"table {join(operation.id)}: location {vacant.location!r} holds files of a dataset ({found}), expected a "
            "location without versions; register_table takes a dataset into the catalog"
        )

    def _missing(self, operation: Operation, keys: Sequence[str]) -> LanceNamespaceError | None:
        try:
            self._store.require(keys)
        except NotFound as error:
            return InvalidInputError(
                f"table {join(operation.id)}: the file {error}, which its transaction adds, is not there; stage again"
            )
        except StorageError as error:
            return ServiceUnavailableError(f"table {join(operation.id)}: storage cannot be read: {error}")
        return None

    def _dataset(self, operation: RegisterTable, snapshot: CatalogSnapshot) -> Finding:
        """The versions of a dataset that may be registered: one of its own, below the root, with a main chain.

        A table that was deregistered before it had a version comes back without one.
        """
        place = f"table {join(operation.id)}: location {shown(operation.location)}"
        table = TableEntry(operation.id, operation.location, operation.properties)
        parents = operation.location.split("/")[:-1]
        for depth in range(1, len(parents) + 1):
            parent = "/".join(parents[:depth])
            if self._first_version(parent) is not None:
                raise InvalidInputError(f"{place} lies inside the dataset at {parent!r}, expected one of its own")
        reason = self._allowed.link_refusal(operation.location)
        if reason is not None:
            raise InvalidInputError(f"{place}: {reason}")
        versions: list[VersionEntry] = []
        for branch in (None, *_stored_branches(self._store, operation.location)):
            if branch is not None and snapshot.tombstone_at(branch_base(operation.location, branch)) is not None:
                continue
            for scheme, file in stored_versions(self._store, table, branch):
                for refused in self._allowed.refused_bases(file.outline.base_paths).values():
                    raise InvalidInputError(f"{place}: version {file.version} has the base path {refused}")
                versions.append(found_entry(table, branch, file, None, scheme))
        tombstone = snapshot.tombstone_at(operation.location)
        deregistered = tombstone is not None and tombstone.state == DEREGISTERED
        if not deregistered and not any(entry.branch is None for entry in versions):
            raise InvalidInputError(f"{place} holds no dataset, expected one with at least one version")
        return tuple(versions)

    def _first_version(self, location: str) -> str | None:
        """The key of a version of a dataset at a location; None where none stands. One listing."""
        listed = self._store.list(versions_directory(location))
        return next((meta.path for meta in listed if parse_manifest_name(meta.path.rpartition("/")[2])), None)

    def probe(self, snapshot: CatalogSnapshot, chains: Iterable[ChainKey]) -> Mapping[ChainKey, list[FoundVersion]]:
        """Canonical manifests above the head of each chain, upward and contiguous; one request where there are none.

        What is left of a deleted branch is none of these (B2). A chain without a table has nothing above it. What
        cannot be parsed ends the chain and is reported.
        """
        tables = [(chain, table) for chain in chains if (table := snapshot.table(chain[0])) is not None]
        found = self._store.map(lambda item: self._above(snapshot, item[1], item[0][1]), tables)
        return {chain: versions for (chain, _), versions in zip(tables, found, strict=True) if versions}

    def _above(self, snapshot: CatalogSnapshot, table: TableEntry, branch: str | None) -> list[FoundVersion]:
        base = branch_base(table.location, branch)
        if branch is not None and snapshot.tombstone_at(base) is not None:
            return []
        first = _first_above(snapshot, table.id, branch)
        if first is not None:
            return self._read_upward(base, *first)
        listed = list_versions(self._store, base)
        return [] if not listed else self._read_upward(base, listed[0].version, listed[0].scheme)

    def _read_upward(self, base: str, version: int, scheme: NamingScheme) -> list[FoundVersion]:
        found: list[FoundVersion] = []
        while (data := self._store.find(key := manifest_path(base, version, scheme))) is not None:
            try:
                found.append((scheme.value, parse_manifest_file(data, expected_version=version), None))
            except CorruptFile as error:
                logger.error("foreign file %s is not adopted: %s", key, error)
                break
            version += 1
        return found


def key_above(snapshot: CatalogSnapshot, chain: ChainKey) -> str | None:
    """Where the first version above the head of a chain would stand; None where only a listing can tell."""
    table, first = snapshot.table(chain[0]), _first_above(snapshot, *chain)
    return None if table is None or first is None else manifest_path(branch_base(table.location, chain[1]), *first)


def _first_above(snapshot: CatalogSnapshot, table_id: ObjectId, branch: str | None) -> tuple[int, NamingScheme] | None:
    top = snapshot.top(table_id, branch)
    if top is not None:
        return top[0] + 1, NamingScheme(top[1])
    return (1, NamingScheme.V2) if branch is None else None


def stored_entries(store: ObjectStore, table: TableEntry, branch: str | None) -> list[VersionEntry]:
    """Rows for every readable version that a chain has on storage, ascending; the others are reported."""
    return [found_entry(table, branch, file, None, scheme) for scheme, file in stored_versions(store, table, branch)]


def stored_versions(store: ObjectStore, table: TableEntry, branch: str | None) -> list[tuple[str, ManifestFile]]:
    """Naming scheme and manifest of every readable version that a chain has on storage, ascending."""
    listed = list_versions(store, branch_base(table.location, branch))
    files = store.map(partial(_readable, store), listed)
    return [
        (location.scheme.value, file)
        for location, file in zip(listed, files, strict=True)
        if file is not None and file.branch == branch
    ]


def dataset_versions(store: ObjectStore, table: TableEntry) -> tuple[VersionEntry, ...]:
    """Rows for every readable version that a dataset has on storage, of main and of all branches."""
    branches = [None, *_stored_branches(store, table.location)]
    return tuple(entry for branch in branches for entry in stored_entries(store, table, branch))


def _readable(store: ObjectStore, location: ManifestLocation) -> ManifestFile | None:
    try:
        return read_manifest(store, location)
    except (CorruptFile, NotFound) as error:
        logger.error("%s is left out: %s", location.path, error)
        return None


def _stored_branches(store: ObjectStore, location: str) -> list[str]:
    prefix = f"{location}/tree/"
    marker = "/_versions/"
    paths = (meta.path for meta in store.list(f"{location}/tree"))
    return sorted({path[len(prefix) : path.index(marker)] for path in paths if marker in path})


def _unusable(operation: CreateTableVersion, reason: str) -> InvalidInputError:
    place = f"version {operation.version} of table {join(operation.id)}"
    if operation.branch is not None:
        place += f" on branch {operation.branch}"
    return InvalidInputError(f"{place}: {reason}")


def _is_staging_place(key: str, base: str) -> bool:
    directory, _, name = key.rpartition("/")
    if not is_key(key):
        return False
    if is_in_staging(key):
        return parse_manifest_name(name) is None
    return directory == versions_directory(base) and parse_staged_name(name) is not None


def chains_of(operations: Iterable[Operation]) -> set[ChainKey]:
    """The chains that operations name."""
    named = [operation for operation in operations if isinstance(operation, TableOperation)]
    begun = {(item.id, item.from_branch) for item in named if isinstance(item, CreateBranch)}
    return begun | {(item.id, item.branch) for item in named}
