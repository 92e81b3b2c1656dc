"""Refuses tables whose versions are managed by a catalog."""

from __future__ import annotations

from collections.abc import Iterator

from lance_core.errors import ReferenceNotFound, UnsupportedFeature
from lance_core.format.naming import join_key
from lance_core.storage.port import ObjectStore
from lance_core.versions import find_latest, read_manifest

_CATALOG = "__manifest"
_KEEPS_VERSIONS = "table_version_management"


def check_unmanaged(store: ObjectStore, location: str) -> None:
    """Raise `UnsupportedFeature` if a catalog manages the versions of the table at `location`.

    Every retained version of such a catalog refers to versions of its tables, and the tables hold no trace of it. A
    catalog is looked for in every directory above the table. It is recognised by its name and by the metadata key that
    every implementation sets. Raises `CorruptFile` if it cannot be read.
    """
    if location.rpartition("/")[2] == _CATALOG:
        raise UnsupportedFeature(
            f"{store.object_uri(location)}: is a catalog, and its old versions serve time travel: expected a table"
        )
    for directory in _above(location):
        catalog = join_key(directory, _CATALOG)
        try:
            manifest = read_manifest(store, find_latest(store, catalog)).manifest
        except ReferenceNotFound:
            continue
        if manifest.table_metadata.get(_KEEPS_VERSIONS) == "true":
            raise UnsupportedFeature(
                f"{store.object_uri(location)}: the catalog {store.object_uri(catalog)} manages its versions, and "
                "retained versions of the catalog may need any of them: expected a table without such a catalog"
            )


def _above(location: str) -> Iterator[str]:
    parts = location.split("/")
    return ("/".join(parts[:count]) for count in range(len(parts) - 1, -1, -1))
