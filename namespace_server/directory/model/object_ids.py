"""Object ids: how namespaces, tables, versions and records are named in the catalog.

An `ObjectId` is the path of a namespace or table, as a tuple of names. Every row of `__manifest` has an object id as
text, its components joined by '$', whatever the delimiter on the wire:

    namespace, table     a$b
    table version        a$b$t$5, on branch `dev/x`: a$b$t$dev%2Fx$5
    batch record         $transactions$<batch uuid>
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, unquote

from namespace_server.directory.model.limits import MAX_INT64

ObjectId = tuple[str, ...]
ChainKey = tuple[ObjectId, str | None]
"""A table and one of its branches (None is main): what names a chain of versions."""

DELIMITER: Final = "$"
RECORD_PREFIX: Final = "$transactions$"
_MAX_DIGITS: Final = 20


def join(object_id: ObjectId) -> str:
    """An id as text: its components joined by '$'."""
    return DELIMITER.join(object_id)


def parse_id(text: str) -> ObjectId:
    """The components of the object id of a namespace or table. Inverse of `join`."""
    return tuple(text.split(DELIMITER))


def escape_branch(branch: str) -> str:
    """A branch name as one component of an object id; reversible by percent-decoding."""
    return quote(branch, safe="")


def unescape_branch(component: str) -> str:
    """Inverse of `escape_branch`."""
    return unquote(component)


def chain_object_id(table_id: ObjectId, branch: str | None) -> str:
    """The common part of the object ids of a chain's versions: all before the last '$'. None is the main branch."""
    table = DELIMITER.join(table_id)
    return table if branch is None else f"{table}{DELIMITER}{escape_branch(branch)}"


def version_object_id(table_id: ObjectId, branch: str | None, version: int) -> str:
    """The object id of a table version."""
    return f"{chain_object_id(table_id, branch)}{DELIMITER}{version}"


def split_version_id(text: str) -> tuple[str, int] | None:
    """The object id of the chain (`a$t` or `a$t$dev`) and the version, zero-padded or not. None for other ids."""
    chain, separator, digits = text.rpartition(DELIMITER)
    version = parse_version(digits) if separator else None
    return None if version is None else (chain, version)


def parse_version(digits: str) -> int | None:
    """The version that ASCII digits spell, zero-padded or not; None for any other text."""
    if not digits.isascii() or not digits.isdigit() or len(digits) > _MAX_DIGITS:
        return None
    version = int(digits)
    return version if 0 < version <= MAX_INT64 else None
