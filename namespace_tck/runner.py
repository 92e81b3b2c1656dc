"""Runs checks, gives results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from namespace_tck.client import Client
from namespace_tck.exchanges import CheckFailed, CheckSkipped
from namespace_tck.registry import Check
from namespace_tck.trial import Trial


class CheckedServer(Protocol):
    """A server under test: a session of one of the dialects."""

    @property
    def client(self) -> Client:
        """The client of the server."""
        ...


class CheckSurroundings(Protocol):
    """What one run of one check works with."""

    def close(self) -> None:
        """Remove everything that the check made."""
        ...


S = TypeVar("S", bound=CheckedServer)


class CheckOutcome(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Result:
    """A check that was run: why it failed or was skipped, the exchange that shows it, and its time in seconds."""

    check: Check
    outcome: CheckOutcome
    reason: str = ""
    exchange: str = ""
    seconds: float = 0.0


def run_checks(
    session: S, checks: Iterable[Check], surroundings: Callable[[S], CheckSurroundings] | None = None
) -> Iterator[Result]:
    """Run checks one after another. What each one made is removed before its result is given."""
    for check in checks:
        yield run_check(session, check, surroundings)


def run_check(session: S, check: Check, surroundings: Callable[[S], CheckSurroundings] | None = None) -> Result:
    """Run one check in surroundings of its own: `Trial`, if no others are given.

    A check that ends in an error of its own has failed. An interrupt is passed on at once: what the check made is
    removed with the session.
    """
    began = time.perf_counter()
    make: Callable[[Any], CheckSurroundings] = surroundings or Trial
    trial = make(session)
    outcome, reason, exchange = CheckOutcome.PASSED, "", ""
    try:
        try:
            check.run(trial)
        except Exception:
            trial.close()
            raise
        trial.close()
    except CheckSkipped as skipped:
        outcome, reason = CheckOutcome.SKIPPED, str(skipped)
    except CheckFailed as failed:
        outcome, reason = CheckOutcome.FAILED, str(failed)
        exchange = failed.exchange.render() if failed.exchange is not None else ""
    except Exception as error:  # noqa: BLE001 - whatever a check meets, the others must run
        outcome, reason = CheckOutcome.FAILED, f"{type(error).__name__}: {error}"[:600]
        exchange = session.client.last.render() if session.client.last is not None else ""
    return Result(check, outcome, reason, exchange, time.perf_counter() - began)
