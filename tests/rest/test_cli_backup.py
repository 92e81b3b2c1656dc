"""The commands on backups."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from namespace_server.cli import cli
from tests.directory.backup.catalogs import T
from tests.directory.tables import Ground, rows

pytestmark = pytest.mark.slow


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    made = Ground(tmp_path / "root")
    made.make_namespace("g")
    made.make_table(*T)
    made.catalog.sweep()
    return made


def run(*arguments: str | Path, status: int = 0) -> str:
    result = CliRunner().invoke(cli, [str(each) for each in arguments])
    assert result.exit_code == status, result.output
    return result.output.strip()


def test_a_backup_and_back(ground: Ground, tmp_path: Path) -> None:
    root, backups, other = ground.root, tmp_path / "backups", tmp_path / "other"
    version = ground.catalog.snapshot().version
    moment = datetime.now(UTC).isoformat()
    first = run("backup", root, backups, "--at", str(version))
    assert f"catalog version {version} of " in first
    assert "1 table, " in first
    ground.write(T, rows(3, 6))
    ground.catalog.sweep()
    second = json.loads(run("backup", root, backups, "--json"))
    assert second["catalog_version"] > version
    assert 0 < second["copied"] <= 4
    run("backup", root, backups, "--at", moment)
    run("pin", root, "here")
    assert f"catalog version {second['catalog_version'] + 4} of " in run("backup", root, backups, "--at", "here")
    lines = run("backups", backups).splitlines()
    assert [line.split()[3] for line in lines[:3]] == [str(version), str(second["catalog_version"]), str(version)]
    assert [each["id"] for each in json.loads(run("backups", backups, "--json"))][1] == second["id"]
    assert run("verify-backup", backups).endswith("sound")
    assert "1 backup, 1 table, 6 rows" in run("verify-backup", backups, second["id"])
    assert f"catalog version {second['catalog_version']}, 1 table" in run(
        "restore", backups, other, "--id", second["id"]
    )
    assert Ground(other).ids(T) == [0, 1, 2, 3, 4, 5]
    run("restore", backups, tmp_path / "newest")
    assert Ground(tmp_path / "newest").ids(T) == [0, 1, 2, 3, 4, 5]
    assert json.loads(run("restore", backups, tmp_path / "third", "--json"))["restored"] > 0


def test_what_is_refused(ground: Ground, tmp_path: Path) -> None:
    root, backups = ground.root, tmp_path / "backups"
    assert "--at noon: expected a catalog version, a time such as" in run(
        "backup", root, backups, "--at", "noon", status=2
    )
    assert "catalog version 99 is not kept" in run("backup", root, backups, "--at", "99", status=2)
    assert "expected a backup" in run("restore", backups, tmp_path / "other", status=2)
    assert "expected backup of any name" in run("verify-backup", backups, status=2)
    assert "expected an empty root" in run("restore", _made(root, backups), root, status=2)
    for place in (backups / "new", tmp_path):
        assert "expected a root apart from the backups" in run("restore", backups, place, status=2)
    assert not (backups / "new").exists()


def test_damage_has_an_exit_status_of_its_own(ground: Ground, tmp_path: Path) -> None:
    backups = _made(ground.root, tmp_path / "backups")
    [data] = (backups / "files").glob("*_g$t/data/*")
    data.unlink()
    assert f"damaged: {data.relative_to(backups)}: expected a file, found none" in run(
        "verify-backup", backups, status=3
    )
    report = json.loads(run("verify-backup", backups, "--json", status=3))
    assert {"key": str(data.relative_to(backups)), "text": "expected a file, found none"} in report["problems"]


def test_a_damaged_record_is_named_beside_the_others(ground: Ground, tmp_path: Path) -> None:
    backups = tmp_path / "backups"
    first, second = (json.loads(run("backup", ground.root, backups, "--json"))["id"] for _ in range(2))
    record = backups / f"backups/{first}.json"
    record.write_bytes(record.read_bytes()[:-1])
    said = run("backups", backups, status=3)
    assert said.startswith(second)
    assert f"damaged: {record.as_uri()}" in said
    assert "name one with --id" in run("restore", backups, tmp_path / "other", status=3)
    run("restore", backups, tmp_path / "other", "--id", second)
    assert Ground(tmp_path / "other").ids(T) == [0, 1, 2]


def _made(root: Path, backups: Path) -> Path:
    run("backup", root, backups)
    return backups
