"""The catalog as JSON, as the REST server serves it and `DirectoryNamespace` wraps it."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import ClassVar, Final, TypeVar

from lance_namespace.errors import (
    LanceNamespaceError,
    NamespaceNotFoundError,
    ServiceUnavailableError,
    TableNotFoundError,
)

from lance_core.commit.handlers import ManifestStore
from lance_core.errors import CorruptFile, OutcomeUnknown, StorageError, system_reason
from namespace_server.access.requirements import REQUIREMENTS
from namespace_server.access.subjects import Privilege, Subject
from namespace_server.answer import Answer
from namespace_server.attempts import RequestOrigin
from namespace_server.background.scheduler import Scheduler
from namespace_server.credentials.vending import Permission
from namespace_server.data.change_request import ChangeRecord
from namespace_server.data.inline import InlineChanges, InlineWork
from namespace_server.data.port import CommittedChange
from namespace_server.data.reads import RowReads
from namespace_server.directory.adoption import Adoption, adopt_root
from namespace_server.directory.calls import Call
from namespace_server.directory.catalog import StoredCatalog
from namespace_server.directory.catalog_tables import CatalogTables, change_batch
from namespace_server.directory.manifests.stored_versions import key_above
from namespace_server.directory.model import request_fields, requests
from namespace_server.directory.model.batch_requests import CALLS, read_operations, request_hash
from namespace_server.directory.model.errors import RequestUnknown, file_damaged
from namespace_server.directory.model.limits import check_idempotency_key
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.operations import Batch, DeclareTable, Operation
from namespace_server.directory.model.request_fields import Request
from namespace_server.directory.model.requests import PathResolver, RequestRules
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.model.staged_operations import row_operations
from namespace_server.directory.planning.plan_builder import Plan
from namespace_server.directory.properties import CatalogSource, open_catalog, read_properties, storage_options
from namespace_server.directory.reading import commit_results as answers
from namespace_server.directory.reading.adopting_reads import answer_as_of, answer_unless_missing, newest_snapshot
from namespace_server.directory.reading.descriptions import READS
from namespace_server.directory.reading.grants import answer_grants
from namespace_server.directory.reading.read_context import ReadContext, judge_read
from namespace_server.directory.reading.response_cache import CachedResponse, ResponseCache
from namespace_server.directory.reading.sight import Sight, sight_of
from namespace_server.directory.references.change_context import ChangeContext, has_begun
from namespace_server.directory.references.changes import CHANGES, make_once
from namespace_server.directory.writable import check_writable
from namespace_server.observability.observation import SILENT, CatalogFigures, Observer, Progress, no_progress
from namespace_server.outcomes import with_nothing_done
from table_data.batch_operations import StagedOperation

logger = logging.getLogger(__name__)

_LONG_READS = frozenset(
    {
        "describe_catalog_figures",
        "describe_catalog_version",
        "find_tables",
        "list_catalog_events",
        "list_catalog_versions",
        "list_grants",
        "list_audited_versions",
        "list_table_fragments",
        "list_table_tags",
        "get_table_tag_version",
        "list_table_branches",
        "describe_transaction",
    }
)
_LISTS = frozenset({"list_namespaces", "list_tables", "list_all_tables", "list_table_versions"})
_SHORT_LIST = 1000
_LONGEST_CALL: Final = 30.0
"""Seconds in which a local file system answers any call, as the readiness check expects."""
_ANSWERS: Final[Mapping[str, Callable[[StoredCatalog, Plan, CatalogSnapshot], Answer]]] = {
    "batch_commit_tables": answers.answer_batch,
    "batch_create_table_versions": answers.answer_versions,
    "change_grants": answer_grants,
    "drop_namespace": answers.answer_dropped_namespace,
}
"""How calls are answered that are not one operation answered by its result."""
T = TypeVar("T")


class JsonCatalog:
    """A catalog whose requests and answers are JSON, with the names of the wire.

    The properties are those of `DirectoryNamespace`. `observer` receives the work on the catalog that they describe; an
    opened `catalog` has its own. Raises the errors of `lance_namespace.errors`. Thread-safe.
    """

    READS: ClassVar[frozenset[str]] = frozenset(READS)
    CHANGES: ClassVar[frozenset[str]] = frozenset(CHANGES)
    WRITES: ClassVar[frozenset[str]] = CALLS

    def __init__(
        self, *, catalog: StoredCatalog | CatalogSource | None = None, observer: Observer = SILENT, **properties: str
    ) -> None:
        self._manifests: ManifestStore | None = None
        if isinstance(catalog, StoredCatalog):
            self.catalog, self.storage_options = catalog, storage_options(properties)
        else:
            source = read_properties(properties) if catalog is None else catalog
            self.catalog, self._manifests = open_catalog(source, observer)
            self.storage_options = dict(source.storage)
        self._rules = RequestRules(
            PathResolver(self.catalog.store.relative_path, self.catalog.store.uri),
            self.catalog.options.limits,
            self.catalog.options.implicit_namespaces,
        )
        self._cache = ResponseCache(self.catalog.options.response_cache_bytes)

    @property
    def background(self) -> Scheduler:
        """The background jobs of the catalog; they end with `close`."""
        return self.catalog.background

    @property
    def local(self) -> bool:
        """Whether reads take microseconds, so that they may run on an event loop."""
        return self.catalog.store.local

    @property
    def group_limit(self) -> int:
        """The most calls that one `commit_calls` carries out at once; of more it makes several."""
        return self.catalog.group_limit

    def read(
        self,
        operation: str,
        request: Request,
        *,
        at: int | None = None,
        snapshot: CatalogSnapshot | None = None,
        cache_key: Hashable | None = None,
        subject: Subject | None = None,
    ) -> Answer:
        """Answer a read operation, for a subject what it may see of the catalog; None is the operator.

        Args:
            operation: its name, one of `READS`.
            request: the request as JSON.
            at: the catalog version to answer at.
            snapshot: the newest snapshot, if the caller has just asked for it; else storage is asked, in one round
                trip.
            cache_key: stands for operation and request; the answer may come from the response cache, if the catalog has
                not changed since and the answer depends on nothing else, and is put there.
            subject: who asks.
        """
        request_fields.check_common(request, self._rules.limits)
        request_fields.check_fields(operation, request)
        if operation == "describe_catalog_version":
            at = request_fields.integer(request, "version", required=True)
        if at is not None:
            return self._read_as_of(self.catalog.snapshot(at), operation, request, self._sight(subject))
        if _asks_for_head(operation, request) and not self.catalog.options.sole_writer:
            return self._read_head(operation, request, cache_key, subject)
        if snapshot is None:
            snapshot = self.catalog.snapshot()
        cached = self._cache.find(snapshot, _key_for(cache_key, snapshot, subject))
        if cached is not None:
            return self._cached(cached)
        answer = partial(self._answer, operation=operation, request=request, cache_key=cache_key, subject=subject)
        return answer_unless_missing(self.catalog, snapshot, request, answer)

    def state(self) -> CatalogFigures | None:
        """The figures of the catalog in memory, without a storage request; None if no version was read yet."""
        known = self.catalog.state()
        return None if known is None else replace(known, caches={**known.caches, "responses": self._cache.state})

    def newest(self) -> CatalogSnapshot:
        """The newest snapshot (one storage round trip)."""
        return self.catalog.snapshot()

    def require(self, subject: Subject | None, operation: str) -> None:
        """Raise PermissionDeniedError (15) unless a subject may do an operation on the catalog and all that is in it.

        By the newest version that this process knows; storage is not looked at.
        """
        known = self.catalog.table.known
        sight = None if known is None else sight_of(known, subject)
        if sight is not None:
            sight.require_all(REQUIREMENTS[operation].privileges)

    def is_granted(self, subject: Subject, operation: str) -> bool:
        """Whether grants are in force, and allow a subject an operation on the catalog as a whole.

        By the newest version that this process knows; storage is not looked at.
        """
        known = self.catalog.table.known
        sight = None if known is None else sight_of(known, subject)
        return sight is not None and all(sight.allows(each, ()) for each in REQUIREMENTS[operation].privileges)

    def cached(self, cache_key: Hashable, snapshot: CatalogSnapshot, subject: Subject | None = None) -> Answer | None:
        """The cached answer for a subject under a key, if it is known to be the answer in `snapshot` too.

        One more storage round trip for the head of a table: no file of another writer may stand above it (rule P5:
        versions above the head that other writers committed are adopted before an answer names the head).
        """
        key = cache_key if snapshot.policy is None else _key_for(cache_key, snapshot, subject)
        entry = self._cache.find(snapshot, key)
        if entry is None or not (entry.vacant is None or self.catalog.is_vacant(entry.vacant)):
            return None
        return self._cached(entry)

    def takes_long(self, operation: str, request: Request, at: int | None) -> bool:
        """Whether a read may take more than some hundred microseconds on a local catalog.

        That is so for historic snapshots, the history, long lists, and details that are read from manifests.
        """
        if at is not None or operation in _LONG_READS:
            return True
        if operation in _LISTS:
            limit = request.get("limit")
            return not isinstance(limit, int) or not 0 <= limit <= _SHORT_LIST
        return bool(request.get("load_detailed_metadata"))

    def prepare(
        self,
        operation: str,
        request: Request,
        *,
        idempotency_key: str | None = None,
        principal: str | None = None,
        origin: RequestOrigin | None = None,
        subject: Subject | None = None,
    ) -> Call[Answer]:
        """Check the form of a change; no I/O. Raises InvalidInputError (13), UnsupportedOperationError (0)."""
        if idempotency_key is not None:
            check_idempotency_key(idempotency_key)
        operations = read_operations(operation, request, self._rules)
        context = request_fields.string_map(request, "context", self._rules.limits)
        batch = Batch(
            uuid=str(uuid.uuid4()),
            operations=operations,
            request_hash=request_hash(operation, request),
            idempotency_key=idempotency_key,
            principal=principal,
            message=context.get("message"),
            origin=origin,
            subject=subject,
        )
        answer = _ANSWERS.get(operation, answers.answer_operation)
        return Call(batch, answer, operation == DeclareTable.name and _vends(batch))

    def prepare_change(self, staged: Sequence[StagedOperation], record: ChangeRecord) -> Call[CommittedChange]:
        """Check a change of rows; no I/O. Raises InvalidInputError (13).

        Under an idempotency key its answer is recorded with it, since another server, or this one later, cannot derive
        it from the table; it may have no operations then.
        """
        if record.message is not None:
            self._rules.limits.check_strings({"message": record.message}, "context")
        operations: tuple[Operation, ...] = row_operations(staged, self._rules)
        if record.caller.idempotency_key is not None:
            check_idempotency_key(record.caller.idempotency_key)
            operations = (*operations, requests.keep_answer(record.operation, record.answer, self._rules))
        return Call(change_batch(record, operations), answers.answer_change)

    def commit_calls(self, calls: Sequence[Call[T]]) -> list[T | LanceNamespaceError]:
        """Commit calls as a group: each has its own verdict, and those that commit share a flip where possible.

        Blocking; returns one answer or error per call, in order. An exception says nothing about the outcome; where it
        is known that nothing was done, the error of the call says so (rule A3).
        """
        decided = self.catalog.commit_batches([call.batch for call in calls])
        found: list[T | LanceNamespaceError] = []
        for call, pending in zip(calls, decided, strict=True):
            if isinstance(pending.verdict, Plan):
                snapshot = pending.snapshot or self.catalog.table.current
                found.append(call.answer(self.catalog, pending.verdict, snapshot))
            elif pending.verdict is not None:
                found.append(pending.verdict)
        return found

    def change(
        self,
        operation: str,
        request: Request,
        *,
        principal: str | None = None,
        idempotency_key: str | None = None,
        origin: RequestOrigin | None = None,
        subject: Subject | None = None,
        implicit: ObjectId = (),
    ) -> Answer:
        """Make a change, one of `CHANGES`, that reads, writes or removes files beside the catalog.

        The namespace `implicit` and those above it are created with a new table in them, if they are missing.
        Blocking, for as long as storage takes; thread-safe. Raises the namespace errors of the operation.
        """
        request_fields.check_fields(operation, request)
        notes = request_fields.string_map(request, "context", self._rules.limits)
        if idempotency_key is not None:
            check_idempotency_key(idempotency_key)
        asked = None if idempotency_key is None else request_hash(operation, request)
        context = ChangeContext(
            self.catalog,
            self._rules,
            principal,
            notes.get("message"),
            idempotency_key,
            asked,
            origin,
            subject,
            implicit,
        )
        try:
            return make_once(context, operation, request)
        except StorageError as error:
            logger.exception("%s: storage cannot be used", operation)
            raise _unavailable(operation, error) from error
        except CorruptFile as error:
            damaged = file_damaged(error, f"{operation}: ")
            raise (damaged if has_begun(error) else with_nothing_done(damaged)) from error

    def clean_up(self, calls: Sequence[Call[object]]) -> None:
        """Clean up after calls that were committed and answered, if that is quick here; else the sweep does it.

        Blocking; raises nothing.
        """
        self.catalog.finish_batches(call.batch.uuid for call in calls)

    def write(self, operation: str, request: Request, *, idempotency_key: str | None = None) -> Answer:
        """Commit one call, one of `WRITES`. Blocking. Raises the namespace errors of the operation."""
        call = self.prepare(operation, request, idempotency_key=idempotency_key)
        [answer] = self.commit_calls([call])
        if isinstance(answer, LanceNamespaceError):
            raise answer
        return self.with_storage_options(answer) if call.vends else answer

    def adopt(self, *, strict: bool = False, progress: Progress = no_progress) -> Adoption:
        """Make a root of stock clients a managed one, in one flip; versions found on storage become rows.

        `strict` also sets a writer flag in the Lance manifest, which stops plain dataset writes to `__manifest`.
        Adopting a managed root changes nothing but that flag. Raises InvalidInputError naming tables below tables (N4),
        and for a root without a catalog and without tables.
        """
        return adopt_root(self.catalog, strict=strict, progress=progress)

    def tables(self) -> CatalogTables:
        """The tables for operations on rows."""
        return CatalogTables(self.catalog, self._rules, self.storage_options)

    @property
    def vends(self) -> bool:
        """Whether clients are handed storage options."""
        return self.catalog.vendor.vends

    def with_storage_options(self, answer: Answer, subject: Subject | None = None) -> Answer:
        """The answer about a new table, with storage options for a client; may ask a token service.

        The table is there: where its options cannot be had, the answer is without them, and a describe gives the error.
        It is the subject's, unless the answer is that of an earlier request, and the grants are others since.
        """
        uri = str(answer.body["location"])
        try:
            permission = self._permission_at(uri, subject)
            options = self.catalog.storage_options_at(uri, permission) if permission is not None else {}
        except ServiceUnavailableError as error:
            logger.warning("a new table is answered without storage options: %s", error)
            return answer
        return Answer({**answer.body, "storage_options": options}, answer.catalog_version) if options else answer

    def _permission_at(self, uri: str, subject: Subject | None) -> Permission | None:
        """What options for the table at a URI may allow a subject, by the grants of the newest version."""
        sight = self._sight(subject)
        if sight is None:
            return "write"
        snapshot = sight.today
        table_id = snapshot.table_at(self.catalog.key_of(uri))
        return None if table_id is None else sight.permission(table_id)

    def check_writable(self) -> None:
        """Raise ServiceUnavailableError (17) naming root and cause unless the root can be written.

        One small object is written and removed, and no catalog version is made: cheap enough for a readiness check.
        """
        check_writable(self.catalog.store)

    def check_answering(self) -> None:
        """Raise ServiceUnavailableError (17) if the file system of a local root leaves a call without an answer.

        A hanging network file system holds the threads that wait for it; no time limit ends a call to the kernel. The
        requests to a bucket have time limits. Storage is not looked at.
        """
        waiting = self.catalog.store.longest_call() if self.catalog.store.local else None
        if waiting is not None and waiting.seconds > _LONGEST_CALL:
            logger.warning("storage has not answered %s of %r for %d s", *waiting)
            raise ServiceUnavailableError(
                f"storage has not answered a call ({waiting.kind}) for {waiting.seconds:.0f} s; expected an answer "
                f"within {_LONGEST_CALL:.0f} s; the log of the server names the file"
            )

    def check_changeable(self) -> None:
        """Raise UnsupportedOperationError (0) if a newer release has made the catalog one that this must not change.

        Of the newest version that this process knows; storage is not looked at.
        """
        self.catalog.table.check_changeable()

    def start(self) -> None:
        """Begin to finish open work of other processes, without waiting for a first request (M7)."""
        self.catalog.start()

    def close(self) -> None:
        """Finish open work and release the store."""
        self.catalog.close()
        if self._manifests is not None:
            self._manifests.close()

    def _sight(self, subject: Subject | None) -> Sight | None:
        """What a subject may see by the grants of the newest version, which storage is asked for; None without any.

        A process that knows of no grants does not ask whether there are any: it looks for newer versions all the time.
        """
        if subject is None or self.catalog.table.current.policy is None:
            return None
        return sight_of(self.catalog.snapshot(), subject)

    def _read_head(
        self, operation: str, request: Request, cache_key: Hashable | None, subject: Subject | None
    ) -> Answer:
        """The head that the caller may build on, after adopting what other writers committed above it (rule P5).

        For who may not read the table nothing is looked for.
        """
        known = self.catalog.table.current
        cached = self._cache.find(known, _key_for(cache_key, known, subject))
        if cached is not None and cached.vacant is not None and self.catalog.is_newest(known, vacant=cached.vacant):
            return self._cached(cached)
        chain = (request_fields.table_id(request), request_fields.branch(request))
        sight = sight_of(known, subject)
        if sight is not None and not sight.allows(Privilege.READ, chain[0]):
            return self._answer(self.catalog.snapshot(), operation, request, subject=subject)
        snapshot = newest_snapshot(self.catalog, chain)
        return self._answer(snapshot, operation, request, cache_key, key_above(snapshot, chain), subject=subject)

    def _read_as_of(self, snapshot: CatalogSnapshot, operation: str, request: Request, sight: Sight | None) -> Answer:
        """The answer as of an earlier catalog version, which never changes, for what may be seen today.

        Where a table is opened, what other writers committed above its head is adopted beside (P5), and the answer
        names the newer catalog version that has it.
        """
        answer = partial(self._answer_from, snapshot, operation, request, sight, as_of=True)
        if not _opens_table(operation, request):
            return answer()
        chain = (request_fields.table_id(request), request_fields.branch(request))
        if sight is not None and not sight.view(snapshot).allows(Privilege.READ, chain[0]):
            return answer()
        answered, newer = answer_as_of(self.catalog, snapshot, chain, answer)
        if newer is None:
            return answered
        return Answer({**answered.body, "adopted_in": newer.version}, answered.catalog_version)

    def _cached(self, entry: CachedResponse) -> Answer:
        self._cache.note(hit=True)
        return entry.answer

    def _answer(
        self,
        snapshot: CatalogSnapshot,
        operation: str,
        request: Request,
        cache_key: Hashable | None = None,
        vacant: str | None = None,
        *,
        subject: Subject | None = None,
    ) -> Answer:
        """The answer in the newest snapshot, by the grants in it."""
        sight, cache_key = sight_of(snapshot, subject), _key_for(cache_key, snapshot, subject)
        return self._answer_from(snapshot, operation, request, sight, cache_key, vacant)

    def _answer_from(
        self,
        snapshot: CatalogSnapshot,
        operation: str,
        request: Request,
        sight: Sight | None,
        cache_key: Hashable | None = None,
        vacant: str | None = None,
        *,
        as_of: bool = False,
    ) -> Answer:
        view = ReadContext(self.catalog, snapshot, as_of=as_of, sight=sight)
        if sight is not None:
            judge_read(view, operation, request)
        try:
            answer = Answer(READS[operation](view, request), snapshot.version)
        except (TableNotFoundError, NamespaceNotFoundError) as error:
            raise (
                error if sight is None else sight.explained(error, request_fields.object_id(request, "object"))
            ) from None
        if cache_key is not None:
            self._cache.note(hit=False)
        if cache_key is not None and view.lasting:
            about = view.subject
            facts = () if about is None else snapshot.facts(about)
            self._cache.keep(cache_key, CachedResponse(answer, vacant, about, facts))
        return answer

    def commit_change(self, staged: Sequence[StagedOperation], record: ChangeRecord) -> CommittedChange:
        """Commit a change of rows; see `namespace_server.data.port.Tables.commit`."""
        [committed] = self.commit_calls([self.prepare_change(staged, record)])
        if isinstance(committed, LanceNamespaceError):
            raise committed
        return committed

    @cached_property
    def data(self) -> InlineChanges:
        """The changes of rows, in this process."""
        return InlineChanges(self.tables(), self.commit_change)

    @cached_property
    def row_reads(self) -> RowReads:
        """The reads of rows, in this process."""
        return RowReads(self.tables(), InlineWork())


def _unavailable(operation: str, error: StorageError) -> ServiceUnavailableError:
    """The answer to a change that met an error of storage: whether nothing was done, and why, but no path of it."""
    reason = system_reason(error) or type(error).__name__
    if isinstance(error, OutcomeUnknown):
        return RequestUnknown(
            f"{operation}: storage cannot be used: {reason}; the outcome is unknown, look before repeating it"
        )
    return with_nothing_done(
        ServiceUnavailableError(f"{operation}: nothing was done: storage cannot be used: {reason}")
    )


def _key_for(cache_key: Hashable | None, snapshot: CatalogSnapshot, subject: Subject | None) -> Hashable | None:
    """The key of an answer in the cache. Where grants are in force each subject has answers of its own."""
    if snapshot.policy is None or cache_key is None:
        return cache_key
    return (*cache_key, subject) if isinstance(cache_key, tuple) else (cache_key, subject)


def _vends(batch: Batch) -> bool:
    """Whether the answer is to have storage options for a new table."""
    [first, *_] = batch.operations
    return isinstance(first, DeclareTable) and first.vends


def _asks_for_head(operation: str, request: Request) -> bool:
    """Whether the caller may build on the head that the answer names."""
    return operation == "list_table_versions" or (
        operation == "describe_table_version" and request.get("version") is None
    )


def _opens_table(operation: str, request: Request) -> bool:
    """Whether the request is for the newest version of a chain, as every client sends it that opens a table."""
    return (
        operation == "list_table_versions" and request.get("descending") is True and request.get("page_token") is None
    )
