"""The manifest file: up to three length-prefixed messages and a footer.

    [ u32 length | IndexSection ]    absent when the table has no index
    [ u32 length | Transaction  ]    the inline transaction
    [ u32 length | Manifest     ]    begins at P
    i64 P | u16 major = 0 | u16 minor = 2 | "LANC"

All integers are little-endian. There is no padding, and the file ends with the footer. The manifest holds the offsets
of the other two sections.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from lance_core.errors import CorruptFile
from lance_core.format.naming import parse_transaction_name
from lance_core.proto import lance_table_pb2 as pb

M = TypeVar("M", bound=Message)

_PREFIX = struct.Struct("<I")
_FOOTER = struct.Struct("<qHH4s")
_MAGIC = b"LANC"
_FILE_VERSION = (0, 2)


@dataclass(frozen=True, slots=True)
class Identity:
    """What distinguishes a manifest from every other one of the same number.

    `size` is in bytes, `sha256` the hexadecimal digest of the whole file. `transaction_uuid` is '' when the file
    names no transaction.
    """

    transaction_uuid: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """A parsed manifest file. The messages are shared: copy one before changing it.

    `transaction` is None when it is not inline, `indices` when the table has no index.
    """

    manifest: pb.Manifest
    transaction: pb.Transaction | None
    indices: pb.IndexSection | None
    identity: Identity

    @property
    def version(self) -> int:
        """The version number in the content."""
        return self.manifest.version

    @property
    def branch(self) -> str | None:
        """The branch, or None on main."""
        return self.manifest.branch or None

    @property
    def timestamp_ns(self) -> int:
        """Time of the commit in nanoseconds since the epoch; 0 if the writer left it out."""
        timestamp = self.manifest.timestamp
        return timestamp.seconds * 1_000_000_000 + timestamp.nanos

    @property
    def operation(self) -> str | None:
        """The field name of the inline transaction's operation, such as `append`. None if it is not known."""
        return None if self.transaction is None else self.transaction.WhichOneof("operation")


def parse_manifest_file(data: bytes, *, expected_version: int | None = None) -> ManifestFile:
    """Parse a whole manifest file.

    Raises `CorruptFile` when the frame does not add up to exactly these bytes, when a section lies outside it or is
    not the message that it should be, and when the content is not `expected_version` (the number in the name).
    """
    begin = _parse_footer(data)
    manifest = _parse_section(data, "manifest", begin, len(data) - _FOOTER.size, pb.Manifest, exact=True)
    if expected_version is not None and manifest.version != expected_version:
        raise CorruptFile(f"manifest named version {expected_version} contains version {manifest.version}")
    indices = transaction = None
    if manifest.HasField("index_section"):
        indices = _parse_section(data, "index section", manifest.index_section, begin, pb.IndexSection)
    if manifest.HasField("transaction_section"):
        transaction = _parse_section(data, "transaction", manifest.transaction_section, begin, pb.Transaction)
    elif manifest.HasField("transaction_section_deprecated"):
        offset = manifest.transaction_section_deprecated
        transaction = _parse_section(data, "transaction", offset, begin, pb.Transaction)
    return ManifestFile(manifest, transaction, indices, _identify(data, manifest, transaction))


def encode_manifest_file(
    manifest: pb.Manifest, transaction: pb.Transaction | None, indices: pb.IndexSection | None = None
) -> bytes:
    """Build a manifest file from its messages, none of which is changed. Equal messages give equal bytes.

    The section offsets in `manifest` are replaced; an index section without entries is left out.
    """
    sections: list[bytes] = []
    framed = pb.Manifest()
    framed.CopyFrom(manifest)
    for field in ("index_section", "transaction_section", "transaction_section_deprecated"):
        framed.ClearField(field)
    end = 0
    if indices is not None and indices.indices:
        framed.index_section = end
        end += _append_section(sections, indices)
    if transaction is not None:
        framed.transaction_section = end
        end += _append_section(sections, transaction)
    _append_section(sections, framed)
    sections.append(_FOOTER.pack(end, *_FILE_VERSION, _MAGIC))
    return b"".join(sections)


def serialized_manifest(file: ManifestFile) -> bytes:
    """The bare Manifest message, without the section offsets, which mean nothing outside the file.

    This is what `LanceDataset(uri, serialized_manifest=...)` opens. It hides the indices: with their offset kept, the
    reader would look for them in a canonical file that is not there yet.
    """
    bare = pb.Manifest()
    bare.CopyFrom(file.manifest)
    for field in ("index_section", "transaction_section", "transaction_section_deprecated"):
        bare.ClearField(field)
    return bare.SerializeToString(deterministic=True)


def _parse_footer(data: bytes) -> int:
    if len(data) < _PREFIX.size + _FOOTER.size:
        raise CorruptFile(f"manifest file of {len(data)} bytes: expected at least {_PREFIX.size + _FOOTER.size}")
    begin, major, minor, magic = _FOOTER.unpack_from(data, len(data) - _FOOTER.size)
    if magic != _MAGIC:
        raise CorruptFile(f"manifest file ends with {magic!r}, expected {_MAGIC!r}")
    if (major, minor) != _FILE_VERSION:
        raise CorruptFile(f"manifest file has frame version {major}.{minor}, expected 0.2")
    return int(begin)


def _parse_section(data: bytes, what: str, begin: int, limit: int, kind: type[M], *, exact: bool = False) -> M:
    """The message whose length prefix stands at `begin`; it ends at `limit` if `exact`, else at it or before."""
    content = begin + _PREFIX.size
    if not 0 <= begin <= limit - _PREFIX.size:
        raise CorruptFile(f"{what} begins at byte {begin}, expected one from 0 to {limit - _PREFIX.size}")
    (length,) = _PREFIX.unpack_from(data, begin)
    if content + length > limit or (exact and content + length != limit):
        raise CorruptFile(f"{what} has {length} bytes, expected {'' if exact else 'at most '}{limit - content}")
    try:
        return kind.FromString(data[content : content + length])
    except DecodeError as error:
        raise CorruptFile(f"{what} at byte {begin} is not a {kind.DESCRIPTOR.name} message: {error}") from error


def _append_section(sections: list[bytes], message: Message) -> int:
    encoded = message.SerializeToString(deterministic=True)
    sections.append(_PREFIX.pack(len(encoded)))
    sections.append(encoded)
    return _PREFIX.size + len(encoded)


def _identify(data: bytes, manifest: pb.Manifest, transaction: pb.Transaction | None) -> Identity:
    if transaction is not None:
        uuid = transaction.uuid
    else:
        named = parse_transaction_name(manifest.transaction_file)
        uuid = "" if named is None else named[1]
    return Identity(uuid, len(data), hashlib.sha256(data).hexdigest())
