"""Our server keeps every promise of the published specification that the kit can prove, one test for each check."""

from __future__ import annotations

import pytest

from namespace_server.rest.routers import unsupported
from namespace_tck import ALL, Check, CheckOutcome, Session, run_check

NOT_SERVED = {route.operation for route in unsupported.ROUTES}
NO_CREDENTIALS = "the server answers no storage options"


@pytest.mark.parametrize("check", ALL, ids=lambda check: check.id)
def test_our_server_keeps_the_promise(session: Session, check: Check) -> None:
    result = run_check(session, check)
    if result.outcome is CheckOutcome.SKIPPED:
        assert check.operation in NOT_SERVED or result.reason == NO_CREDENTIALS
    else:
        assert result.outcome is CheckOutcome.PASSED, f"{check.statement}\n{result.reason}\n{result.exchange}"
