"""Exceptions of work on tables.

Those that a namespace server answers carry the error code of the namespace specification.
"""

from __future__ import annotations

from numbers import Integral
from typing import ClassVar, Final

_MOST: Final = 2**63 - 1


class ClientError(Exception):
    """Root of the exceptions of code that prepares and sends changes of tables."""


class InvalidCall(ClientError, ValueError):
    """The call contradicts the table, the block that it is made in, or itself. Nothing was changed."""

    code: ClassVar[int] = 13


class ColumnNotFound(InvalidCall):
    """The table has no such column."""

    code = 12


class SchemaMismatch(InvalidCall):
    """Rows do not fit the schema of the table."""

    code = 20


class IndexNotFound(InvalidCall):
    """The table has no such index."""

    code = 6


class IndexAlreadyExists(InvalidCall):
    """The table has an index of this name."""

    code = 7


class VersionGone(InvalidCall):
    """The version, or a file of it, was removed while it was read."""

    code = 11


class BaseVersionGone(VersionGone):
    """The version that a change or a read begins with has no manifest, or another one took its place."""


class WrittenAround(InvalidCall):
    """Another writer has written to the location of the table, and the catalog does not know its versions."""

    code = 14


class NotSupported(InvalidCall):
    """The call asks for something of the namespace specification that is not done here."""

    code = 0


class OutOfMemory(InvalidCall):
    """The call needs more memory than a worker may take. Nothing was changed."""


class WorkFailed(ClientError):
    """The work ended without a result, for a reason that is not in the call. Nothing was changed.

    An error of code that gives rows, such as a generator, is its `__cause__`.
    """

    code: ClassVar[int] = 18


class StorageFailed(WorkFailed):
    """Storage did not take bytes, or could not be read: no space, a quota, an I/O error. Nothing was changed.

    Not a fault of the call, and it may succeed later.
    """

    code = 17


def require_count(name: str, value: object, least: int = 0) -> int:
    """An argument that is a number of rows or the like. Raises `InvalidCall` unless it is a whole one in its range."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) <= _MOST:
        raise InvalidCall(f"{name}: expected a whole number from {least} to {_MOST}, found {value!r:.40}")
    return int(value)
