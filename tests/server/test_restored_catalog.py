"""A catalog that is backed up while a server commits to it, lost, and restored: served again, over HTTP."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from typer.testing import CliRunner

from namespace_server.cli import cli
from tests.server.servers import ServerProcess
from tests.server.stock import Stock, rows


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(cli, [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_the_disaster_drill(tmp_path: Path) -> None:
    root, backups, other = tmp_path / "root", tmp_path / "backups", tmp_path / "elsewhere/other"
    with ServerProcess(root, log=tmp_path / "log") as server:
        stock = Stock(server.url, root)
        table = [*stock.make_namespace("shop"), "orders"]
        stock.write(table, rows(0, 3), "create")
        run("backup", root, backups)
        stock.write(table, rows(3, 6))
        run("backup", root, backups)
    shutil.rmtree(root)
    assert "sound" in run("verify-backup", backups)
    run("restore", backups, other)
    assert json.loads(run("doctor", other, "--json"))["findings"] == []
    with ServerProcess(other, log=tmp_path / "log2") as server:
        stock = Stock(server.url, other)
        assert stock.ids(table) == [0, 1, 2, 3, 4, 5]
        assert stock.ids(table, 1) == [0, 1, 2]
        stock.write(table, rows(6, 9))
        assert stock.ids(table) == list(range(9))
