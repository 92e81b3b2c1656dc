"""Connecting: targets, keys, the environment, profiles, and the end of a connection."""

# ruff: noqa: PT012 - leaving the block is what raises

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from namespace_client import (
    AccessRefused,
    Catalog,
    CatalogClosed,
    CatalogUnreachable,
    ClientError,
    CommitRejected,
    InvalidCall,
)
from namespace_client.connections import find_connection, profiles_path
from namespace_client.http import CatalogServer
from namespace_server.directory.namespace import DirectoryNamespace
from tests.client.scene import Scene, rows
from tests.listener import listen
from tests.server.servers import ServerProcess

HOST = "http://catalog.example.org"
PROFILES = f"""
[shop]
url = "{HOST}"
api_key = "shop-key"
namespace = "eu"
[shop.storage_options]
region = "eu-west-1"

[bare]
token = "bare-token"

[wrong]
password = "x"
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment whose profiles are those above."""
    environment = {"XDG_CONFIG_HOME": str(tmp_path), "APPDATA": str(tmp_path)}
    path = profiles_path(environment)
    path.parent.mkdir()
    path.write_text(PROFILES)
    return environment


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that knows one key."""
    home = tmp_path_factory.mktemp("guarded")
    # Variables of clients stand beside those of a server.
    beside = {"LANCE_NAMESPACE_URL": HOST, "LANCE_NAMESPACE_TOKEN": "t", "LANCE_NAMESPACE_PROFILE": "p"}
    keys = {"good-key": "ada"}
    with ServerProcess(home / "catalog", log=home / "log", environment=beside, keys=keys) as server:
        yield server


class TestTargets:
    @pytest.mark.parametrize("target", ["127.0.0.1:2333", "localhost:80", "catalog.example.org:2333/x", "[::1]:2333"])
    def test_a_host_without_a_scheme_is_refused_with_a_hint(self, target: str) -> None:
        with pytest.raises(InvalidCall, match=r"did you mean http://"):
            Catalog.connect(target)

    @pytest.mark.parametrize("target", ["nosuch://x", "s3://", "ftp://host/x", "/\0"])
    def test_what_cannot_be_opened_is_an_error_of_the_client_that_names_it_once(self, target: str) -> None:
        with pytest.raises(ClientError) as refused:
            Catalog.connect(target).access.state()
        assert str(refused.value).startswith(f"{target}: ")
        assert f"{target}: {target}" not in str(refused.value)
        assert "construct namespace impl" not in str(refused.value)

    def test_a_path_is_a_root(self, tmp_path: Path) -> None:
        with Catalog.connect(tmp_path / "root", namespace="shop") as catalog:
            catalog.ensure_namespace()
            assert catalog.namespaces(()) == [("shop",)]

    def test_a_directory_with_the_name_of_a_host_is_a_root(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "data:1").mkdir()
        with Catalog.connect("data:1") as catalog:
            assert catalog.access.state().version == 0

    def test_nothing_at_all(self) -> None:
        with pytest.raises(InvalidCall, match="no catalog is named"):
            find_connection(environment={})

    def test_keys_are_for_servers(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidCall, match="takes no api_key"):
            Catalog.connect(tmp_path, api_key="k")
        with pytest.raises(InvalidCall, match="headers: a catalog in this process takes none"):
            Catalog.connect(tmp_path, headers={"x-api-key": "k"})

    @pytest.mark.parametrize("name", ["api_key", "token"])
    def test_what_is_no_key_is_refused_and_not_shown(self, name: str) -> None:
        for wrong in ("", " ", "se\ncret", "gehe\u00edm", b"secret", 3):
            with pytest.raises(InvalidCall, match=rf"^{name}: expected printable characters of ASCII, found \w+$") as e:
                Catalog.connect("http://127.0.0.1:9", **{name: wrong})
            assert "cret" not in str(e.value)
        with pytest.raises(InvalidCall, match="api_key, token: expected one of them"):
            Catalog.connect("http://127.0.0.1:9", api_key="a", token="b")

    def test_a_namespace_that_is_open_takes_no_options_of_a_connection(self, tmp_path: Path) -> None:
        namespace = DirectoryNamespace(root=str(tmp_path))
        for option in ("profile", "api_key", "token", "ca"):
            with pytest.raises(InvalidCall, match="takes no api_key, no token, no ca and no profile"):
                Catalog.connect(namespace, **{option: "x"})
        with pytest.raises(InvalidCall, match="headers: a catalog in this process takes none"):
            Catalog.connect(namespace, headers={"a": "b"})
        namespace.catalog.close()

    @pytest.mark.parametrize("wrong", [{"timeout": 0}, {"timeout": -1}, {"timeout": float("nan")}, {"retries": -1}])
    def test_bounds_of_requests(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(InvalidCall, match="expected more than 0 seconds, and 0 or more retries"):
            Catalog.connect("http://127.0.0.1:9", **wrong)

    @pytest.mark.parametrize("namespace", ["shop", ["shop"], ("shop",)])
    def test_a_default_namespace_is_a_name_or_its_parts(self, scene: Scene, namespace: str | list[str]) -> None:
        with Catalog.connect(scene.target, namespace=namespace) as catalog:
            catalog.ensure_namespace()
            assert ("shop",) in catalog.namespaces(())


class TestSources:
    def test_arguments_go_before_the_environment_and_that_before_a_profile_it_names(
        self, environment: dict[str, str]
    ) -> None:
        environment |= {"LANCE_NAMESPACE_URL": "http://env", "LANCE_NAMESPACE_API_KEY": "env-key"}
        found = find_connection(environment=environment)
        assert (found.target, found.headers) == ("http://env", {"x-api-key": "env-key"})
        found = find_connection(environment=environment | {"LANCE_NAMESPACE_PROFILE": "shop"})
        assert (found.target, found.headers, found.namespace) == ("http://env", {"x-api-key": "env-key"}, "eu")
        found = find_connection(environment=environment, token="mine")
        assert found.headers == {"authorization": "Bearer mine"}

    def test_a_profile_that_is_asked_for_goes_before_the_environment(self, environment: dict[str, str]) -> None:
        environment |= {"LANCE_NAMESPACE_URL": "http://env", "LANCE_NAMESPACE_API_KEY": "env-key"}
        found = find_connection(profile="shop", environment=environment)
        assert (found.target, found.headers) == (HOST, {"x-api-key": "shop-key"})
        assert found.storage_options == {"region": "eu-west-1"}

    @pytest.mark.parametrize("other", ["http://other.example.org", "http://catalog.example.org.evil.example"])
    def test_a_key_is_sent_to_no_other_server_than_the_one_that_it_is_for(
        self, environment: dict[str, str], other: str
    ) -> None:
        environment |= {"LANCE_NAMESPACE_URL": HOST, "LANCE_NAMESPACE_API_KEY": "env-key"}
        assert find_connection(other, environment=environment).headers == {}
        assert find_connection(other, profile="shop", environment=environment).headers == {}
        assert find_connection(f"{HOST}/", environment=environment).headers == {"x-api-key": "env-key"}

    def test_a_key_without_a_server_is_for_any(self, environment: dict[str, str]) -> None:
        assert find_connection(HOST, environment={"LANCE_NAMESPACE_TOKEN": "t"}).headers == {
            "authorization": "Bearer t"
        }
        assert find_connection(HOST, profile="bare", environment=environment).headers == {
            "authorization": "Bearer bare-token"
        }

    @pytest.mark.parametrize(
        ("profile", "reason"), [("absent", "which has bare, shop, wrong"), ("wrong", "found password")]
    )
    def test_profiles_that_are_none(self, environment: dict[str, str], profile: str, reason: str) -> None:
        with pytest.raises(InvalidCall, match=reason):
            find_connection(profile=profile, environment=environment)

    @pytest.mark.parametrize("text", ["[shop", "shop = 1", "[shop]\nurl = 3", "[shop]\nstorage_options = 1"])
    def test_files_that_are_none(self, environment: dict[str, str], text: str) -> None:
        profiles_path(environment).write_text(text)
        with pytest.raises(InvalidCall, match=r"profiles\.toml"):
            find_connection(profile="shop", environment=environment)

    def test_there_need_be_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidCall, match="does not exist"):
            find_connection(profile="shop", environment={"XDG_CONFIG_HOME": str(tmp_path), "APPDATA": str(tmp_path)})

    def test_secrets_are_in_no_text(self, environment: dict[str, str]) -> None:
        assert "shop-key" not in repr(find_connection(profile="shop", environment=environment))


class TestAccess:
    def test_a_key_and_a_token_name_the_principal_in_the_history(self, guarded: ServerProcess) -> None:
        for given in ({"api_key": "good-key"}, {"token": "good-key"}):
            with Catalog.connect(guarded.url, **given) as catalog:
                catalog.create_namespace(next(iter(given)))
                [batch] = catalog.history(1)[0].batches
                assert batch.principal == "ada"

    def test_without_a_known_key_reads_and_batches_raise_access_refused(self, guarded: ServerProcess) -> None:
        with Catalog.connect(guarded.url, api_key="good-key") as known:
            known.create("t", rows(1))
        with Catalog.connect(guarded.url, api_key="bad") as catalog:
            with pytest.raises(AccessRefused) as read:
                catalog.tables()
            with pytest.raises(AccessRefused) as change:
                catalog.drop("t")
            with pytest.raises(AccessRefused), catalog.begin() as tx:
                tx.append("t", rows(2))
        for refused in (read, change):
            assert (refused.value.code, refused.value.status) == (16, 401)
            assert not isinstance(refused.value, CommitRejected)

    def test_a_batch_whose_key_ended_meanwhile_is_refused_and_leaves_no_file(self, guarded: ServerProcess) -> None:
        with Catalog.connect(guarded.url, api_key="good-key") as catalog:
            catalog.create("u", rows(1))
            location = Path(catalog.describe("u").location.removeprefix("file://"))
            before = sorted(location.rglob("*.lance"))
            with pytest.raises(AccessRefused), catalog.begin() as tx:
                tx.append("u", rows(2))
                assert sorted(location.rglob("*.lance")) != before
                catalog.access.client._client.headers["x-api-key"] = "ended"
        assert sorted(location.rglob("*.lance")) == before

    @pytest.mark.parametrize("status", [401, 403])
    def test_a_proxy_that_refuses_is_told_from_a_server_that_is_not_there(self, status: int) -> None:
        def refuse(request: BaseHTTPRequestHandler) -> None:
            request.send_response(status)
            request.send_header("content-length", "0")
            request.end_headers()

        with (
            listen(refuse) as url,
            CatalogServer(url) as server,
            pytest.raises(AccessRefused, match=str(status)) as refused,
        ):
            server.state()
        assert refused.value.status == status


class TestTheEnd:
    def test_a_closed_catalog_reads_and_commits_nothing_and_says_so(self, tmp_path: Path) -> None:
        catalog = Catalog.connect(tmp_path / "root")
        catalog.create("t", rows(1))
        tx = catalog.begin()
        tx.__enter__()
        tx.append("t", rows(2))
        catalog.close()
        with pytest.raises(CatalogClosed, match="was closed; nothing was sent"):
            tx.commit()
        with pytest.raises(CatalogClosed):
            catalog.tables()
        with pytest.raises(CatalogClosed):
            catalog.create("u", rows(1))
        with Catalog.connect(tmp_path / "root") as again:
            assert again.read("t").num_rows == 1
        catalog.close()

    def test_a_closed_connection_to_a_server(self, server: ServerProcess) -> None:
        catalog = Catalog.connect(server.url)
        catalog.close()
        with pytest.raises(CatalogClosed, match=server.url):
            catalog.tables(())
        assert issubclass(CatalogClosed, CatalogUnreachable)
