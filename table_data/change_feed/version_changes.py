"""`VersionChanges`: rows that a version changed, and the fragments that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from lance_core.format.deletion import live_row_count
from lance_core.proto import lance_table_pb2 as pb
from table_data.change_feed.row_differences import ChangeType

RowIds = bytes
"""Stable row ids as unsigned numbers of 64 bits, little-endian."""

Selection = ChangeType | Literal["update", "upsert", "by creation", "created", "rewritten"]

ADDS_NO_ROWS: Final = frozenset(
    {
        *("rewrite", "reserve_fragments", "create_index", "update_config", "project", "merge", "update_bases"),
        "update_mem_wal_state",
    }
)
"""Kinds of transactions that neither add nor remove rows."""


@dataclass(frozen=True, slots=True)
class ChangedFragment:
    """A fragment that holds changed rows.

    Attributes:
        id: Number of the fragment.
        rows: Number of the rows, without deleted ones.
        bytes: Bytes of the files that hold them.
        ids: Ids of the rows; None for all rows of the fragment.
        among: Number of the rows of the fragment, if there are `ids`.
    """

    id: int
    rows: int
    bytes: int
    ids: RowIds | None = None
    among: int = 0


@dataclass(frozen=True, slots=True)
class ReadAt:
    """A version that rows are read at: its number, and when it was committed, in milliseconds since the epoch.

    The time distinguishes it from another version that took its place; it is None where it is not known.
    """

    version: int
    committed_ms: int | None

    @classmethod
    def of(cls, manifest: pb.Manifest) -> ReadAt:
        """The version with a manifest."""
        return cls(manifest.version, milliseconds(manifest))


@dataclass(frozen=True, slots=True)
class VersionChanges:
    """Rows that a version added, changed or deleted.

    Attributes:
        version: Number of the version.
        read_at: The version that the rows are read at: this one, or the one before for rows as they were.
        timestamp: When the version was committed, in milliseconds since the epoch.
        fragments: The fragments that hold them.
        selection: Which rows of the fragments, and their type of change. "by creation": all rows; those created by the
            version are inserted, the others updated. "created": those created by the version, inserted. "rewritten":
            those last changed by the version, updated. Any other is the type of all rows; "upsert" if they are
            inserted or updated.
    """

    version: int
    read_at: ReadAt
    timestamp: int
    fragments: tuple[ChangedFragment, ...]
    selection: Selection

    @property
    def rows(self) -> int:
        """Upper bound of the number of rows."""
        return sum(fragment.rows for fragment in self.fragments)


def of_fragments(manifest: pb.Manifest, fragments: Sequence[pb.DataFragment], selection: Selection) -> VersionChanges:
    """Changes that are rows of whole fragments of a version."""
    changed = tuple(
        ChangedFragment(fragment.id, live_row_count(fragment), bytes_of(fragment)) for fragment in fragments
    )
    return VersionChanges(manifest.version, ReadAt.of(manifest), milliseconds(manifest), changed, selection)


def bytes_of(fragment: pb.DataFragment) -> int:
    """Bytes of the data files of a fragment, as far as the manifest states them."""
    return sum(file.file_size_bytes for file in fragment.files)


def milliseconds(manifest: pb.Manifest) -> int:
    """When a version was committed, in milliseconds since the epoch."""
    return manifest.timestamp.ToMilliseconds()


def kind_of(transaction: pb.Transaction | None) -> str | None:
    """The kind of a transaction, None if it is lost or unknown."""
    return None if transaction is None else transaction.WhichOneof("operation")
