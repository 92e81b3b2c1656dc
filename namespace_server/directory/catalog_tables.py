"""The tables of a catalog, as operations on rows find them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, cast

from lance_namespace.errors import InvalidInputError, TableNotFoundError

from lance_core.errors import LanceCoreError
from lance_core.format.outline import layout_digest
from namespace_server.access.requirements import REQUIREMENTS
from namespace_server.access.subjects import Privilege, Subject
from namespace_server.answer import Answer
from namespace_server.data.change_request import Caller, ChangeRecord
from namespace_server.data.port import CommitChange, CommittedChange
from namespace_server.directory.catalog import StoredCatalog
from namespace_server.directory.maintenance.requested import OPERATION, RequestedMaintenance
from namespace_server.directory.maintenance.run import Maintenance
from namespace_server.directory.manifest_table.flip import check_changeable
from namespace_server.directory.model import request_fields, requests
from namespace_server.directory.model.batch_requests import request_hash
from namespace_server.directory.model.entries import VersionEntry
from namespace_server.directory.model.errors import namespace_exists, namespace_not_found
from namespace_server.directory.model.object_ids import ChainKey, ObjectId, join
from namespace_server.directory.model.operations import Batch, Operation
from namespace_server.directory.model.reached_tables import reached_objects
from namespace_server.directory.model.requests import RequestRules
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.multipart_uploads import MultipartUploads
from namespace_server.directory.planning.planner import replay_committed, require_managed
from namespace_server.directory.reading.adopting_reads import (
    answer_as_of,
    answer_unless_missing,
    newest_snapshot,
)
from namespace_server.directory.reading.change_ranges import (
    change_range,
    snapshot_of_changes,
    start_of_changes,
)
from namespace_server.directory.reading.commit_results import kept_answer
from namespace_server.directory.reading.read_context import ReadContext
from namespace_server.directory.reading.sight import Sight, sight_of
from namespace_server.directory.reading.table_versions import require_table, table_at_version
from namespace_server.outcomes import before_commit
from table_data.batch_operations import TableState
from table_data.change_feed.ranges import ChangeRange
from table_data.requests.table_requests import CreateTable, ReadChanges, ReadRequest

_SHORT_MANIFEST: Final = 1 << 20


class CatalogTables:
    """A catalog for operations on rows. Blocking; thread-safe.

    Attributes:
        storage_options: Options of Lance for the object store of the tables.
        local: Whether a table of the newest version is found in microseconds, so that an event loop may wait for it.
        uploads: The uploads of the root.
    """

    def __init__(self, catalog: StoredCatalog, rules: RequestRules, storage_options: Mapping[str, str]) -> None:
        self._catalog = catalog
        self._rules = rules
        self.storage_options = dict(storage_options)
        self.local = catalog.store.local
        self.uploads = MultipartUploads(catalog.store, rules)

    def find_table(
        self,
        request: ReadRequest,
        *,
        at: int | None = None,
        layout: bool = False,
        subject: Subject | None = None,
        privileges: Collection[Privilege] = (),
    ) -> tuple[TableState, int]:
        """The table that a request names, at the version it names or the newest, and the catalog version.

        With `layout` the table has the digest of its layout, unless that takes a look at storage. What other writers
        committed is adopted before, and the version's manifest has its canonical name after. Raises the namespace
        errors for what does not exist, or may not be seen by `subject`; and PermissionDeniedError (15) if that lacks
        one of `privileges`, or reads files of a table by it that it may not read. None is the operator.
        """
        chain = (request_fields.table_id(request), request_fields.branch(request))
        asked = _Asked(self._catalog, request, subject, privileges)
        if at is not None:
            snapshot = self._catalog.snapshot(at)
            sight = self._known_sight(subject)
            table = asked.table_as_of(snapshot, chain, sight and sight_of(self._catalog.snapshot(), subject))
        elif request.get("version") is not None:
            table, snapshot = answer_unless_missing(self._catalog, self._catalog.snapshot(), request, asked.table_in)
        else:
            table, snapshot = asked.table_in(self._newest_for(chain, subject, privileges))
        return replace(table, layout=self._layout_of(table)) if layout else table, snapshot.version

    def require(self, subject: Subject | None, privileges: Collection[Privilege], table_id: Sequence[str]) -> None:
        """Raise PermissionDeniedError (15) if a subject lacks a privilege on a table that was found. No I/O."""
        sight = self._known_sight(subject)
        if sight is not None:
            sight.require(privileges, tuple(table_id))

    def _known_sight(self, subject: Subject | None) -> Sight | None:
        """What a subject may see of the newest snapshot that this process knows; None if nothing is judged there."""
        return sight_of(self._catalog.table.current, subject)

    def maintain(
        self,
        request: Mapping[str, object],
        change: CommitChange,
        *,
        subject: Subject | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Answer:
        """Maintain the main branch of a table as a request of `maintain_table` asks for, or plan that.

        Each change is made by `change`, which judges its caller; no further one is begun once `stopped`. A plan makes
        none, and writes nothing. The answer has the outcome, also where work failed or was given up. Raises the
        namespace errors for what does not exist, or may not be seen by `subject`; PermissionDeniedError (15) if that
        may not maintain the table; InvalidInputError (13), also for a table without a version.
        """
        request_fields.check_common(request, self._rules.limits)
        asked = RequestedMaintenance.of(request)
        message = request_fields.string_map(request, "context", self._rules.limits).get("message")
        chain: ReadRequest = {"id": list(asked.table_id)}
        judge = _Asked(self._catalog, chain, subject, REQUIREMENTS[OPERATION].privileges).judge
        with before_commit():
            snapshot = self._catalog.snapshot()
            require_managed(snapshot)
            judge(snapshot)
        catalog = self._catalog
        run = Maintenance(
            catalog.store,
            catalog.table,
            change,
            catalog.options.maintenance,
            stopped=stopped,
            message=message,
            judge=judge,
        )
        done = run.run_on(asked)
        return Answer(done.as_json(), done.catalog_version)

    def find_changes(
        self, request: ReadChanges, *, subject: Subject | None = None, privileges: Collection[Privilege] = ()
    ) -> tuple[TableState, ChangeRange]:
        """The table at the last catalog version of a request, and its versions since the first one.

        The table is known by its location: it may have been renamed since. Raises `ChangesGone` (11) if a version is
        not kept, or another table had its name; InvalidInputError (13) for bounds that are none of this catalog; and
        the namespace errors for what does not exist, or the subject may not see or read.
        """
        chain = (request_fields.table_id(request), request_fields.branch(request))
        to = request.get("to")
        newest = self._newest_for(chain, subject, privileges) if to is None else self._catalog.snapshot()
        require_managed(newest)
        sight = sight_of(newest, subject)
        since = start_of_changes(request, newest if sight is None else sight.view(newest))
        last_number = newest.version if to is None else to
        if not since <= last_number <= newest.version:
            raise InvalidInputError(
                f"since {since}, to {last_number}: expected catalog versions in order, up to {newest.version}"
            )
        asked = _Asked(self._catalog, cast("ReadRequest", {**request, "version": None}), subject, privileges)
        if last_number == newest.version:
            last = newest
            table = asked.table_in(last)[0]
        else:
            last = snapshot_of_changes(self._catalog, join(chain[0]), last_number)
            table = asked.table_as_of(last, chain, sight)
        if table.version is None:
            raise InvalidInputError(f"table {join(chain[0])}: expected a table with a version, found none yet")
        entries, span = change_range(self._catalog, chain, since, last, sight)
        if sight is not None:
            for entry in entries:
                asked.judge_bases(sight, entry)
        return table, span

    def _newest_for(
        self, chain: ChainKey, subject: Subject | None, privileges: Collection[Privilege]
    ) -> CatalogSnapshot:
        """The newest snapshot. Nothing is looked for above the head of a chain for who may not have it."""
        known = self._known_sight(subject)
        if known is None or all(known.allows(each, chain[0]) for each in (*privileges, Privilege.SEE)):
            return newest_snapshot(self._catalog, chain)
        return self._catalog.snapshot()

    def _layout_of(self, table: TableState) -> bytes | None:
        """Digest of the layout of the table's version, from the manifest in memory."""
        entry = self._entry(table)
        file = None if entry is None else self._catalog.manifests.get(entry)
        return None if file is None else layout_digest(file.outline)

    def row_count(self, table: TableState) -> int | None:
        """The number of rows of the table's version; None if its manifest does not state it.

        One read of a manifest of bounded size, unless it is in memory.
        """
        entry = self._entry(table)
        if entry is None:
            return None
        manifests = self._catalog.manifests
        try:
            file = manifests.load(entry) if entry.size <= _SHORT_MANIFEST else manifests.get(entry)
            return None if file is None else file.facts.rows
        except LanceCoreError:
            return None  # the worker that opens the version reports the fault

    def _entry(self, table: TableState) -> VersionEntry | None:
        """The row of the table's version; None where the newest snapshot has none, or one of another version."""
        snapshot = self._catalog.table.current
        entry = None if table.version is None else snapshot.version_entry(table.id, table.branch, table.version)
        if entry is None or self._catalog.store.object_uri(entry.location) != table.uri:
            return None
        return entry if table.identity is None or entry.sha256 == table.identity.sha256 else None

    def new_table(
        self, request: CreateTable, subject: Subject | None = None, implicit: tuple[str, ...] = ()
    ) -> tuple[TableState, int]:
        """A table that does not exist yet, at a location of its own, with the properties of the request.

        Its namespace must exist, unless it is `implicit` or above that. Also the catalog version that does not have it.
        Raises the namespace errors for a name that cannot be taken, and PermissionDeniedError (15) if `subject` may
        create no table there.
        """
        rules = replace(self._rules, implicit_namespaces=True) if implicit else self._rules
        declared = requests.declare_table({"id": request.get("id"), "properties": request.get("properties")}, rules)
        snapshot = self._catalog.snapshot()
        require_managed(snapshot)  # before rows are written
        check_changeable(snapshot)
        parent = declared.id[:-1]
        sight = sight_of(snapshot, subject)
        view = snapshot if sight is None else sight.view(snapshot)
        may_be_missing = self._rules.implicit_namespaces or (implicit and parent == implicit[: len(parent)])
        if not may_be_missing and view.namespace(parent) is None:
            raise namespace_not_found(parent)
        if sight is not None:
            sight.require({Privilege.CREATE}, parent)
        if snapshot.namespace(declared.id) is not None:
            raise namespace_exists(declared.id)
        uri = self._catalog.store.object_uri(declared.location)
        return TableState(declared.id, uri, None, declared.properties), snapshot.version

    def blob_refusal(self, place: str, subject: Subject | None = None) -> str | None:
        """Why the file at this path or URI, which is a value of a column of blobs, is not read for a subject.

        None if it is. A few looks at the links of a local path.
        """
        sight = self._known_sight(subject)
        if sight is not None and not _may_read(self._catalog, sight, [place]):
            return "it lies in the root, where it may not be read"  # before it is looked whether anything lies there
        return self._catalog.blob_locations.refusal(place)

    def is_answered(self, caller: Caller) -> bool:
        """Whether a change of this caller was committed under this idempotency key."""
        key = caller.idempotency_key
        return key is not None and self._catalog.snapshot().record_by_key(key, caller.principal) is not None

    def answered(self, record: ChangeRecord) -> CommittedChange | None:
        """A change that was committed under its key before, with the answer that was `kept`; None if there is none.

        Raises InvalidInputError (13) if the key was used for another request.
        """
        snapshot = self._catalog.snapshot()
        replayed = replay_committed(change_batch(record, ()), snapshot, {})
        return None if replayed is None else kept_answer(self._catalog, replayed, snapshot)


