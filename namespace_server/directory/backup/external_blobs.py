"""Values of blob columns that are files outside of the table, which no manifest names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from lance_core.commit.durability import BLOB_EXTENSION
from lance_core.data import external_blobs
from lance_core.errors import UnsupportedFeature
from lance_core.format.manifest import ManifestFile
from lance_core.hidden_credentials import without_credentials
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.port import ObjectStore
from lance_core.table_files import TableFiles

_NAMED: Final = 20
"""Places that are named of one fragment."""


def blob_columns(manifest: pb.Manifest) -> list[str]:
    """The top-level columns in which values of the type of blobs lie, at any depth."""
    fields = {field.id: field for field in manifest.fields}
    roots: dict[str, None] = {}
    for field in manifest.fields:
        named = field.metadata.get("ARROW:extension:name", b"").decode(errors="replace")
        if BLOB_EXTENSION in {field.extension_name, named}:
            root = field
            while root.parent_id in fields:
                root = fields[root.parent_id]
            roots[root.name] = None
    return list(roots)


def external_places(
    store: ObjectStore,
    base: str,
    file: ManifestFile,
    examined: Collection[str],
    storage_options: Mapping[str, str] | None,
) -> dict[str, tuple[str, ...]]:
    """Where external blobs lie of the data files of a version that are not `examined`, by the keys of these.

    Places are base paths as they are written, and what URIs have before their last part; the first twenty of them. The
    descriptors of the fragments are read. Raises `StorageError`.
    """
    columns = blob_columns(file.manifest)
    paths = {entry.id: entry.path for entry in file.manifest.base_paths}
    table = TableFiles(store, base)
    fragments: dict[int, set[str]] = {}
    for fragment in file.manifest.fragments:
        keys = {key for each in fragment.files if (key := table.data_key(file.manifest, each)) is not None}
        if not keys <= set(examined):
            fragments[fragment.id] = keys

    def look(number: int) -> tuple[str, ...]:
        found = external_blobs(store.object_uri(base), file, columns, number, storage_options)
        places = {
            paths.get(base_id, without_credentials(uri, is_value=True).rpartition("/")[0]) for base_id, uri in found
        }
        return tuple(sorted(places)[:_NAMED])

    found = zip(fragments.values(), store.map(look, list(fragments)), strict=True)
    return {key: places for keys, places in found for key in keys}


def check_external(location: str, places: Collection[str], *, keep_outside: bool) -> None:
    """Raise `UnsupportedFeature` if blobs of a table lie elsewhere, unless they are to be left there."""
    if places and not keep_outside:
        raise UnsupportedFeature(
            f"table at {location}: values of its blob columns are files below {', '.join(sorted(places))}: write their "
            "bytes into the table, or leave these files where they are (--keep-outside)"
        )
