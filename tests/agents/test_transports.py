"""The command over standard input and output, and `/mcp` of servers: who may call it, and how it ends."""

from __future__ import annotations

import asyncio
import json
import secrets
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest
from mcp import Client
from mcp_types import CallToolResult

from namespace_client import Catalog, CatalogClosed
from namespace_client.call_threads import CallThreads, TooManyCalls
from namespace_mcp.server import AgentServer
from namespace_mcp.tools import rows
from namespace_mcp.tools.tool import OpenedCatalog
from tests.access.granting import ADMIN, as_principal, key, keys
from tests.agents.agents import NEW, OLD, over_http, over_pipes, talk, text_of
from tests.agents.conftest import ISSUER, Team
from tests.running import running
from tests.server.servers import REPOSITORY, ServerProcess

PING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
OLD_HEADERS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    with Catalog.connect(str(tmp_path / "catalog")) as catalog:
        catalog.create_namespace("shop")
        catalog.create(("shop", "orders"), [{"id": 1, "city": "Bern"}])
    return tmp_path / "catalog"


@pytest.mark.parametrize("mode", [NEW, OLD])
def test_the_command_serves_a_root_and_only_reads(root: Path, mode: str) -> None:
    async def conversation(client: Client) -> tuple[list[str], CallToolResult, CallToolResult]:
        told = [each.name for each in (await client.list_tools()).tools]
        found = await client.call_tool("query_rows", {"table": "shop.orders"})
        return told, found, await client.call_tool("change", {"message": "m", "changes": []})

    told, found, refused = talk(over_pipes(str(root)), conversation, mode=mode)
    assert "change" not in told
    assert found.structured_content["rows"] == [{"id": 1, "city": "Bern"}]
    assert refused.is_error
    assert "tool 'change': expected one of describe_catalog" in text_of(refused)


def test_the_command_changes_where_it_is_told_to(root: Path) -> None:
    async def conversation(client: Client) -> list[CallToolResult]:
        update = {"do": "update_rows", "table": "shop.orders", "set": {"city": "'Basel'"}, "filter": "id = 1"}
        insert = {"do": "insert_rows", "table": "shop.orders", "rows": [{"id": 2, "city": None}]}
        upsert = {"do": "upsert_rows", "table": "shop.more", "rows": [{"id": 1}, {"id": 2}], "on": ["id"]}
        drop = {"do": "drop_table", "table": "shop.old"}
        rename = {"do": "rename_table", "table": "shop.new", "new_name": "shop.old"}
        changes = [update, insert, upsert, drop, rename]
        made = await client.call_tool("change", {"message": "both", "changes": changes})
        return [made, await client.call_tool("query_rows", {"table": "shop.orders", "order_by": [{"column": "id"}]})]

    with Catalog.connect(str(root), namespace=["shop"]) as catalog:
        for count, name in enumerate(("more", "old", "new"), 1):
            catalog.create(name, {"id": [1] * count})
    made, found = talk(over_pipes("--root", str(root), "--write"), conversation)
    assert not made.is_error, text_of(made)
    assert found.structured_content["rows"] == [{"id": 1, "city": "Basel"}, {"id": 2, "city": None}]
    with Catalog.connect(str(root)) as catalog:
        assert catalog.history(1)[0].batches[0].message == "both"
        assert {name: catalog.read(f"shop.{name}").num_rows for name in ("more", "old")} == {"more": 2, "old": 3}
        assert "new" not in {each[-1] for each in catalog.tables("shop")}


def test_the_command_speaks_for_its_caller(team: Team) -> None:
    async def conversation(client: Client) -> tuple[CallToolResult, CallToolResult]:
        return await client.call_tool("list_namespaces"), await client.call_tool("describe_catalog")

    target = over_pipes(environment={"LANCE_NAMESPACE_URL": team.urls[0], "LANCE_NAMESPACE_API_KEY": key("reader")})
    listed, about = talk(target, conversation)
    assert listed.structured_content["names"] == ["shop"]
    assert about.structured_content["principal"] == "reader"
    listed, about = talk(over_pipes("--url", team.urls[0], "--api-key", key("wrong")), conversation)
    assert about.structured_content["code"] == 16


