"""The interface of external manifest stores, which decide outside the object store which manifest is a version."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class ManifestRow:
    """Version `version` of the table or branch at `base_uri` is the manifest at the URI `path`, of `size` bytes.

    A path that ends in '-' and `uuid` is staged: the version is committed, but does not have its final name yet. The
    uuid is kept in the finalised row, so that no two commits have equal rows.
    """

    base_uri: str
    version: int
    path: str
    size: int
    uuid: str

    @property
    def staged(self) -> bool:
        """Whether the manifest does not have its final name yet."""
        return self.path.endswith(f"-{self.uuid}")

    @property
    def final_path(self) -> str:
        """The path after finalisation."""
        return self.path.removesuffix(f"-{self.uuid}")

    def finished(self) -> ManifestRow:
        """The row after finalisation."""
        return replace(self, path=self.final_path)


class ManifestStore(ABC):
    """A table of rows with the unique key (`base_uri`, `version`).

    Every method is thread-safe, blocking, atomic and durable, and its effect is immediately visible to every process.
    A write that may or may not have been applied raises `StorageUnknown`; any other error (`StorageError`) means that
    it was not and will not be applied.
    """

    local: bool
    """True if a call takes microseconds, so that callers need no threads to hide latency."""

    @abstractmethod
    def get(self, base_uri: str, version: int) -> ManifestRow | None:
        """The row of a version, or None."""

    @abstractmethod
    def staged(self, base_uri: str, *, below: bool = False) -> list[ManifestRow]:
        """The staged rows of a table, ascending by version; with `below` those of all URIs below it too.

        Usually there are none, which means that the object store shows all versions.
        """

    @abstractmethod
    def put_if_absent(self, row: ManifestRow) -> bool:
        """Add a row unless there is one for its version. Of all concurrent callers one gets True."""

    @abstractmethod
    def replace(self, old: ManifestRow, new: ManifestRow) -> bool:
        """Replace `old` by `new`, which has the same key. False if the stored row is not `old`."""

    @abstractmethod
    def remove(self, row: ManifestRow) -> bool:
        """Remove a row. False if the stored row is not `row`."""

    @abstractmethod
    def close(self) -> None:
        """Release connections. The store must not be used afterwards."""
