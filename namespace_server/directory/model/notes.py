"""Properties that clients note on a committed transaction. What the transaction itself says cannot be changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from lance_namespace.errors import ConcurrentModificationError, InvalidInputError

from namespace_server.directory.model.limits import Limits

SUCCEEDED: Final = "Succeeded"
"""The status of every transaction that can be named: one that is not committed leaves no trace."""
OWN_PROPERTIES: Final = frozenset(
    {
        "branch",
        "catalog_version",
        "message",
        "operation",
        "read_version",
        "state",
        "timestamp_millis",
        "uuid",
        "version",
        "versions",
    }
)
"""Properties of a transaction that describe it, and are no notes."""


@dataclass(frozen=True, slots=True)
class SetNote:
    """Note a property. `taken`: what to do where there is one of that name."""

    key: str
    value: str
    taken: Literal["overwrite", "fail", "skip"]


@dataclass(frozen=True, slots=True)
class UnsetNote:
    """Remove a noted property. `missing`: what to do where there is none of that name."""

    key: str
    missing: Literal["fail", "skip"]


NoteChange = SetNote | UnsetNote


def change_notes(notes: Mapping[str, str], changes: Iterable[NoteChange], limits: Limits) -> dict[str, str]:
    """The notes after all changes, in order.

    Raises ConcurrentModificationError (14) where a property exists that must not, InvalidInputError (13) where one is
    missing that must exist, or where the notes become larger than an object of strings may be.
    """
    changed = dict(notes)
    for change in changes:
        taken = change.key in changed
        match change:
            case SetNote(key, value, mode):
                if taken and mode == "fail":
                    raise ConcurrentModificationError(f"property {key}: expected none, found one, and the mode is Fail")
                if not taken or mode == "overwrite":
                    changed[key] = value
            case UnsetNote(key, mode):
                if not taken and mode == "fail":
                    raise InvalidInputError(f"property {key}: expected one, found none, and the mode is Fail")
                changed.pop(key, None)
    limits.check_strings(changed, "properties")
    return changed
