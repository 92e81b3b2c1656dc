"""Data files that no version names yet, written by pylance."""

from __future__ import annotations

from typing import Any

from lance.fragment import write_fragments

from lance_core.data import fragment_message
from lance_core.proto import lance_table_pb2 as pb


def stage_fragments(
    data: Any,
    uri: str,
    *,
    mode: str,
    data_storage_version: str | None = None,
    storage_options: dict[str, str] | None = None,
) -> list[pb.DataFragment]:
    """Write data files below the root of a table or branch; the new fragments, for a transaction.

    `mode` is `create` or `overwrite` for field ids from 0, as `schema_fields` assigns them; `append` for the field ids
    of the existing table.
    """
    fragments = write_fragments(
        data, uri, mode=mode, data_storage_version=data_storage_version, storage_options=storage_options
    )
    return [fragment_message(fragment) for fragment in fragments]
