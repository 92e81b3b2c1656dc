"""Rows that were read, written to a bucket as a file."""

from __future__ import annotations

from collections.abc import Mapping

from lance.file import LanceFileSession

from table_data.errors import StorageFailed
from table_data.pylance_errors import plain_text


def upload(file: str, place: str, storage_options: Mapping[str, str]) -> None:
    """Write a local file to a bucket, in parts if it is large. The object appears, or is replaced, when it is whole.

    Args:
        file: Path of the file.
        place: URI of the object.
        storage_options: Options by Lance's own keys.

    Raises:
        StorageFailed: The object is not written.
    """
    directory, _, name = place.rpartition("/")
    try:
        LanceFileSession(directory, dict(storage_options)).upload_file(file, name)
    except (OSError, ValueError, RuntimeError) as error:
        raise StorageFailed(f"{place}: not written: {plain_text(error)}") from error
