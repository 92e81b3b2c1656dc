"""Layout: what new data files of a version depend on, its fields, data format and settings, but not its rows."""

from __future__ import annotations

import hashlib
from typing import Final

from lance_core.format.outline import AnyManifest
from lance_core.proto import lance_table_pb2 as pb

_DIGEST_BYTES: Final = 16


def layout_digest(manifest: AnyManifest) -> bytes:
    """A digest of the layout. Versions with equal digests differ in nothing that the files of new rows depend on."""
    layout = pb.ManifestOutline(fields=manifest.fields, base_paths=manifest.base_paths)
    layout.schema_metadata.update(manifest.schema_metadata)
    layout.config.update(manifest.config)
    layout.data_format.CopyFrom(manifest.data_format)
    layout.reader_feature_flags = manifest.reader_feature_flags
    layout.writer_feature_flags = manifest.writer_feature_flags
    encoded = layout.SerializeToString(deterministic=True)
    return hashlib.blake2b(encoded, digest_size=_DIGEST_BYTES).digest()
