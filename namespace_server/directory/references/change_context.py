"""The context of a change of references: the catalog, its rules, the principal and the message.

A change that raises `StorageError` or `CorruptFile` has done nothing; where it may have done something it raises
`StorageUnknown`, or a `CorruptFile` of which `has_begun` is true.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from lance_core.errors import CorruptFile, StorageError, StorageUnknown
from namespace_server.access.requirements import REQUIREMENTS
from namespace_server.access.subjects import Subject
from namespace_server.answer import Answer
from namespace_server.attempts import RequestOrigin
from namespace_server.directory.catalog import StoredCatalog
from namespace_server.directory.manifest_table.flip import check_changeable
from namespace_server.directory.model.errors import BatchUnknown, table_not_found
from namespace_server.directory.model.limits import Limits
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.operations import Batch, Operation
from namespace_server.directory.model.requests import RequestRules
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.plan_builder import Plan
from namespace_server.directory.planning.planner import replay_committed, require_managed
from namespace_server.directory.reading.sight import Sight, sight_of

_BEGUN: Final = "the change has begun"


@dataclass(frozen=True, slots=True)
class ChangeContext:
    """The catalog, for one change. What follows the rules stands in the record of its flip, but for `implicit`.

    `request_hash` goes with an idempotency key. The namespace `implicit` and those above it are created with a new
    table in them.
    """

    catalog: StoredCatalog
    rules: RequestRules
    principal: str | None = None
    message: str | None = None
    idempotency_key: str | None = None
    request_hash: str | None = None
    origin: RequestOrigin | None = None
    subject: Subject | None = None
    implicit: ObjectId = ()

    def judge(self, operation: str, table_id: ObjectId) -> None:
        """Judge a change of a table before files are read or written for it. The flip judges again.

        Raises TableNotFoundError (4) for a table that is not there or may not be seen by the subject, and
        PermissionDeniedError (15) if that lacks what the operation needs.
        """
        sight = self.sight
        if sight is not None:
            if sight.view(sight.today).table(table_id) is None:
                raise table_not_found(table_id)
            sight.require(REQUIREMENTS[operation].privileges, table_id)

    def require_changeable(self, snapshot: CatalogSnapshot) -> None:
        """Raise UnsupportedOperationError (0) unless a flip may follow a snapshot, before anything is written."""
        require_managed(snapshot)
        check_changeable(snapshot)

    @property
    def limits(self) -> Limits:
        """The limits of a request."""
        return self.rules.limits

    @property
    def sight(self) -> Sight | None:
        """What the subject may see of the newest snapshot; None for the operator, and without grants."""
        if self.subject is None or self.catalog.table.current.policy is None:
            return None
        return sight_of(self.catalog.snapshot(), self.subject)

    def commit(self, operation: Operation) -> Recorded:
        """Commit an operation as a batch of its own. Raises the namespace error that is its verdict."""
        batch = self._batch(operation)
        [pending] = self.catalog.commit_batches([batch])
        if not isinstance(pending.verdict, Plan):
            raise pending.verdict or BatchUnknown(batch.uuid, "it has no verdict")
        snapshot = pending.snapshot or self.catalog.table.current
        return Recorded(pending.verdict, snapshot, again=pending.verdict.transaction_id != batch.uuid)

    def committed_before(self) -> Recorded | None:
        """The outcome of the same request under the same idempotency key; None if it is not in the catalog.

        Raises InvalidInputError (13) if the key was used for another request.
        """
        if self.idempotency_key is None:
            return None
        snapshot = self.catalog.snapshot()
        plan = replay_committed(self._batch(), snapshot, {})
        return None if plan is None else Recorded(plan, snapshot, again=True)

    def _batch(self, *operations: Operation) -> Batch:
        name = str(uuid.uuid4())
        return Batch(
            name,
            operations,
            request_hash=self.request_hash or name,
            idempotency_key=self.idempotency_key,
            principal=self.principal,
            message=self.message,
            origin=self.origin,
            subject=self.subject,
        )


@dataclass(frozen=True, slots=True)
class Recorded:
    """A change that is in the catalog, as of a snapshot. `again`: it is so by an earlier call under the same key."""

    plan: Plan
    snapshot: CatalogSnapshot
    again: bool

    @property
    def answer(self) -> Answer:
        """The name of its batch, which is all that most changes answer, and the catalog version that holds it."""
        return Answer({"transaction_id": self.plan.transaction_id}, self.plan.answered_version(self.snapshot))


@contextmanager
def begun() -> Iterator[None]:
    """The steps of a change after its first write: there every error of storage leaves the outcome unknown."""
    try:
        yield
    except StorageUnknown:
        raise
    except StorageError as error:
        raise StorageUnknown(f"the change has begun: {error}") from error
    except CorruptFile as error:
        error.add_note(_BEGUN)
        raise


def has_begun(error: CorruptFile) -> bool:
    """Whether a damaged file was met after the first write of a change."""
    return _BEGUN in getattr(error, "__notes__", ())
