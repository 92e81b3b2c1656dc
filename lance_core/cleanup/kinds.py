"""The roles of the files below the root of a table, by their names. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from lance_core.cleanup.reachability import file_name
from lance_core.commit.staged import STAGING_DIRECTORY
from lance_core.format.naming import (
    BRANCHES_DIRECTORY,
    DATA_DIRECTORY,
    DELETIONS_DIRECTORY,
    DETACHED_BIT,
    INDICES_DIRECTORY,
    TRANSACTIONS_DIRECTORY,
    VERSIONS_DIRECTORY,
    parse_manifest_name,
    parse_staged_name,
)

UUID_PATTERN: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"

_DETACHED: Final = re.compile(r"d([0-9]{1,20})\.manifest", re.ASCII)
_STAGED: Final = re.compile(rf"{STAGING_DIRECTORY}/{UUID_PATTERN}/([^/]+)", re.ASCII)
_SCRATCH: Final = re.compile(rf"({STAGING_DIRECTORY}/{UUID_PATTERN}/{UUID_PATTERN})/.+", re.ASCII)
_UNFINISHED: Final = re.compile(
    r"\.[0-9a-f]{32}\.tmp|\.tmp[0-9A-Za-z]{6}|.+\.(?:lance|manifest|txn|arrow|bin|json)#[0-9]+", re.ASCII
)
"""Names that writers to a file system give before the right one: this package, pylance, and object_store below it."""
_WRITE_AHEAD: Final = re.compile(rf"(?:{BRANCHES_DIRECTORY}/.+/)?_mem_wal/.+", re.ASCII)
"""Rows that clients wrote ahead of the versions of a table or branch, and their own files of state."""
_CLOCK: Final = re.compile(rf"{STAGING_DIRECTORY}/{UUID_PATTERN}/clock", re.ASCII)
_BOOKKEEPING: Final = re.compile(
    rf"_refs/(?:tags|branches)/[^/]+\.json|_alter_transactions/[^/]+\.json|\.lance-(?:deregistered|reserved)"
    rf"|(?:{BRANCHES_DIRECTORY}/.+/)?{VERSIONS_DIRECTORY}/latest_version_hint\.json",
    re.ASCII,
)
"""Files that name no file of rows, and that no manifest names."""


class FileKind(Enum):
    """The kind of a file; the values are its names in reports."""

    DATA = "data file"
    DELETION = "deletion file"
    INDEX = "index file"
    TRANSACTION = "transaction file"
    STAGED = "staged manifest"
    BUNDLE = "staged manifests"
    """Several in one object, as a catalog stages them."""
    SCRATCH = "compaction clone"
    MANIFEST = "manifest"
    """Committed or detached: it names files, and is named by nothing but its own version."""
    NESTED = "manifest of a dataset inside the directory of the table"
    """It may name files of any table, and never goes with the table that it lies in."""
    WRITE_AHEAD = "write-ahead log"
    """Of a table. No manifest names it, and the clients that write it look after it; it goes with its table alone."""
    BOOKKEEPING = "reference, hint or note"
    UNFINISHED = "unfinished file"
    """Its writer died before the file had its name, or has not given it yet. No manifest names it."""


_NAMED: Final = {
    DATA_DIRECTORY: FileKind.DATA,
    DELETIONS_DIRECTORY: FileKind.DELETION,
    INDICES_DIRECTORY: FileKind.INDEX,
    TRANSACTIONS_DIRECTORY: FileKind.TRANSACTION,
}


@dataclass(frozen=True, slots=True)
class FileRole:
    """The role of a file.

    Attributes:
        kind: Its kind.
        name: The name by which a manifest would need it, for data, deletion, index and transaction files; the key of an
            unfinished file and of a bundle.
        directory: The directory of a compaction clone.
    """

    kind: FileKind
    name: str = ""
    directory: str = ""


def role_of(key: str) -> FileRole | None:
    """The role of the file at `key`, relative to the root of its table; None for a name of no known form."""
    if _UNFINISHED.fullmatch(key.rpartition("/")[2]):
        return FileRole(FileKind.UNFINISHED, key)
    if key.startswith(f"{STAGING_DIRECTORY}/") and (role := _role_in_staging(key)) is not None:
        return role
    directory, _, name = key.rpartition("/")
    if directory.rpartition("/")[2] == VERSIONS_DIRECTORY and (kind := manifest_kind(name)) is not None:
        is_own = directory == VERSIONS_DIRECTORY or directory.startswith(f"{BRANCHES_DIRECTORY}/")
        return FileRole(kind if is_own and not is_write_ahead(key) else FileKind.NESTED)
    if is_write_ahead(key):
        return FileRole(FileKind.WRITE_AHEAD)
    parts = key.split("/")
    # The name of a branch may have any number of parts.
    first = 2 if parts[0] == BRANCHES_DIRECTORY else 0
    for begin in range(first, len(parts) if first else 1):
        needed_as = file_name("/".join(parts[begin:]))
        if needed_as is not None:
            return FileRole(_NAMED[parts[begin]], needed_as)
    return FileRole(FileKind.BOOKKEEPING) if _BOOKKEEPING.fullmatch(key) else None


def is_write_ahead(key: str) -> bool:
    """Whether a file, by its key relative to the root of its table, is part of a write-ahead log.

    Manifests of the datasets inside such a log are `NESTED`.
    """
    return _WRITE_AHEAD.fullmatch(key) is not None


def manifest_kind(name: str) -> FileKind | None:
    """Whether the file `name` in a directory of versions is a manifest or a staged one; None if it is neither."""
    if parse_manifest_name(name) is not None:
        return FileKind.MANIFEST
    if parse_staged_name(name) is not None:
        return FileKind.STAGED
    return None if detached_version(name) is None else FileKind.MANIFEST


def detached_version(name: str) -> int | None:
    """The version of a detached manifest, from its name; None for every other name."""
    detached = _DETACHED.fullmatch(name)
    return int(detached[1]) if detached is not None and int(detached[1]) & DETACHED_BIT else None


def _role_in_staging(key: str) -> FileRole | None:
    scratch = _SCRATCH.fullmatch(key)
    if scratch is not None:
        return FileRole(FileKind.SCRATCH, directory=scratch[1])
    staged = _STAGED.fullmatch(key)
    if staged is not None and parse_manifest_name(staged[1]) is not None:
        return FileRole(FileKind.STAGED)
    return FileRole(FileKind.BOOKKEEPING) if _CLOCK.fullmatch(key) else None
