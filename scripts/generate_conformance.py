"""Write docs/reference/conformance.md: the conformance kit on this server and on pylance's own.

Both servers run on fresh directories. Checks of concurrency are repeated, and one failure among the repetitions is a
failure, so that the page does not depend on who wins a race.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from textwrap import fill

from namespace_tck import ALL, CheckOutcome, Promise, Result, Session, run_check

REPOSITORY = Path(__file__).resolve().parent.parent
TARGET = REPOSITORY / "docs" / "reference" / "conformance.md"
REPETITIONS = 5

HEAD = """# Conformance

<!-- Written by scripts/generate_conformance.py: run make tck-report. -->

The [conformance kit](../guide/conformance.md) has {count} checks of the published Lance namespace
REST specification, release 0.13.0. Here it ran on this server, and on the REST adapter of pylance
{stock} over its directory namespace, both on a local directory. A check of concurrency ran up to
{repetitions} times, and failed if it failed once.

| server | passed | failed | skipped |
|---|---|---|---|
{totals}

A check is skipped where an operation, or an optional part of the specification, is absent, or where
the storage cannot be reached.

## By operation

| operation | this server | stock adapter |
|---|---|---|
"""


def main() -> int:
    """Run the kit on both servers and write the page; 1 if this server fails a check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=TARGET)
    target: Path = parser.parse_args().output
    sys.path.insert(0, str(REPOSITORY))  # benchmarks are not installed
    from benchmarks.support.servers import serve_ours, serve_peer

    with tempfile.TemporaryDirectory() as home:
        with serve_ours(Path(home) / "ours") as server:
            ours, absent_here = _run(f"http://127.0.0.1:{server.port}")
        with serve_peer(Path(home) / "stock") as server:
            stock, absent_there = _run(f"http://127.0.0.1:{server.port}")
    target.write_text(render(ours, absent_here, stock, absent_there))
    failed = _of(ours, CheckOutcome.FAILED)
    for result in failed:
        print(f"{result.check.id}: {result.reason}\n{result.exchange}", file=sys.stderr)
    return 1 if failed else 0


def _run(url: str) -> tuple[list[Result], list[str]]:
    results = []
    with Session(url) as session:
        for check in ALL:
            result = run_check(session, check)
            if check.promise is Promise.CONCURRENCY:
                for _ in range(REPETITIONS - 1):
                    if result.outcome is not CheckOutcome.PASSED:
                        break
                    result = run_check(session, check)
            results.append(result)
        return results, sorted(session.absent)


def render(ours: Sequence[Result], absent_here: Sequence[str], stock: Sequence[Result], absent: Sequence[str]) -> str:
    """The page. It holds nothing that differs between two runs with the same results."""
    totals = "\n".join(
        f"| {name} | " + " | ".join(str(len(_of(results, outcome))) for outcome in CheckOutcome) + " |"
        for name, results in (("this server", ours), ("stock adapter", stock))
    )
    text = HEAD.format(count=len(ALL), stock=metadata.version("pylance"), repetitions=REPETITIONS, totals=totals)
    for operation in dict.fromkeys(check.operation for check in ALL):
        text += f"| `{operation}` | {_cell(ours, operation)} | {_cell(stock, operation)} |\n"
    text += "\n## Not served\n\n"
    text += _wrapped(f"This server: {_listed(absent_here)}.")
    text += "\n" + _wrapped(f"Stock adapter: {_listed(absent)}.")
    text += "\n## What fails on this server\n\n" + _failures(ours)
    text += "\n## What fails on the stock adapter\n\n" + _failures(stock)
    text += "\n## What is skipped for other reasons\n\n"
    text += _other_skips("this server", ours) + _other_skips("stock adapter", stock)
    return text


def _cell(results: Sequence[Result], operation: str) -> str:
    counts = Counter(result.outcome for result in results if result.check.operation == operation)
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in CheckOutcome if counts[outcome])


def _failures(results: Sequence[Result]) -> str:
    failed = _of(results, CheckOutcome.FAILED)
    if not failed:
        return "Nothing.\n"
    text = ""
    broken = {result.check.operation for result in failed}
    for operation in dict.fromkeys(check.operation for check in ALL if check.operation in broken):
        text += f"**{operation}**\n\n"
        for result in failed:
            if result.check.operation == operation:
                text += _wrapped(f"{_escaped(result.check.statement)} ({result.check.source})", "* ")
        text += "\n"
    return text.rstrip("\n") + "\n"


def _other_skips(name: str, results: Sequence[Result]) -> str:
    skipped = [result for result in _of(results, CheckOutcome.SKIPPED) if not result.reason.endswith("is not served")]
    reasons = Counter(result.reason for result in skipped)
    return "".join(_wrapped(f"{name}: {_escaped(reason)} ({count})", "* ") for reason, count in reasons.items())


def _of(results: Sequence[Result], outcome: CheckOutcome) -> list[Result]:
    return [result for result in results if result.outcome is outcome]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "nothing is missing"


def _wrapped(text: str, bullet: str = "") -> str:
    indent = " " * len(bullet)
    return fill(bullet + text, 98, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) + "\n"


def _escaped(text: str) -> str:
    for mark in "_*<":
        text = text.replace(mark, "\\" + mark)
    return text


if __name__ == "__main__":
    sys.exit(main())
