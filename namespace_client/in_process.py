"""A catalog in this process: a `DirectoryNamespace`, or anything with the same three methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from lance_namespace.errors import LanceNamespaceError

from lance_core.errors import LanceCoreError
from namespace_client.access import Accepted, Doubt, Refusal, Reply
from namespace_client.errors import CatalogUnreachable, CommitRejected
from namespace_client.wire import Json, refused

_UNAVAILABLE = 17
_INTERNAL = 18


class Answer(Protocol):
    """A body in the names of the wire, and the catalog version that it was answered at."""

    @property
    def body(self) -> Json:
        """The answer."""
        ...

    @property
    def catalog_version(self) -> int:
        """The catalog version that it is from."""
        ...


class Namespace(Protocol):
    """What is used of a `DirectoryNamespace`. Requests and answers are the JSON of the wire."""

    def read(self, operation: str, request: Mapping[str, Any], *, at: int | None = None) -> Answer:
        """Answer a read."""
        ...

    def prepare(self, operation: str, request: Mapping[str, Any], *, idempotency_key: str | None = None) -> Any:
        """Check the form of a change."""
        ...

    def commit(self, calls: Sequence[Any]) -> Sequence[Answer | LanceNamespaceError]:
        """Commit changes, one answer or error for each."""
        ...


class InProcessBackend:
    """A catalog in this process. It is the caller's: closing this does not close it."""

    def __init__(self, namespace: Namespace, name: str = "the catalog in this process") -> None:
        self.name = name
        self._namespace = namespace

    def close(self) -> None:
        """Nothing is held."""

    def ask(self, operation: str, request: Json, *, at: int | None = None) -> Json:
        """See `Backend.ask`."""
        try:
            if operation == "create_namespace":
                [made] = self._namespace.commit([self._namespace.prepare(operation, request)])
                if isinstance(made, LanceNamespaceError):
                    raise made
                return made.body
            return self._namespace.read(operation, request, at=at).body
        except LanceNamespaceError as error:
            raise _refused(error) from error
        except LanceCoreError as error:
            raise CatalogUnreachable(f"{self.name}: {error}") from error

    def send(self, request: Json, idempotency_key: str) -> Reply:
        """See `Backend.send`."""
        try:
            call = self._namespace.prepare("batch_commit_tables", request, idempotency_key=idempotency_key)
        except LanceNamespaceError as error:
            return Refusal(_refused(error))
        try:
            [answer] = self._namespace.commit([call])
        except LanceNamespaceError as error:
            answer = error
        except LanceCoreError as error:  # raised before a verdict, or while the answer was made: it does not say
            return Doubt(f"{type(error).__name__}: {error}")
        if not isinstance(answer, LanceNamespaceError):
            return Accepted(answer.body, answer.catalog_version)
        if int(answer.code) in {_UNAVAILABLE, _INTERNAL}:
            detail = getattr(answer, "detail", None)
            return Doubt(f"{answer} (code {int(answer.code)})", None if detail is None else str(detail))
        return Refusal(_refused(answer))


def _refused(error: LanceNamespaceError) -> CommitRejected:
    return refused(str(error), int(error.code), getattr(error, "failures", ()))
