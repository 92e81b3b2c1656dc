"""Clients that log in with a certified provider: stock ones by what they have for it, and ours."""

from __future__ import annotations

import asyncio
import json
import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import lance
import lance_namespace
import lancedb
import orjson
import pyarrow as pa
import pytest
from lance.namespace import DynamicContextProvider
from lance_namespace import CreateNamespaceRequest
from lance_namespace.errors import UnauthenticatedError
from lancedb.remote.oauth import OAuthConfig

from namespace_client import AccessRefused, AsyncCatalog, Catalog, InvalidCall
from namespace_client import logins as client_logins
from namespace_client.logins import Login, LoginToken, find_login, keep_login
from namespace_server.cli import logins as commands
from tests.cli.commands import invoke, parsed, printed, refused
from tests.listener import listen
from tests.server.servers import ServerProcess
from tests.tokens.conftest import KEY, rules
from tests.tokens.issuer import Issuer
from tests.tokens.providers import CLIENT, SERVICE, Provider, agree

ROWS = pa.table({"id": [1, 2]})
SHORT = "urn:lance:short"
"""The resource whose tokens end after two seconds."""


@pytest.fixture(scope="module")
def server(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that accepts the tokens of the provider, to the second."""
    home = tmp_path_factory.mktemp("server")
    accepted = {"issuer": provider.url, "audience": "lance", "clock_skew": 0, "roles_claim": "groups"}
    environment = {"LANCE_NAMESPACE_TOKEN_ISSUERS": orjson.dumps([accepted]).decode()}
    with ServerProcess(home / "catalog", log=home / "log", environment=environment, keys={KEY: "operator"}) as found:
        yield found


class ShortTokens(DynamicContextProvider):
    """What pylance asks before each request. A token is used until it has half a second left."""

    def __init__(self, token_url: str) -> None:
        self._url = token_url
        self._token = ""
        self._until = 0.0

    def provide_context(self, info: dict[str, str]) -> dict[str, str]:
        if time.time() >= self._until:
            form = {"grant_type": "client_credentials", "resource": SHORT}
            answer = httpx.post(self._url, auth=SERVICE, data=form).json()
            self._token, self._until = answer["access_token"], time.time() + answer["expires_in"] - 0.5
        return {"headers.Authorization": f"Bearer {self._token}"}


def last_principal(server: ServerProcess) -> str:
    with Catalog.connect(server.url, api_key=KEY) as catalog:
        return str(catalog.history(1)[0].batches[0].principal)


def test_pylance_logs_in_by_its_context_provider(server: ServerProcess, provider: Provider) -> None:
    impl = f"{ShortTokens.__module__}.{ShortTokens.__qualname__}"
    properties = {
        "uri": server.url,
        "dynamic_context_provider.impl": impl,
        "dynamic_context_provider.token_url": f"{provider.url}/token",
    }
    namespace = lance_namespace.connect("rest", properties)
    namespace.create_namespace(CreateNamespaceRequest(id=["stock"]))
    lance.write_dataset(ROWS, namespace_client=namespace, table_id=["stock", "t"], mode="create")
    time.sleep(2.1)
    lance.write_dataset(ROWS, namespace_client=namespace, table_id=["stock", "t"], mode="append")

    assert lance.dataset(namespace_client=namespace, table_id=["stock", "t"]).count_rows() == 4
    assert last_principal(server) == f"{provider.url}#service"
    ended = {"uri": server.url, "header.authorization": f"Bearer {provider.token(resource=SHORT)}"}
    old = lance_namespace.connect("rest", ended)
    time.sleep(2.1)
    with pytest.raises(UnauthenticatedError, match="the token is not valid"):
        lance.dataset(namespace_client=old, table_id=["stock", "t"])


def test_lancedb_logs_in_by_its_configuration(server: ServerProcess, provider: Provider) -> None:
    with Catalog.connect(server.url, api_key=KEY) as catalog:
        catalog.ensure_namespace("cloud")
    config = OAuthConfig(
        provider.url, SERVICE[0], ["read"], client_secret=SERVICE[1], resource=SHORT, refresh_buffer_secs=1
    )

    async def work() -> int:
        db = await lancedb.connect_async("db://cloud", host_override=server.url, oauth_config=config)
        table = await db.create_table("t", ROWS)
        await asyncio.sleep(2.1)
        await db.create_table("u", ROWS)
        return await table.count_rows()

    assert asyncio.run(work()) == 2
    assert last_principal(server) == f"{provider.url}#service"


def test_a_client_asks_its_provider_again_when_the_keys_were_rotated(server: ServerProcess, provider: Provider) -> None:
    asked: list[str] = []

    def token() -> str:
        asked.append(provider.token())
        return asked[-1]

    with Catalog.connect(server.url, token=token) as catalog:
        caller = catalog.whoami()
        assert (caller.principal, caller.means, caller.issuer) == (f"{provider.url}#service", "token", provider.url)
        assert caller.roles == {"writers"}
        assert caller.expires_at is not None
        assert abs(caller.expires_at.timestamp() - time.time() - 3600) < 60
        catalog.ensure_namespace("before")
        assert len(asked) == 1
        provider.restart("second", "third")
        new = {"authorization": f"Bearer {provider.token()}"}
        deadline = time.monotonic() + 15  # the server looks at the keys once in five seconds at most
        while httpx.get(f"{server.url}/v1/whoami", headers=new).is_error:
            assert time.monotonic() < deadline
            time.sleep(0.5)
        catalog.ensure_namespace("after")
    assert len(asked) == 2


def test_a_transaction_outlasts_its_token(issuer: Issuer, guard: Any) -> None:
    server = guard(rules(issuer))
    asked: list[str] = []

    def token() -> str:
        asked.append(issuer.token(exp=int(server.wall()) + 100, jti=str(len(asked))))
        return asked[-1]

    with Catalog.connect(str(server.http.base_url), token=token) as catalog:
        with catalog.begin() as tx:
            tx.create("t", ROWS)
            server.wall.seconds += 200
            tx.create("u", ROWS)
        assert catalog.history(1)[0].version == tx.result.catalog_version
        assert catalog.read("u").num_rows == 2
    assert len(asked) == 2
    with (
        pytest.raises(AccessRefused, match="the token is not valid"),
        Catalog.connect(str(server.http.base_url), token=asked[0]) as catalog,
    ):
        catalog.tables()


def test_a_function_that_gives_no_token_refuses_a_change_and_leaves_no_file(issuer: Issuer, guard: Any) -> None:
    server = guard(rules(issuer))
    first = issuer.token(exp=int(server.wall()) + 100)
    given: list[Any] = [first, None, OSError("the vault is closed")]

    def token() -> str:
        found = given.pop(0)
        if isinstance(found, OSError):
            raise found
        return found  # type: ignore[no-any-return]

    def append_late(tx: Any) -> None:
        tx.append("t", ROWS)
        server.wall.seconds += 200

    with Catalog.connect(str(server.http.base_url), token=token) as catalog:
        catalog.create("t", ROWS)
        location = Path(catalog.describe("t").location.removeprefix("file://"))
        before = sorted(location.rglob("*.lance"))
        for reason in ("expected a text, found NoneType", "OSError: the vault is closed"):
            with pytest.raises(AccessRefused, match=reason), catalog.begin() as tx:
                append_late(tx)
    assert sorted(location.rglob("*.lance")) == before


def test_requests_at_one_time_share_a_new_token(issuer: Issuer, guard: Any) -> None:
    server = guard(rules(issuer))
    asked: list[str] = []

    def token() -> str:
        asked.append(issuer.token(exp=int(server.wall()) + 100, jti=str(len(asked))))
        return asked[-1]

    with Catalog.connect(str(server.http.base_url), token=token) as catalog:
        catalog.tables()
        server.wall.seconds += 200
        threads = [threading.Thread(target=catalog.tables) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(asked) == 2


def test_who_is_asked_without_a_server_or_a_key(tmp_path: Path) -> None:
    async def ask() -> Any:
        async with AsyncCatalog.connect(tmp_path / "root") as catalog:
            return await catalog.whoami()

    caller = asyncio.run(ask())
    assert (caller.principal, caller.means, caller.roles) == (None, "none", frozenset())


class TestLogin:
    @pytest.fixture
    def home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        return tmp_path / "lance-namespace"

    def test_a_user_logs_in_by_a_code(
        self, server: ServerProcess, provider: Provider, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        url = ("--url", server.url)
        show = commands._show

        def shown(code: Any) -> None:
            show(code)
            agree(code.whole_url)

        monkeypatch.setattr(commands, "_show", shown)
        monkeypatch.setattr(client_logins, "_INTERVAL", 0.2)
        assert "first time" in refused("login", *url)
        named = ("--issuer", provider.url, "--client-id", CLIENT, "--resource", SHORT)
        result = invoke("login", *url, *named, "--scope", "openid", "--scope", "offline_access", "--scope", "read")

        assert result.exit_code == 0, result.stderr
        assert result.stdout == f"{server.url}: logged in as {provider.url}#ann\n"
        assert f"Open {provider.url}/device and type " in result.stderr
        file = home / "logins.json"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        first = find_login(server.url)
        assert first is not None
        time.sleep(2.1)
        found = parsed("whoami", *url)  # renewed: the first token has ended
        assert (found["principal"], found["roles"]) == (f"{provider.url}#ann", ["writers"])
        second = find_login(server.url)
        assert second is not None
        assert {first.access_token, first.refresh_token}.isdisjoint({second.access_token, second.refresh_token})
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        printed("ls", *url)
        with Catalog.connect(server.url) as catalog:
            assert catalog.whoami().principal == f"{provider.url}#ann"
        assert parsed("whoami", *url, "--api-key", KEY)["principal"] == "operator"
        assert provider.url in printed("whoami", *url)
        assert printed("logout", *url) == f"{server.url}: logged out\n"
        assert "expected a login, found none" in refused("logout", *url)
        assert "found neither" in refused("whoami", *url)

    def test_a_token_goes_to_its_own_server_alone(self, home: Path) -> None:
        asked: list[str | None] = []

        def answer(request: Any) -> None:
            asked.append(request.headers["authorization"])
            request.send_response(200)
            request.send_header("content-length", "16")
            request.end_headers()
            request.wfile.write(b'{"means":"none"}')

        with listen(answer) as one, listen(answer) as other:
            keep_login(one, Login("https://issuer.example", CLIENT, access_token="secret-token"))
            for url in (one, other, f"{one}/"):
                with Catalog.connect(url) as catalog:
                    catalog.whoami()
        assert asked == ["Bearer secret-token", None, "Bearer secret-token"]

    def test_a_login_that_cannot_be_renewed_says_how_to_go_on(self, home: Path, issuer: Issuer) -> None:
        keep_login("http://server", Login(issuer.url, CLIENT, access_token="t", expires_at=1.0))
        token = LoginToken("http://server")
        assert token() == "t"
        with pytest.raises(AccessRefused, match="log in with: lance-namespace login"):
            token()
        keep_login("http://server", Login(issuer.url, CLIENT, access_token="t", refresh_token="r", expires_at=1.0))
        with pytest.raises(AccessRefused, match="token_endpoint"):
            LoginToken("http://server")()
        issuer.answers["/.well-known/openid-configuration"] = (200, b'{"issuer":"https://evil.example"}')
        with pytest.raises(AccessRefused, match=r"it says that it is 'https://evil\.example'"):
            LoginToken("http://server")()

    def test_a_new_login_has_no_refresh_token_of_the_user_before(self, issuer: Issuer) -> None:
        answers = {
            "/.well-known/openid-configuration": {
                "issuer": issuer.url,
                "device_authorization_endpoint": f"{issuer.url}/device",
                "token_endpoint": f"{issuer.url}/token",
            },
            "/device": {"device_code": "d", "verification_uri": "https://issuer.example", "user_code": "u"},
            "/token": {"access_token": "of bob", "expires_in": 60},
        }
        issuer.answers = {path: (200, json.dumps(answer).encode()) for path, answer in answers.items()}
        before = Login("https://other.example", CLIENT, access_token="of ann", refresh_token="of ann", expires_at=1.0)
        found = replace(before, issuer=issuer.url).begun(lambda _: None, lambda _: None)
        assert (found.access_token, found.refresh_token) == ("of bob", None)
        with pytest.raises(AccessRefused, match="nothing to renew it with"):
            found.renewed()

    def test_a_token_is_asked_for_over_tls_alone(self) -> None:
        with pytest.raises(InvalidCall, match="expected https"):
            Login("http://192.0.2.1", CLIENT).begun(print)

    @pytest.mark.parametrize(
        "login",
        ["1", "{}", '{"issuer": "i", "client_id": null}', '{"issuer": "i", "client_id": "c", "expires_at": "soon"}'],
    )
    def test_a_file_of_logins_that_is_damaged_is_named(self, home: Path, login: str) -> None:
        home.mkdir(parents=True)
        (home / "logins.json").write_text(f'{{"http://127.0.0.1:1": {login}}}')
        with pytest.raises(InvalidCall, match=r"logins\.json: it cannot be read"):
            Catalog.connect("http://127.0.0.1:1")

    @pytest.mark.parametrize("option", ["--issuer", "--client-id", "--scope", "--audience", "--resource"])
    def test_a_login_has_texts(self, option: str) -> None:
        assert f"{option}: expected a text, found none" in refused("login", "--url", "http://127.0.0.1:1", option, " ")

    @pytest.mark.parametrize("option", ["--api-key", "--token"])
    def test_a_login_is_by_no_other_credentials(self, option: str) -> None:
        assert f"{option}: expected none: login gets" in refused("login", "--url", "http://127.0.0.1:1", option, "x")

    def test_a_root_has_no_login(self, tmp_path: Path) -> None:
        for command in ("login", "logout"):
            assert "goes with a server" in refused(command, "--root", str(tmp_path))
