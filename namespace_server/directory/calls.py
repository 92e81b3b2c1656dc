"""A call that changes the catalog, on its way from the route to the flip.

`JsonCatalog.prepare` makes a `Call` of a request: the `Batch` that carries it out, and how the call is answered once
that is committed. `JsonCatalog.commit_calls` passes the batches of a group to `Committer.decide`, which decides each of
them, and has each call answered from the verdict on its batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from namespace_server.directory.catalog import StoredCatalog
from namespace_server.directory.model.operations import Batch
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.plan_builder import Plan

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Call(Generic[T_co]):
    """A change whose form was checked.

    Attributes:
        batch: What carries it out.
        answer: Answers it, from the plan of the batch as it was committed, and a snapshot that has it.
        vends: Whether the answer is to have storage options for a new table.
    """

    batch: Batch
    answer: Callable[[StoredCatalog, Plan, CatalogSnapshot], T_co]
    vends: bool = False

    @property
    def batch_uuid(self) -> str:
        """The uuid of the batch; it names the batch also while its outcome is unknown."""
        return self.batch.uuid

    @property
    def principal(self) -> str | None:
        """The principal whose change it is; None without authentication."""
        return self.batch.principal

    @property
    def size(self) -> int:
        """The number of its operations."""
        return len(self.batch.operations)
