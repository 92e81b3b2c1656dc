"""What is known of an attempt to use the catalog: where the request came from, and which checks decided it.

An exception carries the checks that led to it as its attribute `authorizations`, as it carries its `outcome`. They are
for the log of refused attempts and never for the client, who may be answered that something is absent which is hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar

ObjectKind = Literal["server", "catalog", "namespace", "table"]
Decision = Literal["denied", "rejected", "failed", "unknown"]
"""What became of an attempt. `denied`: the caller may not do it. `rejected`: a change that is wrong, or in conflict.
`failed`: a change that the server could not make; nothing was done. `unknown`: a change that may be made or not."""
LONGEST_USER_AGENT: Final = 200

E = TypeVar("E", bound=Exception)


@dataclass(frozen=True, slots=True)
class RequestOrigin:
    """Where a request came from.

    `client` is the address of the client, as far as the server can tell. `user_agent` is what the client says of
    itself, in at most 200 characters, and never evidence. `request_id` is that of the answer and of the access log.
    """

    client: str | None
    user_agent: str | None
    request_id: str

    def as_json(self) -> dict[str, object]:
        """The fields that are known, by their names."""
        found = {"client": self.client, "user_agent": self.user_agent, "request_id": self.request_id}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Authorization:
    """One check of one object.

    Attributes:
        privilege: What was needed: a privilege, or `authenticate` and `call` of the server itself.
        allowed: The decision.
        reason: Why, in words for an auditor.
        kind: Kind of the object.
        object: Path of the object; empty for the server, the catalog and the root namespace.
        operation_index: Position in a batch of the operation that needed it; None where there is no batch.
    """

    privilege: str
    allowed: bool
    reason: str
    kind: ObjectKind
    object: tuple[str, ...] = ()
    operation_index: int | None = None


def with_authorizations(error: E, authorizations: Iterable[Authorization]) -> E:
    """The same error, which carries from now on the checks that led to it."""
    error.authorizations = tuple(authorizations)  # type: ignore[attr-defined]
    return error


def authorizations_of(error: Exception) -> tuple[Authorization, ...]:
    """The checks that led to an error; none where it was not raised because of a check."""
    found: tuple[Authorization, ...] = getattr(error, "authorizations", ())
    return found


@dataclass(frozen=True, slots=True)
class AttemptedObject:
    """A namespace or table that an attempt was about."""

    kind: ObjectKind
    id: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RefusedOperation:
    """An operation of a batch that could not be carried out.

    `expected` and `found` are versions of its table, `kind` says whether it can succeed when it is redone.
    """

    index: int
    operation: str | None
    id: tuple[str, ...]
    branch: str | None
    expected: int | None
    found: int | None
    kind: str | None


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """A request that was refused, or whose outcome is unknown.

    Attributes:
        action: Name of the operation.
        decision: What became of it.
        status: HTTP status of the answer.
        code: Error code of the answer.
        origin: Where it came from.
        principal: Who sent it; None where that is not known.
        means: How that was found out.
        objects: What it was about, as far as that was read.
        authorizations: The checks that decided it.
        failures: The operations that could not be carried out.
        transaction_id: Uuid of its batch; by it the history tells whether one of unknown outcome was committed.
        detail: Text of the error, without literals; None where it may hold values of rows.
        key: First digits of the SHA-256 digest of a key or token that was refused.
    """

    action: str
    decision: Decision
    status: int
    code: int
    origin: RequestOrigin
    principal: str | None = None
    means: str | None = None
    objects: Sequence[AttemptedObject] = ()
    authorizations: Sequence[Authorization] = ()
    failures: Sequence[RefusedOperation] = ()
    transaction_id: str | None = None
    detail: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class AttemptLogState:
    """Numbers of a log of attempts since the start of its process.

    `attempts` counts attempts by decision. Each of them ends as a line that was `written`, was `folded` into a line
    that counts, or was `dropped`; or it is still `waiting`.
    """

    attempts: Mapping[Decision, int] = field(default_factory=dict)
    written: int = 0
    folded: int = 0
    dropped: int = 0
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class AttemptQuery:
    """Which refused attempts are wanted: all where a field is None.

    `id` stands for the object and all below it. `token` continues after an earlier page, of `limit` attempts at most.
    """

    principal: str | None = None
    id: tuple[str, ...] | None = None
    decision: Decision | None = None
    limit: int = 100
    token: str | None = None


@dataclass(frozen=True, slots=True)
class AttemptPage:
    """Lines of a log as JSON, newest first, and the token of the next page; None at the end.

    A page may have fewer than `limit` although others follow. `unreadable` counts lines that were passed over.
    """

    attempts: Sequence[Mapping[str, Any]]
    token: str | None
    unreadable: int = 0
