"""Build a flip: from a snapshot and row changes to the bytes of the next version of `__manifest`; and its outcomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final
from uuid import uuid4

import pyarrow as pa
from google.protobuf.timestamp_pb2 import Timestamp

from lance_core.errors import StorageError
from lance_core.format.deletion import deletion_file_path, encode_deletion_file
from lance_core.format.manifest import encode_manifest_file
from lance_core.format.naming import NamingScheme, data_path, manifest_path
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.apply import WRITER_LIBRARY, WRITER_VERSION
from lance_core.transaction.features import set_flags
from namespace_server.access.grants import ACCESS_ID
from namespace_server.directory.manifest_table.fragment_merge import Rearrangement, rearrange
from namespace_server.directory.manifest_table.fragments import Fragment, Layout, new_fragment
from namespace_server.directory.manifest_table.peers import PEER_PROPERTY
from namespace_server.directory.manifest_table.row_codec import Row, encode_entry
from namespace_server.directory.manifest_table.rows import count_rows, encode_row_file, join_rows
from namespace_server.directory.manifest_table.schema import (
    GRANTED,
    IDENTITY_KEY,
    MANAGED_METADATA,
    STRICT_FLAG,
    WRITER_FLAGS_KEY,
    OnDisk,
    first_frame,
    inline_properties,
    row_file_of,
)
from namespace_server.directory.model.entries import Changes, RecordEntry
from namespace_server.directory.model.history import NO_OUTLINE, FlipOutline
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.model.state_editor import apply_changes

_NANOSECONDS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Flip:
    """The next version of `__manifest`, ready to be staged and committed.

    `files` are the row file and the deletion files, store key -> bytes; they must be durable before `manifest` may be
    written to `path` (S1). Everything in it is named by a fresh uuid (N5).
    """

    base: CatalogSnapshot
    changes: Changes
    attempt: str
    path: str
    manifest: bytes
    files: tuple[tuple[str, bytes], ...]
    serials: Mapping[str, int]
    disk: OnDisk

    @property
    def version(self) -> int:
        """The catalog version that this flip makes."""
        return self.base.version + 1

    @property
    def has_records(self) -> bool:
        """Whether it puts records of its own attempt, by which a later version is seen to include it (F2)."""
        return any(True for _ in self._own_records())

    def is_part_of(self, snapshot: CatalogSnapshot) -> bool:
        """Whether a version of the catalog holds a record that this very attempt put."""
        return any(
            (there := snapshot.record(record.batch_uuid)) is not None and there.attempt == self.attempt
            for record in self._own_records()
        )

    def _own_records(self) -> Iterator[RecordEntry]:
        for entry in self.changes.puts.values():
            if isinstance(entry, RecordEntry) and entry.attempt == self.attempt:
                yield entry

    def snapshot(self, proved_at: float) -> CatalogSnapshot:
        """The catalog after the flip, addresses included, without reading anything.

        `proved_at`: when it was proved to be the newest version (G7).
        """
        return CatalogSnapshot(
            self.version,
            self.disk.timestamp_ns // 1_000_000,
            self.disk.managed,
            proved_at,
            apply_changes(self.base.state, self.changes, self.serials),
            self.disk,
        )


@dataclass(frozen=True, slots=True)
class FlipCommitted:
    """The flip is in the catalog; `snapshot` is the catalog after it."""

    snapshot: CatalogSnapshot


@dataclass(frozen=True, slots=True)
class FlipLost:
    """Another flip has that version: this one is not in the catalog and never will be. `winner` is its manifest."""

    winner: bytes


@dataclass(frozen=True, slots=True)
class FlipSuperseded:
    """The flip was written to a slot that a clean-up had freed, below the newest version (G7).

    It is in no history of the catalog, and the files that it staged stay (G9). `newest` is the newest snapshot.
    """

    newest: CatalogSnapshot


@dataclass(frozen=True, slots=True)
class FlipUnknown:
    """The flip may be in the catalog, or may still come to be. Committing the same flip again may show which (F1)."""

    reason: str


@dataclass(frozen=True, slots=True)
class FlipRefused:
    """The store refused the write before any answer was lost: the flip is not in the catalog and never will be."""

    error: StorageError


FlipOutcome = FlipCommitted | FlipLost | FlipSuperseded | FlipUnknown | FlipRefused


@dataclass(frozen=True, slots=True)
class FlipClaimed:
    """The flip may be a commit: it won its slot, or its answer was lost. `ManifestTable.prove` decides.

    Attributes:
        flip: The flip.
        sent_at: When its slot began to be written, by `elapsed_clock`.
        won_at: When it was known to have its slot; None if the answer was lost and the slot holds another version.
        never_taken: No clean-up can have freed the slot: the base of the flip was proved to be the newest version
            within the second before the answer to the write.
    """

    flip: Flip
    sent_at: float
    won_at: float | None
    never_taken: bool


def prepare_flip(
    root: str,
    snapshot: CatalogSnapshot,
    changes: Changes,
    *,
    attempt: str,
    now_ns: int,
    read: Callable[[Fragment], pa.RecordBatch],
    table_metadata: Mapping[str, str] | None = None,
    strict: bool = False,
    outline: FlipOutline = NO_OUTLINE,
    introduce: Callable[[str], str | None] | None = None,
    known: Iterable[str] = (),
) -> Flip:
    """Build the flip that makes `changes` on `snapshot`.

    `root` is the key of the dataset, `attempt` the uuid of its transaction (F2), `now_ns` the time since the epoch.
    `table_metadata` is merged into that of the dataset; the first version of a new root is always a managed one. A
    catalog without an identity has this attempt for it.
    `strict` sets the flag against plain dataset writes, for good. `read` fetches the rows of a fragment that is to be
    merged and whose rows are not in memory, which is rare. `outline` is the history's entry of its batches. Records
    whose uuids are `known`, or that are in the snapshot, are not listed as batches of this version. What
    `introduce` says of this process to readers of the catalog with an identity is in the transaction.

    Raises `CatalogTooNew` for a root that this release can read but must not write, `ValueError` for an overlay.
    """
    disk = _disk_of(snapshot)
    rows = [encode_entry(entry) for entry in changes.puts.values()]
    if [row.object_id for row in rows] != list(changes.puts):
        raise ValueError("changes: expected every entry under its own object id")
    state = snapshot.state
    gone = [serial for object_id in chain(changes.puts, changes.removes) for serial in state.serials(object_id)]
    arrangement = rearrange(disk.layout, gone, len(rows))
    builder = _FlipBuilder(root, disk, arrangement, snapshot.version)
    builder.write_rows(rows, read)
    builder.write_deletions()
    frame = _next_frame(disk, snapshot.version, table_metadata, strict)
    if ACCESS_ID in changes.puts or snapshot.policy is not None:
        _set_catalog_flags(frame, GRANTED)
    identity = disk.identity or attempt
    frame.table_metadata.update({IDENTITY_KEY: identity})
    if builder.new is not None:
        frame.max_fragment_id = builder.new.message.id
    layout = arrangement.next_layout(builder.new, lambda at: builder.updated[at], len(rows))
    stored = (entry.batch_uuid for entry in _stored_records(snapshot, changes))
    transaction = builder.transaction(frame, attempt)
    transaction.transaction_properties.update(
        inline_properties(rows, changes, chain(known, stored), disk.attempt, outline)
    )
    introduction = None if introduce is None else introduce(identity)
    if introduction is not None:
        transaction.transaction_properties[PEER_PROPERTY] = introduction
    timestamp_ns = max(now_ns, disk.timestamp_ns + 1)
    scheme = disk.scheme
    first = disk.layout.next_serial
    return Flip(
        base=snapshot,
        changes=changes,
        attempt=attempt,
        path=manifest_path(root, snapshot.version + 1, scheme),
        manifest=encode_manifest_file(_manifest(frame, layout, timestamp_ns), transaction),
        files=tuple(builder.files),
        serials={row.object_id: first + at for at, row in enumerate(rows)},
        disk=OnDisk(frame, layout, scheme, timestamp_ns, disk.describe_row_file(), attempt),
    )


class _FlipBuilder:
    """The files of a flip that is being built."""

    def __init__(self, root: str, disk: OnDisk, arrangement: Rearrangement, read_version: int) -> None:
        self.root = root
        self.disk = disk
        self.arrangement = arrangement
        self.read_version = read_version
        self.files: list[tuple[str, bytes]] = []
        self.new: Fragment | None = None
        self.updated: dict[int, pb.DataFragment] = {}

    def write_rows(self, rows: Sequence[Row], read: Callable[[Fragment], pa.RecordBatch]) -> None:
        """The rows that move, then the new ones, in one row file; none if there are no rows."""
        written = join_rows([self.arrangement.moved_rows(read), tuple(rows)])
        if not count_rows(written):
            return
        file = pb.DataFile()
        file.CopyFrom(self.disk.describe_row_file())
        file.path = f"{uuid4()}.lance"
        data = encode_row_file(written, f"{file.file_major_version}.{file.file_minor_version}")
        file.file_size_bytes = len(data)
        self.files.append((data_path(self.root, file.path), data))
        message = pb.DataFragment(id=self._next_id(), files=[file], physical_rows=count_rows(written))
        first = self.disk.layout.next_serial
        serials = [*self.arrangement.moved_serials(), *range(first, first + len(rows))]
        self.new = new_fragment(message, serials, written)

    def write_deletions(self) -> None:
        """A file for each fragment that stays and loses rows: the whole set, as a bitmap."""
        for at, offsets in self.arrangement.deleted.items():
            message = pb.DataFragment()
            message.CopyFrom(self.arrangement.layout.fragments[at].message)
            deletion, data = encode_deletion_file(offsets, read_version=self.read_version)
            message.deletion_file.CopyFrom(deletion)
            self.files.append((deletion_file_path(self.root, message.id, deletion), data))
            self.updated[at] = message

    def transaction(self, frame: pb.Manifest, attempt: str) -> pb.Transaction:
        """The operation as Lance knows it: an Overwrite makes the dataset, an Update changes it."""
        transaction = pb.Transaction(read_version=self.read_version, uuid=attempt)
        added = []
        if self.new is not None:
            unnumbered = pb.DataFragment()
            unnumbered.CopyFrom(self.new.message)
            unnumbered.id = 0
            added = [unnumbered]
        if self.read_version == 0:
            transaction.overwrite.fragments.extend(added)
            transaction.overwrite.schema.extend(frame.fields)
        else:
            update = transaction.update
            update.SetInParent()
            update.removed_fragment_ids.extend(self.arrangement.removed_ids)
            update.updated_fragments.extend(self.updated.values())
            update.new_fragments.extend(added)
        return transaction

    def _next_id(self) -> int:
        frame, layout = self.disk.frame, self.arrangement.layout
        highest = max((fragment.message.id for fragment in layout.fragments), default=-1)
        return max(highest, frame.max_fragment_id if frame.HasField("max_fragment_id") else -1) + 1


def check_changeable(snapshot: CatalogSnapshot) -> None:
    """Raise `CatalogTooNew` if this release must not make a version that follows this one."""
    _disk_of(snapshot).describe_row_file()


def _disk_of(snapshot: CatalogSnapshot) -> OnDisk:
    if snapshot.overlay:
        raise ValueError(f"flip on an overlay of catalog version {snapshot.version}: expected the snapshot itself")
    if isinstance(snapshot.disk, OnDisk):
        return snapshot.disk
    frame = first_frame()
    return OnDisk(frame, Layout(), NamingScheme.V2, 0, row_file_of(frame))


def _next_frame(disk: OnDisk, version: int, table_metadata: Mapping[str, str] | None, strict: bool) -> pb.Manifest:
    disk.describe_row_file()  # raises CatalogTooNew
    frame = pb.Manifest()
    frame.CopyFrom(disk.frame)
    frame.version = version + 1
    frame.writer_version.CopyFrom(pb.Manifest.WriterVersion(library=WRITER_LIBRARY, version=WRITER_VERSION))
    if version == 0:
        frame.table_metadata.update(MANAGED_METADATA)
    flags = int(frame.table_metadata.get(WRITER_FLAGS_KEY, "0"))
    frame.table_metadata.update(table_metadata or {})
    if flags:  # one that is set stays set
        frame.table_metadata[WRITER_FLAGS_KEY] = str(flags | int(frame.table_metadata[WRITER_FLAGS_KEY]))
    if strict:
        frame.writer_feature_flags |= STRICT_FLAG
    return frame


def _set_catalog_flags(frame: pb.Manifest, flags: int) -> None:
    """Set catalog flags beside those that are set, for good."""
    frame.table_metadata[WRITER_FLAGS_KEY] = str(int(frame.table_metadata.get(WRITER_FLAGS_KEY, "0")) | flags)


def _manifest(frame: pb.Manifest, layout: Layout, timestamp_ns: int) -> pb.Manifest:
    manifest = pb.Manifest()
    manifest.CopyFrom(frame)
    messages = [fragment.message for fragment in layout.fragments]
    manifest.fragments.extend(sorted(messages, key=lambda message: message.id))
    manifest.timestamp.CopyFrom(Timestamp(seconds=timestamp_ns // _NANOSECONDS, nanos=timestamp_ns % _NANOSECONDS))
    strict_flag = frame.writer_feature_flags & STRICT_FLAG
    set_flags(manifest)
    manifest.writer_feature_flags |= strict_flag
    return manifest


def _stored_records(snapshot: CatalogSnapshot, changes: Changes) -> list[RecordEntry]:
    return [
        entry
        for entry in changes.puts.values()
        if isinstance(entry, RecordEntry) and snapshot.record(entry.batch_uuid) is not None
    ]
