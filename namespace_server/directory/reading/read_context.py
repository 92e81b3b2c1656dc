"""What a read sees: one snapshot, and, if it must, the storage behind it."""

from __future__ import annotations

from typing import Protocol

from namespace_server.directory.catalog import Catalog
from namespace_server.directory.model.entries import VersionEntry
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.snapshot import CatalogSnapshot


class Naming(Protocol):
    """How a store spells its keys for clients. Says nothing about what is there, and never changes."""

    uri: str
    content_e_tags: bool

    def object_path(self, path: str) -> str:
        """See `ObjectStore.object_path`."""
        ...

    def object_uri(self, path: str) -> str:
        """See `ObjectStore.object_uri`."""
        ...


class ReadContext:
    """One snapshot, for one answer. It notes what was looked at.

    `lasting` says whether the same question has the same answer for as long as the snapshot is the newest: so unless
    `catalog` was looked at, for what is on storage beside `__manifest` changes without a catalog version.
    """

    __slots__ = ("_asked_about", "_catalog", "_snapshot", "_whole", "implicit_namespaces", "lasting", "naming")

    def __init__(self, catalog: Catalog, snapshot: CatalogSnapshot) -> None:
        self._catalog = catalog
        self._snapshot = snapshot
        self._asked_about: ObjectId | None = None
        self._whole = False
        self.naming: Naming = catalog.store
        self.implicit_namespaces = catalog.options.implicit_namespaces
        self.lasting = True

    @property
    def snapshot(self) -> CatalogSnapshot:
        """The snapshot, for whatever it says."""
        self._whole = True
        return self._snapshot

    def about(self, object_id: ObjectId) -> CatalogSnapshot:
        """The snapshot, for its `facts` of one namespace or table."""
        if self._asked_about is None:
            self._asked_about = object_id
        elif self._asked_about != object_id:
            self._whole = True
        return self._snapshot

    @property
    def subject(self) -> ObjectId | None:
        """The one id that was asked about; None if more was looked at."""
        return None if self._whole else self._asked_about

    @property
    def catalog(self) -> Catalog:
        """The catalog with its storage. What is found there is true of this moment only."""
        self.lasting = False
        return self._catalog

    def is_promoted(self, entry: VersionEntry) -> bool:
        """Whether the canonical file of a version was seen to be the row's. That it was, stays so."""
        promoted = self._catalog.promoter.is_promoted(entry, self._catalog.table.current)
        if not promoted:
            self.lasting = False
        return promoted
