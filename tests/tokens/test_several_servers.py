"""Tokens where one server hands a change to another one of the same root."""

from __future__ import annotations

from typing import Any

import pytest

from namespace_server.directory.manifest_table.peers import Peer
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.rest import forwarding
from namespace_server.rest.forwarding import Forwarding
from tests.rest.test_forwarding import DISTRUST, LAST, SECRET, Outcomes
from tests.tokens.conftest import rules
from tests.tokens.issuer import Issuer


@pytest.mark.parametrize(("seconds", "outcome"), [(0, "answered"), (4000, "undecided")], ids=["in time", "expired"])
def test_a_change_that_is_handed_on_is_of_its_principal(
    issuer: Issuer, guard: Any, seconds: int, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "_PROBE_TIMEOUT", 10.0)
    outcomes = Outcomes()

    def last(namespace: DirectoryNamespace) -> Forwarding:
        return Forwarding(Peer("last", LAST), SECRET, namespace.catalog.table.peers, observer=outcomes)

    def first(namespace: DirectoryNamespace) -> Forwarding:
        return Forwarding(Peer("first", "http://first"), DISTRUST, namespace.catalog.table.peers)

    committing, asked = guard(rules(issuer), forwarding=first), guard(rules(issuer), forwarding=last)
    headers = {"authorization": f"Bearer {issuer.token()}"}
    for name in ("a", "b"):
        body = {"operations": [{"declare_table": {"id": [name]}}]}
        assert asked.http.post("/v1/table/batch-commit", json=body, headers=headers).status_code == 200
        asked.namespace.catalog.table.peers.saw(Peer("first", str(committing.http.base_url).rstrip("/")))
        committing.wall.seconds += seconds  # its clock alone: the token has expired there when the change comes

    assert outcomes.found == [outcome]
    versions = asked.call(issuer.token(), "/v1/catalog/versions").json()["versions"]
    assert [each["batches"][0]["principal"] for each in versions[:2]] == [f"{issuer.url}#ann"] * 2
