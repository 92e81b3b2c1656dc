"""A catalog as a writer of tables sees it: a few questions and one request, whatever carries them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from namespace_client.errors import CatalogUnreachable, CommitRejected, CommitUnknown
from namespace_client.wire import (
    BRANCH_NOT_FOUND,
    TABLE_NOT_FOUND,
    THROTTLED,
    CatalogPins,
    CatalogState,
    CommittedBatch,
    Json,
    Operation,
    TableId,
    TableState,
    batch_request,
    committed_batch,
)


@dataclass(frozen=True, slots=True)
class Accepted:
    """The batch is committed."""

    body: Json
    catalog_version: int | None


@dataclass(frozen=True, slots=True)
class Refusal:
    """The batch was judged and is not committed."""

    error: CommitRejected


@dataclass(frozen=True, slots=True)
class NotSent:
    """The batch did not reach the catalog."""

    reason: str


@dataclass(frozen=True, slots=True)
class Doubt:
    """Nobody can tell what became of the batch, whose id is `batch` if the catalog told it."""

    reason: str
    batch: str | None = None


Reply = Accepted | Refusal | NotSent | Doubt


class Backend(Protocol):
    """What carries requests to a catalog. Operations have the names of the `LanceNamespace` methods. Thread-safe."""

    @property
    def name(self) -> str:
        """Where the catalog is, for messages."""
        ...

    def ask(self, operation: str, request: Json, *, at: int | None = None) -> Json:
        """The answer to a read, as of catalog version `at` or now; or to `create_namespace`, which may be repeated.

        Raises `CommitRejected` with the catalog's words if it is an error, `CatalogUnreachable`.
        """
        ...

    def send(self, request: Json, idempotency_key: str) -> Reply:
        """Send a batch once."""
        ...

    def close(self) -> None:
        """Release what it holds."""
        ...


class CatalogAccess:
    """A catalog behind a backend. Thread-safe, blocking; close it, or use it as a context manager.

    `retries` is how often a batch is sent again, under the same key, while its outcome is unknown.
    """

    def __init__(self, backend: Backend, *, retries: int = 4) -> None:
        self._backend = backend
        self._retries = retries

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the backend."""
        self._backend.close()

    def state(self) -> CatalogState:
        """Where the catalog is and what version it is at."""
        answer = self._backend.ask("describe_catalog", {})
        return CatalogState(str(answer["root"]).rstrip("/"), int(answer["version"]))

    def table(self, table_id: TableId, *, at: int | None = None, branch: str | None = None) -> TableState | None:
        """A table, None if there is none; as of catalog version `at` if given.

        With `branch` its version is the branch's; raises `CommitRejected` with code 22 if the table has none such.
        """
        request: Json = {"id": list(table_id)}
        try:
            table = self._backend.ask("describe_table", request, at=at)
        except CommitRejected as error:
            if error.code == TABLE_NOT_FOUND:
                return None
            raise
        if not table.get("location"):
            raise CatalogUnreachable(f"{'$'.join(table_id)}: {self._backend.name} answered a table without a location")
        request |= {"limit": 1, "descending": True} | ({} if branch is None else {"branch": branch})
        versions = self._backend.ask("list_table_versions", request, at=at)["versions"]
        if branch is not None and not versions:
            raise CommitRejected(f"{'$'.join(table_id)} has no branch {branch!r}", code=BRANCH_NOT_FOUND)
        head = int(versions[0]["version"]) if versions else None
        return TableState(table_id, str(table["location"]), head, dict(table.get("properties") or {}), branch)

    def pins(self, version: int | None = None) -> CatalogPins:
        """Every table and the version that it was at in one catalog version (None: the newest)."""
        wanted = self.state().version if version is None else version
        answer = self._backend.ask("describe_catalog_version", {"version": wanted})
        tables = [TableState(tuple(table["id"]), table["location"], table.get("version")) for table in answer["tables"]]
        return CatalogPins(int(answer["version"]), {table.id: table for table in tables})

    def ensure_namespace(self, namespace: Sequence[str]) -> None:
        """Create a namespace and its parents where they are missing."""
        for depth in range(1, len(namespace) + 1):
            self._backend.ask("create_namespace", {"id": list(namespace[:depth]), "mode": "exist_ok"})

    def commit(self, operations: Sequence[Operation], *, idempotency_key: str, message: str | None) -> CommittedBatch:
        """Send one batch: all operations or none.

        While the outcome is unknown the same request is sent again under the same key, which cannot apply it twice.
        Raises `CommitRejected` (`RetryableConflict`, `IncompatibleConflict`) if the catalog refused it,
        `CatalogUnreachable` if it was never sent, `CommitUnknown` if nobody can tell. A refusal that followed an
        attempt of unknown outcome is `CommitUnknown` as well: that attempt might still arrive.
        """
        request = batch_request(operations, message)
        doubt: Doubt | None = None
        batch: str | None = None
        refusal: Exception = CatalogUnreachable(f"{self._backend.name}: the batch was not sent")
        for attempt in range(self._retries + 1):
            if attempt:
                time.sleep(min(2.0, 0.1 * 2**attempt))
            reply = self._backend.send(request, idempotency_key)
            if isinstance(reply, Accepted):
                try:
                    return committed_batch(operations, reply.body, reply.catalog_version)
                except (KeyError, TypeError, ValueError, AttributeError) as error:
                    reply = Doubt(f"{type(error).__name__}: {error}")
            if isinstance(reply, Doubt):
                doubt, batch = reply, reply.batch or batch
            elif isinstance(reply, NotSent):
                refusal = CatalogUnreachable(f"{self._backend.name}: {reply.reason}")
            else:
                refusal = reply.error
                if reply.error.code != THROTTLED:
                    break
        if doubt is None:
            raise refusal
        raise CommitUnknown(
            f"batch {batch or '(not named by the server)'}, Idempotency-Key {idempotency_key}: the outcome is unknown "
            f"({doubt.reason}); it may have committed, or may still",
            batch=batch,
            idempotency_key=idempotency_key,
        ) from refusal
