"""Our server keeps every promise of the published specification that the kit can prove, one test for each check."""

from __future__ import annotations

import pytest

from namespace_tck import ALL, Check, Outcome, Promise, Session, run_check

OPEN: dict[str, str] = {
    "query_table.refuses_a_query_without_k": "answered as without a bound",
}
"""Checks that our server does not pass yet. A check that passes must leave this table."""


def _marks(check: Check) -> tuple[pytest.MarkDecorator, ...]:
    """A race may be won, so that an open promise of concurrency may seem kept."""
    is_certain = check.promise is not Promise.CONCURRENCY
    return (pytest.mark.xfail(reason=OPEN[check.id], strict=is_certain),) if check.id in OPEN else ()


@pytest.mark.parametrize("check", [pytest.param(check, id=check.id, marks=_marks(check)) for check in ALL])
def test_our_server_keeps_the_promise(session: Session, check: Check) -> None:
    result = run_check(session, check)
    if result.outcome is Outcome.SKIPPED:
        pytest.skip(result.reason)
    assert result.outcome is Outcome.PASSED, f"{check.statement}\n{result.reason}\n{result.exchange}"


def test_open_promises_are_promises() -> None:
    assert set(OPEN) <= {check.id for check in ALL}
