"""The checks of the conformance kit about credentials, on a bucket whose service holds clients to their credentials."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from namespace_tck import ALL, Check, CheckOutcome, Promise, Result, Session, run_check
from tests.credentials.conftest import GuardedS3, Serve

CHECKS = {check.id.partition(".")[2]: check for check in ALL if check.promise is Promise.CREDENTIALS}
NEED_TEMPORARY = {"tells_when_credentials_end", "temporary_credentials_open_no_other_table"}
NEED_SECRETS = {"answers_no_credentials_that_are_not_wanted", "declares_without_credentials_that_are_not_wanted"}


def _run(url: str, checks: dict[str, Check] = CHECKS) -> dict[str, Result]:
    with Session(url) as session:
        return {name: run_check(session, check) for name, check in checks.items()}


def test_all_pass_where_credentials_are_temporary(serve: Serve) -> None:
    results = _run(serve().url)
    assert {name: result.reason for name, result in results.items() if result.outcome is not CheckOutcome.PASSED} == {}


def test_what_is_not_offered_is_skipped_by_name(serve: Serve) -> None:
    results = _run(serve(VENDED_ROLE_ARN="", VENDED_STS_ENDPOINT="").url)
    skipped = {name: result.reason for name, result in results.items() if result.outcome is CheckOutcome.SKIPPED}
    assert skipped.keys() == NEED_TEMPORARY | NEED_SECRETS | {"vended_options_open_the_table"}
    assert skipped["temporary_credentials_open_no_other_table"] == "the storage options do not expire"
    assert skipped["answers_no_credentials_that_are_not_wanted"] == "the server hands out no credentials"
    assert not [name for name, result in results.items() if result.outcome is CheckOutcome.FAILED]


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("tells_when_credentials_end", lambda: 1),
        ("tells_when_credentials_end", lambda: "soon"),
        ("temporary_credentials_open_no_other_table", lambda: int(time.time() * 1000) + 3_600_000),
    ],
)
def test_wrong_credentials_are_noticed(
    serve: Serve, guarded_s3: GuardedS3, name: str, end: Callable[[], object]
) -> None:
    """The server's own keys, as if they were temporary."""
    options = {**guarded_s3.emulator.storage_options, "expires_at_millis": str(end())}
    vended = {f"VENDED_STORAGE__{option.upper()}": value for option, value in options.items()}
    result = _run(serve(VENDED_ROLE_ARN="", VENDED_STS_ENDPOINT="", **vended).url, {name: CHECKS[name]})[name]
    assert result.outcome is CheckOutcome.FAILED, result.reason
    assert "secret" not in (result.exchange or "")
