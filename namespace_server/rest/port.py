"""What the REST layer needs of a catalog. `DirectoryNamespace` is one; tests that provoke faults bring their own."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol

from lance_namespace.errors import LanceNamespaceError

from namespace_server.directory.model.calls import Call
from namespace_server.directory.model.snapshot import CatalogSnapshot


class Answer(Protocol):
    """A body with the exact wire names, and the catalog version that it was answered at."""

    @property
    def json(self) -> bytes:
        """The answer as a JSON object; empty if there is nothing to say."""
        ...

    @property
    def catalog_version(self) -> int:
        """The catalog version that it is from."""
        ...


class Catalog(Protocol):
    """Reads, and commits in groups. Operations have the names of the `LanceNamespace` methods."""

    @property
    def READS(self) -> frozenset[str]:  # noqa: N802 - a constant of the implementation
        """The operations that `read` answers."""
        ...

    @property
    def WRITES(self) -> frozenset[str]:  # noqa: N802 - likewise
        """The operations that `prepare` takes."""
        ...

    @property
    def local(self) -> bool:
        """Whether a read takes microseconds, so that it may run on the event loop."""
        ...

    def read(
        self,
        operation: str,
        request: Mapping[str, Any],
        *,
        at: int | None = None,
        question: Hashable | None = None,
    ) -> Answer:
        """Answer, as of catalog version `at` or the newest. The same `question` is the same operation and request."""
        ...

    def newest(self) -> CatalogSnapshot:
        """The catalog as it is now; storage is asked for it."""
        ...

    def recall(self, question: Hashable, snapshot: CatalogSnapshot) -> Answer | None:
        """What a question was answered in a snapshot, if that is known still to be the answer there."""
        ...

    def prepare(
        self,
        operation: str,
        request: Mapping[str, Any],
        *,
        idempotency_key: str | None = None,
        principal: str | None = None,
    ) -> Call:
        """Check the form of a change; no I/O. Raises `InvalidInputError`."""
        ...

    def commit(self, calls: Sequence[Call]) -> Sequence[Answer | LanceNamespaceError]:
        """Commit, one result per call. Blocking and thread-safe.

        An exception says nothing about the outcome; where it is known that nothing was done, a result says so (A3).
        """
        ...

    def settle(self, calls: Sequence[Call]) -> None:
        """Clear up behind calls that were committed and answered. Blocking and thread-safe; raises nothing."""
        ...

    def start(self) -> None:
        """Begin what is done without being asked; does not block."""
        ...

    def close(self) -> None:
        """Release what it holds."""
        ...
