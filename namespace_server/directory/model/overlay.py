"""Changes laid over a snapshot, applied lazily: only when the part that they concern is read."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from namespace_server.directory.model.entries import Changes, NamespaceEntry, RecordEntry, TableEntry
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.snapshot import CatalogSnapshot

NO_CHANGES: Final = Changes()


class Overlay:
    """A snapshot (`base`) and the changes that are planned on top of it, in order (`steps`).

    `tables` are the tables whose versions the changes concern; None when they concern more than versions. Most batches
    write tables that no other batch of their group writes: they are planned on the snapshot as it is.

    New tables (`declare`) are found in a dictionary until other changes follow: a batch of many is applied at once.
    """

    __slots__ = ("_applied", "_declared", "_places", "_whole", "base", "steps", "tables")

    def __init__(self, base: CatalogSnapshot) -> None:
        self.base = base
        self.steps: list[Changes] = []
        self.tables: set[ObjectId] | None = set()
        self._whole = base
        self._applied = 0
        self._declared: dict[ObjectId, TableEntry] = {}
        self._places: dict[str, ObjectId] = {}

    def add(self, changes: Changes, tables: Collection[ObjectId] | None) -> None:
        """Lay changes on top that concern the versions of these tables and, of anything else, only batch records."""
        self.steps.append(changes)
        if self.tables is None or tables is None:
            self.tables = None
        else:
            self.tables.update(tables)

    def declare(self, table: TableEntry, grants: Changes = NO_CHANGES) -> None:
        """Lay a table on top whose id and location are vacant, with changes of the grants on it."""
        if self._applied + len(self._declared) < len(self.steps):
            _ = self.whole
        made = Changes({table.object_id: table})
        self.steps.append(made.then(grants) if grants else made)
        self.tables = None
        self._declared[table.id] = table
        self._places[table.location] = table.id

    def namespace(self, namespace_id: ObjectId) -> NamespaceEntry | None:
        """The namespace after all changes so far, or None."""
        return self._known.namespace(namespace_id)

    def table(self, table_id: ObjectId) -> TableEntry | None:
        """The table after all changes so far, or None."""
        known = self._known
        return self._declared.get(table_id) or known.table(table_id)

    def table_at(self, location: str) -> ObjectId | None:
        """The id of the table that lives at a location after all changes so far, or None."""
        known = self._known
        return self._places.get(location) or known.table_at(location)

    def judged(self, object_id: ObjectId) -> CatalogSnapshot:
        """The catalog by which an operation on an object is judged, after all changes so far.

        It may be without declared tables and their grants, unless the object is one of them.
        """
        return self.whole if object_id in self._declared else self._known

    def tombstone_at(self, location: str) -> RecordEntry | None:
        """The tombstone of the table that was at a location after all changes so far, or None."""
        return self._known.tombstone_at(location)

    @property
    def _known(self) -> CatalogSnapshot:
        """The catalog after all changes, but for the tables in `_declared`."""
        return self._whole if self._applied + len(self._declared) == len(self.steps) else self.whole

    @property
    def whole(self) -> CatalogSnapshot:
        """The catalog after all changes so far."""
        fresh = self.steps[self._applied :]
        if fresh:
            self._whole = self._whole.apply(fresh[0].then(*fresh[1:]) if len(fresh) > 1 else fresh[0])
            self._applied = len(self.steps)
            self._declared.clear()
            self._places.clear()
        return self._whole

    def of(self, table_id: ObjectId) -> CatalogSnapshot:
        """The snapshot with the changes of one table: `base` itself while nothing concerns the table."""
        return self.base if self.tables is not None and table_id not in self.tables else self.whole
