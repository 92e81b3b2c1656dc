"""Stock writers commit by path on held handles, beside batches: nothing is lost, twice, or gone without a report."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from namespace_server.directory.committing import group_planner
from tests.directory.recovery.path_writers import KINDS, Scenario, run_random

SCENARIOS = int(os.environ.get("LANCE_PATH_WRITERS_SCENARIOS", "8"))
FOLLOWING = frozenset(KINDS) - {"add_column", "drop_column", "index", "restore"}
"""What is committed again after the append that it was built on, beside an append of a batch, if that is known."""
CHAINS = (
    ("append", "update_own", "update_own", "delete_base", "delete_own"),
    ("append", "upsert", "replace_data", "compact", "update_own"),
    ("append", "config", "overwrite", "append", "delete_own"),
    ("append", "add_column", "append", "drop_column", "delete_own"),
    ("append", "delete_base", "update_base", "restore", "append"),
    ("delete_base", "delete_base", "update_base", "delete_base", "index"),
)


def _take_name(scenario: Scenario, batch: str, kind: str = "append") -> None:
    """A batch is committed, and a writer by path has its name before it is promoted."""
    scenario.commit("config")
    scenario.read()
    scenario.batch(batch, promoted=False)
    assert scenario.commit(kind)


@pytest.mark.parametrize(("known", "branch"), [(True, None), (False, None), (True, "dev")])
@pytest.mark.parametrize("kind", KINDS)
def test_a_commit_on_a_quarantined_version(tmp_path: Path, kind: str, known: bool, branch: str | None) -> None:
    """By the same handle: it stands there when the name is repaired, or comes after that."""
    scenario = Scenario(tmp_path / "root", kind, branch=branch)
    _take_name(scenario, "append")
    if kind == "drop_column":
        scenario.commit("add_column")
    if not known:
        scenario.sweep()
    scenario.commit(kind)
    scenario.finish()
    if known and kind in FOLLOWING:
        assert not any(scenario.reasons.values()), scenario.reasons


@pytest.mark.parametrize(("batch", "known"), [("append", 5), ("append", 3), ("config", 1), ("config", 5)])
@pytest.mark.parametrize("chain", CHAINS)
def test_a_chain_of_five(tmp_path: Path, chain: tuple[str, ...], known: int, batch: str) -> None:
    """Of which so many stand there when the name is repaired."""
    scenario = Scenario(tmp_path / "root", "".join(chain))
    _take_name(scenario, batch, chain[0])
    for number, kind in enumerate(chain[1:], 1):
        if number == known:
            scenario.sweep()
        scenario.commit(kind)
    scenario.finish()


@pytest.mark.parametrize("kind", ["delete_own", "update_own", "upsert", "compact", "index", "overwrite"])
def test_two_writers_go_on_from_two_versions_of_one_number(tmp_path: Path, kind: str) -> None:
    scenario = Scenario(tmp_path / "root", kind, writers=2)
    _take_name(scenario, "append")
    scenario.sweep()
    scenario.commit("append", 1)
    scenario.batch("append", promoted=False)
    scenario.commit("append", 1)
    scenario.commit(kind, 0)
    scenario.commit(kind, 1)
    scenario.batch("append")
    scenario.finish()


@pytest.mark.parametrize("seed", range(SCENARIOS))
def test_a_scenario(tmp_path: Path, seed: int) -> None:
    run_random(tmp_path / "root", str(seed))


@pytest.mark.parametrize("kind", ["delete_own", "update_own"])
def test_the_check_sees_a_version_that_is_adopted_as_it_is(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_planner, "other_meaning", lambda *_: None)
    scenario = Scenario(tmp_path / "root", kind)
    _take_name(scenario, "append")
    scenario.sweep()
    scenario.batch("append")
    scenario.commit(kind)
    with pytest.raises(AssertionError, match=r"expected|twice"):
        scenario.finish()
