"""What a verdict is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.operations import fragment_ids


class Outcome(Enum):
    """What a committed transaction means for ours."""

    COMPATIBLE = "compatible"
    """Ours may be applied as it is."""
    REBASE = "rebase"
    """Ours may be applied once its deletion files hold the other's deletions as well."""
    RETRYABLE = "retryable"
    """The operation must be done again on the newer version."""
    INCOMPATIBLE = "incompatible"
    """The other transaction removed the ground of ours."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outcome, and for all but compatible ones the reason in words."""

    outcome: Outcome
    reason: str = ""


COMPATIBLE = Verdict(Outcome.COMPATIBLE)


def incompatible(reason: str) -> Verdict:
    """The other removed the ground of ours."""
    return Verdict(Outcome.INCOMPATIBLE, reason)


def retryable(reason: str) -> Verdict:
    """Ours must be done again."""
    return Verdict(Outcome.RETRYABLE, reason)


def reset(name: str) -> Verdict:
    """Ours has lost its ground to an operation that replaced the table."""
    return incompatible(f"it replaced the table ({name})")


def log_changed() -> Verdict:
    """Ours may not follow a change of the write-ahead log's state."""
    return incompatible("it changed the state of the write-ahead log")


def judge_nullability(name: str, theirs: pb.Transaction) -> Verdict:
    """Rows written for the old schema may hold nulls where the new one forbids them, unless the other says not."""
    keeps = theirs.merge.preserves_nullability if name == "merge" else theirs.project.preserves_nullability
    return COMPATIBLE if keeps else retryable(f"it changed the schema ({name}) and may have tightened it")


def rewritten_fragments(rewrite: pb.Transaction.Rewrite) -> frozenset[int]:
    """Fragments that a Rewrite replaced, in whichever of its two forms."""
    groups = frozenset(fragment.id for group in rewrite.groups for fragment in group.old_fragments)
    return groups | fragment_ids(rewrite.old_fragments)
