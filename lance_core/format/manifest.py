"""Manifest files: up to three length-prefixed messages and a footer.

    [ u32 length | IndexSection ]    absent when the table has no index
    [ u32 length | Transaction  ]    the inline transaction
    [ u32 length | Manifest     ]    at offset P
    i64 P | u16 major = 0 | u16 minor = 2 | "LANC"

All integers are little-endian. There is no padding, and the file ends with the footer. The manifest holds the offsets
of the other two sections.
"""

from __future__ import annotations

import hashlib
import struct
from copy import copy, deepcopy
from typing import NamedTuple, TypeVar

from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from lance_core.errors import CorruptFile
from lance_core.format.decoding import decode_message
from lance_core.format.naming import parse_transaction_name
from lance_core.format.outline import AnyManifest, FragmentFacts, fragment_facts
from lance_core.proto import lance_table_pb2 as pb

M = TypeVar("M", bound=Message)

_PREFIX = struct.Struct("<I")
_FOOTER = struct.Struct("<qHH4s")
MAGIC = b"LANC"
_FILE_VERSION = (0, 2)
_MOST_UNKNOWN = 1000
"""Fields of later releases of the format that a message may have. A later manifest has a flag for what matters."""
_FEW_FRAGMENTS = 64
_SECTION_OFFSETS = ("index_section", "transaction_section", "transaction_section_deprecated")


class Identity(NamedTuple):
    """The identity of a manifest among all manifests of the same version number.

    `size` is in bytes, `sha256` is the hexadecimal digest of the file. `transaction_uuid` is '' if the file names no
    transaction.
    """

    transaction_uuid: str
    size: int
    sha256: str


class ManifestFile:
    """A manifest file. The messages are shared: copy a message before changing it.

    A lazily parsed file keeps its bytes, and decodes the fragments and computes the hash on first access.

    Attributes:
        outline: The manifest, with encoded or decoded fragments.
        transaction: The inline transaction, or None.
        operation: The field name of its operation, such as `append`; None if it is unknown.
        transaction_uuid: The uuid of the transaction: inline, or from the name of the transaction file, or ''.
        indices: The index section; None if the table has no index.
    """

    __slots__ = (
        "_data",
        "_facts",
        "_identity",
        "_manifest",
        "indices",
        "operation",
        "outline",
        "transaction",
        "transaction_uuid",
    )

    def __init__(
        self, data: bytes, outline: AnyManifest, transaction: pb.Transaction | None, indices: pb.IndexSection | None
    ) -> None:
        self.outline = outline
        self.transaction = transaction
        self.operation = None if transaction is None else transaction.WhichOneof("operation")
        self.transaction_uuid = _named_uuid(outline) if transaction is None else transaction.uuid
        self.indices = indices
        self._data: bytes | None = data
        self._identity: Identity | None = None
        self._facts: FragmentFacts | None = None
        self._manifest = outline if isinstance(outline, pb.Manifest) else None

    @property
    def manifest(self) -> pb.Manifest:
        """The manifest. Raises `CorruptFile` if a fragment of a lazily parsed file cannot be decoded."""
        if self._manifest is None:
            assert self._data is not None
            begin = _parse_footer(self._data)
            limit = len(self._data) - _FOOTER.size
            self._manifest = _parse_section(self._data, "manifest", begin, limit, pb.Manifest, exact=True)
        return self._manifest

    @property
    def identity(self) -> Identity:
        """The identity of this file."""
        if self._identity is None:
            assert self._data is not None
            self._identity = Identity(self.transaction_uuid, len(self._data), hashlib.sha256(self._data).hexdigest())
        return self._identity

    @property
    def facts(self) -> FragmentFacts:
        """The facts about all fragments. Raises `CorruptFile` if a fragment cannot be decoded."""
        if self._facts is None:
            self._facts = fragment_facts(self.outline)
        return self._facts

    @property
    def known_rows(self) -> int | None:
        """The number of rows, if the facts are known already, or the fragments are few; None if they do not tell it.

        Raises `CorruptFile` if one of few fragments cannot be decoded.
        """
        if self._facts is None and len(self.outline.fragments) > _FEW_FRAGMENTS:
            return None
        return self.facts.rows

    def note_facts(self, found: FragmentFacts) -> None:
        """Store the facts about the fragments, if they are known already, so that they need not be computed."""
        self._facts = found

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return len(self._data) if self._data is not None else self.identity.size

    @property
    def version(self) -> int:
        """The version number in the content."""
        return self.outline.version

    @property
    def branch(self) -> str | None:
        """The branch, or None on main."""
        return self.outline.branch or None

    @property
    def timestamp_ns(self) -> int:
        """The commit time in nanoseconds since the epoch; 0 if the writer did not set it."""
        timestamp = self.outline.timestamp
        return timestamp.seconds * 1_000_000_000 + timestamp.nanos

    @property
    def timestamp_ms(self) -> int:
        """The commit time in whole milliseconds since the epoch; 0 if the writer did not set it."""
        return self.timestamp_ns // 1_000_000

    @property
    def encoded_manifest(self) -> bytes:
        """The Manifest message as the file has it, for `LanceDataset(uri, serialized_manifest=...)`.

        For a published version only: readers find the other sections at their offsets in the canonical file.
        """
        if self._data is None:
            return self.manifest.SerializeToString()
        return self._data[_parse_footer(self._data) + _PREFIX.size : -_FOOTER.size]

    def with_transaction(self, transaction: pb.Transaction) -> ManifestFile:
        """The same file with a transaction that was read from a transaction file."""
        found = copy(self)
        found.transaction = transaction
        found.operation = transaction.WhichOneof("operation")
        return found

    def decode_fully(self) -> ManifestFile:
        """Decode and compute everything now, and release the bytes. Returns this file. Raises as `manifest` does."""
        self.outline = self.manifest
        _ = self.identity
        self._data = None
        return self


