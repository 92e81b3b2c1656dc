"""Reference files of tags and branches: small JSON objects below `_refs/` of the table's root.

They are written byte for byte like those of stock writers. Optional members may be missing when they are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote

from lance_core.errors import CorruptFile
from lance_core.format.naming import MAIN_BRANCH, join_key

TAGS_DIRECTORY = "_refs/tags"
BRANCHES_DIRECTORY = "_refs/branches"

_EXTENSION = ".json"
_MOST = 211
"""Characters of a new name. Stock clients encode it twice and add 44 characters while they write; a file has 255."""
_SEPARATOR = len("%252F")
_SEGMENT = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class TagContents:
    """A name for one version. `manifest_size` is in bytes; the times are RFC 3339 in UTC, or None if not recorded."""

    version: int
    manifest_size: int
    branch: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BranchContents:
    """The fork point of a branch.

    `identifier` holds one pair (forked version, 32 hex digits) per ancestor, the root's first; None in files of old
    writers. `created_at` is in seconds since the epoch. `parent_branch` is None for main.
    """

    parent_version: int
    manifest_size: int
    parent_branch: str | None = None
    identifier: tuple[tuple[int, str], ...] | None = None
    created_at: int = 0
    metadata: Mapping[str, str] = field(default_factory=dict)


def check_tag_name(name: str, *, new: bool = False) -> str:
    """Return `name` if stock clients can create, list and open a tag of that name. Raises `ValueError` otherwise.

    The length is checked for a `new` one only: a longer name that exists can be read and removed.
    Non-ASCII letters are refused: stock clients create such a tag and then fail to list all tags.
    """
    if _SEGMENT.fullmatch(name) is None:
        raise ValueError(f"tag {name!r}: expected letters, digits, '.', '-' and '_'")
    if name.startswith(".") or name.endswith((".", ".lock")) or ".." in name:
        raise ValueError(f"tag {name!r}: expected no '.' at either end, no '..' and no '.lock' at the end")
    return _short(name, "tag") if new else name


def check_branch_name(name: str, *, new: bool = False) -> str:
    """Return `name` if it is a valid name of a branch other than main. Raises `ValueError` otherwise.

    The length is checked for a `new` one only.
    """
    if name == MAIN_BRANCH:
        raise ValueError(f"branch {name!r} is the default branch: expected another name")
    if any(_SEGMENT.fullmatch(segment) is None for segment in name.split("/")):
        raise ValueError(f"branch {name!r}: expected segments of letters, digits, '.', '-' and '_', joined by '/'")
    if ".." in name or name.endswith(".lock") or "." in name.split("/"):
        raise ValueError(f"branch {name!r}: expected no '..', no segment '.' and no '.lock' at the end")
    return _short(name, "branch") if new else name


def _short(name: str, kind: str) -> str:
    length = len(name) + name.count("/") * (_SEPARATOR - 1)
    if length > _MOST:
        counted = f" ('/' counts as {_SEPARATOR})" if "/" in name else ""
        raise ValueError(f"{kind} {name[:40]!r}...: expected at most {_MOST} characters{counted}, found {length}")
    return name


def tag_path(table_location: str, name: str) -> str:
    """The key of a tag file."""
    return join_key(table_location, TAGS_DIRECTORY, quote(name, safe="") + _EXTENSION)


def branch_path(table_location: str, name: str) -> str:
    """The key of a branch file; the '/' of a name are escaped."""
    return join_key(table_location, BRANCHES_DIRECTORY, quote(name, safe="") + _EXTENSION)


def parse_ref_name(file_name: str) -> str | None:
    """The name of the tag or branch of a reference file. None for every other file name."""
    if not file_name.endswith(_EXTENSION) or file_name == _EXTENSION:
        return None
    name = unquote(file_name.removesuffix(_EXTENSION)) if file_name.isascii() else None
    return name if name is not None and quote(name, safe="") + _EXTENSION == file_name else None


def format_timestamp(time_ns: int) -> str:
    """Nanoseconds since the epoch in the form used in tags: `2026-11-20T23:10:46.979468954Z`."""
    seconds, nanos = divmod(time_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{nanos:09d}Z"


def encode_tag(tag: TagContents) -> bytes:
    """The content of a tag file."""
    return _encode(
        {
            "branch": tag.branch,
            "version": tag.version,
            "createdAt": tag.created_at,
            "updatedAt": tag.updated_at,
            "manifestSize": tag.manifest_size,
            "metadata": dict(tag.metadata),
        }
    )


def encode_branch(branch: BranchContents) -> bytes:
    """The content of a branch file."""
    contents: dict[str, Any] = {"parentBranch": branch.parent_branch}
    if branch.identifier is not None:
        contents["identifier"] = {"version_mapping": [list(entry) for entry in branch.identifier]}
    contents |= {
        "parentVersion": branch.parent_version,
        "createAt": branch.created_at,
        "manifestSize": branch.manifest_size,
        "metadata": dict(branch.metadata),
    }
    return _encode(contents)


def decode_tag(data: bytes) -> TagContents:
    """Parse a tag file. Raises `CorruptFile`."""
    reader = _Reader("tag", data)
    return TagContents(
        version=reader.number("version"),
        manifest_size=reader.number("manifestSize"),
        branch=reader.branch("branch"),
        created_at=reader.text("createdAt"),
        updated_at=reader.text("updatedAt"),
        metadata=reader.metadata(),
    )


def decode_branch(data: bytes) -> BranchContents:
    """Parse a branch file. Raises `CorruptFile`."""
    reader = _Reader("branch", data)
    return BranchContents(
        parent_version=reader.number("parentVersion"),
        manifest_size=reader.number("manifestSize"),
        parent_branch=reader.branch("parentBranch"),
        identifier=reader.identifier(),
        created_at=reader.number("createAt", default=0),
        metadata=reader.metadata(),
    )


def _encode(contents: Mapping[str, Any]) -> bytes:
    return json.dumps(contents, indent=2, ensure_ascii=False).encode()


class _Reader:
    """Typed access to the members of a reference file; raises `CorruptFile` for a member of another type."""

    def __init__(self, what: str, data: bytes) -> None:
        self._what = what
        try:
            contents = json.loads(data.decode())  # from bytes it would accept UTF-16 as well
        except (ValueError, RecursionError) as error:
            raise CorruptFile(f"{what} file is not JSON: {error}") from error
        if not isinstance(contents, dict):
            raise CorruptFile(f"{what} file holds {type(contents).__name__}, expected an object")
        self._contents: dict[str, Any] = contents

    def number(self, key: str, default: int | None = None) -> int:
        value = self._contents.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 64:
            raise self._misfit(key, "a number from 0 to 2^64 - 1", value)
        return value

    def text(self, key: str) -> str | None:
        value = self._contents.get(key)
        if value is not None and not isinstance(value, str):
            raise self._misfit(key, "text or null", value)
        return value

    def branch(self, key: str) -> str | None:
        """A branch's name, or null for main."""
        name = self.text(key)
        if name is not None and name != MAIN_BRANCH:
            try:
                check_branch_name(name)
            except ValueError as error:
                raise self._misfit(key, "a branch", name) from error
        return name

    def metadata(self) -> Mapping[str, str]:
        value = self._contents.get("metadata") or {}
        if not isinstance(value, dict) or not all(isinstance(entry, str) for entry in value.values()):
            raise self._misfit("metadata", "an object of texts", value)
        return value

    def identifier(self) -> tuple[tuple[int, str], ...] | None:
        value = self._contents.get("identifier")
        if value is None:
            return None
        mapping = value.get("version_mapping") if isinstance(value, dict) else None
        if not isinstance(mapping, list):
            raise self._misfit("identifier", "an object with a list version_mapping", value)
        entries: list[tuple[int, str]] = []
        for entry in mapping:
            match entry:
                case [int(version), str(uuid)] if not isinstance(version, bool):
                    entries.append((version, uuid))
                case _:
                    raise self._misfit("identifier", "pairs of version and uuid", entry)
        return tuple(entries)

    def _misfit(self, key: str, expected: str, found: object) -> CorruptFile:
        return CorruptFile(f"{self._what} file: {key} is {found!r:.80}, expected {expected}")
