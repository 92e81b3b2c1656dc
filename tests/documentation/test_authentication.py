"""The page about authentication runs against a server with keys; what clients show without one is asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import lance
import lance_namespace
import lancedb
import pytest
from lance_namespace.errors import UnauthenticatedError

from namespace_client import AccessRefused, Catalog
from namespace_client.http import CatalogServer
from spark_catalog.errors import ServerUnreachable
from spark_catalog.requirements import check_server
from tests.cli.commands import invoke, printed
from tests.documentation.pages import REPOSITORY, blocks
from tests.server.servers import NO_KEY, UNKNOWN_KEY, ServerProcess

WRITTEN_URL = "http://127.0.0.1:2333"
KEY = "secret-key"
PAGE = REPOSITORY / "docs" / "guide" / "authentication.md"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with the key of the page, on which the Python blocks have run."""
    home = tmp_path_factory.mktemp("guarded")
    with ServerProcess(home / "catalog", log=home / "log", keys={KEY: "ada"}) as server:
        script = home / "page.py"
        script.write_text("\n".join(blocks(PAGE, "python")).replace(WRITTEN_URL, server.url))
        run([sys.executable, str(script)], home)
        yield server


def run(command: list[str], home: Path) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LANCE_NAMESPACE_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    environment = kept | {"PATH": path, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_commands_run(guarded: ServerProcess, tmp_path: Path) -> None:
    shown = run(["bash", "-ec", "\n".join(blocks(PAGE, "sh")).replace(WRITTEN_URL, guarded.url)], tmp_path)

    assert shown.count("guarded.runs") == 1
    assert json.loads(shown.splitlines()[-1])["tables"] == ["guarded$runs"]
    assert "guarded.runs" in printed("ls", "guarded", "--url", guarded.url, "--token", KEY)


@pytest.mark.slow
@pytest.mark.parametrize("headers", [{"x-api-key": KEY}, {"authorization": f"Bearer {KEY}"}])
def test_graph_writes_send_the_headers_of_their_server(guarded: ServerProcess, headers: dict[str, str]) -> None:
    with CatalogServer(guarded.url, headers=headers) as server:
        server.ensure_namespace(["guarded"])
        assert server.table(("guarded", "runs")) is not None


@pytest.mark.slow
@pytest.mark.parametrize(("headers", "message"), [({}, NO_KEY), ({"x-api-key": "wrong-key"}, UNKNOWN_KEY)])
def test_what_clients_show_without_a_known_key(
    guarded: ServerProcess, headers: Mapping[str, str], message: str
) -> None:
    url, key = guarded.url, headers.get("x-api-key")
    properties = {"uri": url} | {f"header.{name}": value for name, value in headers.items()}
    namespace = lance_namespace.connect("rest", properties)
    with pytest.raises(UnauthenticatedError, match=message):
        lance.dataset(namespace_client=namespace, table_id=["guarded", "runs"])
    with pytest.raises(RuntimeError, match=message):
        lancedb.connect_namespace("rest", properties).open_table("runs", namespace_path=["guarded"])
    with Catalog.connect(url, api_key=key) as catalog, pytest.raises(AccessRefused, match=message):
        catalog.tables("guarded")
    with CatalogServer(url, headers=dict(headers)) as server, pytest.raises(AccessRefused, match=message):
        server.ensure_namespace(["guarded"])
    with pytest.raises(ServerUnreachable, match=f"found status 401: .*{message}"):
        check_server(url, key)
    text = PAGE.read_text("utf-8")
    command = invoke("ls", "--url", url, *(["--api-key", key] if key else []))
    assert f"exit status {command.exit_code} and the message" in text
    assert message in command.stderr
    assert f'"{message}"' in text.replace("\n", " ")
