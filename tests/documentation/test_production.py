"""The commands of the pages about production are typed, in their order, beside a server; some cannot be run here."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from namespace_client import Catalog
from tests.cli.commands import invoke
from tests.documentation.pages import REPOSITORY, commands, literals
from tests.server.servers import ServerProcess, send
from tests.waiting import until

GUIDE = REPOSITORY / "docs" / "guide"
PRODUCTION, BACKUP, RUNNING, MONITORING, DEPLOYMENT = (
    GUIDE / f"{name}.md" for name in ("production", "backup", "operations", "monitoring", "deployment")
)
WRITTEN_DIGEST = "3f1c"
WRITTEN_ID = "20261126T110000123-6c4972d8"
TYPED = {
    *(
        f"lance-namespace {name}"
        for name in ("backup", "backups", "check", "doctor", "keys", "log", "restore", "serve")
    ),
    "lance-namespace verify-backup",
    "rm",
    "touch",
}
NOT_RUN = {
    "docker build": "needs a Docker daemon; tests/deploy/test_container.py checks the image's files",
    "docker compose": "needs a Docker daemon; tests/deploy/test_container.py checks the composition",
    "docker run": "needs a Docker daemon",
    "cd": "goes before `docker compose`",
    "cp": "goes before `docker compose`",
    "kubectl create": "needs a cluster",
    "helm install": "needs a cluster; tests/deploy/test_tools.py renders the chart",
    "chown": "gives a file to the user of the container",
    "useradd": "makes a user of the machine",
    "python3 -m": "makes an environment in /opt",
    "/opt/lance-namespace/bin/pip install": "installs into /opt, with what is needed from a package index",
    "install": "writes to /etc; tests/deploy/test_systemd.py checks the unit",
    "systemctl daemon-reload": "needs systemd as the first process",
    "systemctl enable": "needs systemd as the first process",
}
"""Why a command of the pages is not run."""


def lines(page: Path) -> list[str]:
    """The commands in the blocks of a page, without comments."""
    return [line for line in commands(page) if shlex.split(line, comments=True)]


def scheduled() -> list[str]:
    """The commands that the page about production names in its text, with their arguments."""
    return [text for text in literals(PRODUCTION) if re.fullmatch(r"lance-namespace \S+( ROOT| DESTINATION)+", text)]


def name_of(line: str) -> str:
    """The program, and its subcommand if it has any."""
    words = [word for word in shlex.split(line, comments=True) if not re.match(r"[A-Z_]+=", word)]
    several = words[0].rpartition("/")[2] in {
        "docker",
        "helm",
        "kubectl",
        "lance-namespace",
        "pip",
        "python3",
        "systemctl",
    }
    return " ".join(words[: 2 if several else 1])


def test_every_command_is_typed_or_has_a_reason() -> None:
    written = [line for page in (PRODUCTION, BACKUP, RUNNING, MONITORING, DEPLOYMENT) for line in lines(page)]

    assert len(scheduled()) == 3
    assert "lance-namespace log" in literals(PRODUCTION)
    assert {name_of(line) for line in [*written, *scheduled(), "lance-namespace log"]} == TYPED | NOT_RUN.keys()


def key_commands() -> list[str]:
    """That makes a key, that lists the keys, that removes one."""
    add, listed, remove = (line for line in lines(RUNNING) if name_of(line) == "lance-namespace keys")
    return [add, listed, remove]


class Site:
    """A catalog that is served as the pages have it, with a table, and directories in place of the buckets."""

    key: str
    server: ServerProcess

    def __init__(self, home: Path) -> None:
        self.switch = home / "read-only"
        self.places = {
            "s3://bucket/catalog": str(home / "catalog"),
            "s3://bucket/catalog-2": str(home / "catalog-2"),
            "s3://elsewhere/catalog-backups": str(home / "backups"),
            "s3://elsewhere/catalog-2-backups": str(home / "backups-2"),
            "/srv/catalog": str(home / "catalog"),
            "/etc/lance-namespace/keys.toml": str(home / "keys.toml"),
            "ROOT": str(home / "catalog"),
            "DESTINATION": str(home / "backups"),
        }

    def asked(self, method: str, path: str, key: str | None = None) -> int:
        """The status of a request with a key, by default the first one."""
        headers = {"x-api-key": key or self.key, "content-type": "application/json"}
        return send(self.server.url, method, path, b"{}" if method == "POST" else b"", headers).status

    @property
    def root(self) -> Path:
        return Path(self.places["ROOT"])

    def type(self, line: str, status: int = 0) -> str:
        """A command of the pages with the places of this machine; what it prints."""
        _, *words = (self.places.get(word, word) for word in shlex.split(line, comments=True))
        done = invoke(*words)
        assert done.exit_code == status, (line, done.output)
        return done.stdout


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Its key is made by the command of the page."""
    site = Site(tmp_path)
    site.root.mkdir()
    site.key = site.type(key_commands()[0]).strip()
    settings = {"API_KEYS_FILE": str(tmp_path / "keys.toml"), "READ_ONLY_FILE": str(site.switch)}
    environment = {f"LANCE_NAMESPACE_{name}": value for name, value in settings.items()}
    with ServerProcess(tmp_path / "catalog", log=tmp_path / "log", environment=environment) as server:
        site.server = server
        with Catalog.connect(server.url, api_key=site.key) as catalog:
            catalog.create_namespace("shop")
            catalog.create("shop.orders", pa.table({"id": [1, 2, 3]}))
        yield site


