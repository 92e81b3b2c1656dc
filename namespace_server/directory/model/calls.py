"""A call that changes the catalog, on its way from the route to the flip.

`DirectoryNamespace.prepare` makes a `Call` of a request: an operation of the namespace and the `Batch` that carries it
out. `DirectoryNamespace.commit` passes the batches of a group to `Committer.commit`, which decides each of them, and
answers each call from the verdict on its batch.
"""

from __future__ import annotations

from dataclasses import dataclass

from namespace_server.directory.model.operations import Batch, DeclareTable


@dataclass(frozen=True, slots=True)
class Call:
    """A change whose form was checked. `operation` is the name of a `LanceNamespace` method."""

    operation: str
    batch: Batch

    @property
    def vends(self) -> bool:
        """Whether the answer is to have storage options for a new table."""
        first = self.batch.operations[0]
        return self.operation == DeclareTable.name and isinstance(first, DeclareTable) and first.vends

    @property
    def batch_uuid(self) -> str:
        """The uuid of the batch; it names the batch also while its outcome is unknown."""
        return self.batch.uuid
