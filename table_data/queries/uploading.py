"""Rows that were read, written to a bucket as a file."""

from __future__ import annotations

from collections.abc import Mapping

from lance.file import LanceFileSession

from lance_core.storage.keys import quote_path
from table_data.errors import StorageFailed
from table_data.pylance_errors import plain_text


def upload(file: str, bucket: str, key: str, storage_options: Mapping[str, str]) -> None:
    """Write a local file to a bucket, in parts if it is large. The object appears, or is replaced, when it is whole.

    Args:
        file: Path of the file.
        bucket: URI of the bucket.
        key: Key of the object.
        storage_options: Options by Lance's own keys.

    Raises:
        StorageFailed: The object is not written.
    """
    try:
        # The path of a file in a session is percent-encoded on its way; that of the session is decoded.
        LanceFileSession(f"{bucket}/{quote_path(key)}", dict(storage_options)).upload_file(file, "")
    except (OSError, ValueError, RuntimeError) as error:
        raise StorageFailed(f"{bucket}/{key}: not written: {plain_text(error)}") from error
