"""Privileges, and those who have them: principals, roles, and the subjects that requests are judged for.

It knows no catalog, so that every layer of a server may carry a subject.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal, NamedTuple

MAX_NAME: Final = 255
"""The most characters of the name of a principal or a role."""


class Privilege(StrEnum):
    """What a grant allows on an object and on everything below it.

    Each one implies `see` where it holds, but for `create`: that implies it on the object of the grant alone.
    """

    SEE = "see"
    """Know that it is there, and its properties."""
    READ = "read"
    """Read rows, schemas and versions."""
    WRITE = "write"
    """Add, change and remove rows."""
    ALTER = "alter"
    """Change schemas and properties."""
    CREATE = "create"
    """Create namespaces and tables in it."""
    DROP = "drop"
    """Drop it."""
    REFERENCE = "reference"
    """Change tags and branches."""
    MAINTAIN = "maintain"
    """Compact and index; on the catalog: pin versions."""
    GRANT = "grant"
    """Grant others the privileges that one has, and revoke them."""
    OWN = "own"
    """All of them: who created an object has it."""


class Grantee(NamedTuple):
    """A principal or a role."""

    kind: Literal["principal", "role"]
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


EVERYONE: Final = Grantee("role", "everyone")
"""The role that every subject has, also one without a name."""


@dataclass(frozen=True, slots=True)
class Subject:
    """On whose behalf something is asked.

    In place of it, None stands for the operator: the process that has the root of the catalog, which is not judged.

    Attributes:
        principal: Its name; None for a request whose sender is not known.
        roles: The roles that its token names.
    """

    principal: str | None
    roles: frozenset[str] = frozenset()


ANONYMOUS_SUBJECT: Final = Subject(None)
"""The sender of a request that is not known: of the roles it has `everyone` only."""


def is_name(name: str) -> bool:
    """Whether a principal or a role may have this name, so that something can be granted to it."""
    return bool(name.strip()) and len(name) <= MAX_NAME and name.isprintable()


def ordered(privileges: Iterable[Privilege]) -> list[Privilege]:
    """Privileges in the order in which they are declared."""
    found = frozenset(privileges)
    return [each for each in Privilege if each in found]
