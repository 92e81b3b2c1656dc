"""Read context: the snapshot that one read is answered from, and the storage behind it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from namespace_server.access.requirements import REQUIREMENTS
from namespace_server.access.subjects import Privilege
from namespace_server.directory.catalog import StoredCatalog
from namespace_server.directory.model import request_fields
from namespace_server.directory.model.entries import TableEntry, VersionEntry
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.request_fields import Request
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.reading.sight import Sight, VisibleSnapshot, permission_of


class Naming(Protocol):
    """How a store spells its keys for clients. It does no I/O and never changes."""

    uri: str
    content_e_tags: bool

    def object_path(self, path: str) -> str:
        """See `ObjectStore.object_path`."""
        ...

    def object_uri(self, path: str) -> str:
        """See `ObjectStore.object_uri`."""
        ...


class ReadContext:
    """One snapshot, for one response. It records what the response depends on.

    `lasting`: the response to the same request is the same while the snapshot is the newest. It is not after `catalog`
    was used, because storage beside `__manifest` changes without a catalog version, nor at version 0. With
    `implicit_namespaces` a namespace that does not exist lists as empty. `as_of`: the request names this catalog
    version. With a `sight` the snapshot is what its caller may see; without, the reader is the operator, or no grants
    are in force.
    """

    __slots__ = (
        "_base",
        "_catalog",
        "_snapshot",
        "_subject",
        "_whole",
        "as_of",
        "implicit_namespaces",
        "lasting",
        "naming",
        "sight",
    )

    def __init__(
        self, catalog: StoredCatalog, snapshot: CatalogSnapshot, *, as_of: bool = False, sight: Sight | None = None
    ) -> None:
        self._catalog = catalog
        self._base = snapshot
        self._snapshot = snapshot if sight is None else sight.view(snapshot)
        self.sight = sight
        self._subject: ObjectId | None = None
        self._whole = False
        self.naming: Naming = catalog.store
        self.implicit_namespaces = catalog.options.implicit_namespaces
        self.lasting = snapshot.version > 0
        self.as_of = as_of

    def page_size(self, request: Request) -> int:
        """The most entries of the answer to a list: what the request wants, within the catalog's bound."""
        bound, wanted = self._catalog.options.limits.page_size, request_fields.page_size(request)
        return bound if wanted is None else min(wanted, bound)

    def entry_count(self, request: Request, usual: int | None = None) -> int:
        """As `page_size`, of a list that the published API does not have: 1 or more, `usual` if nothing is said."""
        bound, wanted = self._catalog.options.limits.page_size, request_fields.entry_count(request)
        return min(wanted or usual or bound, bound)

    def allows(self, privilege: Privilege, table_id: ObjectId) -> bool:
        """Whether the reader has a privilege on a table of the snapshot."""
        return not isinstance(self._snapshot, VisibleSnapshot) or self._snapshot.allows(privilege, table_id)

    def require(self, privileges: Collection[Privilege], table_id: ObjectId) -> None:
        """Raise PermissionDeniedError (15) if the reader lacks a privilege on a table that it may see."""
        if self.sight is not None:
            missing = [each for each in privileges if not self.allows(each, table_id)]
            if missing:
                raise self.sight.denied(missing, table_id)

    def storage_options(self, table: TableEntry) -> dict[str, str]:
        """The storage options with which a client reaches the files of a table; may ask a token service.

        They allow what the reader may do with the rows: nothing is handed to whom may not read them. An answer with
        temporary credentials is not cached. Raises ServiceUnavailableError (17).
        """
        vendor = self._catalog.vendor
        permission = permission_of(lambda each: self.allows(each, table.id)) if vendor.vends else None
        if permission is None:
            return {}
        self.lasting = self.lasting and vendor.lasting
        return vendor.options(self.naming.object_path(table.location), permission)

    @property
    def snapshot(self) -> CatalogSnapshot:
        """The snapshot, for a response that depends on all of it."""
        self._whole = True
        return self._snapshot

    @property
    def unfiltered(self) -> CatalogSnapshot:
        """All of the snapshot, for sums over what the reader may see as a whole: its operation requires that."""
        self._whole = True
        return self._base

    def about(self, object_id: ObjectId) -> CatalogSnapshot:
        """The snapshot, for a response that depends on its `facts` of one namespace or table."""
        if self._subject is None:
            self._subject = object_id
        elif self._subject != object_id:
            self._whole = True
        return self._snapshot

    @property
    def subject(self) -> ObjectId | None:
        """The id that the response depends on alone; None if it depends on more."""
        return None if self._whole else self._subject

    @property
    def catalog(self) -> StoredCatalog:
        """The catalog with its storage, whose state may change at any time."""
        self.lasting = False
        return self._catalog

    def is_deleted(self, entry: VersionEntry) -> bool:
        """Whether an earlier catalog version is read, and the files of this row were removed since.

        Those of a deleted branch (B2) are gone, and those of one that was made again under its name are others; as are
        those that a table has after it was deregistered and registered again at the same location.
        """
        if not self.as_of:
            return False
        newest = self._catalog.table.current
        table_id = newest.table_at(entry.location)
        if table_id is None:
            return False
        row = newest.version_entry(table_id, entry.branch, entry.version)
        if row is not None:
            return row.sha256 != entry.sha256
        if entry.branch is None:
            head = newest.head(table_id)
            return head is not None and head.version < entry.version  # numbers only grow (N2): it is another chain
        return newest.top(table_id, entry.branch) is None or self.catalog.is_vacant(entry.canonical_path)

    def is_promoted(self, entry: VersionEntry) -> bool:
        """Whether the canonical file of a version is known to be the row's. Once it is, it stays so."""
        promoted = self._catalog.promoter.is_promoted(entry, self._catalog.table.current)
        if not promoted:
            self.lasting = False
        return promoted


def judge_read(context: ReadContext, operation: str, request: Request) -> None:
    """Judge a read of the whole catalog, or of a table that may be seen, before storage is looked at for it.

    A table that is not there, or may not be seen, is left to the read itself: it says that it does not exist. Raises
    PermissionDeniedError (15).
    """
    requirement = REQUIREMENTS[operation]
    needed = requirement.privileges
    if requirement.on == "catalog":
        if context.sight is not None:
            context.sight.require_all(needed)
    elif needed:
        table_id = request_fields.table_id(request)
        if context.about(table_id).table(table_id) is not None:
            context.require(needed, table_id)
