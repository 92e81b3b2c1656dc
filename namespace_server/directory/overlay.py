"""Changes laid over a snapshot, applied only when somebody looks at what they concern."""

from __future__ import annotations

from collections.abc import Collection

from namespace_server.directory.rows import Changes, TableId
from namespace_server.directory.snapshot import CatalogSnapshot


class Overlay:
    """A snapshot (`base`) and the changes that are planned on top of it, in order (`steps`).

    `tables` are the tables whose versions the changes concern; None when they concern more than versions. Most batches
    write tables that nobody else in their group writes: they are planned on the snapshot as it is.
    """

    __slots__ = ("_applied", "_whole", "base", "steps", "tables")

    def __init__(self, base: CatalogSnapshot) -> None:
        self.base = base
        self.steps: list[Changes] = []
        self.tables: set[TableId] | None = set()
        self._whole = base
        self._applied = 0

    def add(self, changes: Changes, tables: Collection[TableId] | None) -> None:
        """Lay changes on top that concern the versions of these tables and, of anything else, only batch records."""
        self.steps.append(changes)
        if self.tables is None or tables is None:
            self.tables = None
        else:
            self.tables.update(tables)

    @property
    def whole(self) -> CatalogSnapshot:
        """The catalog after all changes so far."""
        fresh = self.steps[self._applied :]
        if fresh:
            self._whole = self._whole.apply(fresh[0].then(*fresh[1:]) if len(fresh) > 1 else fresh[0])
            self._applied = len(self.steps)
        return self._whole

    def of(self, table_id: TableId) -> CatalogSnapshot:
        """A snapshot that is right about one table: `base` itself while nothing concerns the table."""
        return self.base if self.tables is not None and table_id not in self.tables else self.whole
