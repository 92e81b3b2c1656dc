"""The command line: runs the kit on one server and prints what was found."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import Any, Final

from namespace_tck.checks import ALL
from namespace_tck.lancedb import LANCEDB, LancedbSession, LancedbTrial
from namespace_tck.registry import Check, select
from namespace_tck.report import exit_status, render_failure, render_list, render_summary, write_junit
from namespace_tck.runner import CheckOutcome, Result, run_checks
from namespace_tck.session import Session
from namespace_tck.trial import Trial

Print = Callable[[str], None]


class KitDialect(StrEnum):
    """In which words the kit speaks to a server."""

    PUBLISHED = "published"
    LANCEDB = "lancedb"


@dataclass(frozen=True, slots=True)
class _Kit:
    """The checks of one dialect, and what they work with."""

    checks: tuple[Check, ...]
    session: Callable[[str, Mapping[str, str]], AbstractContextManager[Any]]
    surroundings: Callable[[Any], Any]


_KITS: Final = MappingProxyType(
    {
        KitDialect.PUBLISHED: _Kit(ALL, Session, Trial),
        KitDialect.LANCEDB: _Kit(LANCEDB, LancedbSession, LancedbTrial),
    }
)

INTERRUPTED = 130
"""The exit status after Ctrl-C or SIGTERM."""


def list_checks(patterns: Sequence[str], out: Print, dialect: KitDialect = KitDialect.PUBLISHED) -> int:
    """Print the checks that match. Raises `ValueError` for a pattern that matches nothing."""
    for line in render_list(select(_KITS[dialect].checks, patterns)):
        out(line)
    return 0


def run(
    url: str,
    headers: Sequence[str],
    patterns: Sequence[str],
    junit: Path | None,
    out: Print,
    dialect: KitDialect = KitDialect.PUBLISHED,
) -> int:
    """Run the checks that match on the server at `url`; the exit status.

    What the kit made on the server is removed, also after Ctrl-C and SIGTERM.

    Raises:
        SessionError: the server cannot be tested, or something could not be removed.
        ValueError: a pattern matches nothing, or a header is not `Name: value`.
        OSError: the file cannot be written.
    """
    kit = _KITS[dialect]
    checks = select(kit.checks, patterns)
    given = _headers(headers)
    results: list[Result] = []
    absent: list[str] = []
    is_interrupted = False
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        with kit.session(url, given) as session:
            absent += session.absent
            for result in run_checks(session, checks, kit.surroundings):
                results.append(result)
                if result.outcome is CheckOutcome.FAILED:
                    out(render_failure(result))
    except KeyboardInterrupt:
        is_interrupted = True
        out(f"interrupted after {len(results)} of {len(checks)} checks")
    finally:
        signal.signal(signal.SIGTERM, before)
        if results:
            _report(results, absent, junit, url, out)
    return INTERRUPTED if is_interrupted else exit_status(results)


def _report(results: Sequence[Result], absent: Sequence[str], junit: Path | None, url: str, out: Print) -> None:
    for line in render_summary(results, absent):
        out(line)
    if junit is not None:
        write_junit(junit, results, url)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _headers(given: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for header in given:
        name, colon, value = header.partition(":")
        if not colon or not name.strip():
            raise ValueError("--header: expected 'Name: value'")
        pairs[name.strip()] = value.strip()
    return pairs
