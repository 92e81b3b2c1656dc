"""The names of the files that a version needs."""

from __future__ import annotations

import pytest

from lance_core.cleanup.reachability import names_used
from lance_core.errors import UnsupportedFeature
from lance_core.format.manifest import encode_manifest_file, parse_manifest_file
from lance_core.proto import lance_table_pb2 as pb


@pytest.mark.parametrize(
    "field", ["external_row_ids", "external_last_updated_at_versions", "external_created_at_versions"]
)
def test_row_sequences_in_files_of_their_own_are_not_understood(field: str) -> None:
    manifest = pb.Manifest(version=1)
    getattr(manifest.fragments.add(), field).path = "data/sequence"
    file = parse_manifest_file(encode_manifest_file(manifest, None, None))
    with pytest.raises(UnsupportedFeature, match=f"fragment 0 has {field}"):
        list(names_used(file))
