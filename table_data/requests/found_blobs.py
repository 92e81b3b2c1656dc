"""Where values of columns of blobs lie, as a worker tells it to the server."""

from __future__ import annotations

import hashlib
from typing import NamedTuple


class FoundBlob(NamedTuple):
    """A value of a column of blobs.

    Attributes:
        row_id: The id of its row.
        size: Bytes; None if it is null. Of a file elsewhere 0 where its description does not say.
        place: The path or URI of the file that it is, if it lies outside of the table.
    """

    row_id: int
    size: int | None
    place: str | None = None


def blob_tag(manifest_sha256: str, row_id: int, column: str) -> str:
    """A text that is the same for the same value of the same version of a table, and for no other."""
    return hashlib.sha256(f"{manifest_sha256} {row_id} {column}".encode()).hexdigest()[:32]