@pytest.mark.slow
def test_the_commands_before_and_on_a_schedule(site: Site) -> None:
    for line in [*lines(PRODUCTION), *(line for line in lines(RUNNING) if "namespace check" in line)]:
        site.type(line)
    for line in scheduled():
        site.type(line)
    log = site.type("lance-namespace log --root ROOT")
    assert "ann" in log
    assert "shop.orders" in log

    next(site.root.rglob("*shop$orders/data/*.lance")).unlink()
    site.type("lance-namespace doctor ROOT", status=3)
    assert "status 1 means warnings, status 3 damage" in PRODUCTION.read_text()


@pytest.mark.slow
def test_the_drill(site: Site, tmp_path: Path) -> None:
    """The block of the recovery follows a backup; its server serves the restored root, and a table is read there."""
    served = 0
    for line in lines(BACKUP):
        if line.endswith("lance-namespace serve"):
            assert line.startswith("LANCE_NAMESPACE_ROOT=s3://bucket/catalog-2 ")
            root = site.places["s3://bucket/catalog-2"]
            with ServerProcess(root, log=tmp_path / "log-2") as server, Catalog.connect(server.url) as catalog:
                assert catalog.read("shop.orders")["id"].to_pylist() == [1, 2, 3]
            served += 1
        else:
            site.type(line)
            [made] = json.loads(site.type("lance-namespace backups s3://elsewhere/catalog-backups --json"))
            site.places[WRITTEN_ID] = made["id"]
    assert served == 1


@pytest.mark.slow
def test_a_server_with_the_settings_of_a_file(site: Site, tmp_path: Path) -> None:
    """The command of the page, with `--port 0`, and settings that need no certificate."""
    [line] = [line for line in lines(RUNNING) if "namespace serve" in line]
    config = tmp_path / "server.toml"
    config.write_text('durability = "none"\n')
    site.places["/etc/lance-namespace/server.toml"] = str(config)
    _, *words = (site.places.get(word, word) for word in shlex.split(line))
    command = [sys.executable, "-m", "namespace_server", *words, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert "http://127.0.0.1:" in process.stdout.readline()
        finally:
            process.terminate()
    assert process.returncode in {0, -15}


@pytest.mark.slow
def test_keys_are_rotated_while_the_server_runs(site: Site) -> None:
    add, listed, remove = key_commands()
    digest = hashlib.sha256(site.key.encode()).hexdigest()
    site.places[WRITTEN_DIGEST] = digest[:12]
    new = site.type(add).strip()
    assert site.type(listed).count("ann ") == 2
    until(lambda: site.asked("GET", "/v1/table", new) == 200, 30)
    assert site.asked("GET", "/v1/table") == 200
    site.type(remove)
    until(lambda: site.asked("GET", "/v1/table") == 401, 30)
    assert site.asked("GET", "/v1/table", new) == 200
    assert digest[:12] not in site.type(listed)


@pytest.mark.slow
def test_maintenance_mode(site: Site) -> None:
    touch, remove = lines(MONITORING)
    for line, status in ((touch, 503), (remove, 200)):
        subprocess.run(["bash", "-c", line.replace("/run/lance-namespace/read-only", str(site.switch))], check=True)
        assert site.asked("POST", f"/v1/namespace/n{status}/create") == status
        assert site.asked("GET", "/health/ready") == 200
