"""The answers of the operations of a batch. The record of a batch holds them as JSON, with these names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NotRequired, TypedDict

from namespace_server.directory.model.collector_rows import CursorEntry, IntentEntry, PinEntry
from namespace_server.directory.model.entries import VersionEntry


class TableVersionJson(TypedDict):
    """`TableVersion` of the namespace spec. What is unknown is left out."""

    version: int
    manifest_path: str
    timestamp_millis: int
    manifest_size: NotRequired[int]
    manifest_sha256: NotRequired[str]
    e_tag: NotRequired[str]
    metadata: NotRequired[Mapping[str, str]]


class OperationResult(TypedDict, total=False):
    """The answer of one operation: the fields that its kind has. Paths are store keys.

    `answer` is the kept answer of a call whose batch keeps it; `sha256` is the digest of the file of a deleted tag.
    `changed` says whether a change of grants changed anything, `privileges` what its grantee has on the object then.
    """

    version: TableVersionJson
    rebased: bool
    deleted_count: int
    id: list[str]
    location: str
    managed_versioning: bool
    properties: Mapping[str, str]
    answer: Mapping[str, object]
    sha256: str
    pin: PinJson
    cursor: CursorJson
    intent: IntentJson
    changed: bool
    privileges: list[str]


class PinJson(TypedDict):
    """A pin on the wire. Without `until_millis` it stays until it is removed."""

    name: str
    version: int
    timestamp_millis: int
    until_millis: NotRequired[int]
    reason: NotRequired[str]
    principal: NotRequired[str]


class IntentJson(TypedDict):
    """An intent on the wire. Files of its tables that the store dates `since_millis` or later are fresh."""

    intent_id: str
    since_millis: int
    until_millis: int
    timestamp_millis: int
    reason: NotRequired[str]
    principal: NotRequired[str]


class CursorJson(TypedDict):
    """A cursor on the wire: where it was put, and when."""

    name: str
    version: int
    timestamp_millis: int
    principal: NotRequired[str]


def cursor_json(cursor: CursorEntry) -> CursorJson:
    """The wire form of a cursor."""
    found: CursorJson = {"name": cursor.name, "version": cursor.version, "timestamp_millis": cursor.timestamp_ms}
    if cursor.principal is not None:
        found["principal"] = cursor.principal
    return found


def intent_json(intent: IntentEntry) -> IntentJson:
    """The wire form of an intent, without its tables."""
    found: IntentJson = {
        "intent_id": intent.intent,
        "since_millis": max((chain.since for chain in intent.chains), default=0) * 1_000,
        "until_millis": intent.until_ms,
        "timestamp_millis": intent.timestamp_ms,
    }
    if intent.reason is not None:
        found["reason"] = intent.reason
    if intent.principal is not None:
        found["principal"] = intent.principal
    return found


def pin_json(pin: PinEntry) -> PinJson:
    """The wire form of a pin."""
    found: PinJson = {"name": pin.name, "version": pin.version, "timestamp_millis": pin.timestamp_ms}
    if pin.until_ms:
        found["until_millis"] = pin.until_ms
    if pin.reason is not None:
        found["reason"] = pin.reason
    if pin.principal is not None:
        found["principal"] = pin.principal
    return found


def table_version_json(entry: VersionEntry, manifest_path: str, *, with_e_tag: bool = True) -> TableVersionJson:
    """The wire form of a version whose manifest is at `manifest_path`."""
    version: TableVersionJson = {
        "version": entry.version,
        "manifest_path": manifest_path,
        "timestamp_millis": entry.timestamp_ms,
    }
    if entry.size:
        version["manifest_size"] = entry.size
    if entry.sha256:
        version["manifest_sha256"] = entry.sha256
    if with_e_tag and entry.e_tag is not None:
        version["e_tag"] = entry.e_tag
    if entry.metadata:
        version["metadata"] = dict(entry.metadata)
    return version
