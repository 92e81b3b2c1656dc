"""Results as text and as JUnit XML, and the exit status."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from textwrap import indent
from xml.etree import ElementTree as ET

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


_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold."""


def write_junit(path: Path, results: Sequence[Result], url: str) -> None:
    """Write one test case for each result; the class is the operation. Raises `OSError`."""
    counts = Counter(result.outcome for result in results)
    suite = ET.Element(
        "testsuite",
        name="lance-namespace-tck",
        hostname=_clean(url),
        tests=str(len(results)),
        failures=str(counts[CheckOutcome.FAILED]),
        skipped=str(counts[CheckOutcome.SKIPPED]),
        errors="0",
        time=f"{sum(result.seconds for result in results):.3f}",
    )
    for result in results:
        case = ET.SubElement(
            suite,
            "testcase",
            classname=result.check.operation,
            name=result.check.name,
            time=f"{result.seconds:.3f}",
        )
        if result.outcome is CheckOutcome.SKIPPED:
            ET.SubElement(case, "skipped", message=_clean(result.reason))
        elif result.outcome is CheckOutcome.FAILED:
            failure = ET.SubElement(case, "failure", message=_clean(result.reason))
            failure.text = _clean(f"{result.check.statement}\n{result.check.source}\n{result.exchange}")
    ET.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
