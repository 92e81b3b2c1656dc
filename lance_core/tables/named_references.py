"""The base of `Tags` and `Branches`: names that refer to versions of a table, each stored in a reference file."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

from lance_core.format.naming import join_key
from lance_core.storage.port import ObjectStore
from lance_core.tables.ref_files import list_refs, read_ref
from lance_core.tables.references import FoundVersion, Reference, find_from

Contents = TypeVar("Contents")


@dataclass(frozen=True, slots=True)
class NamedReferences(ABC, Generic[Contents]):
    """The reference files of one kind of the table at the key `location`.

    Attributes:
        store: The store that holds the table.
        location: The key of the table's root.
        branch: The branch on which references are resolved; None for main.
        version: The version that the reference None stands for; None for the latest.
        clock: Returns nanoseconds since the epoch.
    """

    store: ObjectStore
    location: str
    branch: str | None = None
    version: int | None = None
    clock: Callable[[], int] = field(default=time.time_ns, kw_only=True)

    _kind: ClassVar[str]
    """Names the kind in errors: `tag`, `branch`."""
    _directory: ClassVar[str]
    """The directory of the reference files, below the table's root."""

    def list(self) -> dict[str, Contents]:
        """All references by name, in byte order of their file names. Raises `CorruptFile`."""
        return list_refs(self.store, join_key(self.location, self._directory), self._decode)

    def get(self, name: str) -> Contents:
        """One reference. Raises `ReferenceNotFound`, `CorruptFile`."""
        return read_ref(self.store, self._path(name), f"{self._kind} {name}", self._decode)

    def _find(self, ref: Reference) -> FoundVersion:
        """The version that a new reference is to name. Raises `ReferenceNotFound`, `CorruptFile`."""
        return find_from(self.store, self.location, ref, self.branch, self.version)

    @abstractmethod
    def _path(self, name: str) -> str:
        """The key of the file of the reference `name`."""

    @staticmethod
    @abstractmethod
    def _decode(data: bytes) -> Contents:
        """Decode the content of a reference file. Raises `CorruptFile`."""
