"""Verification: findings on storage for the operations of a batch, made before it is planned.

Each kind of operation has its checks: `staged_manifests`, `added_files`, `table_references`, `chosen_locations`,
`allowed_locations`, `dropped_tables`. What must be durable before the flip is synced (S1). Nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import NamedTuple

from lance_namespace.errors import LanceNamespaceError

from lance_core.errors import CorruptFile, LanceCoreError, StorageError
from lance_core.format.manifest import ManifestFile
from lance_core.storage.port import ObjectStore
from namespace_server.directory.model.entries import VersionEntry
from namespace_server.directory.model.errors import file_damaged, table_not_found, unreadable
from namespace_server.directory.model.object_ids import ObjectId, join
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
    UndropNamespace,
    UndropTable,
)
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.freshness import too_old
from namespace_server.directory.planning.plan_builder import (
    AddedFiles,
    Finding,
    Findings,
    StagedManifest,
    TableReferences,
    VacantLocation,
)
from namespace_server.directory.verifying.added_files import AddedFileChecks
from namespace_server.directory.verifying.allowed_locations import AllowedLocations
from namespace_server.directory.verifying.chosen_locations import LocationChecks
from namespace_server.directory.verifying.dropped_tables import DroppedTableChecks, KeptVersion
from namespace_server.directory.verifying.staged_manifests import StagedManifestChecks
from namespace_server.directory.verifying.table_references import ReferenceChecks

_Verified = (
    CreateTableVersion
    | CommitTransaction
    | RegisterTable
    | DeclareTable
    | CreateBranch
    | DeleteBranch
    | DeleteTableVersions
    | UndropTable
    | UndropNamespace
)
_ON_TABLE = (CreateTableVersion, CommitTransaction, CreateBranch, DeleteBranch, DeleteTableVersions)


class _Task(NamedTuple):
    """One operation to verify: the numbers of its batch and of itself, and the location of its table."""

    batch: int
    number: int
    operation: _Verified
    location: str


class _Recheck(NamedTuple):
    """A finding to be brought up to date, and the place that it has among the findings of its batch."""

    findings: Findings
    number: int
    operation: Operation
    finding: AddedFiles | StagedManifest | VacantLocation | TableReferences


class Verifier:
    """Looks at staged manifests and datasets.

    `stage_max_age` bounds the age of a staged manifest (S2): clients remove unreferenced data files after a week.
    `known` gives the manifest of a head if it is at hand: what that has already need not be looked at again. `load`
    reads the manifest of a row, `kept` an earlier version of the catalog.
    `allowed` says where tables may lie and base paths may lead: by default below the root. `contents`: whether the ends
    of added data files are read in a bucket too.
    """

    def __init__(
        self,
        store: ObjectStore,
        *,
        stage_max_age: timedelta = timedelta(days=3),
        known: Callable[[VersionEntry], ManifestFile | None] = lambda _: None,
        load: Callable[[VersionEntry], ManifestFile],
        kept: KeptVersion,
        allowed: AllowedLocations | None = None,
        contents: bool = False,
    ) -> None:
        allowed = AllowedLocations(store) if allowed is None else allowed
        self._store = store
        self._known = known
        self._load = load
        self._added = AddedFileChecks(store, allowed, contents=contents)
        self._staged = StagedManifestChecks(store, self._added, allowed, stage_max_age)
        self._references = ReferenceChecks(store, known, load)
        self._locations = LocationChecks(store, allowed)
        self._dropped = DroppedTableChecks(kept)

    def verify(
        self, batches: Sequence[Batch], snapshot: CatalogSnapshot, known: Sequence[Findings] | None = None
    ) -> list[Findings]:
        """The findings on storage for each operation of each batch, by index; looked up in parallel.

        Those that are `known` of a batch are not looked up: its subject may not see what they are about.

        A problem is a finding, not an exception: a replayed batch needs no staged file (P1). Raises `StorageError`
        when the store cannot be read.
        """
        findings: list[Findings] = [{} for _ in batches] if known is None else [dict(each) for each in known]
        tasks: list[_Task] = []
        for number, batch in enumerate(batches):
            declared: dict[ObjectId, str] = {}
            for index, operation in enumerate(batch.operations):
                if index in findings[number]:
                    continue
                if isinstance(operation, _ON_TABLE):
                    location = declared.get(operation.id) or snapshot.location(operation.id)
                    if location is None:
                        findings[number][index] = table_not_found(operation.id)
                    else:
                        tasks.append(_Task(number, index, operation, location))
                elif isinstance(operation, DeclareTable):
                    declared[operation.id] = operation.location
                    if operation.chosen:
                        tasks.append(_Task(number, index, operation, operation.location))
                elif isinstance(operation, RegisterTable):
                    tasks.append(_Task(number, index, operation, operation.location))
                elif isinstance(operation, UndropTable | UndropNamespace):
                    tasks.append(_Task(number, index, operation, ""))
        durable: list[str] = []
        for task, (finding, keys) in zip(
            tasks, self._store.map(partial(self._verify_one, snapshot), tasks), strict=True
        ):
            findings[task.batch][task.number] = finding
            durable += keys
        self._store.sync(durable)
        return findings

    def _verify_one(self, snapshot: CatalogSnapshot, task: _Task) -> tuple[Finding, Iterable[str]]:
        """The finding of one operation, and the keys that must be durable before the flip (S1)."""
        try:
            return self._look(snapshot, task)
        except LanceNamespaceError as error:
            return error, ()
        except StorageError as error:  # it is this operation's, and must not fail the batches beside it
            return unreadable(task.operation.id, error), ()
        except CorruptFile as error:
            return file_damaged(error, f"table {join(task.operation.id)}: "), ()

    def _look(self, snapshot: CatalogSnapshot, task: _Task) -> tuple[Finding, Iterable[str]]:
        if isinstance(task.operation, CreateTableVersion):
            return self._staged.verify(
                task.operation, task.location, partial(self._known_head, task.operation, snapshot)
            )
        if isinstance(task.operation, CommitTransaction):
            if task.operation.transaction.HasField("clone") and task.operation.branch is not None:
                self._references.check_place_of_branch(task.operation, task.location, task.operation.branch)
            return self._added.verify(task.operation, task.location, self._known_head(task.operation, snapshot))
        if isinstance(task.operation, UndropTable):
            return self._dropped.table(task.operation, snapshot), ()
        if isinstance(task.operation, UndropNamespace):
            return self._dropped.namespace(task.operation, snapshot), ()
        if isinstance(task.operation, RegisterTable):
            return self._locations.dataset(task.operation, snapshot), ()
        if isinstance(task.operation, DeclareTable):
            vacant = VacantLocation(task.location, seen=False)
            return (self._locations.require_vacant(task.operation, vacant) if self._store.local else vacant), ()
        if isinstance(task.operation, CreateBranch):
            self._references.check_place_of_branch(task.operation, task.location, task.operation.branch)
            return AddedFiles(task.location, {}, (), seen=True), ()
        if isinstance(task.operation, DeleteBranch):
            return self._references.needs_of_branch(task.operation, task.location, snapshot), ()
        return self._references.references(task.operation, task.location), ()

    def recheck(self, group: Iterable[tuple[Batch, Findings]], snapshot: CatalogSnapshot) -> bool:
        """Check, beside staging, what `verify` left open and what others may have changed since; in parallel.

        Brings the findings up to date. True if a batch has to be planned again: a file that it adds is missing, or is
        older than the horizon of its table in `snapshot`; a location that it chose is in use; or the tags and branches
        of a table that it deletes from are others.
        """
        rechecks = [
            _Recheck(findings, index, batch.operations[index], finding)
            for batch, findings in group
            for index, finding in findings.items()
            if isinstance(finding, TableReferences)
            or (isinstance(finding, AddedFiles | StagedManifest | VacantLocation) and not finding.seen)
        ]
        changed = False
        for recheck, now in zip(rechecks, self._store.map(self._finding_now, rechecks), strict=True):
            recheck.findings[recheck.number] = now
            changed |= isinstance(now, LanceNamespaceError) or bool(too_old(now, snapshot))
            changed |= isinstance(recheck.finding, TableReferences) and now != recheck.finding
        return changed

    def _finding_now(self, recheck: _Recheck) -> Finding:
        if isinstance(recheck.finding, TableReferences):
            return self._recheck_references(recheck.operation, recheck.finding)
        if isinstance(recheck.finding, VacantLocation):
            return self._locations.require_vacant(recheck.operation, recheck.finding)
        return self._added.check_remaining(recheck.operation, recheck.finding)

    def _recheck_references(self, operation: Operation, finding: TableReferences) -> Finding:
        """The finding as the reference files say now (B1, B2).

        The flip follows, and no other flip is between them: a tag or branch is confirmed by a flip of its own, which is
        before this look or comes too late. What manifests said before stays: planning reads those committed since.
        """
        assert isinstance(operation, DeleteBranch | DeleteTableVersions)
        try:
            now = self._references.references(operation, finding.location)
        except StorageError as error:
            return unreadable(operation.id, error)
        except CorruptFile as error:
            return file_damaged(error, f"table {join(operation.id)}: ")
        return replace(now, readers=finding.readers, checked=finding.checked)

    def _known_head(self, operation: TableOperation, snapshot: CatalogSnapshot) -> ManifestFile | None:
        """The manifest of the head, if it is at hand, or in a local root: planning needs it too."""
        entry = snapshot.head(operation.id, operation.branch)
        known = None if entry is None else self._known(entry)
        if known is None and entry is not None and self._store.local:
            with suppress(LanceCoreError):  # planning reports it
                return self._load(entry)
        return known
