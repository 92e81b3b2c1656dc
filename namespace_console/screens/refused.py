"""Rejected batches, and what else the server has refused: for auditors."""

from __future__ import annotations

from typing import Final

from namespace_client.errors import InvalidCall
from namespace_console.visits import Page, Shown, Visit

LINES: Final = 100
MOST: Final = 1_000
DECISIONS: Final = ("any", "rejected", "denied", "failed", "unknown")


def show(visit: Visit) -> Shown:
    """What was refused, newest first: one request."""
    decision = visit.text("decision") or DECISIONS[0]
    if decision not in DECISIONS:
        raise InvalidCall(f"decision: expected one of {', '.join(DECISIONS)}, found {decision[:40]!r}")
    filters = {name: visit.text(name) for name in ("principal", "name")}
    limit = visit.number("limit", MOST) or LINES
    attempts = visit.catalog.refused_attempts(
        limit,
        principal=filters["principal"],
        name=filters["name"],
        decision=None if decision == "any" else decision,
    )
    shown = {
        "attempts": attempts,
        "decision": decision,
        "decisions": DECISIONS,
        "filters": filters,
        "more": min(10 * limit, MOST) if len(attempts) == limit < MOST else None,
    }
    return Page("refused.html", "Rejected batches", shown)
