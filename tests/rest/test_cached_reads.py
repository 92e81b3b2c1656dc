"""Reads over HTTP: when an answer may come from the response cache."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from lance_namespace.errors import ServiceUnavailableError

from namespace_server.access.subjects import ANONYMOUS_SUBJECT
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.rest.identity import Authenticator
from namespace_server.rest.service import CatalogService
from tests.rest.conftest import EchoCatalog


@pytest.mark.slow
class TestOverHttp:
    """A server with cached answers, and a second one on the same root."""

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        return tmp_path / "catalog"

    @pytest.fixture
    def url(self, serve: Any, root: Path) -> str:
        url: str = serve(
            DirectoryNamespace(root=str(root), durability="none"), keys={"key-no-1": "ann", "key-no-2": "bob"}
        ).url
        for path, body in (("/v1/namespace/a/create", {}), ("/v1/table/a$t/declare", {})):
            assert httpx.post(url + path, json=body, headers={"x-api-key": "key-no-1"}).status_code == 200
        return url

    def describe(
        self, url: str, table: str = "a$t", delimiter: str = "$", key: str | None = "key-no-1", **headers: str
    ) -> httpx.Response:
        given = headers if key is None else {"x-api-key": key, **headers}
        return httpx.post(f"{url}/v1/table/{table}/describe?delimiter={delimiter}", json={}, headers=given)

    def test_a_cached_answer_needs_a_key_too(self, url: str) -> None:
        for _ in range(2):
            assert self.describe(url).status_code == 200
            assert self.describe(url, key="key-no-2").json() == self.describe(url).json()
            for key in ("key-no-3", "", None):
                refused = self.describe(url, key=key)
                assert (refused.status_code, refused.json()["code"]) == (401, 16)

    def test_a_pin_is_answered_at_its_version(self, url: str) -> None:
        now = self.describe(url)
        version = int(now.headers["x-lance-catalog-version"])
        gone = self.describe(url, **{"x-lance-catalog-version": str(version - 1)})
        assert (gone.status_code, gone.json()["code"]) == (404, 4)  # the table was not declared yet
        again = self.describe(url)
        assert (again.json(), again.headers["x-lance-catalog-version"]) == (now.json(), str(version))
        pinned = self.describe(url, **{"x-lance-catalog-version": str(version)})
        assert pinned.json() == now.json()

    def test_another_delimiter_names_another_table(self, url: str) -> None:
        assert self.describe(url, "a$t").status_code == 200
        assert self.describe(url, "a.t", ".").json() == self.describe(url, "a$t").json()
        assert self.describe(url, "a.t").status_code == 404
        assert self.describe(url, "a$t", ".").status_code == 404

    def test_what_another_server_changes_is_answered_at_once(self, url: str, root: Path) -> None:
        other = DirectoryNamespace(root=str(root), durability="none")
        headers = {"x-api-key": "key-no-1"}

        def ask() -> tuple[int, list[str], str]:
            listed = httpx.get(f"{url}/v1/namespace/a/table/list", headers=headers)
            return self.describe(url).status_code, listed.json()["tables"], listed.headers["x-lance-catalog-version"]

        for number in range(5):
            before = other.read("describe_catalog", {}).catalog_version
            assert [ask(), ask()] == [(200, ["t"], str(before))] * 2
            other.write("create_namespace", {"id": [f"n{number}"]})
            other.write("drop_table", {"id": ["a", "t"]})
            assert [ask(), ask()] == [(404, [], str(before + 2))] * 2
            other.write("declare_table", {"id": ["a", "t"]})
        other.close()

    def test_the_same_request_has_the_same_cache_key(self, serve: Any) -> None:
        catalog = EchoCatalog()
        server = serve(catalog)
        for path, agent in (("a$t", "one"), ("a$t", "other"), ("a$u", "one")):
            catalog.kept.clear()
            assert self.describe(server.url, path, key=None, **{"user-agent": agent}).status_code == 200
        first, second, third = catalog.cache_keys
        assert first == second
        assert first != third

    @pytest.mark.parametrize(
        ("other", "request_"),
        [
            ({"segment": "a%24u"}, {"id": ["a", "u"]}),
            ({"query": "?delimiter=."}, {"id": ["a$t"]}),
            ({"query": "?delimiter=t"}, {"id": ["a$"]}),
            ({"query": "?check_declared=true"}, {"id": ["a", "t"], "check_declared": True}),
            ({"body": b'{"version":1}'}, {"id": ["a", "t"], "version": 1}),
            ({"body": b'{"branch":"dev"}'}, {"id": ["a", "t"], "branch": "dev"}),
            ({"operation": "exists"}, {"id": ["a", "t"]}),
        ],
        ids=str,
    )
    def test_another_request_has_another_answer(
        self, serve: Any, other: dict[str, Any], request_: dict[str, Any]
    ) -> None:
        catalog = EchoCatalog()
        url = serve(catalog).url

        def ask(segment: str = "a%24t", query: str = "", body: bytes = b"{}", operation: str = "describe") -> Any:
            path = f"{url}/v1/table/{segment}/{operation}{query}"
            return httpx.post(path, content=body, headers={"content-type": "application/json"})

        first = ask().json()
        answer = ask(**other)
        found = list(catalog.kept.values())[-1].body
        assert answer.status_code == 200
        assert found["request"] == request_
        assert ask().json() == first

    def test_bad_input_is_refused_beside_a_cached_answer(self, serve: Any) -> None:
        url = serve(EchoCatalog()).url
        for _ in range(2):
            assert httpx.post(f"{url}/v1/table/t/describe", json={}).status_code == 200
            for path, body, kind in (
                ("/v1/table/t/describe", b"{}", "text/plain"),
                ("/v1/table/t/describe?delimiter=", b"{}", "application/json"),
                ("/v1/table/t/describe", b'{"id":["b"]}', "application/json"),
            ):
                refused = httpx.post(url + path, content=body, headers={"content-type": kind})
                assert (refused.status_code, refused.json()["code"]) == (400, 13)


class TestSharedLooks:
    """Storage is asked once for all requests of one iteration of the event loop, and never before they came."""

    def test_each_iteration_asks_again(self) -> None:
        catalog = EchoCatalog()

        async def run() -> list[int]:
            service = CatalogService(catalog, Authenticator({}))
            looks = []
            for _ in range(3):
                service.cached("a", ANONYMOUS_SUBJECT)
                service.cached("b", ANONYMOUS_SUBJECT)
                looks.append(catalog.looks)
                await asyncio.sleep(0)
            return looks

        assert asyncio.run(run()) == [1, 2, 3]

    def test_what_is_queued_during_the_look_asks_again(self) -> None:
        catalog = EchoCatalog()
        looks: list[int] = []

        async def run() -> None:
            loop = asyncio.get_running_loop()
            service = CatalogService(catalog, Authenticator({}))
            newest = catalog.newest

            def arriving() -> None:
                service.cached("b", ANONYMOUS_SUBJECT)
                looks.append(catalog.looks)

            def look() -> int:
                if not looks and catalog.looks == 0:
                    loop.call_soon_threadsafe(arriving)  # as the HTTP server hands over a request that has just come
                return newest()

            catalog.newest = look  # type: ignore[method-assign]
            service.cached("a", ANONYMOUS_SUBJECT)
            await asyncio.sleep(0)
            await asyncio.sleep(0)

        asyncio.run(run())
        assert looks == [2]

    def test_a_failure_is_no_answer_for_the_others(self, serve: Any) -> None:
        catalog = EchoCatalog()
        url = serve(catalog).url
        assert httpx.post(f"{url}/v1/table/t/describe", json={}).status_code == 200
        catalog.failure = ServiceUnavailableError("no")
        for _ in range(2):
            assert httpx.post(f"{url}/v1/table/t/describe", json={}).status_code == 503
        catalog.failure = None
        assert httpx.post(f"{url}/v1/table/t/describe", json={}).status_code == 200
