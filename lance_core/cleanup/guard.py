"""Finds the catalog that manages the versions of a table, and refuses such tables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lance_core.errors import ReferenceNotFound, UnsupportedFeature
from lance_core.format.naming import join_key
from lance_core.storage.opening import open_store
from lance_core.storage.port import ObjectStore
from lance_core.versions import find_latest, read_manifest

_CATALOG = "__manifest"
_KEEPS_VERSIONS = "table_version_management"


def check_unmanaged(store: ObjectStore, location: str) -> None:
    """Raise `UnsupportedFeature` if a catalog manages the versions of the table at `location`.

    Every retained version of such a catalog refers to versions of its tables. Raises as `managing_catalog`.
    """
    if location.rpartition("/")[2] == _CATALOG:
        raise UnsupportedFeature(
            f"{store.object_uri(location)}: is a catalog, and its old versions serve time travel: expected a table"
        )
    root = managing_catalog(store, location)
    if root is not None:
        catalog = store.object_uri(join_key(root, _CATALOG))
        raise UnsupportedFeature(
            f"{store.object_uri(location)}: the catalog {catalog} manages its versions, and retained versions of the "
            "catalog may need any of them: expected a table without such a catalog"
        )


def managing_catalog(store: ObjectStore, location: str) -> str | None:
    """The key of the root of the catalog that manages the versions of the table at `location`; None if none does.

    A table holds no trace of its catalog, so one is looked for in every directory above it. It is recognised by its
    name and by the metadata key that every implementation sets. Raises `CorruptFile` if it cannot be read.
    """
    for directory in _above(location):
        try:
            manifest = read_manifest(store, find_latest(store, join_key(directory, _CATALOG))).manifest
        except ReferenceNotFound:
            continue
        if manifest.table_metadata.get(_KEEPS_VERSIONS) == "true":
            return directory
    return None


def managing_catalog_of(uri: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> str | None:
    """The URI of the root of the catalog that manages the versions of the table at `uri`; None if none does.

    Raises as `managing_catalog`.
    """
    top, location = split_table_uri(os.fspath(uri))
    store = open_store(top, storage_options)
    try:
        root = managing_catalog(store, location)
        return None if root is None else store.object_uri(root)
    finally:
        store.close()


def split_table_uri(uri: str) -> tuple[str, str]:
    """The root URI of the store of a table, and the table's key in it. Symbolic links on a local disk are resolved."""
    if "://" not in uri or uri.startswith("file://"):
        path = unquote(urlsplit(uri).path) if uri.startswith("file://") else uri
        return "/", str(Path(path).resolve()).strip("/")
    parts = urlsplit(uri)
    if parts.scheme == "memory":
        return uri, ""
    return f"{parts.scheme}://{parts.netloc}", unquote(parts.path).strip("/")


def _above(location: str) -> Iterator[str]:
    parts = location.split("/")
    return ("/".join(parts[:count]) for count in range(len(parts) - 1, -1, -1))
