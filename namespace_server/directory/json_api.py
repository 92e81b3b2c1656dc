"""The catalog as JSON: what the REST server serves, and `DirectoryNamespace` has types for."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import ClassVar

from lance_namespace.errors import InternalError, LanceNamespaceError, ServiceUnavailableError

from lance_core.commit.handlers import ManifestStore
from lance_core.errors import CorruptFile, OutcomeUnknown, StorageError, system_reason
from namespace_server.answer import Answer
from namespace_server.data.change_request import ChangeRecord
from namespace_server.data.inline import InlineChanges, InlineWork
from namespace_server.data.reads import RowReads
from namespace_server.directory.adoption import Adoption, adopt_root
from namespace_server.directory.catalog import Catalog
from namespace_server.directory.catalog_tables import CatalogTables, change_batch
from namespace_server.directory.committing.stored_versions import key_above
from namespace_server.directory.committing.writable import check_writable
from namespace_server.directory.model import requests
from namespace_server.directory.model.batch_requests import CALLS, batch_operations, read_operations, request_hash
from namespace_server.directory.model.calls import Call
from namespace_server.directory.model.idempotency_key import check_idempotency_key
from namespace_server.directory.model.operations import Batch
from namespace_server.directory.model.requests import PathResolver, Request, RequestRules
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.plan_builder import Plan
from namespace_server.directory.properties import open_catalog, storage_options
from namespace_server.directory.reading.commit_results import KEPT_ANSWER, answer_call
from namespace_server.directory.reading.objects import READS
from namespace_server.directory.reading.read_context import ReadContext
from namespace_server.directory.reading.response_cache import CachedResponse, ResponseCache
from namespace_server.directory.references.change_context import ChangeContext
from namespace_server.directory.references.changes import CHANGES, make_once

logger = logging.getLogger(__name__)

_LONG_READS = frozenset(
    {
        "describe_catalog_version",
        "list_catalog_versions",
        "list_table_tags",
        "get_table_tag_version",
        "list_table_branches",
        "describe_transaction",
    }
)
_LISTS = frozenset({"list_namespaces", "list_tables", "list_all_tables", "list_table_versions"})
_SHORT_LIST = 1000


class JsonCatalog:
    """A catalog whose requests and answers are JSON, with the names of the wire.

    The properties are those of `DirectoryNamespace`. Raises the errors of `lance_namespace.errors`. Thread-safe.
    """

    READS: ClassVar[frozenset[str]] = frozenset(READS)
    CHANGES: ClassVar[frozenset[str]] = frozenset(CHANGES)
    WRITES: ClassVar[frozenset[str]] = CALLS

    def __init__(self, *, catalog: Catalog | None = None, **properties: str) -> None:
        self._manifests: ManifestStore | None = None
        self.storage_options = storage_options(properties)
        if catalog is None:
            catalog, self._manifests = open_catalog(properties)
        self.catalog = catalog
        self._rules = RequestRules(
            PathResolver(self.catalog.store.relative_path, self.catalog.store.uri),
            self.catalog.options.limits,
            self.catalog.options.implicit_namespaces,
        )
        self._cache = ResponseCache(self.catalog.options.response_cache_bytes)

    @property
    def local(self) -> bool:
        """Whether reads take microseconds."""
        return self.catalog.store.local

    def read(
        self,
        operation: str,
        request: Request,
        *,
        at: int | None = None,
        snapshot: CatalogSnapshot | None = None,
        cache_key: Hashable | None = None,
    ) -> Answer:
        """Answer a read operation.

        Args:
            operation: its name, one of `READS`.
            request: the request as JSON.
            at: the catalog version to answer at.
            snapshot: the newest snapshot, if the caller has just asked for it; else storage is asked, in one round
                trip.
            cache_key: stands for operation and request; the answer may come from the response cache, if the catalog has
                not changed since and the answer depends on nothing else, and is put there.
        """
        if operation == "describe_catalog_version":
            at = requests.integer(request, "version", required=True)
        if at is not None:
            return self._answer(self.catalog.snapshot(at), operation, request, pinned=True)
        if _asks_for_head(operation, request):
            return self._read_head(operation, request, cache_key)
        if snapshot is None:
            snapshot = self.catalog.snapshot()
        cached = self._cache.find(snapshot, cache_key)
        return self._answer(snapshot, operation, request, cache_key) if cached is None else cached.answer

    def newest(self) -> CatalogSnapshot:
        """The newest snapshot (one storage round trip)."""
        return self.catalog.snapshot()

    def cached(self, cache_key: Hashable, snapshot: CatalogSnapshot) -> Answer | None:
        """The cached answer under a key, if it is known to be the answer in `snapshot` too.

        One more storage round trip for the head of a table: no file of another writer may stand above it (rule P5:
        versions above the head that other writers committed are adopted before an answer names the head).
        """
        entry = self._cache.find(snapshot, cache_key)
        if entry is None or not (entry.vacant is None or self.catalog.is_vacant(entry.vacant)):
            return None
        return entry.answer

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
    ) -> Call:
        """Check the form of a change; no I/O. Raises InvalidInputError (13), UnsupportedOperationError (0)."""
        if idempotency_key is not None:
            check_idempotency_key(idempotency_key)
        operations = read_operations(operation, request, self._rules)
        context = requests.string_map(request, "context", self._rules.limits)
        batch = Batch(
            uuid=str(uuid.uuid4()),
            operations=operations,
            request_hash=request_hash(operation, request),
            idempotency_key=idempotency_key,
            principal=principal,
            message=context.get("message"),
        )
        return Call(operation, batch)

    def prepare_change(self, request: Request, record: ChangeRecord) -> Call:
        """Check the form of a BatchCommitTables request that an operation on rows made; no I/O.

        Under an idempotency key it may have no operations: then the answer alone is recorded. Raises as `prepare`.
        """
        key = record.caller.idempotency_key
        if key is None:
            return self.prepare("batch_commit_tables", request, principal=record.caller.principal)
        check_idempotency_key(key)
        operations = batch_operations(request, self._rules) if request["operations"] else ()
        kept = requests.keep_answer(record.operation, record.answer, self._rules)
        message = requests.string_map(request, "context", self._rules.limits).get("message")
        return Call(KEPT_ANSWER, change_batch(record, (*operations, kept), message))

    def commit(self, calls: Sequence[Call]) -> list[Answer | LanceNamespaceError]:
        """Commit calls as a group: each has its own verdict, what is committed is so in one flip where possible.

        Blocking; returns one answer or error per call, in order.
        """
        decided = self.catalog.commit([call.batch for call in calls])
        answers: list[Answer | LanceNamespaceError] = []
        for call, pending in zip(calls, decided, strict=True):
            if isinstance(pending.verdict, Plan):
                snapshot = pending.snapshot or self.catalog.table.current
                body = answer_call(self.catalog, call.operation, pending.verdict, snapshot)
                answers.append(Answer(body, pending.verdict.version_to_tell(snapshot)))
            elif pending.verdict is not None:
                answers.append(pending.verdict)
        return answers

    def change(
        self, operation: str, request: Request, *, principal: str | None = None, idempotency_key: str | None = None
    ) -> Answer:
        """Make a change, one of `CHANGES`, that writes or removes files beside the catalog.

        Blocking, for as long as storage takes; thread-safe. Raises the namespace errors of the operation.
        """
        notes = requests.string_map(request, "context", self._rules.limits)
        if idempotency_key is not None:
            check_idempotency_key(idempotency_key)
        asked = None if idempotency_key is None else request_hash(operation, request)
        context = ChangeContext(
            self.catalog, self._rules.limits, principal, notes.get("message"), idempotency_key, asked
        )
        try:
            return make_once(context, operation, request)
        except StorageError as error:
            logger.exception("%s: storage cannot be used", operation)
            raise _unavailable(operation, error) from error
        except CorruptFile as error:
            raise InternalError(f"{operation}: a file is damaged: {error}") from error

    def clean_up(self, calls: Sequence[Call]) -> None:
        """Clean up after calls that were committed and answered, if that is quick here; else the sweep does it."""
        self.catalog.finish_batches(call.batch.uuid for call in calls)

    def write(self, operation: str, request: Request, *, idempotency_key: str | None = None) -> Answer:
        """Commit one call, one of `WRITES`. Blocking. Raises the namespace errors of the operation."""
        call = self.prepare(operation, request, idempotency_key=idempotency_key)
        [answer] = self.commit([call])
        if isinstance(answer, LanceNamespaceError):
            raise answer
        return self.with_storage_options(answer) if call.vends else answer

    def adopt(self, *, strict: bool = False) -> Adoption:
        """Make a root of stock clients a managed one, in one flip; versions found on storage become rows.

        `strict` also sets a writer flag in the Lance manifest, which stops plain dataset writes to `__manifest`.
        Adopting a managed root changes nothing but that flag. Raises InvalidInputError naming tables below tables (N4).
        """
        return adopt_root(self.catalog, strict=strict)

    def tables(self) -> CatalogTables:
        """The tables for operations on rows."""
        return CatalogTables(self.catalog, self._rules, self.storage_options)

    @property
    def vends(self) -> bool:
        """Whether clients are handed storage options."""
        return self.catalog.vendor.vends

    def with_storage_options(self, answer: Answer) -> Answer:
        """The answer about a new table, with what the client is handed to reach it; may ask a token service.

        The table is there: where its options cannot be had, the answer is without them, and a describe tells why.
        """
        try:
            options = self.catalog.storage_options_at(answer.body["location"])
        except ServiceUnavailableError as error:
            logger.warning("a new table is answered without storage options: %s", error)
            return answer
        return Answer({**answer.body, "storage_options": options}, answer.catalog_version) if options else answer

    def check_writable(self) -> None:
        """Raise ServiceUnavailableError (17) naming root and cause unless the root can be written.

        One small object is written and removed, and no catalog version is made: cheap enough for a readiness check.
        """
        check_writable(self.catalog.store)

    def start(self) -> None:
        """Begin to finish what others left open, without waiting for a first request (M7)."""
        self.catalog.start()

    def close(self) -> None:
        """Finish what is open and release the store."""
        self.catalog.close()
        if self._manifests is not None:
            self._manifests.close()

    def _read_head(self, operation: str, request: Request, cache_key: Hashable | None) -> Answer:
        """The head that the caller may build on, after adopting what other writers committed above it (rule P5)."""
        known = self.catalog.table.current
        cached = self._cache.find(known, cache_key)
        if cached is not None and cached.vacant is not None and self.catalog.is_newest(known, vacant=cached.vacant):
            return cached.answer
        chain = (requests.table_id(request), requests.branch(request))
        snapshot = self.catalog.reconciled_snapshot(chain)
        return self._answer(snapshot, operation, request, cache_key, key_above(snapshot, chain))

    def _answer(
        self,
        snapshot: CatalogSnapshot,
        operation: str,
        request: Request,
        cache_key: Hashable | None = None,
        vacant: str | None = None,
        *,
        pinned: bool = False,
    ) -> Answer:
        view = ReadContext(self.catalog, snapshot, pinned=pinned)
        answer = Answer(READS[operation](view, request), snapshot.version)
        if cache_key is not None and view.lasting:
            subject = view.subject
            facts = () if subject is None else snapshot.facts(subject)
            self._cache.keep(cache_key, CachedResponse(answer, vacant, subject, facts))
        return answer

    def commit_request(self, request: Request, record: ChangeRecord) -> Answer:
        """Commit a BatchCommitTables request; see `namespace_server.data.port.Tables.commit`."""
        [answer] = self.commit([self.prepare_change(request, record)])
        if isinstance(answer, LanceNamespaceError):
            raise answer
        return answer

    @cached_property
    def data(self) -> InlineChanges:
        """The changes of rows, in this process."""
        return InlineChanges(self.tables(), self.commit_request)

    @cached_property
    def row_reads(self) -> RowReads:
        """The reads of rows, in this process."""
        return RowReads(self.tables(), InlineWork())


def _unavailable(operation: str, error: StorageError) -> ServiceUnavailableError:
    """The answer to a change that met an error of storage: whether nothing was done, and why, but no path of it."""
    reason = system_reason(error) or type(error).__name__
    if isinstance(error, OutcomeUnknown):
        return ServiceUnavailableError(
            f"{operation}: storage cannot be used: {reason}; the outcome is unknown, look before repeating it"
        )
    return ServiceUnavailableError(f"{operation}: nothing was done: storage cannot be used: {reason}")


def _asks_for_head(operation: str, request: Request) -> bool:
    """Whether the caller may build on the head that the answer names."""
    return operation == "list_table_versions" or (
        operation == "describe_table_version" and request.get("version") is None
    )