_READS_FILES: Final = frozenset({Privilege.READ, Privilege.MAINTAIN})
"""What needs one of these reads the files of a version; an index has values of them."""


class _Asked:
    """A table that a request asks for on behalf of a subject: found, and judged, in one snapshot or another."""

    def __init__(
        self,
        catalog: StoredCatalog,
        request: ReadRequest,
        subject: Subject | None,
        privileges: Collection[Privilege],
    ) -> None:
        self._catalog = catalog
        self._request = request
        self._subject = subject
        self._privileges = privileges

    def table_in(self, newest: CatalogSnapshot) -> tuple[TableState, CatalogSnapshot]:
        """The table in the newest snapshot, and that snapshot."""
        sight = sight_of(newest, self._subject)
        return self._table(ReadContext(self._catalog, newest, sight=sight), newest), newest

    def table_as_of(self, earlier: CatalogSnapshot, chain: ChainKey, sight: Sight | None) -> TableState:
        """The table in an earlier snapshot, by the grants of today; versions above its head are adopted (P5)."""
        context = ReadContext(self._catalog, earlier, as_of=True, sight=sight)
        read = partial(self._table, context, earlier)
        is_allowed = all(context.allows(each, chain[0]) for each in (*self._privileges, Privilege.SEE))
        if self._request.get("version") is not None or not is_allowed:
            return read()
        return answer_as_of(self._catalog, earlier, chain, read)[0]

    def _table(self, context: ReadContext, snapshot: CatalogSnapshot) -> TableState:
        if context.sight is None:
            return table_at_version(context, self._request)
        table_id = self._judged(context, context.sight)
        table = table_at_version(context, self._request)
        if not _READS_FILES.isdisjoint(self._privileges) and table.version is not None:
            self.judge_bases(context.sight, snapshot.version_entry(table_id, table.branch, table.version))
        return table

    def judge(self, newest: CatalogSnapshot) -> None:
        """Raise as `table_in`, but for files of other tables, of which a version may have some. No I/O."""
        context = ReadContext(self._catalog, newest, sight=sight_of(newest, self._subject))
        if context.sight is None:
            require_table(context, self._request)
        else:
            self._judged(context, context.sight)

    def _judged(self, context: ReadContext, sight: Sight) -> ObjectId:
        """The id of the table, which the subject may see, and has the privileges on."""
        try:
            table_id = require_table(context, self._request).id
        except TableNotFoundError as error:
            raise sight.explained(error, request_fields.table_id(self._request)) from None
        context.require(self._privileges, table_id)
        return table_id

    def judge_bases(self, sight: Sight, entry: VersionEntry | None) -> None:
        """Raise PermissionDeniedError (15) if the version has files of a table that the subject may not read.

        The error names nothing but the table that was asked for.
        """
        if entry is None:
            return
        bases = self._catalog.manifests.load(entry).outline.base_paths
        if bases and not _may_read(self._catalog, sight, [base.path for base in bases]):
            raise sight.denied({Privilege.READ}, entry.table_id, "each table whose files are read for ")


def _may_read(catalog: StoredCatalog, sight: Sight, locations: Collection[str]) -> bool:
    """Whether a caller may read all tables, today's and removed ones, that have files at some paths or URIs."""
    for key in catalog.allowed_locations.keys_below_root(locations):
        for reached in reached_objects(sight.today, key):
            if reached.version is None:
                is_allowed = sight.allows(Privilege.READ, reached.id)
            else:
                is_allowed = sight.allowed_at(Privilege.READ, reached.id, reached.version)
            if not is_allowed:
                return False
    return True


def change_batch(record: ChangeRecord, operations: tuple[Operation, ...]) -> Batch:
    """The batch of a change of rows.

    One under an idempotency key is recognised by its request, not by its operations.
    """
    name = str(uuid.uuid4())
    key, principal = record.caller.idempotency_key, record.caller.principal
    asked = name if key is None else request_hash(record.operation, record.request)
    return Batch(
        name,
        operations,
        asked,
        key,
        principal,
        record.message,
        origin=record.caller.origin,
        subject=record.caller.subject,
    )
