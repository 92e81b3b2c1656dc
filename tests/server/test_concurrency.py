"""Eight processes commit batches over five shared tables through two servers on one root.

Every acknowledged batch is there once and as a whole, every rejected one is not there at all, and what was answered by
503 or by silence is settled by asking again under the same key.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lance_core.storage.local import LocalStore
from tests.directory.invariants import canonical, check_quiet, load_version
from tests.directory.tables import Ground
from tests.server.batch_writer import Account
from tests.server.nursery import Nursery
from tests.server.servers import REPOSITORY, ServerProcess

WRITER = Path(__file__).with_name("batch_writer.py")
WRITERS, BATCHES = 8, 50
NAMES = [f"t{number}" for number in range(5)]
STEP = 25


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    """Five tables with ids 0, 1, 2 in version 1."""
    made = Ground(tmp_path / "root")
    made.make_namespace("g")
    for name in NAMES:
        made.make_table("g", name)
    made.catalog.sweep()
    return made


def _run_writers(ground: Ground, urls: list[str], on_batch: Callable[[int], None] = lambda _: None) -> list[Account]:
    """Let the writers run to their end; `on_batch` is called with the number of batches decided so far."""
    config = {
        "urls": urls,
        "root": str(ground.root),
        "tables": {name: ground.location(["g", name]) for name in NAMES},
        "batches": BATCHES,
    }
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    read, write = os.pipe()
    writers = [
        subprocess.Popen(
            [sys.executable, str(WRITER), json.dumps({**config, "writer": number})], stdout=write, env=environment
        )
        for number in range(WRITERS)
    ]
    os.close(write)
    accounts = []
    with open(read) as lines:  # noqa: PTH123 (a pipe)
        for line in lines:  # each is shorter than what a pipe takes in one piece
            accounts.append(Account(**json.loads(line)))
            on_batch(len(accounts))
    assert [writer.wait() for writer in writers] == [0] * WRITERS
    return accounts


def _check(ground: Ground, accounts: list[Account]) -> None:
    assert len({account.key for account in accounts}) == len(accounts) == WRITERS * BATCHES
    committed = [account for account in accounts if account.status == 200]
    ground = ground.again()
    ground.catalog.sweep()
    newest = check_quiet(ground.root, step=STEP)

    for name in NAMES:
        added = [account.rows[name] for account in committed if name in account.rows]
        assert ground.ids(["g", name]) == sorted([0, 1, 2, *added]), f"{name}: rows"
        files = canonical(LocalStore(ground.root, "none"), ground.location(["g", name]))
        assert list(files) == list(range(1, len(added) + 2)), f"{name}: versions"
        told = {account.versions[name]: account.transactions[name] for account in committed if name in account.rows}
        made = {version: file.identity.transaction_uuid for version, file in files.items() if version > 1}
        assert told == made, f"{name}: the client that made each version"

    for version in range(1, newest.version + 1, STEP):
        snapshot = load_version(LocalStore(ground.root, "none"), version)
        heads = {name: head.version for name in NAMES if (head := snapshot.head(("g", name))) is not None}
        for account in committed:
            there = {heads.get(name, 0) >= number for name, number in account.versions.items()}
            assert len(there) == 1, f"1: catalog version {version} holds a part of {account}"
    for account in committed:
        record = newest.record_by_key(account.key)
        assert record is not None
        assert record.batch_uuid == account.transaction_id
        assert {(party.table_id[-1], party.version) for party in record.participants} == set(account.versions.items())
    for account in accounts:
        assert account.status in {200, 409}
        assert account.status == 200 or newest.record_by_key(account.key) is None


def _kinds(accounts: list[Account]) -> Counter[Any]:
    return Counter(
        (account.status, "explicit" if account.explicit else "asserted" if account.asserted else "rebasable")
        for account in accounts
    )


def _check_kinds(accounts: list[Account]) -> None:
    kinds = _kinds(accounts)
    assert not kinds[409, "rebasable"], "appends never conflict"
    assert kinds[409, "explicit"], "no batch with an explicit version ever lost"
    assert kinds[409, "asserted"], "no assertion ever failed"
    assert any(account.rebased for account in accounts)


@pytest.fixture
def servers(ground: Ground, tmp_path: Path) -> Iterator[list[ServerProcess]]:
    with (
        ServerProcess(ground.root, log=tmp_path / "log0") as first,
        ServerProcess(ground.root, log=tmp_path / "log1") as second,
    ):
        yield [first, second]


@pytest.mark.long
def test_many_writers_through_two_servers(ground: Ground, servers: list[ServerProcess]) -> None:
    accounts = _run_writers(ground, [server.url for server in servers])

    for server in servers:
        server.stop()
    _check(ground, accounts)
    _check_kinds(accounts)


def test_one_of_the_servers_is_killed_meanwhile(ground: Ground, servers: list[ServerProcess]) -> None:
    """Batches in flight end in silence; the other server tells what became of them, and finishes them."""

    def kill(decided: int) -> None:
        process = servers[1]._process
        if decided == WRITERS * BATCHES // 4 and process is not None:
            process.send_signal(signal.SIGKILL)
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
            servers[1]._process = None

    accounts = _run_writers(ground, [server.url for server in servers], kill)

    servers[0].stop()
    _check(ground, accounts)
    assert any(account.repeats for account in accounts)
    _check_kinds(accounts)


def test_the_store_loses_answers_of_both_servers(ground: Ground, tmp_path: Path) -> None:
    """Whatever a silence left, applied or not or late, the repeat under the same key finds it and nothing else."""
    nurseries = [Nursery(), Nursery()]
    for number, nursery in enumerate(nurseries):
        nursery.start(ground.root, tmp_path / f"log{number}", lose=0.03 + number / 1000)

    accounts = _run_writers(ground, [nursery.url for nursery in nurseries])

    for nursery in nurseries:
        assert nursery.stop() == 0
        nursery.close()
    _check(ground, accounts)
    assert any(account.repeats for account in accounts), "no answer was missed"
    assert not _kinds(accounts)[409, "rebasable"]