def test_standard_output_has_messages_alone(root: Path) -> None:
    command = [sys.executable, "-m", "namespace_server", "mcp", "-vv", str(root)]
    begin = {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "count_rows", "arguments": {}}}
    call["params"]["arguments"] = {"table": "shop.orders"}
    lines = "".join(
        f"{json.dumps(each)}\n" for each in (begin, {"jsonrpc": "2.0", "method": "notifications/initialized"}, call)
    )
    with subprocess.Popen(
        command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(lines)
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.stdin.close()
        assert process.stdout.read() == ""
        assert process.wait(20) == 0
        assert process.stderr is not None
        assert process.stderr.read() != ""
    assert {each["id"]: "result" in each for each in answers} == {0: True, 1: True}


def test_the_command_refuses_what_it_would_ignore(root: Path) -> None:
    for arguments, said in ((["--json"], "--json"), ([str(root), "more"], "found 2 arguments")):
        command = [sys.executable, "-m", "namespace_server", "mcp", *arguments, str(root)]
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
        assert (done.returncode, said in done.stderr, done.stdout) == (2, True, ""), done.stderr


def test_without_credentials_a_client_is_told_where_to_get_some(team: Team) -> None:
    for headers, challenge in (({}, "Bearer "), ({"authorization": "Bearer nonsense"}, "Bearer ")):
        refused = httpx.post(f"{team.urls[0]}/mcp", json=PING, headers=OLD_HEADERS | headers)
        assert (refused.status_code, refused.json()["code"]) == (401, 16)
        place = f"{team.urls[0]}/.well-known/oauth-protected-resource/mcp"
        assert refused.headers["www-authenticate"].startswith(challenge)
        assert f'resource_metadata="{place}"' in refused.headers["www-authenticate"]
    told = httpx.get(place).json()
    assert (told["resource"], told["authorization_servers"]) == (f"{team.urls[0]}/mcp", [ISSUER])
    assert httpx.get(f"{team.urls[0]}/.well-known/else").status_code == 404


def test_pages_elsewhere_and_other_hosts_reach_no_tool(team: Team, tmp_path: Path) -> None:
    known = OLD_HEADERS | as_principal(ADMIN)
    assert httpx.post(f"{team.urls[0]}/mcp", json=PING, headers=known).status_code == 200
    strange = known | {"origin": "https://evil.example"}
    assert httpx.post(f"{team.urls[0]}/mcp", json=PING, headers=strange).status_code == 403
    assert httpx.get(f"{team.urls[0]}/mcp", headers=known).status_code == 405
    assert httpx.post(f"{team.urls[0]}/mcp/x", json=PING, headers=known).status_code == 404
    with running(tmp_path / "root") as url:
        assert httpx.post(f"{url}/mcp", json=PING, headers=OLD_HEADERS).status_code == 404


def test_a_server_serves_tools_that_read_unless_the_setting_says_otherwise(root: Path, tmp_path: Path) -> None:
    for setting, found in ((None, False), ("write", True), ("off", None)):
        environment = {} if setting is None else {"LANCE_NAMESPACE_MCP": setting}
        server = ServerProcess(root, log=tmp_path / f"{setting}.log", environment=environment, keys=keys("ann"))
        try:
            if found is None:
                known = OLD_HEADERS | as_principal("ann")
                assert httpx.post(f"{server.url}/mcp", json=PING, headers=known).status_code == 404
            else:
                told = talk(over_http(server.url, "ann"), lambda client: client.list_tools())
                assert ("change" in {each.name for each in told.tools}) == found
        finally:
            server.stop()
    lines = [line for line in (tmp_path / "write.log").read_text().splitlines() if "route=/mcp " in line]
    assert lines
    assert all("principal=ann" in line for line in lines)


def test_two_servers_answer_one_client_in_turn(team: Team) -> None:
    name = f"work.t{secrets.token_hex(4)}"
    admin, other = team.caller(), team.caller(server=1)
    make = {"do": "create_table", "table": name, "rows": [{"id": 1}]}
    made = admin("change", message="one", idempotency_key=f"{name}-key", changes=[make])
    found = other("query_rows", table=name)
    assert (found["rows"], found["catalog_version"] >= made["catalog_version"]) == ([{"id": 1}], True)
    other("change", message="two", changes=[{"do": "insert_rows", "table": name, "rows": [{"id": 2}]}])
    assert admin("count_rows", table=name)["rows"] == 2


def test_many_calls_at_once_are_all_answered(team: Team) -> None:
    async def conversation(client: Client) -> list[CallToolResult]:
        calls = [client.call_tool("query_rows", {"table": "shop.orders", "filter": f"id = {n}"}) for n in range(32)]
        return await asyncio.gather(*calls)

    for result, number in zip(talk(over_http(team.urls[0], "reader"), conversation), range(32), strict=True):
        assert [row["id"] for row in result.structured_content["rows"]] == [number]


@pytest.mark.parametrize("mode", [NEW, OLD])
def test_a_call_that_is_given_up_ends_on_the_server(team: Team, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tool is held before a request to the server, which is not made once the client has gone."""
    ended: list[str] = []
    ask = rows.read_version

    def held(catalog: Catalog, at: int | None) -> int:
        time.sleep(1)
        try:
            return ask(catalog, at)
        except Exception as error:
            ended.append(type(error).__name__)
            raise

    monkeypatch.setattr(rows, "read_version", held)

    async def conversation(client: Client) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await client.call_tool("query_rows", {"table": "shop.orders", "limit": 1000})

    talk(over_http(team.urls[0], ADMIN), conversation, mode=mode)
    monkeypatch.undo()
    until = time.monotonic() + 10
    while not ended and time.monotonic() < until:
        time.sleep(0.05)
    assert ended == ["CatalogUnreachable"]
    assert team.caller()("count_rows", table="shop.orders")["rows"] == 100


def test_a_server_that_ends_gives_up_the_calls_under_way() -> None:
    begun, gone = threading.Event(), threading.Event()

    class Waiting:
        """A catalog that does not answer until its connection is closed."""

        def whoami(self) -> None:
            begun.set()
            assert gone.wait(20)
            raise CatalogClosed("the connection was closed")

    async def run() -> None:
        server = AgentServer(lambda _request: OpenedCatalog(Waiting(), gone.set))  # type: ignore[arg-type]
        async with Client(server.sdk) as client:
            call = asyncio.create_task(client.call_tool("describe_catalog"))
            await asyncio.to_thread(begun.wait, 20)
            server.close()
            assert text_of(await call).startswith("the connection was closed")

    asyncio.run(run())


def test_calls_wait_within_a_bound() -> None:
    async def run() -> None:
        threads, gate = CallThreads(1, 2, "calls"), asyncio.Event()
        loop = asyncio.get_running_loop()
        given_up: list[int] = []

        def work() -> int:
            asyncio.run_coroutine_threadsafe(gate.wait(), loop).result(10)
            return 7

        calls = [asyncio.create_task(threads.call(work, lambda: given_up.append(1))) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(TooManyCalls):
            await threads.call(work, lambda: None)
        calls[2].cancel()
        await asyncio.wait({calls[2]})
        assert given_up == [1]
        gate.set()
        assert [await each for each in calls[:2]] == [7, 7]
        assert await threads.call(work, lambda: None) == 7
        threads.close()

    asyncio.run(run())
