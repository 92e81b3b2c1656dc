"""Verdicts of the conflict rules, and rules that several operations share.

In all reasons, `it` is the committed transaction, and `this transaction` (or the operation's name) is the judged one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.operations import fragment_ids


class Outcome(Enum):
    """Consequence of a committed transaction for the judged one."""

    COMPATIBLE = "compatible"
    """The judged transaction may be applied unchanged."""
    REBASE = "rebase"
    """The judged transaction may be applied after a rebase of its deletion files or index coverage."""
    RETRYABLE = "retryable"
    """The operation must be redone on the newer version."""
    INCOMPATIBLE = "incompatible"
    """The two transactions conflict irreconcilably; redoing the operation does not help."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outcome, and unless it is compatible, the reason in words."""

    outcome: Outcome
    reason: str = ""


COMPATIBLE = Verdict(Outcome.COMPATIBLE)


def incompatible(reason: str) -> Verdict:
    """The verdict that the transactions conflict irreconcilably."""
    return Verdict(Outcome.INCOMPATIBLE, reason)


def retryable(reason: str) -> Verdict:
    """The verdict that the operation must be redone."""
    return Verdict(Outcome.RETRYABLE, reason)


def reset(name: str) -> Verdict:
    """The verdict against an operation `name` that replaced the table."""
    return incompatible(f"it replaced the table ({name})")


def log_changed() -> Verdict:
    """The verdict against a change of the write-ahead log's state."""
    return incompatible("it changed the state of the write-ahead log")


def judge_nullability(name: str, theirs: pb.Transaction) -> Verdict:
    """The verdict on new rows against a schema change: retryable if the new schema may forbid nulls in them."""
    keeps = theirs.merge.preserves_nullability if name == "merge" else theirs.project.preserves_nullability
    return COMPATIBLE if keeps else retryable(f"it changed the schema ({name}) and may have tightened it")


def rewritten_fragments(rewrite: pb.Transaction.Rewrite) -> frozenset[int]:
    """Ids of the fragments that a Rewrite replaced, in the current or the deprecated form of the message."""
    groups = frozenset(fragment.id for group in rewrite.groups for fragment in group.old_fragments)
    return groups | fragment_ids(rewrite.old_fragments)
