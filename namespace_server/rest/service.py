"""One catalog as the routes use it: reads on or beside the event loop, and one queue of changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from lance_namespace.errors import NamespaceNotFoundError, TableNotFoundError
from starlette.types import Scope

from namespace_server.access.subjects import Subject
from namespace_server.answer import Answer
from namespace_server.attempts import AttemptLogState, RequestOrigin
from namespace_server.data.change_request import Caller, ChangeRecord
from namespace_server.data.port import CommittedChange
from namespace_server.directory.calls import Call
from namespace_server.directory.json_api import JsonCatalog
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.observability.observation import (
    SILENT,
    Observer,
    ServerState,
)
from namespace_server.read_only import NEVER_READ_ONLY, ReadOnlySwitch
from namespace_server.rest.commit_queue import CommitQueue
from namespace_server.rest.data_service import DataService
from namespace_server.rest.errors import Misdirected
from namespace_server.rest.event_streams import EventStreams
from namespace_server.rest.header_names import FORWARDED_TO, HANDED_ORIGIN, PEER_CHALLENGE
from namespace_server.rest.identity import Authenticator
from namespace_server.rest.request.body import LARGE_BODY, BodyReader, EncodedBody, JsonObject
from namespace_server.rest.request.headers import Headers
from namespace_server.rest.request.ids import ROOT, Id, IdScope, PlaceOf
from namespace_server.rest.request.limits import RequestLimits
from namespace_server.throttling import CHANGES, REQUESTS, UPLOADS, PrincipalLimit
from table_data.batch_operations import StagedOperation

if TYPE_CHECKING:
    from namespace_server.observability.access_log import AccessLog
    from namespace_server.observability.audit.log import RefusedAttemptLog
    from namespace_server.observability.metrics.measures import ServerMetrics
    from namespace_server.observability.tracing import Tracing
    from namespace_server.rest.forwarding import Forwarding

T = TypeVar("T")

_REMOTE_READERS = 32
_REMOTE_COMMITTERS = 8
_LOCAL_WAIT = 0.002
_REMOTE_WAIT = 0.02
"""Seconds for which a group waits for one more call; a flip takes ten times as long on a bucket."""
_LOCAL_SHARE = 8
_REMOTE_SHARE = 128
"""Operations of one principal in a group, while there are several. They take about as long as the rest of a flip, so
that one principal makes those of another one at most twice as long."""
_LOCAL_LOOK = 0.1
_REMOTE_LOOK = 1.0
"""Seconds between two looks for versions of other servers, while a client waits for events."""
_LONG_READERS = 1
"""Threads for long work on a local catalog. It competes with the event loop for the GIL, so more would be slower."""
_WRITERS = 4
"""Threads for changes that write or remove files beside the catalog. They wait for storage and for the flips of others,
most of the time."""
_PROBE_TIMEOUT = 5.0
_PROBE_INTERVAL = 5.0
"""Seconds for which the proof that the root can be written holds."""


class NotWritable(Exception):
    """The root cannot be written, for the reason in `__cause__`."""


class CatalogService:
    """A catalog, and the parts that all routes share. Belongs to one event loop, from `start` to `close`.

    Short reads of a local catalog run on the event loop. Reads of a remote catalog, and work that can take
    milliseconds (historic snapshots, long lists, large bodies), run in threads.
    """

    def __init__(
        self,
        namespace: JsonCatalog,
        authenticator: Authenticator,
        limits: RequestLimits | None = None,
        access_log: AccessLog | None = None,
        metrics: ServerMetrics | None = None,
        forwarding: Forwarding | None = None,
        read_only: ReadOnlySwitch = NEVER_READ_ONLY,
        tracing: Tracing | None = None,
        attempts: RefusedAttemptLog | None = None,
        auditors: Collection[str] = (),
        place_of: PlaceOf = lambda _headers, _path: ROOT,
    ) -> None:
        self.namespace = namespace
        self.place_of = place_of
        self._forwarding = forwarding
        self.authenticator = authenticator
        self.limits = limits or RequestLimits()
        self.access_log = access_log
        self.metrics = metrics
        self.read_only = read_only
        self.tracing = tracing
        self.attempts = attempts
        self._auditors = frozenset(auditors)
        self._observer: Observer = tracing or metrics or SILENT
        if metrics is not None:
            metrics.watch(self.state)
        self.bodies = BodyReader(self.limits)
        self.requests = PrincipalLimit(REQUESTS, self.limits.principal_requests, "requests")
        self.changes = PrincipalLimit(CHANGES, self.limits.principal_changes, "changes")
        self.uploads = PrincipalLimit(UPLOADS, self.limits.principal_upload, "bytes of bodies")
        # One worker is enough where promotion is a link. On remote stores one flips, some promote what was flipped
        # before, and the others bring what arrives meanwhile.
        workers, wait, share = (
            (1, _LOCAL_WAIT, _LOCAL_SHARE) if namespace.local else (_REMOTE_COMMITTERS, _REMOTE_WAIT, _REMOTE_SHARE)
        )
        self.commits = CommitQueue(
            namespace,
            workers=workers,
            capacity=self.limits.queue_capacity,
            group=namespace.group_limit,
            share=share,
            wait=wait,
            tracing=tracing,
        )
        readers = _LONG_READERS if namespace.local else _REMOTE_READERS
        self._readers = ThreadPoolExecutor(readers, thread_name_prefix="read")
        self._data: DataService | None = None
        self._writers = ThreadPoolExecutor(_WRITERS, thread_name_prefix="change")
        self.events = EventStreams(
            self._ask_newest,
            most=self.limits.event_streams,
            interval=_LOCAL_LOOK if namespace.local else _REMOTE_LOOK,
        )
        self._newest_version = 0
        self._newest: CatalogSnapshot | None = None
        self._writable_until = 0.0
        self._probe: asyncio.Task[int] | None = None

    @property
    def data(self) -> DataService:
        """The operations on rows."""
        if self._data is None:
            self._data = DataService(self.namespace.tables(), self._commit_change, self.limits.data, self._observer)
        return self._data

    def state(self) -> ServerState:
        """The present state of the server. Waits for nothing; may be called by any thread."""
        return ServerState(
            catalog=self.namespace.state(),
            read_only=self.read_only.is_on(),
            queued=self.commits.accepted,
            queue_capacity=self.limits.queue_capacity,
            principals=self.commits.principals,
            held_back=self.commits.held_back,
            over_limits={limit.setting: limit.refused for limit in (self.requests, self.changes, self.uploads)},
            pools={} if self._data is None else self._data.pools,
            jobs=self.namespace.background.states(),
            event_streams=self.events.open,
            events_sent=self.events.sent,
            attempts=AttemptLogState() if self.attempts is None else self.attempts.state(),
        )

    @property
    def catalog_version(self) -> int:
        """The newest catalog version that this process has seen."""
        return self._newest_version

    async def may_audit(self, subject: Subject, operation: str) -> bool:
        """Whether a subject may read who did what from where: the settings name it, or a grant on the catalog does.

        By the grants of the newest version. Without grants in force a caller without a name may not.
        """
        if subject.principal is not None and subject.principal in self._auditors:
            return True
        await self._ask_newest()
        return self.namespace.is_granted(subject, operation)

    def version_for(self, scope: Scope) -> int | None:
        """The newest catalog version, for the answer to a request; None if that needs a key and has shown none."""
        return self._newest_version if "principal" in scope or not self.authenticator.required else None

    def saw(self, catalog_version: int) -> None:
        """Note a catalog version that an answer came from."""
        if catalog_version > self._newest_version:
            self._newest_version = catalog_version
            self.events.saw(catalog_version)

    def start(self) -> None:
        """Accept changes, on the running event loop."""
        if self.access_log is not None:
            self.access_log.start()
        if self.attempts is not None:
            self.attempts.start()
        self.commits.start()
        self.authenticator.read_issuers()
        self.namespace.start()
        if self.limits.data.preload:
            self.data.load()

    async def close(self) -> None:
        """Finish the changes that were accepted, end streams and work on rows, then release the catalog."""
        self.events.close()
        if self._data is not None:
            await self._data.close()
        await self.commits.close()
        if self._forwarding is not None:
            await self._forwarding.close()
        await asyncio.to_thread(self._readers.shutdown, cancel_futures=True)
        await asyncio.to_thread(self._writers.shutdown)
        await asyncio.to_thread(self.namespace.close)
        if self.attempts is not None:
            await asyncio.to_thread(self.attempts.stop)
        if self.access_log is not None:
            self.access_log.stop()

    def cached(self, key: Hashable, subject: Subject) -> Answer | None:
        """The cached answer for a subject under a key, if it is known to hold at the newest catalog version.

        Only for local catalogs, where finding the newest version takes microseconds.
        """
        return self.namespace.cached(key, self._newest_snapshot(), subject) if self.namespace.local else None

    async def read(
        self,
        operation: str,
        request: JsonObject,
        subject: Subject | None,
        *,
        at: int | None = None,
        key: Hashable = None,
    ) -> Answer:
        """Answer a subject's read, as of catalog version `at` or the newest; the answer may be cached under `key`.

        Where the subject is None, all that there is.

        Raises the namespace errors of the operation.
        """
        namespace = self.namespace
        if not namespace.local or namespace.takes_long(operation, request, at):
            read = partial(namespace.read, operation, request, at=at, cache_key=key, subject=subject)
            return await self.in_thread(read)
        snapshot = self._newest_snapshot() if at is None else None
        return namespace.read(operation, request, at=at, snapshot=snapshot, cache_key=key, subject=subject)

    def require(self, subject: Subject, operation: str) -> None:
        """Raise PermissionDeniedError (15) unless a subject may have what the server tells of the whole catalog."""
        self.namespace.require(subject, operation)

    async def existing(self, place: IdScope, ids: Sequence[Id], at: int | None, subject: Subject) -> list[Id]:
        """Those of some ids at a place that are there for a subject, all of them looked up in one catalog version.

        A transaction exists where its table does.
        """
        namespace = self.namespace
        operation = "namespace_exists" if place.kind == "namespace" else "table_exists"

        def look() -> list[Id]:
            version = namespace.read("describe_catalog", {}, subject=subject).catalog_version if at is None else at
            found = []
            for name in ids:
                target = place.absolute(name)
                try:
                    namespace.read(
                        operation,
                        {"id": target[:-1] if place.kind == "transaction" else target},
                        at=version,
                        subject=subject,
                    )
                except (NamespaceNotFoundError, TableNotFoundError):
                    continue
                found.append(name)
            return found

        return await self.in_thread(look)

    async def prepare(
        self, operation: str, body: EncodedBody, caller: Caller, *, movable: bool = False
    ) -> Call[Answer]:
        """The call that the catalog's `prepare` makes of a body; of a large one in a thread. Raises as that does.

        `movable`: another server may be asked to commit it, if there is forwarding; see `Batch`.
        """

        def prepare() -> Call[Answer]:
            call = self.namespace.prepare(
                operation,
                body.decode(),
                idempotency_key=caller.idempotency_key,
                principal=caller.principal,
                origin=caller.origin,
                subject=caller.subject,
            )
            if movable and self._forwarding is not None:
                call = replace(call, batch=replace(call.batch, movable=True))
            return call

        return await self.decoded(prepare, body.size)

    def answer_to_peer(self, headers: Headers) -> Sequence[tuple[bytes, bytes]]:
        """The headers by which another server knows that this process answers, if it asks this one."""
        addressee = headers.get(FORWARDED_TO)
        if addressee is None or self._forwarding is None or not self._forwarding.is_addressed(addressee):
            return ()
        return self._forwarding.identify(headers.get(PEER_CHALLENGE))

    def origin_from_peer(self, headers: Headers) -> RequestOrigin | None:
        """Where a change came from that another server hands to this process, if that says so and proves itself."""
        told = headers.get(HANDED_ORIGIN)
        return None if told is None or self._forwarding is None else self._forwarding.origin_told(told)

    def forwarding_of(self, headers: Headers) -> Forwarding | None:
        """How a change may be handed to another server; None for one that was handed to this one.

        Raises `Misdirected` for a change that was meant for another process.
        """
        addressee = headers.get(FORWARDED_TO)
        if addressee is None:
            return self._forwarding
        if self._forwarding is None or not self._forwarding.is_addressed(addressee):
            raise Misdirected("the change was handed to a process that is not this one; nothing was done")
        self._forwarding.was_handed()
        return None

    async def with_storage_options(self, answer: Answer, subject: Subject) -> Answer:
        """The answer about a new table, with storage options for the client."""
        if not self.namespace.vends:
            return answer
        return await self.in_thread(partial(self.namespace.with_storage_options, answer, subject))

    async def _commit_change(self, staged: Sequence[StagedOperation], record: ChangeRecord) -> CommittedChange:
        """Commit a change of rows; see `Tables.commit`."""
        return await self.commits.enqueue(self.namespace.prepare_change(staged, record))

    async def change(self, operation: str, body: EncodedBody, caller: Caller, implicit: tuple[str, ...] = ()) -> Answer:
        """Make a change that takes as long as storage, in a thread. Raises the namespace errors of the operation."""
        request = await self.decoded(body.decode, body.size)
        work = partial(
            self.namespace.change,
            operation,
            request,
            principal=caller.principal,
            idempotency_key=caller.idempotency_key,
            origin=caller.origin,
            subject=caller.subject,
            implicit=implicit,
        )
        return await asyncio.get_running_loop().run_in_executor(self._writers, copy_context().run, work)

    async def ready(self) -> int:
        """The newest catalog version, read now, after proof that the root can be written; read-only without.

        The proof holds for some seconds. One probe runs at a time; those that arrive meanwhile share its result.

        Raises:
            TimeoutError: storage did not answer within some seconds.
            NotWritable: the root cannot be written.
            ServiceUnavailableError: a call to storage has been without an answer for long.
            Exception: the error that prevents reading.
        """
        self.namespace.check_answering()
        if self._probe is None or self._probe.done():
            self._probe = asyncio.create_task(self._look())
        async with asyncio.timeout(_PROBE_TIMEOUT):
            return await asyncio.shield(self._probe)

    async def _look(self) -> int:
        # Not in the threads of the long reads: a busy server is ready.
        answer = await asyncio.to_thread(self.namespace.read, "describe_catalog", {})
        if time.monotonic() >= self._writable_until and not self.read_only.is_on():
            try:
                await asyncio.to_thread(self.namespace.check_changeable)
                await asyncio.to_thread(self.namespace.check_writable)
            except Exception as error:
                raise NotWritable from error
            self._writable_until = time.monotonic() + _PROBE_INTERVAL
        self.saw(answer.catalog_version)
        return answer.catalog_version

    async def decoded(self, decode: Callable[[], T], size: int) -> T:
        """What is decoded from a body of so many bytes: on the event loop, of a large one beside it."""
        return await self.in_thread(decode) if size >= LARGE_BODY else decode()

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run work that can take long beside the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, copy_context().run, work)

    async def _ask_newest(self) -> int:
        """The newest catalog version, in one request to storage."""
        if self.namespace.local:
            return self._newest_snapshot().version
        return (await self.in_thread(self.namespace.newest)).version

    def _newest_snapshot(self) -> CatalogSnapshot:
        """The newest snapshot, shared by the requests that are handled in one iteration of the event loop.

        The end of the sharing is scheduled before storage is asked: requests that arrive while that takes place are
        handled after it, and ask again. So every answer is at least as new as the catalog was when its request came.
        """
        if self._newest is None:
            asyncio.get_running_loop().call_soon(self._forget_newest)
            self._newest = self.namespace.newest()
        return self._newest

    def _forget_newest(self) -> None:
        self._newest = None
