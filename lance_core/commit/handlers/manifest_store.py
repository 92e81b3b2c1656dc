"""The port of external manifest stores: who committed a version, decided outside the object store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class ManifestRow:
    """Version `version` of the table or branch at `base_uri` is the manifest at the URI `path`, of `size` bytes.

    While the path ends in '-' and `uuid` it is staged: the version is committed, and not yet under its final name. The
    uuid stays when it is, so that no two commits ever have equal rows.
    """

    base_uri: str
    version: int
    path: str
    size: int
    uuid: str

    @property
    def staged(self) -> bool:
        """Whether the object store does not show the version yet."""
        return self.path.endswith(f"-{self.uuid}")

    @property
    def final_path(self) -> str:
        """The path that it has once it is synchronised."""
        return self.path.removesuffix(f"-{self.uuid}")

    def finished(self) -> ManifestRow:
        """The row after synchronisation."""
        return replace(self, path=self.final_path)


class ManifestStore(ABC):
    """Rows by (`base_uri`, `version`), of which there is one at most.

    Every method is thread-safe, blocking, one atomic and durable step, and seen at once by every process. A write that
    may or may not have been applied raises `OutcomeUnknown`; any other error (`StorageError`) means that it was not
    and will not be.
    """

    local: bool
    """True when a call costs microseconds: callers need no threads to hide its latency."""

    @abstractmethod
    def get(self, base_uri: str, version: int) -> ManifestRow | None:
        """The row of a version, or None."""

    @abstractmethod
    def staged(self, base_uri: str, *, below: bool = False) -> list[ManifestRow]:
        """The staged rows of a table, ascending by version; with `below` those of all URIs below it too.

        There is seldom one: it is what tells a reader whether the object store shows all versions, the latest included.
        """

    @abstractmethod
    def put_if_absent(self, row: ManifestRow) -> bool:
        """Add a row unless there is one for its version. Of all concurrent callers one gets True."""

    @abstractmethod
    def replace(self, old: ManifestRow, new: ManifestRow) -> bool:
        """Put `new` in the place of `old`, which has the same key. False when the row there is not `old` (any more)."""

    @abstractmethod
    def remove(self, row: ManifestRow) -> bool:
        """Remove a row. False when the row there is not this one (any more)."""

    @abstractmethod
    def close(self) -> None:
        """Release connections. The store is not used afterwards."""
