"""All processes on a root choose the same one to commit, by the flips that they see."""

from __future__ import annotations

import pytest

from namespace_server.directory.manifest_table.peers import AVOIDED, LATELY, PEER_PROPERTY, Peer, Peers
from tests.directory.tables import Ground, rows

A, B, C = (Peer(f"process-{name}", f"http://{name}") for name in "abc")
URLS = frozenset({A.url, B.url, C.url})


class Clock:
    """The time in seconds."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def joined(clock: Clock, this: Peer) -> Peers:
    made = Peers(clock)
    made.join(this, URLS)
    return made


def flips(of: Peer, *seen_by: Peers) -> None:
    """Let one process flip, and all see it."""
    for peers in seen_by:
        if peers.this == of:
            peers.flipped()
        else:
            peers.saw_flip(str(of))


def chosen(peers: Peers) -> Peer | None:
    """The process that one chooses; itself as well."""
    return peers.committing() or peers.this


def test_the_lowest_url_of_those_that_flipped_commits_for_all(clock: Clock) -> None:
    every = [joined(clock, peer) for peer in (A, B, C)]
    assert [chosen(peers) for peers in every] == [A, B, C]
    flips(C, *every)
    assert [chosen(peers) for peers in every] == [C, C, C]
    flips(B, *every)
    assert [chosen(peers) for peers in every] == [B, B, B]
    clock.now += LATELY * 0.75
    flips(C, *every)
    clock.now += LATELY * 0.5
    assert [chosen(peers) for peers in every] == [C, C, C]
    clock.now += LATELY
    assert [chosen(peers) for peers in every] == [A, B, C]


def test_only_processes_at_urls_that_are_allowed_are_chosen_and_never_this_one(clock: Clock) -> None:
    peers = joined(clock, B)
    for told in ("x http://0", f"{B.instance} {A.url} ", "", "x", f"the one before {B.url}"):
        peers.saw_flip(told)
        assert peers.committing() is None
    assert Peers(clock).committing() is None


def test_one_that_failed_is_avoided_for_a_while(clock: Clock) -> None:
    peers = joined(clock, C)
    peers.saw(A)
    peers.saw(B)
    assert peers.avoid(A)
    assert not peers.avoid(A)
    peers.saw(A)
    assert peers.committing() == B
    clock.now += AVOIDED
    peers.saw(A)
    assert peers.committing() == A


def test_one_that_sees_another_commit_is_chosen_again_when_it_commits(clock: Clock) -> None:
    peers = joined(clock, C)
    peers.saw(A)
    peers.saw(B)
    peers.forget(A)
    assert peers.committing() == B
    peers.saw(A)
    assert peers.committing() == A


def test_flips_of_batches_alone_tell_their_process(ground: Ground) -> None:
    """One that closes records needs nobody's changes."""
    peers = ground.catalog.table.peers
    peers.join(A, URLS)
    ground.make_table("t")
    ground.batch(ground.transaction(["t"], rows(5, 6)))
    batch = ground.catalog.snapshot().version
    ground.catalog.sweep()
    ground.catalog.flush_record_maintenance()
    assert ground.catalog.snapshot().version == batch + 1
    told = []
    for version in (batch, batch + 1):
        transaction = ground.catalog.table._snapshots.read_manifest(version).transaction
        told.append(transaction.transaction_properties.get(PEER_PROPERTY))
    assert told == [str(A), None]