def parse_manifest_file(data: bytes, *, expected_version: int | None = None, lazily: bool = False) -> ManifestFile:
    """Parse a manifest file. With `lazily` its fragments are decoded on first access.

    Raises `CorruptFile` if the sections do not match the size of the file, if a section is outside the file or cannot
    be decoded, or if the content is not `expected_version` (the number in the name).
    """
    begin = _parse_footer(data)
    kind: type[pb.Manifest | pb.ManifestOutline] = pb.ManifestOutline if lazily else pb.Manifest
    manifest = _parse_section(data, "manifest", begin, len(data) - _FOOTER.size, kind, exact=True)
    _check_wire(manifest)
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
    file = ManifestFile(data, manifest, transaction, indices)
    return file if lazily else file.decode_fully()


def leading_transaction(section: bytes) -> pb.Transaction | None:
    """The transaction at the start of `section`, the front of a file or the bytes after its index section.

    None if the section is not a transaction with a known operation and a uuid, or is cut off before the length of the
    manifest that follows; the whole file must be read then. Other sections are never mistaken for
    one, because index sections and manifests have no fields with the numbers of the operations.
    """
    end = end_of_section(section)
    if len(section) < end + _PREFIX.size:
        return None
    try:
        transaction = decode_message(pb.Transaction, section[_PREFIX.size : end])
    except DecodeError:
        return None
    return transaction if transaction.uuid and transaction.WhichOneof("operation") is not None else None


def end_of_section(section: bytes) -> int:
    """The length of the section at the start of `section`, with its length prefix."""
    return _PREFIX.size + int(_PREFIX.unpack_from(section)[0]) if len(section) >= _PREFIX.size else _PREFIX.size


def encode_manifest_file(
    manifest: AnyManifest, transaction: pb.Transaction | None, indices: pb.IndexSection | None = None
) -> bytes:
    """Build a manifest file from its messages, which are not changed. Equal messages give equal bytes.

    The section offsets of `manifest` are computed; an empty index section is left out.
    """
    return _frame(deepcopy(manifest), transaction, indices)


