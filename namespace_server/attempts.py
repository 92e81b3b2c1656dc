"""What is known of an attempt to use the catalog: where the request came from, and which checks decided it.

An exception carries the checks that led to it as its attribute `authorizations`, as it carries its `outcome`. They are
for the log of refused attempts and never for the client, who may be answered that something is absent which is hidden.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

ObjectKind = Literal["server", "catalog", "namespace", "table"]
LONGEST_USER_AGENT: Final = 200

E = TypeVar("E", bound=Exception)


@dataclass(frozen=True, slots=True)
class Origin:
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
