"""A catalog, and the transactions on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import lance_namespace
from tenacity import AttemptManager, Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from namespace_client.access import CatalogAccess
from namespace_client.errors import RetryableConflict
from namespace_client.http import HttpBackend
from namespace_client.in_process import InProcessBackend, Namespace
from namespace_client.transaction import Isolation, MultiTableTransaction

_DIRECTORY = "namespace_server.directory.namespace.DirectoryNamespace"
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0

T = TypeVar("T")


class Catalog:
    """A catalog server, or a catalog in this process. Thread-safe; close it, or use it as a context manager.

    with Catalog.connect("http://127.0.0.1:2333", namespace=["ml"]) as catalog:
        with catalog.begin(message="nightly") as tx:
            tx.append("features", features)
            tx.merge("labels", labels, on="id")
        print(tx.result.catalog_version)
    """

    def __init__(
        self,
        access: CatalogAccess,
        *,
        namespace: Sequence[str] = (),
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        self.access = access
        self._namespace = tuple(namespace)
        self._storage_options = dict(storage_options or {})
        self._owned: Any = None

    @classmethod
    def connect(
        cls,
        target: str | Namespace,
        *,
        namespace: Sequence[str] = (),
        storage_options: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 60.0,
        retries: int = 4,
    ) -> Catalog:
        """A server by its URL, a `DirectoryNamespace` as it is, or a catalog in this process by its root.

        `namespace` is put before table names that are strings. `storage_options` are Lance's, for the object store that
        the tables are in, which this process reads and writes itself. `headers` and `timeout` (seconds) are for HTTP,
        `retries` is how often a batch is sent again while its outcome is unknown.
        """
        owned = None
        if isinstance(target, str) and target.startswith(("http://", "https://")):
            access = CatalogAccess(HttpBackend(target, headers=headers, timeout=timeout), retries=retries)
        else:
            if isinstance(target, str):
                options = {f"storage.{key}": value for key, value in (storage_options or {}).items()}
                owned = _opened(target, options)
                backend = InProcessBackend(owned, target)
            else:
                backend = InProcessBackend(target)
            access = CatalogAccess(backend, retries=retries)
        catalog = cls(access, namespace=namespace, storage_options=storage_options)
        catalog._owned = owned
        return catalog

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, or the catalog if it was opened here."""
        self.access.close()
        if self._owned is not None:
            self._owned.close()

    def ensure_namespace(self, namespace: Sequence[str] | None = None) -> None:
        """Create a namespace (the default one if None) and its parents where they are missing."""
        self.access.ensure_namespace(self._namespace if namespace is None else namespace)

    def begin(self, *, message: str | None = None, isolation: Isolation = "snapshot") -> MultiTableTransaction:
        """A transaction, to be used in a `with` statement.

        With "snapshot" the catalog rebases it over what others committed meanwhile, and refuses it only if both changed
        the same rows, keys, columns or schema. With "serializable" it commits only if no table that it read or wrote
        has changed at all. `message` is kept with the batch and in every table's transaction.
        """
        return self._transaction(message, isolation, [])

    def retrying(
        self, *, attempts: int = 10, message: str | None = None, isolation: Isolation = "snapshot"
    ) -> Iterator[Attempt]:
        """Attempts at the same block, each on a fresh snapshot, until one commits.

            for attempt in catalog.retrying():
                with attempt as tx:
                    ...

        Only a `RetryableConflict` leads to another attempt, after a pause that grows and varies. The last one's, and
        every other exception, is raised: `CommitUnknown` above all, since the block may have committed.
        """
        retrying = Retrying(
            stop=stop_after_attempt(attempts),
            wait=wait_random_exponential(multiplier=_FIRST_PAUSE, max=_LONGEST_PAUSE),
            retry=retry_if_exception_type(RetryableConflict),
            reraise=True,
        )
        spent: list[object] = []
        for attempt in retrying:
            yield Attempt(attempt, self._transaction(message, isolation, spent))

    def run(
        self,
        block: Callable[[MultiTableTransaction], T],
        *,
        attempts: int = 10,
        message: str | None = None,
        isolation: Isolation = "snapshot",
    ) -> T:
        """Call `block` with a transaction, and again as `retrying` does; what the call that committed returned."""
        for attempt in self.retrying(attempts=attempts, message=message, isolation=isolation):
            with attempt as tx:
                returned = block(tx)
        return returned

    def _transaction(self, message: str | None, isolation: Isolation, spent: list[object]) -> MultiTableTransaction:
        """`spent` are the readers that earlier attempts at the same block have read."""
        return MultiTableTransaction(
            self.access,
            namespace=self._namespace,
            message=message,
            isolation=isolation,
            storage_options=self._storage_options,
            spent=spent,
        )


class Attempt:
    """One attempt of `retrying`: a context manager that gives a transaction and keeps conflicts to the loop."""

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
        except Exception as raised:  # noqa: BLE001 - the loop decides, and raises it if it is not to be tried again
            kind, error, trace = type(raised), raised, raised.__traceback__
        return self._attempt.__exit__(kind, error, trace)


def _opened(root: str, options: Mapping[str, str]) -> Any:
    """By name, since the client does not depend on the server."""
    return lance_namespace.connect(_DIRECTORY, {"root": root, **options})