def build_manifest_file(
    manifest: AnyManifest, transaction: pb.Transaction, indices: pb.IndexSection | None = None
) -> tuple[bytes, ManifestFile]:
    """The bytes of `encode_manifest_file`, and the result of parsing them lazily.

    Takes ownership of `manifest` and sets its section offsets in place. The file that is returned has encoded fragments
    even if those of `manifest` are decoded: versions built on it would otherwise decode all of them for good.
    """
    data = _frame(manifest, transaction, indices)
    written = indices if indices is not None and indices.indices else None
    outline = manifest
    if isinstance(manifest, pb.Manifest):
        outline = pb.ManifestOutline.FromString(data[_parse_footer(data) + _PREFIX.size : -_FOOTER.size])
    return data, ManifestFile(data, outline, deepcopy(transaction), written)


def _frame(framed: AnyManifest, transaction: pb.Transaction | None, indices: pb.IndexSection | None) -> bytes:
    for field in _SECTION_OFFSETS:
        framed.ClearField(field)
    sections: list[bytes] = []
    end = 0
    if indices is not None and indices.indices:
        framed.index_section = end
        end += _append_section(sections, indices)
    if transaction is not None:
        framed.transaction_section = end
        end += _append_section(sections, transaction)
    _append_section(sections, framed)
    sections.append(_FOOTER.pack(end, *_FILE_VERSION, MAGIC))
    return b"".join(sections)


def serialized_manifest(file: ManifestFile) -> bytes:
    """The Manifest message without section offsets, for `LanceDataset(uri, serialized_manifest=...)`.

    The dataset has no indices: with their offset, the reader would look for them in the canonical manifest file, which
    does not exist yet.
    """
    bare = pb.Manifest()
    bare.CopyFrom(file.manifest)
    for field in _SECTION_OFFSETS:
        bare.ClearField(field)
    return bare.SerializeToString(deterministic=True)


def _parse_footer(data: bytes) -> int:
    if len(data) < _PREFIX.size + _FOOTER.size:
        raise CorruptFile(f"manifest file of {len(data)} bytes: expected at least {_PREFIX.size + _FOOTER.size}")
    begin, major, minor, magic = _FOOTER.unpack_from(data, len(data) - _FOOTER.size)
    if magic != MAGIC:
        raise CorruptFile(f"manifest file ends with {magic!r}, expected {MAGIC!r}")
    if (major, minor) != _FILE_VERSION:
        raise CorruptFile(f"manifest file has frame version {major}.{minor}, expected 0.2")
    return int(begin)


def _parse_section(data: bytes, what: str, begin: int, limit: int, kind: type[M], *, exact: bool = False) -> M:
    """The message with its length prefix at `begin`. It must end at `limit` if `exact`, otherwise at or before it."""
    content = begin + _PREFIX.size
    if not 0 <= begin <= limit - _PREFIX.size:
        raise CorruptFile(f"{what} begins at byte {begin}, expected one from 0 to {limit - _PREFIX.size}")
    (length,) = _PREFIX.unpack_from(data, begin)
    if content + length > limit or (exact and content + length != limit):
        raise CorruptFile(f"{what} has {length} bytes, expected {'' if exact else 'at most '}{limit - content}")
    try:
        return decode_message(kind, data[content : content + length])
    except DecodeError as error:
        raise CorruptFile(f"{what} at byte {begin} is not a {kind.DESCRIPTOR.name} message: {error}") from error


def _check_wire(manifest: AnyManifest) -> None:
    """Raise `CorruptFile` if a known field has a wrong wire type.

    The library treats such fields as unknown, so their content would be lost silently.
    """
    for message in (manifest, *manifest.fields):
        unknown_fields = UnknownFieldSet(message)
        if (count := len(unknown_fields)) > _MOST_UNKNOWN:
            raise CorruptFile(f"manifest: {count:,} fields that are not known of one message")
        for place in range(count):
            unknown = unknown_fields[place]
            known = message.DESCRIPTOR.fields_by_number.get(unknown.field_number)
            if known is not None:
                raise CorruptFile(
                    f"manifest: {known.name} of {message.DESCRIPTOR.name} has wire type {unknown.wire_type}"
                )


def _append_section(sections: list[bytes], message: Message) -> int:
    encoded = message.SerializeToString(deterministic=True)
    sections.append(_PREFIX.pack(len(encoded)))
    sections.append(encoded)
    return _PREFIX.size + len(encoded)


def _named_uuid(manifest: AnyManifest) -> str:
    named = parse_transaction_name(manifest.transaction_file)
    return "" if named is None else named[1]
