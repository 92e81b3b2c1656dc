"""The page about logins runs against a certified provider and a server with its settings."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from namespace_client import logins
from namespace_server.cli import logins as login_commands
from namespace_server.rest.access_tokens import MAX_TOKEN
from namespace_server.rest.issuer_keys import _FRESH, _PAUSE, _USABLE
from namespace_server.rest.principals import TokenIssuer
from tests.cli.commands import invoke
from tests.documentation.pages import REPOSITORY, blocks, commands
from tests.server.servers import ServerProcess
from tests.tokens.providers import Provider, agree

PAGE = REPOSITORY / "docs" / "guide" / "tokens.md"
WRITTEN_ISSUER = "https://login.example.org/realms/data"
WRITTEN_URL = "http://127.0.0.1:2333"


@pytest.fixture(scope="module")
def server(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with the settings of the page."""
    home = tmp_path_factory.mktemp("server")
    [settings] = blocks(PAGE, "toml")
    (home / "server.toml").write_text(settings.replace(WRITTEN_ISSUER, provider.url))
    with ServerProcess(home / "catalog", log=home / "log", config=home / "server.toml") as found:
        yield found


def test_the_programs_of_the_page_run(server: ServerProcess, provider: Provider, tmp_path: Path) -> None:
    script = "\n".join(blocks(PAGE, "python")).replace(WRITTEN_URL, server.url).replace(WRITTEN_ISSUER, provider.url)
    (tmp_path / "page.py").write_text(script)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LANCE_NAMESPACE_")}
    done = subprocess.run(
        [sys.executable, "page.py"],
        cwd=tmp_path,
        env=kept | {"PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"principal='{provider.url}#service', means='token'" in done.stdout
    assert "roles=frozenset({'writers'})" in done.stdout


def test_the_commands_of_the_page_run(
    server: ServerProcess, provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown(code: Any) -> None:
        agree(code.whole_url)

    monkeypatch.setattr(login_commands, "_show", shown)
    monkeypatch.setattr(logins, "_INTERVAL", 0.2)
    environment = {"XDG_CONFIG_HOME": str(tmp_path)}
    ran = []
    for line in commands(PAGE):
        words = shlex.split(line.replace(WRITTEN_URL, server.url).replace(WRITTEN_ISSUER, provider.url))
        if not words:
            continue
        if words[0] == "export":
            environment |= dict([words[1].split("=", 1)])
            continue
        assert words[0] == "lance-namespace"
        result = invoke(*words[1:], **environment)
        assert result.exit_code == 0, result.stderr
        ran.append((words[1], result.stdout))
    assert [name for name, _ in ran] == ["login", "whoami", "ls", "logout"]
    assert f"{provider.url}#ann" in ran[0][1]
    assert "writers" in ran[1][1]


def test_the_page_knows_the_fields_and_the_bounds() -> None:
    text = PAGE.read_text("utf-8")
    fields = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) | {"issuer", "audience"}
    assert fields == TokenIssuer.model_fields.keys()
    assert (MAX_TOKEN, _FRESH, _PAUSE, _USABLE) == (16 << 10, 300, 5, 3600)
    for words in ("16 KiB", "every five minutes", "within five seconds", "for an hour"):
        assert words in text.replace("\n", " ")
    array = re.search(r"LANCE_NAMESPACE_TOKEN_ISSUERS='([^']*)'", text)
    assert array is not None
    assert orjson.loads(array[1])[0].keys() == {"issuer", "audience"}
