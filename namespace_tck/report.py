"""Results as text, and the exit status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from textwrap import indent

from namespace_tck.registry import Check
from namespace_tck.runner import CheckOutcome, Result


def exit_status(results: Sequence[Result]) -> int:
    """0 if nothing failed, 1 otherwise."""
    return 1 if any(result.outcome is CheckOutcome.FAILED for result in results) else 0


def render_list(checks: Iterable[Check]) -> Iterator[str]:
    """One line for each check: id, promise, source, statement."""
    for check in checks:
        yield f"{check.id}  [{check.promise}; {check.source}]  {check.statement}"


def render_failure(result: Result) -> str:
    """What was promised, what was found, and the request and answer that show it."""
    lines = [
        f"FAILED {result.check.id}",
        f"  {result.check.statement}",
        f"  source: {result.check.source}",
        f"  {result.reason}",
    ]
    return "\n".join(lines) + (f"\n{indent(result.exchange, '    ')}" if result.exchange else "")


def render_summary(results: Sequence[Result], absent: Iterable[str]) -> Iterator[str]:
    """Counts by operation, all that was skipped by name, and the total."""
    operations = list(dict.fromkeys(result.check.operation for result in results))
    width = max((len(name) for name in operations), default=0)
    for name in operations:
        counts = Counter(result.outcome for result in results if result.check.operation == name)
        cells = "  ".join(f"{counts[outcome]:4} {outcome}" for outcome in CheckOutcome)
        yield f"{name:<{width}}  {cells}"
    missing = sorted(absent)
    if missing:
        yield f"not served: {', '.join(missing)}"
    skipped: dict[str, list[str]] = {}
    for result in results:
        if result.outcome is CheckOutcome.SKIPPED:
            skipped.setdefault(result.reason, []).append(result.check.id)
    for reason, names in skipped.items():
        yield f"skipped, {reason}: {', '.join(names)}"
    counts = Counter(result.outcome for result in results)
    yield f"{len(results)} checks: " + ", ".join(f"{counts[outcome]} {outcome}" for outcome in CheckOutcome)
