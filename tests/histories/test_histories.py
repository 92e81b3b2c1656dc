"""Random histories of all kinds of clients are sound, and the checker sees defects that are planted in a server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.histories.clients import Client, HttpClient, OwnClient, Reader, SerializableClient
from tests.histories.run import run
from tests.histories.servers import ServerFactory


@pytest.fixture(scope="module")
def factory() -> Iterator[ServerFactory]:
    with ServerFactory() as running:
        yield running


@pytest.mark.parametrize("seed", ["first", "second"])
def test_a_history_is_sound(tmp_path: Path, factory: ServerFactory, seed: str) -> None:
    report = run(seed, tmp_path, factory, seconds=15, enough=400)
    assert report.sound, report
    assert report.recorder.faults, report


@pytest.mark.parametrize(
    ("defect", "kinds"),
    [
        ("lost", [OwnClient, OwnClient]),
        ("torn", [OwnClient, OwnClient]),
        ("doubled", [HttpClient, HttpClient]),
        ("revived", [OwnClient] * 4),
        ("stale", [OwnClient, OwnClient, Reader]),
        ("skewed", [SerializableClient] * 4),
    ],
)
def test_the_checker_sees_a_planted_defect(
    tmp_path: Path, factory: ServerFactory, defect: str, kinds: list[type[Client]]
) -> None:
    """A history in which clients do not meet is without the anomaly: the first of five that has it shows it."""
    for number in range(5):
        root = tmp_path / str(number)
        root.mkdir()
        seed = f"planted {defect} {number}"
        report = run(seed, root, factory, seconds=30, enough=60, kinds=kinds, servers=1, faults=False, defect=defect)
        if defect != "revived":  # a later commit on the damaged table may be refused, which no client expects
            assert not report.recorder.failures, report
        if defect in {anomaly.kind for anomaly in report.anomalies}:
            return
    pytest.fail(f"not seen in five histories, the last of which is: {report}")
