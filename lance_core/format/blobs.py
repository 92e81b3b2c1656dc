"""Columns of blobs: bytes that lie apart from the other columns of a data file."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from lance_core.proto import lance_table_pb2 as pb

BLOB_KEY: Final = "lance-encoding:blob"
"""The key of a field's metadata that marks binary values as blobs."""
_EXTENSIONS: Final = "lance.blob"
_EXTENSION_KEY: Final = b"ARROW:extension:name"


def is_blob(field: pb.Field | pa.Field) -> bool:
    """Whether a field, stored or of Arrow, has blobs itself; those of fields in it are not looked at."""
    if isinstance(field, pb.Field):
        return BLOB_KEY in field.metadata or field.extension_name.startswith(_EXTENSIONS)
    metadata = field.metadata or {}
    if not metadata and not isinstance(field.type, pa.BaseExtensionType):
        return False
    name = getattr(field.type, "extension_name", "") or metadata.get(_EXTENSION_KEY, b"").decode("utf-8", "replace")
    return BLOB_KEY.encode() in metadata or str(name).startswith(_EXTENSIONS)


def as_bytes(field: pa.Field) -> pa.Field:
    """A column of blobs as Lance takes it from Arrow: large binary values with a mark."""
    return pa.field(field.name, pa.large_binary(), field.nullable, {BLOB_KEY: "true"})
