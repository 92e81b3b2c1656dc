"""Random histories of all kinds of clients are sound, and the checker sees defects that are planted in a server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.directory.gc.unreferenced import list_orphans
from tests.histories.clients import Client, PathClient, Reader
from tests.histories.collections import Collections, LongJob, SlowClient, collect_rest
from tests.histories.meetings import (
    BatchingClient,
    FirstRowDeleter,
    FirstTableReader,
    RepeatingClient,
    SecondRowDeleter,
    SecondTableReader,
    WideClient,
)
from tests.histories.run import EVERY, run, run_rounds
from tests.histories.servers import ServerFactory

ROUNDS = 3
"""Of clients that meet: what two of them do is in each one, and what comes after an acknowledgement is in the third."""


@pytest.fixture(scope="module")
def factory() -> Iterator[ServerFactory]:
    with ServerFactory() as running:
        yield running


@pytest.mark.parametrize(("seed", "servers"), [pytest.param("first", 2, marks=pytest.mark.long), ("second", 3)])
def test_a_history_is_sound(tmp_path: Path, factory: ServerFactory, seed: str, servers: int) -> None:
    report = run(seed, tmp_path, factory, seconds=8, enough=200, servers=servers, peers=servers > 2)
    assert report.sound, report
    assert report.recorder.faults, report
    committed = {event.client for event in report.recorder.events if event.outcome == "committed"}
    assert len(committed) == len(EVERY), report


def test_a_history_beside_a_collector_is_sound(tmp_path: Path, factory: ServerFactory) -> None:
    """Without commits by path: their files are protected by the grace time alone, and here there is none."""
    collections = Collections("collected", tmp_path / "root")
    kinds = [kind for kind in EVERY if kind is not PathClient]
    kinds += [*[SlowClient] * 3, *[LongJob] * 2]
    report = run("collected", tmp_path, factory, seconds=12, kinds=kinds, beside=collections.run_until)
    assert report.sound, report
    more = iter(range(20))  # runs on a machine that was too busy for them
    collections.run_until(lambda: collections.removed > 5 or next(more, None) is None)
    assert collections.removed > 5, collections.faults
    long = [event for event in report.recorder.events if event.client.startswith("LongJob")]
    assert any(event.outcome == "committed" and event.ended - event.begun > 1.4 for event in long), report
    assert {"death", "hold"} <= set(collections.faults), collections.faults
    collect_rest(tmp_path / "root")
    assert list_orphans(tmp_path / "root").orphans == ()


@pytest.mark.parametrize(
    ("defect", "kinds"),
    [
        ("lost", [WideClient, WideClient]),
        ("torn", [WideClient]),
        ("visible", [BatchingClient]),
        ("doubled", [RepeatingClient]),
        ("revived", [FirstRowDeleter, SecondRowDeleter]),
        ("stale", [WideClient, Reader]),
        ("misanswered", [RepeatingClient]),
        ("skewed", [FirstTableReader, SecondTableReader]),
    ],
)
def test_the_checker_sees_a_planted_defect(
    tmp_path: Path, factory: ServerFactory, defect: str, kinds: list[type[Client]]
) -> None:
    report = run_rounds(f"planted {defect}", tmp_path, factory, kinds, rounds=ROUNDS, defect=defect)
    assert defect in {anomaly.kind for anomaly in report.anomalies}, report
    assert not report.recorder.failures, report
