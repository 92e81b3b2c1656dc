"""The conformance kit with a reader and a stranger before each of its requests: neither changes or learns anything.

The kit works as the administrator. Each request is sent before in the names of who may read all that the kit makes, and
of who may see nothing. Then the kit goes on: what they had done would fail its checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import namespace_tck.session
from namespace_server.access.requirements import REQUIREMENTS
from namespace_server.access.subjects import Privilege
from namespace_tck import ALL, Check, CheckOutcome, Session, run_check
from namespace_tck.client import Client
from tests.access.conftest import Team
from tests.access.granting import ADMIN, as_principal, granted, put_rows
from tests.tck.test_our_server import NO_CREDENTIALS, NOT_SERVED

READER, STRANGER = "bob", "nobody"


def is_change(operation: str) -> bool:
    """Whether an operation changes something: it is judged in the flip, or needs more than to read."""
    requirement = REQUIREMENTS.get(operation)
    if requirement is None:
        return False
    return requirement.rule == "planned" or bool(requirement.privileges - {Privilege.READ, Privilege.SEE})


class Followed(Client):
    """A client whose requests are sent by others before."""

    attempts = 0
    refused = 0
    root = ""

    def _send(self, operation: Any, path: str, body: object, query: Mapping[str, Any], headers: Any) -> Any:
        if self.root:
            for who in (READER, STRANGER):
                self._attempt(who, operation, path, body, query, headers)
        return super()._send(operation, path, body, query, headers)

    def _attempt(
        self, who: str, operation: Any, path: str, body: object, query: Mapping[str, Any], headers: Any
    ) -> None:
        content, kind = namespace_tck.client._content(operation, body)
        sent = {**({"content-type": kind} if kind else {}), **(headers or {}), **as_principal(who)}
        changes = is_change(operation.name)
        answer = self._http.request(
            operation.method, self.url + path, params=query or None, content=content or None, headers=sent
        )
        type(self).attempts += 1
        type(self).refused += changes and answer.status_code >= 300
        asked = f"{path} {query} {content[:100_000]!r}"
        if who == STRANGER and self.root not in asked:
            assert self.root not in answer.text, f"{operation.name} tells {who} of {self.root}"
        if who == STRANGER and answer.status_code < 300 and answer.content and not changes:
            told = answer.json() if answer.headers["content-type"] == "application/json" else {}
            assert not any(told.get(name) for name in ("tables", "namespaces", "versions", "table")), operation.name


@pytest.fixture(scope="module")
def session(team: Team) -> Iterator[Session]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(namespace_tck.session, "Client", Followed)
        with Session(team.url, as_principal(ADMIN)) as opened:
            put_rows(team.root, [granted("namespace", opened.root[0], READER, "read")])
            Followed.root = opened.root[0]
            yield opened
            Followed.root = ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "check",
    [pytest.param(check, marks=[] if number % 5 == 0 else [pytest.mark.long]) for number, check in enumerate(ALL)],
    ids=[check.id for check in ALL],
)
def test_the_kit_is_not_disturbed(session: Session, check: Check) -> None:
    result = run_check(session, check)
    if result.outcome is CheckOutcome.SKIPPED:
        assert check.operation in NOT_SERVED or result.reason == NO_CREDENTIALS
    else:
        assert result.outcome is CheckOutcome.PASSED, f"{check.statement}\n{result.reason}\n{result.exchange}"


@pytest.mark.slow
def test_nothing_is_of_those_who_tried(team: Team, session: Session) -> None:
    """The history names who made each catalog version."""
    assert Followed.attempts > 1000
    assert Followed.refused > 500
    admin, token, made = team.caller(ADMIN), "", []
    while token is not None:
        page = admin.get(f"/v1/catalog/versions?limit=1000{token and f'&page_token={token}'}").json()
        made += [batch.get("principal") for version in page["versions"] for batch in version["batches"]]
        token = page.get("page_token")
    assert len(made) > 100
    assert not {READER, STRANGER} & set(made)
