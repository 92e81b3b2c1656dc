"""Catalogs as other releases of this server leave them."""

from __future__ import annotations

from pathlib import Path

from lance_core.format.manifest import encode_manifest_file
from lance_core.storage.local import LocalStore
from lance_core.versions import find_latest, read_manifest
from namespace_server.directory.model.root_layout import MANIFEST_TABLE


def make_newer(root: Path, key: str, value: str) -> None:
    """Make the newest version of the catalog one of release 99.0.0, with flags that this release does not know."""
    store = LocalStore(root)
    file = read_manifest(store, find_latest(store, MANIFEST_TABLE))
    file.manifest.table_metadata[key] = value
    file.manifest.writer_version.version = "99.0.0"
    newest = min((root / MANIFEST_TABLE / "_versions").glob("*.manifest"))
    newest.write_bytes(encode_manifest_file(file.manifest, file.transaction, file.indices))
