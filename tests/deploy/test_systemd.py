"""The unit for systemd is one, and its times and paths fit the server."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from namespace_server.serving import _LAST_WORK
from namespace_server.settings import Settings
from tests.cli.commands import invoke
from tests.server.servers import REPOSITORY

UNIT = REPOSITORY / "deploy/systemd/lance-namespace.service"
DELIVERIES = REPOSITORY / "deploy/systemd/lance-namespace-deliver.service"
DEPLOYMENT = REPOSITORY / "deploy/kubernetes/deliver.yaml"

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")


@pytest.fixture
def unit() -> configparser.SectionProxy:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(UNIT)
    return parser["Service"]


@needs_systemd
@pytest.mark.parametrize("file", [UNIT, DELIVERIES], ids=lambda file: file.name)
def test_systemd_takes_it(tmp_path: Path, file: Path) -> None:
    here = Path(sys.executable).with_name("lance-namespace")
    copy = tmp_path / file.name
    copy.write_text(re.sub(r"^ExecStart=\S+", f"ExecStart={here}", file.read_text(), flags=re.MULTILINE))
    verified = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")
    # 0 to 10; a unit without any restriction has 9.6.
    subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=35", copy], check=True, text=True)


def test_the_server_ends_before_systemd_ends_it(unit: configparser.SectionProxy) -> None:
    assert float(unit["TimeoutStopSec"]) > Settings.model_fields["shutdown_timeout"].default + _LAST_WORK


def test_it_may_open_a_file_for_each_connection(unit: configparser.SectionProxy) -> None:
    assert int(unit["LimitNOFILE"]) > 2 * Settings.model_fields["max_connections"].default


def test_its_command_is_one(unit: configparser.SectionProxy) -> None:
    program, *arguments = unit["ExecStart"].split()
    assert program.endswith("/lance-namespace")
    # The file is not there: it is the file that is missed, and not an option.
    told = subprocess.run(
        [sys.executable, "-m", "namespace_server", *arguments],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        check=False,
    )
    assert told.returncode == 2
    assert "no settings file /etc/lance-namespace/server.toml" in told.stderr


def test_the_commands_that_deliver_take_their_options() -> None:
    """Of the unit, and of the pod: without a secret they are refused for that alone."""
    [unit] = re.findall(r"^ExecStart=\S+ (.*)$", DELIVERIES.read_text(), flags=re.MULTILINE)
    [pod] = yaml.safe_load(DEPLOYMENT.read_text())["spec"]["template"]["spec"]["containers"]
    for arguments in (unit.replace("${WEBHOOK_URL}", "https://hooks.example.com/lance").split(), pod["args"]):
        told = invoke(*arguments, "--url", "http://127.0.0.1:1")
        assert told.exit_code == 2
        assert "expected one in LANCE_WEBHOOK_SECRET" in told.stderr
