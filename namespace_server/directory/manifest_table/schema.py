"""`__manifest` as a Lance dataset: its columns, its table metadata, and the properties of its transactions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

from lance_core.data import schema_fields
from lance_core.errors import UnsupportedFeature
from lance_core.format.features import Feature, check_readable, check_writable
from lance_core.format.naming import NamingScheme
from lance_core.format.schema import TOP_LEVEL, data_file_message
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.apply import WRITER_VERSION
from namespace_server.directory.manifest_table.fragments import Layout
from namespace_server.directory.manifest_table.row_codec import Row, decode_row
from namespace_server.directory.manifest_table.rows import SCHEMA
from namespace_server.directory.model.entries import Changes, RecordEntry
from namespace_server.directory.model.errors import CatalogTooNew
from namespace_server.directory.model.history import FlipOutline
from namespace_server.directory.model.snapshot import Disk

MANAGED_KEY: Final = "table_version_management"
WRITER_FLAGS_KEY: Final = "lance.namespace.manifest.writer_feature_flags"
READER_FLAGS_KEY: Final = "lance.namespace.manifest.reader_feature_flags"
IDENTITY_KEY: Final = "lance-namespace-server.catalog"
"""Names the catalog for as long as it is: the uuid of the first flip that found none. A move of the root keeps it, and
so does a copy of all files; a restored catalog has one of its own."""
MANAGED_FLAG: Final = 1 << 32
"""The catalog flag with which stock namespace clients read the root, and refuse to write, naming a newer release."""
COLLECTED: Final = 1 << 33
"""The catalog flag of a root from which files are removed: releases that do not know it commit without the rules that
make this safe (G25)."""
GRANTED: Final = 1 << 34
"""The catalog flag of a root with grants: releases that do not know it would change it for everybody (GR1)."""
KNOWN_FLAGS: Final = MANAGED_FLAG | COLLECTED | GRANTED
STRICT_FLAG: Final = 1 << 40
"""The bit of Lance's own writer flags that stops plain dataset writes too."""
MANAGED_METADATA: Final[Mapping[str, str]] = {MANAGED_KEY: "true", WRITER_FLAGS_KEY: str(MANAGED_FLAG)}
"""Table metadata of a managed catalog: it holds the versions of the tables, and other writers must not commit."""

CHANGES_PROPERTY: Final = "lance-namespace-server.changes"
BASE_PROPERTY: Final = "lance-namespace-server.base"
BATCHES_PROPERTY: Final = "lance-namespace-server.batches"
OUTLINE_PROPERTY: Final = "lance-namespace-server.outline"
MAX_INLINE_BYTES: Final = 32 * 1024
MAX_MESSAGE: Final = 1_000

_CHANGES_FORMAT: Final = 1


class OnDisk(Disk):
    """The parts of a version of `__manifest` that the next flip needs.

    `frame` is its manifest without the fragments and without what belongs to one version only, `layout` says where
    its rows lie, `scheme` how its `_versions` directory names versions, `attempt` is the uuid of the transaction that
    made it: no other manifest has it (F2). It is '' where other writers left none inline.
    """

    __slots__ = ("attempt", "frame", "layout", "row_file", "scheme", "timestamp_ns")

    def __init__(
        self,
        frame: pb.Manifest,
        layout: Layout,
        scheme: NamingScheme,
        timestamp_ns: int,
        row_file: pb.DataFile | None = None,
        attempt: str = "",
    ) -> None:
        self.attempt = attempt
        self.frame = frame
        self.layout = layout
        self.scheme = scheme
        self.timestamp_ns = timestamp_ns
        self.row_file = row_file

    @property
    def managed(self) -> bool:
        """Whether the catalog is the truth about table versions."""
        return bool(self.frame.table_metadata.get(MANAGED_KEY) == "true")

    @property
    def identity(self) -> str:
        """The identity of the catalog; '' before the first flip of a release that gives it one."""
        return self.frame.table_metadata.get(IDENTITY_KEY, "")

    def describe_row_file(self) -> pb.DataFile:
        """`row_file_of` this version, computed once for a line of flips.

        Raises `CatalogTooNew` for a version that flips of this release would break.
        """
        if self.row_file is None:
            try:
                self.row_file = row_file_of(self.frame)
            except UnsupportedFeature as error:
                raise too_new("change", self.frame, error) from error
        return self.row_file


def frame_of(manifest: pb.Manifest) -> pb.Manifest:
    """A copy without fragments and without what belongs to one version."""
    frame = pb.Manifest()
    frame.CopyFrom(manifest)
    frame.DiscardUnknownFields()
    for name in (
        "fragments",
        "index_section",
        "transaction_section",
        "transaction_section_deprecated",
        "transaction_file",
        "tag",
        "timestamp",
    ):
        frame.ClearField(name)
    return frame


def first_frame() -> pb.Manifest:
    """The frame of a dataset that does not exist yet."""
    frame = pb.Manifest(data_format=pb.Manifest.DataStorageFormat(file_format="lance", version="2.2"))
    frame.fields.extend(schema_fields(SCHEMA))
    return frame


