"""Judge a batch before anything that it names is looked at on storage: on a snapshot alone, without planning it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from lance_namespace.errors import LanceNamespaceError

from namespace_server.attempts import Authorization
from namespace_server.directory.model.errors import AccessDenied
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.operations import (
    Batch,
    CloneTable,
    CreateMode,
    CreateNamespace,
    DeclareTable,
    DeregisterTable,
    DropNamespace,
    DropTable,
    Operation,
    RegisterTable,
    RenameTable,
    UndropNamespace,
    UndropTable,
)
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.judgement import Judge, KeyOf
from namespace_server.directory.planning.reached_bases import added_bases

_CREATIONS: Final = (CreateNamespace, DeclareTable, CloneTable, RegisterTable, UndropNamespace)


@dataclass(slots=True)
class EarlyJudgement:
    """The judgement of a batch by a snapshot.

    Attributes:
        denials: What it lacks.
        hidden: By index, the errors of the operations that name what may not be seen.
        is_whole: Whether each operation was judged: not those about what the batch itself makes or removes, nor the
            return of something that was dropped, for which the catalog version of then is read.
    """

    denials: list[Authorization] = field(default_factory=list)
    hidden: dict[int, LanceNamespaceError] = field(default_factory=dict)
    is_whole: bool = True

    def __bool__(self) -> bool:
        return bool(self.denials or self.hidden)

    @property
    def out_of_bounds(self) -> dict[int, LanceNamespaceError]:
        """By index, the errors of the operations for which nothing is looked at on storage."""
        denied = {each.operation_index: AccessDenied([each]) for each in self.denials}
        return {**self.hidden, **{index: error for index, error in denied.items() if index is not None}}


def judge_before(batch: Batch, snapshot: CatalogSnapshot, key_of: KeyOf) -> EarlyJudgement:
    """Judge a batch before anything that it names is looked at on storage. The flip decides.

    Of base paths those are judged that a transaction adds.
    """
    found = EarlyJudgement()
    if batch.subject is None or snapshot.policy is None:
        return found
    judge, made = Judge(batch.subject, lambda _: snapshot, key_of), _Made(snapshot)
    for index, operation in enumerate(batch.operations):
        if made.concerns(operation):
            found.is_whole = False
            continue
        judgement = judge.judge(index, operation, bases=partial(added_bases, operation))
        found.denials += judgement.denials
        found.is_whole &= not isinstance(operation, UndropTable | UndropNamespace)
        if judgement.refusal is not None:
            found.hidden[index] = judgement.refusal
        if not found:  # else nothing is carried out
            made.note(operation)
    return found


class _Made:
    """What the operations of a batch make and remove, as far as that is known before they are planned."""

    def __init__(self, snapshot: CatalogSnapshot) -> None:
        self._snapshot = snapshot
        self._made: set[ObjectId] = set()
        self._gone: set[ObjectId] = set()

    def concerns(self, operation: Operation) -> bool:
        """Whether an operation is about something made or removed before; of a creation its namespace counts."""
        named = [operation.id[:-1] if isinstance(operation, _CREATIONS) else operation.id]
        if isinstance(operation, RenameTable | UndropTable):
            named.append(operation.new_id[:-1])
        return any(_is_within(each, changed) for each in named for changed in (self._made, self._gone))

    def note(self, operation: Operation) -> None:
        """Note what an operation makes and removes. What is there already is made by no creation that succeeds."""
        if isinstance(operation, DropTable | DeregisterTable | DropNamespace | RenameTable):
            self._gone.add(operation.id)
        if isinstance(operation, RenameTable | UndropTable):
            self._made.add(operation.new_id)
        elif isinstance(operation, _CREATIONS):
            catalog, object_id = self._snapshot, operation.id
            replaces = getattr(operation, "overwrite", False) or (
                isinstance(operation, CreateNamespace) and operation.mode is CreateMode.OVERWRITE
            )
            is_there = catalog.namespace(object_id) is not None or catalog.table(object_id) is not None
            if replaces or not is_there or _is_within(object_id, self._gone):
                self._made.add(object_id)


def _is_within(object_id: ObjectId, objects: Collection[ObjectId]) -> bool:
    """Whether an object is one of these, or below one."""
    return any(object_id[:end] in objects for end in range(1, len(object_id) + 1))
