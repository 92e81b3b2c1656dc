"""The port through which planning reads manifests and has new ones built; the group planner implements it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from lance_core.commit.prepare import PreparedCommit
from lance_core.format.manifest import ManifestFile
from lance_core.proto import lance_table_pb2 as pb
from namespace_server.directory.model.entries import TableEntry, VersionEntry
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.operations import Batch
from namespace_server.directory.model.snapshot import CatalogSnapshot


class PlannedVersion(NamedTuple):
    """A version row that a plan puts, and its manifest: the bytes, and parsed."""

    entry: VersionEntry
    data: bytes
    file: ManifestFile


@dataclass(frozen=True, slots=True)
class Basis:
    """The versions that a transaction is rebased onto: the one it read (if still there), the head, and all between.

    A Clone has none of these, but the version that it is `cloned` from.
    """

    read: VersionEntry | None = None
    head: VersionEntry | None = None
    concurrent: tuple[VersionEntry, ...] = ()
    cloned: VersionEntry | None = None


class MustFollowGroup(Exception):
    """The batch builds on or removes versions that batches before it in its group publish: they have to be committed
    and promoted before it can be planned (P6, M1).
    """


class PlanningContext(Protocol):
    """Manifests for the planning of one attempt; a call has the same answer throughout it, but for promotions.

    `attempt` is the uuid of the attempt (N5), `now_ms` its time in milliseconds since the epoch.
    """

    attempt: str
    now_ms: int

    def remember_manifest(self, planned: PlannedVersion) -> None:
        """Remember a manifest that is planned, for the operations and batches planned on top of it."""

    def manifest(self, entry: VersionEntry) -> ManifestFile:
        """The manifest of a row, from the cache or from storage (M4)."""

    def is_adoptable(
        self, path: str, base: str, file: ManifestFile, below: ManifestFile | None, kept: Iterable[VersionEntry]
    ) -> bool:
        """Whether the data and deletion files below `base` that `file` names, and `below` does not, are there and stay.

        `path` is the key of the manifest. A file may be in the plan of a collection if it was written longer before its
        manifest than such a plan waits (G2, G5), unless one of `kept`, rows of the snapshot, names it.
        """

    def other_meaning(self, base: str, file: ManifestFile, below: ManifestFile) -> str | None:
        """Why a version of another writer, in the chain with this root, may mean something else than it says (P12).

        `file` is built on `below` by its content. It may be that its writer read a version that is in quarantine, and
        that names other fragments by the same ids. None if it means the same all the same. Raises `StorageError`.
        """

    def root_path(self, entry: VersionEntry) -> str:
        """The root of the chain of a row, as manifests and transactions name it."""

    def prepare(
        self,
        transaction: pb.Transaction,
        table: TableEntry,
        branch: str | None,
        basis: Basis,
        *,
        stable_row_ids: bool = False,
        data_storage_version: str | None = None,
    ) -> PreparedCommit:
        """Build the next manifest on the head. Raises `CommitConflict`, `InvalidTransaction`, `NotFound`."""

    def promote(self, entries: Sequence[VersionEntry], batch: Batch) -> None:
        """Promote rows that a batch removes or builds on, with the heads of its chains and all below (P6, M1).

        Raises `MustFollowGroup` if a row is not committed yet, ServiceUnavailableError (17) if one cannot be promoted
        now.
        """

    def require_unchanged(self, base: CatalogSnapshot, tables: Iterable[ObjectId]) -> None:
        """Raise `MustFollowGroup` if another batch of the group changes one of these tables in `base`."""

    def is_promoted(self, entry: VersionEntry) -> bool:
        """Whether the row is committed and its canonical file is known to be the row's."""

    def awaits_promotion(self, entry: VersionEntry) -> bool:
        """Whether the row is committed and its canonical file is not known to be the row's."""
