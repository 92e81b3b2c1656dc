"""Batches that another server may commit are given up as soon as one is seen to commit, and only those."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from namespace_server.directory.manifest_table.peer_secret import PeerSecret
from namespace_server.directory.manifest_table.peers import Peer
from namespace_server.directory.model.errors import CommittedElsewhere
from namespace_server.directory.planning.plan_builder import Plan
from namespace_server.outcomes import outcome_of
from tests.directory.tables import Ground, rows

OTHER = Peer("other", "http://a")
SECRET = PeerSecret("a secret of servers")


@pytest.fixture
def server(ground: Ground) -> Ground:
    """One of two servers that know each other."""
    ground.make_table("g", "t")
    ground.make_table("g", "u")
    ground.catalog.sweep()
    ground.catalog.flush_record_housekeeping()
    ground.catalog.table.peers.join(Peer("this", "http://b"), SECRET)
    return ground


def prepared(ground: Ground, table: str, *, movable: bool) -> Any:
    body = {"operations": [ground.transaction(["g", table], rows(5, 6))]}
    return replace(ground.namespace.prepare("batch_commit_tables", body).batch, movable=movable)


def test_of_a_group_those_that_may_be_moved_are_given_up_and_the_others_committed(server: Ground) -> None:
    server.catalog.table.peers.saw(OTHER)
    moved, stays = prepared(server, "t", movable=True), prepared(server, "u", movable=False)
    before = server.catalog.snapshot().version
    verdicts = [pending.verdict for pending in server.catalog.committer.decide([moved, stays])]
    assert isinstance(verdicts[0], CommittedElsewhere)
    assert isinstance(verdicts[1], Plan)
    assert server.catalog.snapshot().version == before + 1
    assert (server.head(["g", "t"]), server.head(["g", "u"])) == (1, 2)


def test_nothing_is_given_up_while_this_server_is_the_one_that_commits(server: Ground) -> None:
    [pending] = server.catalog.committer.decide([prepared(server, "t", movable=True)])
    assert isinstance(pending.verdict, Plan)


def test_of_a_batch_that_is_given_up_after_a_lost_slot_nothing_is_left(
    server: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, other = server.catalog.table, server.again()
    other.catalog.table.peers.join(OTHER, SECRET)
    append = other.transaction(["g", "u"], rows(7, 8))
    claim = table.claim

    def lose(*given: Any) -> Any:
        other.batch(append)
        return claim(*given)

    monkeypatch.setattr(table, "claim", lose)
    [pending] = server.catalog.committer.decide([prepared(server, "t", movable=True)])
    assert isinstance(pending.verdict, CommittedElsewhere)
    assert outcome_of(pending.verdict) == "nothing_done"
    server.catalog.committer.remove_failed_attempts()
    other.catalog.sweep()
    other.catalog.flush_record_housekeeping()
    assert not list((server.root / "_staging").rglob("*.manifest"))
    assert (server.head(["g", "t"]), server.head(["g", "u"])) == (1, 2)
