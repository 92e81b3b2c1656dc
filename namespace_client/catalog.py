"""A catalog, and transactions on it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from tenacity import AttemptManager, Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from namespace_client.access import CatalogAccess
from namespace_client.connections import Connection, TokenProvider, find_connection
from namespace_client.error_codes import ErrorCode
from namespace_client.errors import InvalidCall, NotFound, RetryableConflict
from namespace_client.events import CatalogEvent, EventFeed, each_event
from namespace_client.history import in_utc
from namespace_client.http import CatalogServer
from namespace_client.leases import LASTING, Intent, PinnedVersion, whole_seconds
from namespace_client.names import AnyName, default_namespace
from namespace_client.past import CatalogPast
from namespace_client.reads import CatalogView
from namespace_client.wire import CallerIdentity, CatalogCursor, CatalogIntent, CatalogPin, DroppedTable
from table_data.batch_operations import CursorAdvance, CursorDeletion, PinRemoval, TableOfIntent, VersionPin
from table_data.errors import require_count

if TYPE_CHECKING:
    from namespace_client.in_process import Namespace
    from namespace_client.staged_transaction import Isolation
    from namespace_client.transaction import MultiTableTransaction

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0

T = TypeVar("T")


class Catalog(CatalogPast):
    """A catalog server, or a catalog in this process. Thread-safe. Close it, or use it as a context manager.

    Made by `Catalog.connect`.

    Example:
        ```python
        with Catalog.connect("http://127.0.0.1:2333", namespace="ml") as catalog:
            with catalog.begin(message="nightly") as tx:
                tx.append("features", features)
                tx.merge("labels", labels, on="id")
            print(tx.result.catalog_version)
        ```
    """

    _owned: Any = None

    @classmethod
    def connect(
        cls,
        target: str | os.PathLike[str] | Namespace | None = None,
        *,
        namespace: AnyName | None = None,
        api_key: str | None = None,
        token: str | TokenProvider | None = None,
        ca: str | os.PathLike[str] | None = None,
        profile: str | None = None,
        storage_options: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 60.0,
        retries: int = 4,
    ) -> Catalog:
        """Connect to a server, or open a catalog in this process.

        What is not given is taken from the environment, and then from a profile: the target from
        `LANCE_NAMESPACE_URL`, the key from `LANCE_NAMESPACE_API_KEY`, the token from `LANCE_NAMESPACE_TOKEN`, the
        file of authorities from `LANCE_NAMESPACE_CA`, the name of the profile from `LANCE_NAMESPACE_PROFILE`. A key
        that belongs to a URL there is sent to that server only. `namespace_client.connections` describes profiles.

        Args:
            target: URL of a server, root of a catalog to open in this process, or a `DirectoryNamespace`.
            namespace: Default namespace: names that are strings are below it. By default that of the profile, or the
                root.
            api_key: API key of the caller, for a server.
            token: Token of the caller, for a server; or a function without arguments that gives one. It is asked
                before the first request, and again when the server has refused the token before, as after its end: the
                request is then sent once more. Without a key and a token the login of the user at this server counts,
                if there is one (`lance-namespace login`).
            ca: PEM file of the authorities that may have signed the server's certificate, in place of those of the
                system.
            profile: Name of a profile, which goes before the environment.
            storage_options: Options of Lance for the object store of the tables. Rows are read and written by this
                process, not by the server.
            headers: Further headers of every HTTP request.
            timeout: Timeout of each HTTP request in seconds.
            retries: How many times a batch is sent again under the same key while its outcome is unknown or the
                catalog is unavailable.

        Returns:
            The catalog. A catalog that is opened here is closed with it, a `DirectoryNamespace` is not.

        Raises:
            InvalidCall: The target is no URL and no root, or no target, or there is no such profile, or `ca` has no
                certificates, or a catalog in this process is given what only a server takes.
        """
        if not timeout > 0 or retries < 0:
            raise InvalidCall(
                f"timeout {timeout}, retries {retries}: expected more than 0 seconds, and 0 or more retries"
            )
        owned = None
        if target is None or isinstance(target, str | os.PathLike):
            found = find_connection(target, profile=profile, api_key=api_key, token=token, ca=ca)
        elif api_key is None and token is None and ca is None and profile is None:
            found = Connection("")
        else:
            raise InvalidCall("a catalog in this process takes no api_key, no token, no ca and no profile")
        if headers and not found.is_server:
            raise InvalidCall("headers: a catalog in this process takes none")
        options = dict(found.storage_options if storage_options is None else storage_options)
        if found.is_server:
            sent = {**found.headers, **(headers or {})}
            access: CatalogAccess = CatalogServer(
                found.target, headers=sent, timeout=timeout, retries=retries, ca=found.ca, provider=found.provider
            )
        else:
            # lance_namespace, which this module imports, takes a second to import.
            from namespace_client.in_process import InProcessBackend, open_catalog

            if found.target:
                owned = open_catalog(found.target, options)
                backend = InProcessBackend(owned, found.target)
            else:
                backend = InProcessBackend(cast("Namespace", target))
            access = CatalogAccess(backend, retries=retries)
        parents = default_namespace(found.namespace if namespace is None else namespace)
        catalog = cls(access, namespace=parents, storage_options=options)
        catalog._owned = owned
        return catalog

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, and the catalog if `connect` opened it. Later calls raise `CatalogClosed`."""
        self.access.close()
        if self._owned is not None:
            self._owned.close()

    def ensure_namespace(self, namespace: AnyName | None = None) -> None:
        """Create a namespace (the default namespace if None) and its parents if they do not exist."""
        self.access.ensure_namespace(self._parent(namespace))

    def at(self, point: int | datetime | str) -> CatalogView:
        """The catalog as it was, read-only.

        Args:
            point: A catalog version, a time (the newest version that was committed by then; without a time zone it is
                local time), or the name of a pin.

        Raises:
            NotFound: There is no such pin, or the version is not kept.
            CommitRejected: The catalog refused the read.
            CatalogUnreachable: The catalog did not respond.
        """
        version = self._version_at(point)
        self.access.require_version(version)
        return CatalogView(self.access, version, namespace=self._namespace, storage_options=self._storage_options)

    def whoami(self) -> CallerIdentity:
        """Who the server takes the caller for, and until when. Raises `AccessRefused`, `CatalogUnreachable`."""
        return self.access.caller()

    def _version_at(self, point: int | datetime | str) -> int:
        if isinstance(point, bool) or not isinstance(point, int | datetime | str):
            raise InvalidCall(f"{point!r}: expected a catalog version, a time, or the name of a pin")
        if isinstance(point, int):
            return point
        if isinstance(point, datetime):
            return self._version_by(in_utc(point))
        for pin in self.pins():
            if pin.name == point:
                return pin.version
        raise NotFound(
            f"there is no pin {point!r}: expected a catalog version, a time such as 2026-03-01T12:00, or a pin",
            code=ErrorCode.TABLE_VERSION_NOT_FOUND,
        )

    def dropped_tables(self) -> list[DroppedTable]:
        """The dropped tables that can come back, the last one first. Raises `CommitRejected`, `CatalogUnreachable`."""
        return self.access.dropped_tables()

    def pins(self) -> list[CatalogPin]:
        """The catalog versions that are kept by a pin. Raises `CommitRejected`, `CatalogUnreachable`."""
        return self.access.catalog_pins()

    def pin(
        self,
        name: str,
        version: int | None = None,
        *,
        lasting: timedelta | None = None,
        reason: str | None = None,
    ) -> int | None:
        """Keep a catalog version with all rows and files, whatever the settings of garbage collections.

        A pin of the same name is replaced.

        Args:
            name: What the pin is called: 1 to 128 letters, digits, dots, underscores or hyphens.
            version: Catalog version; if None the one that this change makes, which holds all that was committed.
            lasting: How long, at most 30 days; until the pin is removed if None.
            reason: Text that is kept with it.

        Returns:
            The catalog version that is pinned; None if the server did not answer it.

        Raises:
            CommitRejected: The catalog refused it: with code 11 if the version is not kept.
            CatalogUnreachable: The catalog did not respond; nothing was done.
            CommitUnknown: The outcome is unknown.
        """
        seconds = None if lasting is None else whole_seconds(lasting)
        committed = self._commit(VersionPin(name, version, seconds, reason))
        return committed.catalog_version if version is None else version

    def unpin(self, name: str) -> None:
        """Remove a pin. Raises as `pin`, with code 11 if there is none of that name."""
        self._commit(PinRemoval(name))

    def events(
        self,
        *,
        since: int | None = None,
        cursor: str | None = None,
        follow: bool = False,
        kinds: Sequence[str] | None = None,
    ) -> Iterator[CatalogEvent]:
        """The catalog versions as events: each once, in order, none left out.

        Without `since` and `cursor` they begin after the newest version. They are read from the history of the catalog,
        so that it does not matter which server is asked, or whether it was running then. With `follow`, interruptions
        of any length are waited for.

        Args:
            since: Catalog version; the events after it are told. 0: from the first one on.
            cursor: Name of a cursor: the events after its position are told, and it moves behind what is done. An event
                is done when the next one is asked for. Where a consumer dies, some are told again, by the same version
                number. The cursor is made, at the newest version, if there is none of that name.
            follow: Whether to wait for those to come. Else the iterator ends at the version that is the newest now.
            kinds: Kinds of events to tell, see `CatalogEvent`; all if None.

        Yields:
            Events.

        Raises:
            EventsGone: Events that were not seen are not kept any more.
            CommitRejected: The catalog refused the read: with code 13 if `since` is in the future.
            InvalidCall: `since` is no whole number, or beside `cursor`; `kinds` are none, or there are no such kinds.
            IncompatibleConflict: Another consumer moved the cursor.
            CatalogUnreachable: The catalog did not respond, without `follow`.
        """
        return each_event(EventFeed(self.access, since=since, cursor=cursor, follow=follow, kinds=kinds))

    def cursors(self) -> list[CatalogCursor]:
        """The cursors of consumers of events. Raises `CommitRejected`, `CatalogUnreachable`."""
        return self.access.cursors()

    def advance_cursor(
        self, name: str, version: int | None = None, *, expected: int | None = None, backwards: bool = False
    ) -> None:
        """Put a cursor at a catalog version, up to which its consumer is done; make it if there is none.

        The versions above are kept for it, within the bounds of `gc.cursors.age` and `gc.cursors.count`.

        Args:
            name: What the cursor is called: 1 to 128 letters, digits, dots, underscores or hyphens.
            version: Catalog version; if None the one that this change makes.
            expected: Where the cursor has to be now; if None anywhere.
            backwards: Whether it may go back.

        Raises:
            IncompatibleConflict: The cursor is elsewhere, or would go back.
            EventsGone: The versions above are not all kept.
            CommitRejected: The catalog refused it: with code 13 if the version is in the future.
            CatalogUnreachable: The catalog did not respond; nothing was done.
            CommitUnknown: The outcome is unknown.
        """
        self._commit(CursorAdvance(name, version, expected, backwards))

    def delete_cursor(self, name: str) -> None:
        """Remove a cursor: nothing is kept for it any more. Raises as `pin`, with code 11 if there is none."""
        self._commit(CursorDeletion(name))

    def keeping(self, version: int | None = None, *, reason: str | None = None) -> PinnedVersion:
        """Keep a catalog version while it is read, by a pin of an hour that is renewed every ten minutes.

        Reads of a catalog version write nothing by themselves: a version that is kept long enough needs no pin. This is
        for readers that are at it for longer than `gc.catalog.age`, or read what may be deleted meanwhile.

        Args:
            version: Catalog version; if None the one that this change makes, which holds all that was committed.
            reason: Text that is kept with the pin.

        Returns:
            A context manager; `version` is kept within its block. It raises as `pin`.
        """
        return PinnedVersion(self.access, version, reason=reason)

    def intents(self) -> list[CatalogIntent]:
        """The jobs that are registered. Raises `CommitRejected`, `CatalogUnreachable`."""
        return self.access.catalog_intents()

    def intent(
        self,
        tables: Sequence[AnyName | TableOfIntent],
        *,
        lasting: timedelta | None = None,
        reason: str | None = None,
    ) -> Intent:
        """Register a job that may take longer than garbage collections allow between its first file and its commit.

        Transactions of this package and graph writes register themselves when they take long. This is for jobs that
        write files, or read versions, by other means.

        Args:
            tables: What the job writes or reads: names in the default namespace, or paths; a `TableOfIntent` says also
                which version has to be kept, on which branch.
            lasting: How long a registration is for, an hour to 30 days; a day if None. It is renewed every ten minutes,
                so that this is how long a job that died holds garbage.
            reason: Text that is kept with it.

        Returns:
            A context manager; the job is registered within its block. It raises as `pin`: with code 4 if a table is not
            there, 11 if a version is not.
        """
        named = tuple(
            table if isinstance(table, TableOfIntent) else TableOfIntent(self._path(table)) for table in tables
        )
        return Intent(self.access, lambda: named, lasting=LASTING if lasting is None else lasting, reason=reason)

    def begin(self, *, message: str | None = None, isolation: Isolation = "snapshot") -> MultiTableTransaction:
        """Make a transaction, for use in a `with` statement.

        Args:
            message: Text that is stored with the batch and in the transaction of every table.
            isolation: With "snapshot" the catalog rebases the transaction over concurrent commits. They conflict only
                if both changed the same rows, keys, columns or schema. With "serializable" any change of a table that
                the transaction read or wrote is a conflict.

        Returns:
            A transaction that has not begun; it begins with the `with` statement.
        """
        return self._transaction(message, isolation, [])

    def retrying(
        self, *, attempts: int = 10, message: str | None = None, isolation: Isolation = "snapshot"
    ) -> Iterator[Attempt]:
        """Run a block until it commits, each time on a new snapshot.

        Only a `RetryableConflict` leads to another attempt, after a random pause with a growing bound. Every other
        exception is raised at once. `CommitUnknown` in particular is never retried this way, since the block may have
        committed already.

        Example:
            ```python
            for attempt in catalog.retrying():
                with attempt as tx:
                    count = tx.table("features").count_rows()
                    tx.append("sizes", [{"rows": count}])
            ```

        Args:
            attempts: Upper bound of the number of attempts.
            message: As in `begin`.
            isolation: As in `begin`.

        Yields:
            Context managers that give a transaction.

        Raises:
            RetryableConflict: The last attempt conflicted, too.
        """
        used_readers: list[object] = []
        for attempt in Retrying(**retry_options(attempts)):
            yield Attempt(attempt, self._transaction(message, isolation, used_readers))

    def run(
        self,
        block: Callable[[MultiTableTransaction], T],
        *,
        attempts: int = 10,
        message: str | None = None,
        isolation: Isolation = "snapshot",
    ) -> T:
        """Call a function with a transaction until it commits, as `retrying` does.

        Args:
            block: Function that gets a transaction.
            attempts: Upper bound of the number of attempts.
            message: As in `begin`.
            isolation: As in `begin`.

        Returns:
            The return value of the call that committed.

        Raises:
            RetryableConflict: The last attempt conflicted, too.
        """
        for attempt in self.retrying(attempts=attempts, message=message, isolation=isolation):
            with attempt as tx:
                returned = block(tx)
        return returned

    def _transaction(
        self, message: str | None, isolation: Isolation, used_readers: list[object]
    ) -> MultiTableTransaction:
        """`used_readers` are the Arrow readers that earlier attempts at the same block have read."""
        from namespace_client.transaction import MultiTableTransaction  # imports pylance

        return MultiTableTransaction(
            self.access,
            namespace=self._namespace,
            message=message,
            isolation=isolation,
            storage_options=self._storage_options,
            used_readers=used_readers,
        )


class Attempt:
    """One attempt of `Catalog.retrying`: a context manager that gives a transaction and passes conflicts on."""

    def __init__(self, attempt: AttemptManager, transaction: MultiTableTransaction) -> None:
        self._attempt = attempt
        self._transaction = transaction

    def __enter__(self) -> MultiTableTransaction:
        self._attempt.__enter__()
        return self._transaction.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        try:
            self._transaction.__exit__(kind, error, trace)
        except Exception as raised:  # noqa: BLE001 - the loop raises it unless it is retried
            kind, error, trace = type(raised), raised, raised.__traceback__
        return self._attempt.__exit__(kind, error, trace)


def retry_options(attempts: int) -> dict[str, Any]:
    """How tenacity runs a block again: after a `RetryableConflict`, `attempts` times, each after a longer pause.

    Raises `InvalidCall` for less than one attempt.
    """
    return {
        "stop": stop_after_attempt(require_count("attempts", attempts, 1)),
        "wait": wait_random_exponential(multiplier=_FIRST_PAUSE, max=_LONGEST_PAUSE),
        "retry": retry_if_exception_type(RetryableConflict),
        "reraise": True,
    }
