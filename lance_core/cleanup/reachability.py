"""The names of the files that a version needs.

Names are relative to the root of a table or branch, and roots are not compared: names of data, deletion, index and
transaction files have a random part that no two files share, so a name that any version uses protects the file under
every root. Base paths then need no interpretation; they may be written in many ways, or name a table's old location.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from google.protobuf.message import Message

from lance_core.errors import CorruptFile, UnsupportedFeature
from lance_core.format.deletion import deletion_file_path
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.format.naming import (
    DATA_DIRECTORY,
    DELETIONS_DIRECTORY,
    INDICES_DIRECTORY,
    TRANSACTIONS_DIRECTORY,
    data_path,
    index_directory,
    join_key,
    parse_manifest_name,
    parse_transaction_name,
)
from lance_core.storage.port import ObjectMeta, ObjectStore
from lance_core.transaction.features import check_continuable

_DELETION_NAME = re.compile(r"[0-9]{1,20}-[0-9]{1,20}-[0-9]{1,20}\.(arrow|bin)", re.ASCII)
_DATA_NAME = re.compile(r"[0-9A-Za-z_-]+\.lance", re.ASCII)
_BLOB_NAME = re.compile(r"([0-9A-Za-z_-]+)/[0-9A-Za-z_-]+\.blob", re.ASCII)
_INDEX_NAME = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/.+", re.ASCII)


def file_name(path: str) -> str | None:
    """The name by which a version would need the file at `path`, relative to the root of its table or branch.

    All files of an index segment share the name of its directory, and blobs share the name of their data file. None
    for a file of an unknown kind, which no version could name.
    """
    directory, _, rest = path.partition("/")
    if directory == DATA_DIRECTORY:
        blob = _BLOB_NAME.fullmatch(rest)
        name = rest if blob is None else f"{blob[1]}.lance"
        return join_key(DATA_DIRECTORY, name) if _DATA_NAME.fullmatch(name) else None
    if directory == DELETIONS_DIRECTORY:
        return path if _DELETION_NAME.fullmatch(rest) else None
    if directory == INDICES_DIRECTORY:
        segment = _INDEX_NAME.fullmatch(rest)
        return None if segment is None else join_key(INDICES_DIRECTORY, segment[1])
    if directory == TRANSACTIONS_DIRECTORY:
        return path if parse_transaction_name(rest) is not None else None
    return None


def read_needs(store: ObjectStore, meta: ObjectMeta, data: bytes) -> tuple[ManifestFile, frozenset[str]]:
    """Parse a manifest, and determine the names of the files that it needs.

    Raises `CorruptFile` and `UnsupportedFeature`, naming the file, if that is not possible or if its name and content
    disagree.
    """
    try:
        canonical = parse_manifest_name(meta.path.rpartition("/")[2])
        file = parse_manifest_file(data, expected_version=None if canonical is None else canonical[0])
        return file, frozenset(names_used(file))
    except (CorruptFile, UnsupportedFeature) as error:
        raise type(error)(f"{store.object_uri(meta.path)}: {error}") from error


def names_used(file: ManifestFile) -> Iterator[str]:
    """The names of all files that a version needs, under any root.

    Raises `UnsupportedFeature` if the version may need files in an unknown way: it has unknown features or fields, or
    row sequences in separate files.
    """
    check_continuable(file.manifest)
    for message in (file.manifest, file.indices):
        if message is not None and _has_unknown_fields(message):
            raise UnsupportedFeature(f"version {file.version} has unknown fields, which may name files")
    if file.manifest.transaction_file:
        yield join_key(TRANSACTIONS_DIRECTORY, file.manifest.transaction_file)
    for fragment in file.manifest.fragments:
        for data in fragment.files:
            yield data_path("", data.path)
        if fragment.HasField("deletion_file"):
            yield deletion_file_path("", fragment.id, fragment.deletion_file)
        for name in ("external_row_ids", "external_last_updated_at_versions", "external_created_at_versions"):
            if fragment.HasField(name):
                raise UnsupportedFeature(f"version {file.version}: fragment {fragment.id} has {name}")
    for index in file.indices.indices if file.indices is not None else ():
        yield index_directory("", index.uuid.uuid)


def _has_unknown_fields(message: Message) -> bool:
    known = type(message)()
    known.CopyFrom(message)
    known.DiscardUnknownFields()
    return known.ByteSize() != message.ByteSize()
