"""The JSON of a table version: `TableVersion` of the namespace spec."""

from __future__ import annotations

from typing import Any

from namespace_server.directory.model.entries import VersionEntry


def table_version_json(entry: VersionEntry, manifest_path: str, *, with_e_tag: bool = True) -> dict[str, Any]:
    """The wire form of a version whose manifest is at `manifest_path`. What is unknown is left out."""
    version: dict[str, Any] = {
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
