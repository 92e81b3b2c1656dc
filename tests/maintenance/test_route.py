"""Maintenance of one table over HTTP: in the caller's name, in bounded time, beside other writers."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import lance
import pyarrow as pa
import pytest

from namespace_client import Catalog
from namespace_server.app import create_app
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.read_only import ReadOnlySwitch
from namespace_server.rest.data_service import DataService
from namespace_server.rest.identity import Authenticator
from table_data.requests.table_requests import UpdateRows
from tests.access.granting import ADMIN, Caller, granted, key, keys, put_rows, switch_on
from tests.running import running, serving

COUNT = 5
PATH = "/v1/table/t/maintain"
NOW = {"forced": True}


class Served:
    """A server, its only table with small fragments, and who asks it."""

    def __init__(self, http: httpx.Client, catalog: Catalog, root: Path) -> None:
        self.http = http
        self.catalog = catalog
        self.root = root
        for number in range(COUNT):
            rows = pa.table({"id": [2 * number, 2 * number + 1]})
            if number:
                catalog.append("t", rows)
            else:
                catalog.create("t", rows)

    def ask(self, body: Any, **headers: str) -> dict[str, Any]:
        answer = self.http.post(PATH, json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        assert int(answer.headers["x-lance-catalog-version"]) >= told["catalog_version"]
        return told

    def refused(self, path: str, body: Any, status: int, code: int) -> str:
        answer = self.http.post(path, json=body)
        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
        assert answer.json()["outcome"] == "nothing_done"
        return str(answer.json()["error"])

    @property
    def batches(self) -> int:
        """The number of batches; a server makes catalog versions without one, too."""
        return sum(len(version.batches) for version in self.catalog.history())

    def opened(self) -> lance.LanceDataset:
        """The table as stock pylance opens it."""
        found = lance.dataset(self.catalog.describe("t").location)
        found.validate()
        return found


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    root = tmp_path / "root"
    with (
        running(root) as url,
        httpx.Client(base_url=url, timeout=60) as http,
        Catalog.connect(url) as catalog,
    ):
        yield Served(http, catalog, root)


def ids(dataset: lance.LanceDataset) -> list[int]:
    return sorted(dataset.to_table()["id"].to_pylist())


def test_small_fragments_become_one_and_then_nothing_is_left(served: Served) -> None:
    before = served.batches
    plan = served.ask({"dry_run": True})
    assert served.batches == before
    assert plan["status"] == "planned"
    assert plan["found"] == plan["left"]
    assert plan["found"]["small_fragments"] == COUNT
    assert plan["found"]["bytes"] > 0

    done = served.ask({})
    assert (done["status"], done["version_before"], done["version"]) == ("done", COUNT, COUNT + 1)
    assert (done["fragments_before"], done["fragments"], done["commits"]) == (COUNT, 1, 1)
    assert (done["removed_fragments"], done["added_fragments"]) == (COUNT, 1)
    assert done["left"] == {**plan["left"], "small_fragments": 0, "bytes": 0}
    dataset = served.opened()
    assert (len(dataset.get_fragments()), ids(dataset)) == (1, list(range(2 * COUNT)))

    again = served.ask({})
    assert (again["status"], again["commits"], again["version"]) == ("nothing_to_do", 0, COUNT + 1)
    assert served.batches == before + 1


def test_indices_are_extended_after_it(served: Served) -> None:
    made = {"column": "id", "index_type": "BTREE", "name": "by_id"}
    served.http.post("/v1/table/t/create_scalar_index", json=made).raise_for_status()
    for number in range(COUNT):
        served.catalog.append("t", pa.table({"id": [100 + number]}))
    served.http.post(
        "/v1/table/batch-commit",
        json={"operations": [{"set_table_properties": {"id": ["t"], "updates": {"maintenance.unindexed_rows": "1"}}}]},
    ).raise_for_status()
    done = served.ask({**NOW, "context": {"message": "tidy"}})
    assert (done["status"], done["found"]["indices"]) == ("done", ["by_id"])
    assert done["found"]["unindexed_rows"] == COUNT
    assert (done["added_segments"], done["left"]["unindexed_rows"]) == (1, 0)
    assert done["commits"] == 2
    scanner = served.opened().scanner(filter="id = 102", columns=["id"])
    assert "ScalarIndexQuery" in scanner.explain_plan()
    assert scanner.to_table()["id"].to_pylist() == [102]
    messages = [batch.message for version in served.catalog.history(3) for batch in version.batches]
    assert messages == ["tidy"] * 3  # fragment ids, fragments, indices


def test_a_table_with_other_writers_is_left_unless_it_is_forced(served: Served) -> None:
    served.catalog.delete("t", "id = 0")
    busy = served.ask({})
    assert (busy["status"], busy["commits"]) == ("busy", 0)
    assert "was committed less than 60 s ago" in busy["reason"]
    assert served.ask({"dry_run": True})["status"] == "busy"
    assert served.ask({"dry_run": True, **NOW})["status"] == "planned"
    assert served.ask(NOW)["status"] == "done"


def test_the_answer_under_a_key_is_given_again_and_a_plan_is_not_recorded(served: Served) -> None:
    named = {"Idempotency-Key": "once"}
    before = served.batches
    assert served.ask({"dry_run": True}, **named)["status"] == "planned"
    assert served.batches == before
    done = served.ask({}, **named)
    served.catalog.append("t", pa.table({"id": [100]}))
    assert served.ask({}, **named) == done
    assert served.http.post(PATH, json=NOW, headers=named).json()["code"] == 13


def test_requests_that_are_refused(served: Served) -> None:
    text = served.refused(PATH, {"branch": "dev"}, 400, 13)
    assert "expected no fields but context, dry_run, forced, id, seconds" in text
    for seconds in (0, 3601, "5", True):
        assert "seconds: expected a number from 1 to 3600" in served.refused(PATH, {"seconds": seconds}, 400, 13)
    served.refused(PATH, {"dry_run": "yes"}, 400, 13)
    served.refused("/v1/table/none/maintain", {}, 404, 4)
    served.http.post("/v1/table/new/declare", json={}).raise_for_status()
    assert "expected a table with a version, found none yet" in served.refused("/v1/table/new/maintain", {}, 400, 13)
    wrong = {"set_table_properties": {"id": ["t"], "updates": {"maintenance.compact": "perhaps"}}}
    served.http.post("/v1/table/batch-commit", json={"operations": [wrong]}).raise_for_status()
    assert "property maintenance.compact: expected true or false" in served.refused(PATH, {}, 400, 13)


def test_a_root_without_a_catalog_of_ours(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"id": [1]}), tmp_path / "t.lance")
    with running(tmp_path) as url:
        answer = httpx.post(url + PATH, json={})
    assert (answer.status_code, answer.json()["code"]) == (406, 0)
    assert "adopt" in answer.json()["error"]


def test_of_two_at_a_time_one_does_the_work(served: Served) -> None:
    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(served.ask, [{}, {}]))
    assert sorted(answer["commits"] for answer in answers) == [0, 1]
    assert {answer["status"] for answer in answers} <= {"done", "given_up", "nothing_to_do", "busy"}
    dataset = served.opened()
    assert (len(dataset.get_fragments()), ids(dataset)) == (1, list(range(2 * COUNT)))


def before_the_commit(monkeypatch: pytest.MonkeyPatch, act: Any, number: int = 1) -> list[str]:
    """Other requests come between the staging and the commit of a change of a run. The principals of its changes."""
    commit = DirectoryNamespace.prepare_change
    callers: list[str] = []

    def meanwhile(self: DirectoryNamespace, staged: Any, record: Any) -> Any:
        if record.message and record.message.startswith("maintenance"):
            callers.append(record.caller.principal)
            if len(callers) == number:
                act()
        return commit(self, staged, record)

    monkeypatch.setattr(DirectoryNamespace, "prepare_change", meanwhile)
    return callers


def test_an_update_meanwhile_wins(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    other = DirectoryNamespace(root=str(served.root), durability="none")

    def update() -> None:
        update: UpdateRows = {"id": ["t"], "predicate": "id = 3", "updates": [["id", "33"]]}
        other.data.change("update_table", update)

    before_the_commit(monkeypatch, update)
    answer = served.ask({})
    other.close()
    assert (answer["status"], answer["commits"]) == ("given_up", 0)
    assert answer["reason"]
    assert ids(served.opened()) == sorted([*(n for n in range(2 * COUNT) if n != 3), 33])


class Granted:
    """A table in a catalog with grants, which `ann` may maintain, `bob` may read and `eve` may not see."""

    def __init__(self, http: httpx.Client, root: Path) -> None:
        self.root = root
        self.admin, self.ann, self.bob, self.eve = (Caller(http, name) for name in (ADMIN, "ann", "bob", "eve"))
        self.grants = [granted("table", "t", "ann", "maintain"), granted("table", "t", "bob", "read", "write")]
        switch_on(root, *self.grants)


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Granted]:
    root = tmp_path / "root"
    with (
        running(root, keys(ADMIN, "ann", "bob", "eve")) as url,
        httpx.Client(base_url=url, timeout=60) as http,
        Catalog.connect(url, api_key=key(ADMIN)) as catalog,
    ):
        Served(http, catalog, root)
        yield Granted(http, root)


def test_it_needs_the_privilege_and_is_in_the_name_of_the_caller(team: Granted) -> None:
    for body in ({}, {"dry_run": True}):
        refused = team.bob.post(PATH, body)
        assert (refused.status_code, refused.json()["code"]) == (403, 15)
        assert "expected maintain on table t" in refused.json()["error"]
        hidden, absent = team.eve.post(PATH, body), team.eve.post("/v1/table/u/maintain", body)
        assert hidden.status_code == absent.status_code == 404
        assert hidden.json() == {**absent.json(), "error": absent.json()["error"].replace(" u ", " t ")}
    done = team.ann.post(PATH, {}).json()
    assert (done["status"], done["commits"]) == ("done", 1)
    namespace = DirectoryNamespace(root=str(team.root))
    [record] = [each for each in namespace.catalog.snapshot().records() if each.message == "maintenance: compact"]
    namespace.close()
    assert record.principal == "ann"


def test_what_is_revoked_meanwhile_is_refused(team: Granted, monkeypatch: pytest.MonkeyPatch) -> None:
    [mine, _] = team.grants
    callers = before_the_commit(monkeypatch, lambda: put_rows(team.root, [], remove=[mine.object_id]))
    refused = team.ann.post(PATH, {})
    assert callers == ["ann"]
    assert refused.status_code in {403, 404} or refused.json()["status"] == "given_up"
    namespace = DirectoryNamespace(root=str(team.root))
    head = namespace.catalog.snapshot().head(("t",))
    assert head is not None
    assert head.version == COUNT
    namespace.close()


def test_what_is_revoked_after_a_commit_ends_the_run(team: Granted, monkeypatch: pytest.MonkeyPatch) -> None:
    made = {"column": "id", "index_type": "BTREE"}
    assert team.admin.post("/v1/table/t/create_scalar_index", made).status_code == 200
    [mine, _] = team.grants
    callers = before_the_commit(monkeypatch, lambda: put_rows(team.root, [], remove=[mine.object_id]), 2)
    told = team.ann.post(PATH, NOW).json()
    assert callers == ["ann", "ann"]
    assert told["status"] in {"failed", "given_up"}
    assert told["reason"]
    assert (told["commits"], told["version"]) == (0, COUNT + 2)  # the index, and ids of fragments


def test_a_hidden_table_that_takes_the_name_meanwhile_is_not_told_of(
    team: Granted, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {"column": "id", "index_type": "BTREE"}
    assert team.admin.post("/v1/table/t/create_scalar_index", made).status_code == 200

    def replace() -> None:
        with Catalog.connect(str(team.root)) as operator:
            operator.drop("t")
            operator.create("t", pa.table({"id": [1]}))
            for number in range(20):
                operator.append("t", pa.table({"id": [number]}))

    callers = before_the_commit(monkeypatch, replace, 2)
    told = team.ann.post(PATH, NOW).json()
    assert team.ann.post(PATH, NOW).status_code == 404
    assert callers == ["ann", "ann"]
    assert told["status"] in {"failed", "given_up"}
    assert told["version"] == COUNT + 2
    assert told.keys().isdisjoint({"fragments", "left"})


def test_a_server_that_is_read_only_does_none_and_one_that_becomes_it_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, file = tmp_path / "root", tmp_path / "read-only"
    namespace = DirectoryNamespace(root=str(root), durability="none")
    app = create_app(namespace, Authenticator({}), read_only=ReadOnlySwitch(file=file))
    with serving(app) as url, httpx.Client(base_url=url, timeout=60) as http, Catalog.connect(url) as catalog:
        served = Served(http, catalog, root)
        maintain = DataService.maintain

        async def after_the_switch(self: DataService, *args: Any, **named: Any) -> Any:
            return await maintain(self, *args, **{**named, "stopped": lambda: True})

        with monkeypatch.context() as switched:
            switched.setattr(DataService, "maintain", after_the_switch)
            over = served.ask({})
        assert (over["status"], over["commits"]) == ("given_up", 0)
        file.touch()
        refused = http.post(PATH, json={"dry_run": True})
        assert (refused.status_code, refused.json()["outcome"]) == (503, "nothing_done")
