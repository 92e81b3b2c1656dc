"""Tables that somebody else keeps versions of."""

from __future__ import annotations

from collections.abc import Iterator

from lance_core.errors import ReferenceNotFound, UnsupportedFeature
from lance_core.format.naming import join_key
from lance_core.storage.port import ObjectStore
from lance_core.versions import find_latest, read_manifest

_CATALOG = "__manifest"
_KEEPS_VERSIONS = "table_version_management"


def check_unmanaged(store: ObjectStore, location: str) -> None:
    """Raise `UnsupportedFeature` when a catalog keeps the versions of the table at `location`.

    Every version of such a catalog that is retained pins versions of its tables, of which the tables know nothing. It
    is looked for in every directory above the table. All that is known of it here is its name, and the mark in its
    metadata by which every implementation says that it keeps versions. Raises `CorruptFile` when it cannot be read.
    """
    if location.rpartition("/")[2] == _CATALOG:
        raise UnsupportedFeature(
            f"{store.object_uri(location)}: is a catalog, whose old versions are its time travel: expected a table"
        )
    for directory in _above(location):
        catalog = join_key(directory, _CATALOG)
        try:
            manifest = read_manifest(store, find_latest(store, catalog)).manifest
        except ReferenceNotFound:
            continue
        if manifest.table_metadata.get(_KEEPS_VERSIONS) == "true":
            raise UnsupportedFeature(
                f"{store.object_uri(location)}: the catalog {store.object_uri(catalog)} keeps its versions, and "
                "its own retained versions may need any of them: expected a table without such a catalog"
            )


def _above(location: str) -> Iterator[str]:
    parts = location.split("/")
    return ("/".join(parts[:count]) for count in range(len(parts) - 1, -1, -1))
