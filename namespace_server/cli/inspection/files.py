"""Describes a file from its name and bytes alone. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from enum import Enum
from typing import Any

from google.protobuf.message import DecodeError

from lance_core.errors import CorruptFile, UnsupportedFeature
from lance_core.format.decoding import decode_message
from lance_core.format.deletion import decode_deletion_file
from lance_core.format.manifest import parse_manifest_file
from lance_core.format.naming import DETACHED_BIT, parse_manifest_name, parse_staged_name, parse_transaction_name
from lance_core.format.refs import decode_branch, decode_tag, parse_ref_name
from lance_core.proto import lance_table_pb2 as pb
from namespace_server.cli.inspection.manifests import describe_manifest
from namespace_server.cli.inspection.messages import number_ranges
from namespace_server.cli.inspection.transactions import describe_transaction

Description = dict[str, Any]
"""A description as JSON values. `kind` is the kind of file; `findings` lists in words what is wrong or unusual."""

_DETACHED_NAME = re.compile(r"d([0-9]{1,20})\.manifest", re.ASCII)
_DELETION_NAME = re.compile(r"([0-9]{1,20})-([0-9]{1,20})-([0-9]{1,20})\.(arrow|bin)", re.ASCII)
_HINT_NAME = "latest_version_hint.json"
_LISTED_ROWS = 4096


class FileFormat(Enum):
    """The kind of a file, by its name."""

    MANIFEST = "manifest"
    TRANSACTION = "transaction"
    DELETION = "deletion file"
    REFERENCE = "reference"
    HINT = "version hint"


def file_format(path: str) -> FileFormat | None:
    """The kind of a file by the last component of its path or URI; None for kinds that this module does not read."""
    name = path.rpartition("/")[2]
    if name == _HINT_NAME:
        return FileFormat.HINT
    if name.endswith(".manifest") or parse_staged_name(name) is not None:
        return FileFormat.MANIFEST
    if name.endswith(".txn"):
        return FileFormat.TRANSACTION
    if _DELETION_NAME.fullmatch(name) is not None:
        return FileFormat.DELETION
    return FileFormat.REFERENCE if name.endswith(".json") else None


def inspect_file(path: str, data: bytes) -> Description:
    """Describe a manifest, transaction, deletion or reference file of any version and writer.

    The kind follows from the last component of `path`, for references also from the directory. Unknown fields are
    shown as they are, and contradictions are listed under `findings`. Raises `CorruptFile` if the bytes are not such a
    file at all, `UnsupportedFeature` for any other kind of file.
    """
    kind = file_format(path)
    if kind is None:
        raise UnsupportedFeature(
            f"{path}: expected a manifest, a transaction (.txn), a deletion file (.arrow, .bin) or a reference (.json)"
        )
    name = path.rpartition("/")[2]
    try:
        described = _INSPECTORS[kind](path, data)
    except CorruptFile as error:
        raise CorruptFile(f"{path}: {error}") from error
    return {"kind": kind.value, "name": name, "bytes": len(data), "findings": [], **described}


def _inspect_manifest(path: str, data: bytes) -> Description:
    name = path.rpartition("/")[2]
    described = describe_manifest(parse_manifest_file(data), data)
    state, number, scheme = _read_manifest_name(name)
    if number is not None and number != described["version"]:
        described["findings"].insert(
            0, f"the name says version {number}, the content {described['version']}: readers use the content"
        )
    return {"state": state, "naming_scheme": scheme, **described}


def _read_manifest_name(name: str) -> tuple[str, int | None, str | None]:
    """The state of a manifest, its version and its naming scheme, by its name."""
    if (canonical := parse_manifest_name(name)) is not None:
        return "committed", canonical[0], canonical[1].value
    if (staged := parse_staged_name(name)) is not None:
        return "staged", staged[0], staged[1].value
    detached = _DETACHED_NAME.fullmatch(name)
    if detached is not None and int(detached[1]) & DETACHED_BIT:
        return "detached", int(detached[1]), None
    return "not named as a version", None, None


def _inspect_transaction(path: str, data: bytes) -> Description:
    try:
        transaction = decode_message(pb.Transaction, data)
    except DecodeError as error:
        raise CorruptFile(f"{len(data)} bytes are not a Transaction message: {error}") from error
    described = describe_transaction(transaction)
    findings: list[str] = []
    named = parse_transaction_name(path.rpartition("/")[2])
    found = (transaction.read_version, transaction.uuid)
    if named is not None and named != found:
        findings.append(
            f"the name says read version {named[0]} and uuid {named[1]}, the content {found[0]} and {found[1]}"
        )
    return {**described, "findings": findings}


def _inspect_deletion(path: str, data: bytes) -> Description:
    named = _DELETION_NAME.fullmatch(path.rpartition("/")[2])
    assert named is not None
    kind = pb.DeletionFile.ARROW_ARRAY if named[4] == "arrow" else pb.DeletionFile.BITMAP
    rows = decode_deletion_file(pb.DeletionFile(file_type=kind), data)
    described: Description = {
        "fragment": int(named[1]),
        "read_version": int(named[2]),
        "id": int(named[3]),
        "encoding": "arrow" if named[4] == "arrow" else "roaring bitmap",
        "deleted_rows": len(rows),
    }
    if rows:
        described |= {"first": rows.min(), "last": rows.max()}
    if len(rows) <= _LISTED_ROWS:
        described["rows"] = number_ranges(rows)
    return described


def _inspect_reference(path: str, data: bytes) -> Description:
    directory, _, file_name = path.rpartition("/")
    is_branch = directory.endswith("branches") or (not directory.endswith("tags") and b'"parentVersion"' in data)
    described: Description = {"reference": "branch" if is_branch else "tag", "of": parse_ref_name(file_name)}
    if is_branch:
        branch = decode_branch(data)
        described |= {
            "parent_branch": branch.parent_branch,
            "parent_version": branch.parent_version,
            "identifier": None if branch.identifier is None else [list(entry) for entry in branch.identifier],
        }
    else:
        tag = decode_tag(data)
        described |= {"branch": tag.branch, "version": tag.version}
    findings = [] if described["of"] is not None else [f"{file_name}: no client reads a reference file of this name"]
    # Shown as written, including unknown members.
    return {**described, "findings": findings, "content": json.loads(data)}


def _inspect_hint(_path: str, data: bytes) -> Description:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CorruptFile(f"version hint is not JSON: {error}") from error
    return {"content": content, "findings": ["a version hint may be stale: readers do not depend on it"]}


_INSPECTORS: dict[FileFormat, Callable[[str, bytes], Description]] = {
    FileFormat.MANIFEST: _inspect_manifest,
    FileFormat.TRANSACTION: _inspect_transaction,
    FileFormat.DELETION: _inspect_deletion,
    FileFormat.REFERENCE: _inspect_reference,
    FileFormat.HINT: _inspect_hint,
}