def row_file_of(frame: pb.Manifest) -> pb.DataFile:
    """The description of a new row file in this dataset, without path and size.

    Raises `UnsupportedFeature` when the dataset does not have exactly the five columns of the directory format, or
    has a feature that flips of this release would break.
    """
    check_writable(frame, tolerated=STRICT_FLAG)
    place = f"version {frame.version} of the catalog"
    names = [field.name for field in frame.fields if field.parent_id == TOP_LEVEL]
    if names != SCHEMA.names:
        raise UnsupportedFeature(f"{place} has columns {', '.join(names)}; expected {', '.join(SCHEMA.names)}")
    if frame.base_paths or frame.writer_feature_flags & Feature.STABLE_ROW_IDS:
        raise UnsupportedFeature(f"{place} has base paths or stable row ids, expected neither")
    flags = frame.table_metadata.get(WRITER_FLAGS_KEY, "0")
    if not flags.isdigit() or int(flags) & ~KNOWN_FLAGS:
        raise UnsupportedFeature(f"{place} has catalog writer flags {flags}, expected some of {KNOWN_FLAGS}: another's")
    return data_file_message("", frame.fields, size=0, version=frame.data_format.version)


def writer_of(manifest: pb.Manifest) -> str:
    """The program and release that wrote a version of the catalog."""
    writer = manifest.writer_version
    return f"{writer.library} {writer.version}".strip() or "an unknown writer"


def too_new(verb: str, manifest: pb.Manifest, error: UnsupportedFeature) -> CatalogTooNew:
    """The error for a version of the catalog that this release cannot `verb`: it names the writer of that version."""
    found = writer_of(manifest)
    return CatalogTooNew(f"expected a catalog that release {WRITER_VERSION} can {verb}, found one of {found}: {error}")


def check_catalog_readable(manifest: pb.Manifest) -> None:
    """Raise `UnsupportedFeature` for a manifest whose reader flags this release does not know."""
    check_readable(manifest)
    flags = manifest.table_metadata.get(READER_FLAGS_KEY, "0")
    if flags != "0":
        raise UnsupportedFeature(f"version {manifest.version} of the catalog has reader flags {flags}, expected none")
    if any(file.HasField("base_id") for fragment in manifest.fragments for file in fragment.files):
        raise UnsupportedFeature(f"version {manifest.version} of the catalog has data files in other places")


def inline_properties(
    rows: Sequence[Row], changes: Changes, known: Iterable[str], base: str, outline: FlipOutline
) -> dict[str, str]:
    """The properties of a flip's transaction: its row changes while they are small, and the batches it commits.

    `known` are the uuids of the records that the catalog has already, `base` is the attempt that made the version
    which the changes apply to: a number is not an identity. `outline` describes the batches in the history.
    """
    properties: dict[str, str] = {BASE_PROPERTY: base}
    seen = set(known)
    batches = [
        [entry.batch_uuid, entry.message[:MAX_MESSAGE] if entry.message else entry.message]
        for entry in changes.puts.values()
        if isinstance(entry, RecordEntry) and entry.state in {"open", "closed"} and entry.batch_uuid not in seen
    ]
    if batches:
        properties[BATCHES_PROPERTY] = orjson.dumps(batches).decode()
    if outline.batches or outline.adopted:
        described = {"batches": dict(outline.batches), "adopted": list(outline.adopted)}
        properties[OUTLINE_PROPERTY] = orjson.dumps(described).decode()
    size = sum(len(row.object_id) + len(row.metadata or "") for row in rows) + sum(map(len, changes.removes))
    if size < MAX_INLINE_BYTES:
        puts = [list(row) for row in rows]
        text = orjson.dumps({"format": _CHANGES_FORMAT, "puts": puts, "removes": list(changes.removes)})
        if len(text) <= MAX_INLINE_BYTES:
            properties[CHANGES_PROPERTY] = text.decode()
    return properties


def read_inline(transaction: pb.Transaction | None) -> tuple[list[Row], Changes] | None:
    """The rows that a flip put and the changes they mean, from its transaction. None when they are not there."""
    text = None if transaction is None else transaction.transaction_properties.get(CHANGES_PROPERTY)
    if text is None:
        return None
    try:
        values = orjson.loads(text)
        if values["format"] != _CHANGES_FORMAT:
            return None
        rows = [Row(*row) for row in values["puts"]]
        entries = [decode_row(row) for row in rows]
        removes = frozenset(values["removes"])
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        return None
    puts = {row.object_id: entry for row, entry in zip(rows, entries, strict=True) if entry is not None}
    return (rows, Changes(puts, removes)) if len(puts) == len(rows) else None


def read_batches(transaction: pb.Transaction | None) -> tuple[tuple[str, str | None], ...]:
    """(batch uuid, message) of the batches that a flip committed."""
    text = None if transaction is None else transaction.transaction_properties.get(BATCHES_PROPERTY)
    try:
        values: Any = orjson.loads(text) if text else []
        return tuple((str(batch_uuid), message) for batch_uuid, message in values)
    except (orjson.JSONDecodeError, TypeError, ValueError):
        return ()


def read_outline(transaction: pb.Transaction | None) -> FlipOutline:
    """The outline in a flip's transaction; empty for versions of earlier releases and of other writers."""
    text = None if transaction is None else transaction.transaction_properties.get(OUTLINE_PROPERTY)
    try:
        values: Any = orjson.loads(text) if text else {}
        return FlipOutline(dict(values.get("batches", {})), tuple(values.get("adopted", ())))
    except (orjson.JSONDecodeError, AttributeError, TypeError, ValueError):
        return FlipOutline()


def is_flip(transaction: pb.Transaction | None) -> bool:
    """Whether a catalog made this version of `__manifest`, and not another writer."""
    properties = {} if transaction is None else transaction.transaction_properties
    return any(name in properties for name in (BASE_PROPERTY, CHANGES_PROPERTY, BATCHES_PROPERTY))
