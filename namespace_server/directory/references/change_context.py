"""What a change of references is made with: the catalog, its limits, and who makes it, with which message."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from lance_namespace.errors import LanceNamespaceError

from namespace_server.directory.catalog import Catalog
from namespace_server.directory.model.limits import Limits
from namespace_server.directory.model.operations import Batch, Operation
from namespace_server.directory.model.snapshot import CatalogSnapshot


@dataclass(frozen=True, slots=True)
class ChangeContext:
    """The catalog, for one change. `principal` and `message` stand in the record of its flip."""

    catalog: Catalog
    limits: Limits
    principal: str | None = None
    message: str | None = None

    def commit(self, operation: Operation) -> tuple[str, CatalogSnapshot]:
        """Commit an operation as a batch of its own; returns its uuid, and the snapshot that it is in.

        Raises the namespace error that is its verdict.
        """
        name = str(uuid.uuid4())
        batch = Batch(name, (operation,), request_hash=name, principal=self.principal, message=self.message)
        [pending] = self.catalog.commit([batch])
        if isinstance(pending.verdict, LanceNamespaceError):
            raise pending.verdict
        return name, pending.snapshot or self.catalog.table.current
