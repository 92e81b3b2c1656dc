"""Plan builder: the plan of one batch under construction, and the findings of verification that it rests on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby
from typing import Final, Literal
from uuid import NAMESPACE_OID, uuid5

from lance_namespace.errors import (
    InvalidInputError,
    LanceNamespaceError,
    ServiceUnavailableError,
)

from lance_core.format.manifest import ManifestFile
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.reachable import StatedFiles
from namespace_server.access.grants import GrantEntry
from namespace_server.access.subjects import Grantee, Privilege
from namespace_server.answer import json_bytes
from namespace_server.attempts import Authorization
from namespace_server.directory.manifests.manifest_reader import PlannedVersion
from namespace_server.directory.model.entries import (
    DEREGISTERED,
    DROPPED,
    NO_PROPERTIES,
    PURGE,
    Changes,
    Entry,
    NamespaceEntry,
    Participant,
    RecordEntry,
    TableEntry,
    VersionEntry,
    changes_of,
)
from namespace_server.directory.model.errors import parent_not_found, table_not_found
from namespace_server.directory.model.object_ids import ObjectId, join
from namespace_server.directory.model.operations import Batch, operation_names
from namespace_server.directory.model.overlay import NO_CHANGES, Overlay
from namespace_server.directory.model.results import OperationResult, table_version_json
from namespace_server.directory.model.retention import DROPPED_WINDOW, read_window, stated
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.dropped_grants import grantees_property
from namespace_server.directory.planning.planning_context import PlanningContext
from namespace_server.outcomes import with_nothing_done

OWNER: Final = frozenset({Privilege.OWN})
TABLES_PER_TOMBSTONE: Final = 1_000
"""The most tables that one tombstone record names; a larger cascade writes several records."""


@dataclass(frozen=True, slots=True)
class StagedManifest:
    """A client's staged manifest, verified: parsed, of the stated size and version, and durable.

    `files` are those that it adds at `location`; `seen` once storage was found to have them as its transaction says,
    written at the times `dates`, in seconds since the epoch; those of the manifest itself are among them.
    `schema` are the fields of the version. `refused_bases` are those of its base paths that may not be added, each with
    the reason.
    """

    key: str
    data: bytes
    file: ManifestFile
    e_tag: str | None
    age: timedelta
    location: str
    refused_bases: Mapping[str, str]
    files: StatedFiles
    schema: tuple[pb.Field, ...]
    seen: bool
    dates: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class AddedFiles:
    """The files that a transaction adds to the table at `location`, whose fields are `schema`, as far as known.

    `seen` once storage was found to have them as the transaction says, written at the times `dates`, in seconds since
    the epoch.
    """

    location: str
    files: StatedFiles
    schema: tuple[pb.Field, ...]
    seen: bool
    dates: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VacantLocation:
    """A location that a client chose for a new table; `seen` once storage was found to hold no version there."""

    location: str
    seen: bool


@dataclass(frozen=True, slots=True)
class TableReferences:
    """The tags and branches of the table at `location`, as its reference files say now (B1, B2).

    `tags`: name, branch (None is main) and version of each. Where a branch is to be deleted, `children` are the
    branches that begin at it, and `readers` those of the chains that have files below its root, among the manifests
    with the hashes in `checked`.
    """

    location: str
    tags: tuple[tuple[str, str | None, int], ...]
    children: tuple[str, ...] = ()
    readers: frozenset[str] = frozenset()
    checked: frozenset[str] = field(default=frozenset(), compare=False)


@dataclass(frozen=True, slots=True)
class TableBeforeDrop:
    """A table as it was before it was dropped, with the grants on it, and the uuid of its tombstone."""

    tombstone: str
    table: TableEntry
    versions: tuple[VersionEntry, ...]
    grants: tuple[GrantEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class DroppedTables:
    """Tables that were dropped, and the namespaces below which they lay and that went with them, parents first.

    `grants` are those on the first of the namespaces, before the drop.
    """

    namespaces: tuple[NamespaceEntry, ...]
    tables: tuple[TableBeforeDrop, ...]
    grants: tuple[GrantEntry, ...] = ()


Finding = (
    StagedManifest
    | AddedFiles
    | VacantLocation
    | TableReferences
    | DroppedTables
    | LanceNamespaceError
    | tuple[VersionEntry, ...]
)
"""The result of verifying one operation on storage: its staged manifest, added files, vacant location, references,
dropped tables or registered versions; or the error why these cannot be used."""
Findings = dict[int, Finding]
"""The findings of a batch, by the index of the operation."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes of a batch, the manifests that it publishes, and its answer.

    Paths in `results` are store keys. `tables`: see `Overlay`. `staged` are the objects that must be written before
    the flip. `replayed`: the batch is already in the catalog, and `results` is its answer. `catalog_version` is the one
    that holds the batch; None for a batch that changes nothing and is not recorded, and for a replayed one whose
    record is gone or does not state it. `granted` are the grants by which its operations are allowed, where any are in
    force.
    """

    batch: Batch
    transaction_id: str
    changes: Changes
    tables: frozenset[ObjectId] | None
    results: tuple[OperationResult, ...]
    published: tuple[PlannedVersion, ...] = ()
    staged: tuple[tuple[str, bytes], ...] = ()
    replayed: bool = False
    catalog_version: int | None = None
    granted: tuple[Authorization, ...] = ()

    def answered_version(self, snapshot: CatalogSnapshot) -> int:
        """The catalog version to answer with: that which holds the batch, or of the `snapshot` if none is known."""
        return self.catalog_version or snapshot.version


def version_result(entry: VersionEntry) -> OperationResult:
    """The answer about one table version; `manifest_path` is the canonical store key."""
    return {"version": table_version_json(entry, entry.canonical_path)}


class PlanBuilder:
    """The plan of one batch, operation by operation. `base` is the snapshot that the batch is planned on.

    `is_governed`: grants are in force, or the batch puts them in force. `follows`: it can be planned once the flip of
    its group is committed, and what that publishes is promoted.
    """

    def __init__(
        self, batch: Batch, base: CatalogSnapshot, findings: Mapping[int, Finding], context: PlanningContext
    ) -> None:
        self.batch = batch
        self.base = base
        self.findings = findings
        self.context = context
        self.results: list[OperationResult] = []
        self.published: list[PlannedVersion] = []
        self.staged: list[tuple[str, bytes]] = []
        self.follows = False
        self.granted: list[Authorization] = []
        self.is_governed = base.policy is not None
        self._overlay = Overlay(base)
        self._tombstones = 0
        self._moved: set[str] = set()
        self._recorded = batch.idempotency_key is not None

    @property
    def work(self) -> CatalogSnapshot:
        """The catalog after the operations so far."""
        return self._overlay.whole

    def view(self, table_id: ObjectId) -> CatalogSnapshot:
        """The snapshot with this batch's changes to one table so far; cheaper than `work`."""
        return self._overlay.of(table_id)

    def change(self, puts: Sequence[Entry] = (), removes: Collection[str] = ()) -> None:
        """Put and remove entries, visible to the operations that follow."""
        self._overlay.add(changes_of(puts, removes), None)

    def change_records(self, records: Sequence[RecordEntry]) -> None:
        """Put batch records, visible to the operations that follow."""
        self._overlay.add(changes_of(records), ())

    def declare(self, table: TableEntry) -> None:
        """Put a table whose id and location were found vacant, visible to the operations that follow."""
        self._overlay.declare(table, self.ownership("table", table.id))

    def create(self, kind: Literal["namespace", "table"], entry: TableEntry | NamespaceEntry, *others: Entry) -> None:
        """Put a namespace or table that is new, with other entries: it belongs to the subject of the batch."""
        owned = self.ownership(kind, entry.id)
        self.change([entry, *others, *owned.puts.values()], owned.removes)

    def ownership(self, kind: Literal["namespace", "table"], object_id: ObjectId) -> Changes:
        """The changes that give a new object to the subject of the batch, where grants are in force.

        Nobody has a grant that is left over from another object of that name (GR5).
        """
        if not self.is_governed:
            return NO_CHANGES
        policy, subject = self._overlay.judged(object_id).policy, self.batch.subject
        if policy is None:
            return NO_CHANGES
        removes = [each.object_id for each in policy.on(object_id)]
        if subject is None or subject.principal is None:
            return changes_of((), removes)
        to = Grantee("principal", subject.principal)
        made = (self.base.version + 1, self.batch.principal, self.context.now_ms)
        return changes_of([GrantEntry(kind, object_id, to, OWNER, *made)], removes)

    def grants_on(self, object_ids: Iterable[ObjectId]) -> list[GrantEntry]:
        """The grants on objects themselves, after the operations so far."""
        policy = self.work.policy
        return [] if policy is None else [each for object_id in object_ids for each in policy.on(object_id)]

    def judged(self, object_id: ObjectId) -> CatalogSnapshot:
        """The catalog by which an operation on an object is judged; see `Overlay.judged`."""
        return self._overlay.judged(object_id)

    def put_tombstones(
        self,
        tables: Sequence[TableEntry],
        state: Literal["dropped", "deregistered"],
        *,
        purge: bool = False,
        ends_grants: bool = True,
    ) -> None:
        """Put the tombstones of tables that this batch removes, visible to the operations that follow (G15).

        With `purge` the next garbage collection removes their files. Grants on the tables end.

        To be called before their rows are removed. The uuids are derived from the batch's own, so that planning it
        again makes the same records. Their catalog version is the one before the flip: it has the rows (G13).
        """
        by_window = sorted(tables, key=self._window)
        groups = ((window, list(group)) for window, group in groupby(by_window, key=self._window))
        chunks = (
            (window, group[start : start + TABLES_PER_TOMBSTONE])
            for window, group in groups
            for start in range(0, len(group), TABLES_PER_TOMBSTONE)
        )
        for window, chunk in chunks:
            is_deregistered = state == DEREGISTERED
            tops = [
                (table, branch, self.work.top(table.id, branch))
                for table in chunk
                for branch in (None, *(self.work.branches(table.id) if is_deregistered else ()))
            ]
            heads = [self.work.head(table.id, branch) for table, branch, _ in tops] if is_deregistered else []
            tombstone = RecordEntry(
                str(uuid5(NAMESPACE_OID, f"{self.batch.uuid}/tombstone/{self._tombstones}")),
                state,
                principal=self.batch.principal,
                timestamp_ms=self.context.now_ms,
                attempt=self.context.attempt,
                participants=tuple(
                    Participant(table.id, branch, 0 if top is None else top[0], table.location, None)
                    for table, branch, top in tops
                ),
                results=json_bytes([head and head.sha256 for head in heads]) if is_deregistered else b"",
                catalog_version=self.base.version,
                properties={
                    **(PURGE if purge else NO_PROPERTIES),
                    **({DROPPED_WINDOW: window} if window else {}),
                    **grantees_property(self.work.policy, chunk),
                },
            )
            self._tombstones += 1
            self.change([tombstone])
        if ends_grants:
            self.end_grants(table.id for table in tables)

    def end_grants(self, object_ids: Iterable[ObjectId]) -> None:
        """Remove the grants on objects that are removed."""
        ended = self.grants_on(object_ids)
        if ended:
            self.change(removes=[each.object_id for each in ended])

    def _window(self, table: TableEntry) -> str:
        """How long a table can come back by its properties or its namespaces'; empty: as long as the catalog says."""
        try:
            return stated(self.base, table.id, DROPPED_WINDOW, _as_window, "")
        except ValueError:
            return ""

    def publish(self, planned: PlannedVersion) -> OperationResult:
        """Put a version row whose manifest this batch publishes, and answer it."""
        self.context.remember_manifest(planned)
        self.published.append(planned)
        self._overlay.add(Changes({planned.entry.object_id: planned.entry}), (planned.entry.table_id,))
        return version_result(planned.entry)

    def publishes(self, entry: VersionEntry | None) -> bool:
        """Whether it is a row whose manifest this batch publishes."""
        return entry is not None and any(planned.entry == entry for planned in self.published)

    def holder(self, object_id: ObjectId) -> TableEntry | NamespaceEntry | None:
        """The table or namespace with an id, after the operations so far."""
        return self._overlay.table(object_id) or self._overlay.namespace(object_id)

    def table_at(self, location: str) -> ObjectId | None:
        """The id of the table at a location, after the operations so far."""
        return self._overlay.table_at(location)

    def tombstone_at(self, location: str) -> RecordEntry | None:
        """The tombstone of the table that was at a location, after the operations so far (G15)."""
        return self._overlay.tombstone_at(location)

    def table(self, table_id: ObjectId) -> TableEntry:
        """The table after the operations so far, or TableNotFoundError (4)."""
        table = self.view(table_id).table(table_id)
        if table is None:
            raise table_not_found(table_id)
        return table

    def move(self, table: TableEntry, *others: Entry, removes: Collection[str] = ()) -> None:
        """Put a table that was there before this batch under its name, with its rows; see `table_in_place`."""
        self._moved.add(table.location)
        self.change([table, *others], removes)

    def table_in_place(self, table_id: ObjectId) -> TableEntry:
        """The table, for an operation on its versions: one that has the name that it had before this batch, or is new.

        By the names of the catalog storage was looked at before planning, for versions of other writers too (P5, P9),
        and a version before has to hold what goes (G13). Where another batch of the group moves it, this one `follows`.

        Raises TableNotFoundError (4), and InvalidInputError (13) for one that this batch renames or brings back.
        """
        table = self.table(table_id)
        if table.location in self._moved:
            raise InvalidInputError(
                f"table {join(table_id)}: a batch that renames a table, or brings it back, does nothing with its "
                "versions after that"
            )
        self.follows |= self.context.is_moved_by_group(table, self.base)
        return table

    def require_parent(self, object_id: ObjectId) -> None:
        """Raise NamespaceNotFoundError (1) or InvalidInputError (13) unless the parent is a namespace (N4)."""
        parent = object_id[:-1]
        holder = self.holder(parent)
        if isinstance(holder, NamespaceEntry):
            return
        if holder is not None:
            raise InvalidInputError(f"{join(object_id)}: {join(parent)} is a table, expected a namespace")
        raise parent_not_found(object_id)

    def rows_of(self, table_id: ObjectId) -> list[VersionEntry]:
        """All version rows of a table, of all branches."""
        chains = self.work.chains(table_id)
        return [entry for branch in chains for entry in self.work.versions(table_id, branch, descending=False)]

    def require_promoted(self, entries: Sequence[VersionEntry]) -> None:
        """Raise unless the rows have their canonical names, before they are removed or put under another name (P6).

        InvalidInputError (13) for a row that this very batch makes, ServiceUnavailableError (17) for others. Where
        another batch of the group makes one, this batch `follows`.
        """
        mine = {planned.entry for planned in self.published}
        if mine and any(entry in mine for entry in entries):
            raise InvalidInputError("a batch cannot remove or rename a version or table that it publishes itself")
        self.follows |= any(self.context.is_made_by_group(entry, self.base) for entry in entries)
        self._require_names(entries)

    def require_head_promoted(self, head: VersionEntry) -> None:
        """Raise ServiceUnavailableError (17) for a committed head without its canonical name, to build on it (M1).

        A head that this flip makes gets its name before the versions that are built on it.
        """
        self._require_names([head])

    def _require_names(self, entries: Sequence[VersionEntry]) -> None:
        """Promotion was tried before planning; see `rows_to_promote`."""
        if not all(map(self.context.is_promoted, entries)):
            raise with_nothing_done(
                ServiceUnavailableError(
                    f"batch {self.batch.uuid}: nothing was done: versions that it builds on or removes cannot be "
                    "promoted now; repeat it"
                )
            )

    def require_in_catalog(self, tables: Sequence[TableEntry]) -> None:
        """Have the catalog version before this batch hold all of these tables, which it drops (G13).

        Where another batch of the group changes one, this batch `follows`. Raises InvalidInputError (13) for a table
        that this very batch creates, renames, brings back, or publishes a version of: no catalog version has it so.
        Versions that cannot be promoted are dropped all the same: their records stay open.
        """
        self.follows |= self.context.is_changed_by_group([table.id for table in tables], self.base)
        published = {planned.entry.table_id for planned in self.published}
        for table in tables:
            tombstone = self.base.tombstone_at(table.location)
            if tombstone is not None and tombstone.state == DROPPED:
                raise InvalidInputError(f"table {join(table.id)}: a batch cannot drop a table that it brings back")
            held = self.base.table(table.id)
            if table.id in published or held is None or held.location != table.location:
                raise InvalidInputError(
                    f"table {join(table.id)}: a batch cannot drop a table that it creates, changes or renames"
                )

    def require_record(self) -> None:
        """Have the batch recorded, and thereby flipped, even if it changes nothing else."""
        self._recorded = True

    def finish(self) -> Plan:
        """The plan, with the batch's own record (one per batch, in the same flip)."""
        catalog_version = self.base.version + 1
        record = RecordEntry(
            batch_uuid=self.batch.uuid,
            state="open" if self.published else "closed",
            request_hash=self.batch.request_hash,
            idempotency_key=self.batch.idempotency_key,
            principal=self.batch.principal,
            message=self.batch.message,
            timestamp_ms=self.context.now_ms,
            attempt=self.context.attempt,
            participants=tuple(
                Participant(entry.table_id, entry.branch, entry.version, entry.location, entry.staged_path or "")
                for entry in (planned.entry for planned in self.published)
            ),
            results=json_bytes(self.results),
            operation=operation_names(self.batch.operations),
            catalog_version=catalog_version,
        )
        overlay = self._overlay
        changes = any(overlay.steps) or self._recorded
        if changes:
            overlay.add(Changes({record.object_id: record}), ())
        return Plan(
            self.batch,
            self.batch.uuid,
            Changes().then(*overlay.steps),
            None if overlay.tables is None else frozenset(overlay.tables),
            tuple(self.results),
            tuple(self.published),
            tuple(self.staged),
            catalog_version=catalog_version if changes else None,
            granted=tuple(self.granted),
        )


def _as_window(text: str) -> str:
    """The text of a duration. Raises `ValueError` for another."""
    read_window(text)
    return text
