"""Names and keys of the files that make up a table.

A *base* is the key of a table's root or of a branch's root, '' when that is the root of the store.
"""

from __future__ import annotations

import re
import secrets
from enum import Enum
from functools import lru_cache

from lance_core.errors import UnsupportedFeature
from lance_core.proto import lance_table_pb2 as pb

VERSIONS_DIRECTORY = "_versions"
TRANSACTIONS_DIRECTORY = "_transactions"
DELETIONS_DIRECTORY = "_deletions"
DATA_DIRECTORY = "data"
INDICES_DIRECTORY = "_indices"
BRANCHES_DIRECTORY = "tree"
MAIN_BRANCH = "main"

DETACHED_BIT = 1 << 63
"""Set in the version number of a detached manifest; no committed version has it."""

_U64_MAX = (1 << 64) - 1
_MANIFEST_NAME = re.compile(r"([0-9]{1,20})\.manifest", re.ASCII)
_STAGED_NAME = re.compile(r"([0-9]{1,20}\.manifest)-([^/]+)", re.ASCII)
_TRANSACTION_NAME = re.compile(r"([0-9]{1,20})-([^/]+)\.txn", re.ASCII)
_UNPLAIN = re.compile(r"[^A-Za-z0-9_.$-]")
_READABLE_PART = 160
_DELETION_EXTENSION = {pb.DeletionFile.ARROW_ARRAY: "arrow", pb.DeletionFile.BITMAP: "bin"}


class NamingScheme(Enum):
    """How a version number becomes a file name. One `_versions` directory holds one scheme only."""

    V1 = "V1"
    """`7.manifest`."""

    V2 = "V2"
    """2^64 - 1 minus the number, in 20 digits: in byte order the newest version is the first key."""


def manifest_name(version: int, scheme: NamingScheme = NamingScheme.V2) -> str:
    """The canonical file name of a committed version. Raises `ValueError` unless 1 <= version < 2^63."""
    if not 1 <= version < DETACHED_BIT:
        raise ValueError(f"version {version}: expected a number from 1 to 2^63 - 1")
    return f"{version}.manifest" if scheme is NamingScheme.V1 else f"{_U64_MAX - version:020d}.manifest"


@lru_cache(maxsize=1024)  # tables have the same few names
def parse_manifest_name(name: str) -> tuple[int, NamingScheme] | None:
    """Inverse of `manifest_name`. None for every other name: staged and temporary files, the hint, detached ones."""
    match = _MANIFEST_NAME.fullmatch(name)
    if match is None:
        return None
    number = int(match[1])
    scheme = NamingScheme.V2 if len(match[1]) == 20 else NamingScheme.V1
    version = _U64_MAX - number if scheme is NamingScheme.V2 else number
    if not 1 <= version < DETACHED_BIT or manifest_name(version, scheme) != name:
        return None
    return version, scheme


def parse_staged_name(name: str) -> tuple[int, NamingScheme] | None:
    """The version and scheme of a staged name `<canonical name>-<suffix>`. None for every other name."""
    match = _STAGED_NAME.fullmatch(name)
    return None if match is None else parse_manifest_name(match[1])


def join_key(base: str, *parts: str) -> str:
    """A key below `base`."""
    return "/".join((base, *parts) if base else parts)


def versions_directory(base: str) -> str:
    """The directory that holds the manifests."""
    return join_key(base, VERSIONS_DIRECTORY)


@lru_cache(maxsize=8192)  # a commit uses the same few names several times
def manifest_path(base: str, version: int, scheme: NamingScheme = NamingScheme.V2) -> str:
    """The key of a committed version."""
    return join_key(base, VERSIONS_DIRECTORY, manifest_name(version, scheme))


def transaction_name(read_version: int, uuid: str) -> str:
    """The value of `Manifest.transaction_file`: the file's name below `_transactions/`."""
    return f"{read_version}-{uuid}.txn"


def parse_transaction_name(name: str) -> tuple[int, str] | None:
    """Inverse of `transaction_name`: read version and uuid. None for every other name."""
    match = _TRANSACTION_NAME.fullmatch(name)
    return None if match is None else (int(match[1]), match[2])


def transaction_path(base: str, read_version: int, uuid: str) -> str:
    """The key of a transaction file."""
    return join_key(base, TRANSACTIONS_DIRECTORY, transaction_name(read_version, uuid))


def deletion_path(base: str, fragment_id: int, read_version: int, file_id: int, kind: pb.DeletionFile.Type) -> str:
    """The key of a deletion file. Raises `UnsupportedFeature` for a kind that has no extension."""
    extension = _DELETION_EXTENSION.get(kind)
    if extension is None:
        raise UnsupportedFeature(
            f"deletion file of fragment {fragment_id} has kind {kind}, expected 0 (Arrow) or 1 (bitmap)"
        )
    return join_key(base, DELETIONS_DIRECTORY, f"{fragment_id}-{read_version}-{file_id}.{extension}")


def data_path(base: str, file_path: str) -> str:
    """The key of a data file, from `DataFile.path`."""
    return join_key(base, DATA_DIRECTORY, file_path)


def index_directory(base: str, uuid: bytes) -> str:
    """The directory of an index segment, from the 16 bytes of its uuid."""
    digits = uuid.hex()
    groups = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return join_key(base, INDICES_DIRECTORY, "-".join(groups))


def branch_base(table_location: str, branch: str | None) -> str:
    """The base of a branch: the table's root for main (None), else `tree/<branch>` below it.

    Raises `ValueError` for a branch name that is not a relative path.
    """
    if branch is None or branch == MAIN_BRANCH:
        return table_location
    if any(part in {"", ".", ".."} for part in branch.split("/")):
        raise ValueError(f"branch {branch!r}: expected non-empty parts other than '.' and '..', joined by '/'")
    return join_key(table_location, BRANCHES_DIRECTORY, branch)


def readable_location_part(object_id: str) -> str:
    """The form of an object id, with components joined by '$', in the name of a table's directory.

    Plain ASCII, because stock clients split a dataset between two directories if its path has other characters; at most
    160 characters.
    """
    return _UNPLAIN.sub("_", object_id)[:_READABLE_PART]


def new_table_location(object_id: str) -> str:
    """A fresh directory name for a table: eight random hexadecimal digits and the object id."""
    return f"{secrets.token_hex(4)}_{readable_location_part(object_id)}"
