"""All processes on a root choose the same one to commit, by the flips that they see."""

from __future__ import annotations

import pytest

from namespace_server.directory.manifest_table.peer_secret import PeerSecret
from namespace_server.directory.manifest_table.peers import AVOIDED, LATELY, NO_URL, PEER_PROPERTY, Peer, Peers
from tests.directory.tables import Ground, rows

A, B, C = (Peer(f"process-{name}", f"http://{name}") for name in "abc")
SECRET, IDENTITY = PeerSecret("a secret of servers"), "the catalog"


def introduction(of: Peer) -> str:
    """What the flips of a process say of it."""
    return f"{of.instance} {of.url} {SECRET.proof(of.instance, of.url, IDENTITY)}"


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
    made.join(this, SECRET)
    return made


def flips(of: Peer, *seen_by: Peers) -> None:
    """Let one process flip, and all see it."""
    for peers in seen_by:
        if peers.this == of:
            peers.flipped()
        else:
            peers.saw_flip(introduction(of), IDENTITY)


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


def test_only_processes_with_a_proof_are_chosen_and_never_this_one(clock: Clock) -> None:
    peers = joined(clock, B)
    proof = introduction(A).rpartition(" ")[2]
    for text in (f"{A.instance} {A.url}", f"x {A.url} {proof}", f"{A.instance} http://0 {proof}", "", "x"):
        peers.saw_flip(text, IDENTITY)
        assert peers.committing() is None
    peers.saw_flip(introduction(A), "another catalog")
    peers.saw_flip(introduction(Peer("one-before", B.url)), IDENTITY)
    assert peers.committing() is None
    peers.saw_flip(introduction(A), IDENTITY)
    assert peers.committing() == A
    peers.saw_flip(f"{A.instance} {A.url}", IDENTITY)  # of another writer: the process has its secret all the same
    assert peers.committing() == A
    assert Peers(clock).committing() is None


def test_without_a_secret_servers_are_seen_and_none_is_chosen(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    peers = Peers(clock)
    peers.join(B, None)
    with caplog.at_level("INFO"):
        for _ in range(2):
            peers.saw_flip(introduction(A), IDENTITY)
            peers.saw_flip("nameless ~", IDENTITY)
    assert (peers.committing(), peers.introduction(IDENTITY)) == (None, f"{B.instance} {NO_URL}")
    assert (len(peers.lately()), peers.count()) == (2, (0, 2))
    whose = {A.instance: f"at {A.url}", "nameless": "at an unknown address"}
    assert caplog.messages == [
        f"another server commits to this root: {name} {place}; without a common peer_secret they take turns"
        for name, place in whose.items()
    ]


def test_flips_of_this_process_and_of_the_one_before_it_are_none_of_others(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    peers = joined(clock, B)
    with caplog.at_level("INFO"):
        for own in (B, Peer("one-before", B.url)):
            peers.saw_flip(introduction(own), IDENTITY)
    nameless = Peers(clock)
    nameless.join(Peer("this"), None)
    with caplog.at_level("INFO"):
        nameless.saw_flip(f"this {NO_URL}", IDENTITY)
        assert (peers.lately(), nameless.lately(), caplog.messages) == ([], [], [])
        nameless.saw_flip(f"other {NO_URL}", IDENTITY)
    assert nameless.lately() == [Peer("other")]


def test_a_loopback_address_is_proved_to_processes_of_one_machine() -> None:
    here, there = (PeerSecret("a secret of servers", lambda name=name: name) for name in ("here", "there"))  # type: ignore[misc]
    for url, is_proof in (
        ("http://127.0.0.1:1", False),
        ("http://[::1]:1", False),
        ("http://localhost:1", False),
        ("http://10.0.0.1:1", True),
        ("http://lance.example", True),
    ):
        proof = here.proof("i", url, IDENTITY)
        assert here.is_proof(proof, "i", url, IDENTITY)
        assert there.is_proof(proof, "i", url, IDENTITY) == is_proof


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
    peers.join(A, SECRET)
    ground.make_table("t")
    ground.batch(ground.transaction(["t"], rows(5, 6)))
    batch = ground.catalog.snapshot().version
    ground.catalog.sweep()
    ground.catalog.flush_record_housekeeping()
    assert ground.catalog.snapshot().version == batch + 1
    told = []
    for version in (batch, batch + 1):
        transaction = ground.catalog.table.read_manifest(version).transaction
        told.append(transaction.transaction_properties.get(PEER_PROPERTY))
    identity = ground.catalog.snapshot().disk.identity
    assert told == [f"{A.instance} {A.url} {SECRET.proof(A.instance, A.url, identity)}", None]
