"""A certified provider of OpenID Connect as a process of this machine, and a user who agrees in a browser."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import urljoin

import httpx
import pytest
from joserfc.jwk import RSAKey

REPOSITORY = Path(__file__).resolve().parents[2]
SERVICE = ("service", "service-secret")
"""The client that has a secret, and gets tokens of its own."""
CLIENT = "command-line"
"""The client that has none, and gets tokens of users."""
_DIRECTORY = REPOSITORY / "tests" / "tokens"


class Provider:
    """A provider with some keys. `restart` begins it anew at its URL, with others."""

    def __init__(self, module: str, home: Path) -> None:
        self._module = module
        self._keys = home / "keys.json"
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[str] | None = None

    def start(self, *kids: str) -> None:
        """Begin with new keys of these ids. The first one signs."""
        keys = [RSAKey.generate_key(2048, {"kid": kid, "use": "sig", "alg": "RS256"}) for kid in kids]
        self._keys.write_text(json.dumps({"keys": [key.as_dict(private=True) for key in keys]}))
        command = ["node", str(_DIRECTORY / "provider.mjs"), self._module, str(self.port), str(self._keys)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert process.stdout is not None
        assert process.stdout.readline().strip() == self.url
        self._process = process

    def stop(self) -> None:
        """End it."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()

    def restart(self, *kids: str) -> None:
        """Begin anew with other keys."""
        self.stop()
        self.start(*kids)

    def token(self, *, resource: str | None = None) -> str:
        """A token of the service."""
        form = {"grant_type": "client_credentials", "scope": "read", "resource": resource or "urn:lance"}
        answer = httpx.post(f"{self.url}/token", auth=SERVICE, data=form)
        return str(answer.json()["access_token"])


@pytest.fixture(scope="session")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    """A provider that ends with the session."""
    script = REPOSITORY / "scripts" / "oidc_provider.sh"
    installed = subprocess.run([script], capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"oidc-provider: {installed.stderr.strip().splitlines()[-1]}")
    found = Provider(installed.stdout.strip(), tmp_path_factory.mktemp("provider"))
    found.start("first")
    yield found
    found.stop()


def agree(url: str, user: str = "ann") -> None:
    """Open a verification address as a browser does, log in, and agree to what is asked."""
    with httpx.Client(follow_redirects=True) as browser:
        page = browser.get(url)
        for _ in range(6):
            forms = re.findall(r"<form[^>]*>.*?</form>", page.text, re.DOTALL)
            if not forms:
                return
            action = re.search(r'action="([^"]*)"', forms[0])
            assert action is not None
            page = browser.post(urljoin(str(page.url), unescape(action[1])), data=_filled(forms[0], user))
        raise AssertionError(page.text)


def _filled(form: str, user: str) -> dict[str, str]:
    fields = {}
    for tag in re.findall(r"<(?:input|button)[^>]*>", form):
        name, value = (re.search(rf'{each}="([^"]*)"', tag) for each in ("name", "value"))
        if name is not None:
            fields[name[1]] = "" if value is None else unescape(value[1])
    return fields | {name: user for name in ("login", "password") if name in fields}
