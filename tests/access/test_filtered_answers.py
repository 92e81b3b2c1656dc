"""Lists, the history and events hold what their caller may see; pages are full, and totals tell nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError

from namespace_server.access.grants import AccessEntry
from namespace_server.access.policy import AccessPolicy
from namespace_server.access.subjects import Subject
from namespace_server.directory.model.entries import changes_of
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.directory.reading import sight
from namespace_server.rest.routers import ROUTES
from tests.access.conftest import Team
from tests.access.granting import ADMIN, Caller, granted, put_rows
from tests.data.arrow import stream
from tests.directory.flipping import flip
from tests.directory.tables import Ground
from tests.rest.test_openapi import OPERATIONS, SPEC

ROWS = stream(pa.table({"x": [1, 2, 3]}))
PAGED = frozenset(
    {
        *("list_catalog_versions", "list_catalog_events", "list_grants", "list_dropped_tables"),
        *("list_audited_versions", "list_refused_attempts", "find_tables"),
    }
)
SHOWN = [f"t{number:03}" for number in range(0, 100, 9)]


@pytest.fixture(scope="module")
def ann(team: Team) -> Caller:
    """Ann sees twelve of a hundred tables of the namespace `a`, and one in another one; she may read the first."""
    admin = team.caller(ADMIN)
    operations = [{"declare_table": {"id": ["a", f"t{number:03}"]}} for number in range(100)]
    operations += [{"declare_table": {"id": ["a", "n7", "deep"]}}]
    for number in range(10):
        assert admin.post(f"/v1/namespace/a$n{number}/create").status_code == 200
    assert admin.post("/v1/table/batch-commit", {"operations": operations}).status_code == 200
    put_rows(
        team.root,
        [
            *(granted("table", f"a${name}", "ann", "see") for name in SHOWN[1:]),
            granted("table", f"a${SHOWN[0]}", "ann", "read", "write"),
            granted("table", "a$n7$deep", "ann", "see"),
        ],
    )
    assert team.caller("ann").post(f"/v1/table/a${SHOWN[0]}/create", ROWS).status_code == 200
    return team.caller("ann")


def resolved(parameter: dict[str, Any]) -> dict[str, Any]:
    """A parameter of the document, or the one that it refers to."""
    name = parameter.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = SPEC["components"]["parameters"][name] if name else parameter
    return found


def pages(caller: Caller, path: str, field: str, limit: int) -> list[list[str]]:
    """All pages of a list."""
    found: list[list[str]] = []
    token = ""
    while True:
        answer = caller.get(f"{path}?limit={limit}{token and f'&page_token={token}'}").json()
        found.append(answer[field])
        if "page_token" not in answer:
            return found
        token = answer["page_token"]


class TestLists:
    def test_a_page_is_full(self, ann: Caller) -> None:
        found = pages(ann, "/v1/namespace/a/table/list", "tables", 5)
        assert [len(page) for page in found] == [5, 5, 2]
        assert list(chain.from_iterable(found)) == SHOWN

    def test_a_last_page_that_is_full_is_the_last(self, ann: Caller) -> None:
        assert [len(page) for page in pages(ann, "/v1/namespace/a/table/list", "tables", 6)] == [6, 6]

    def test_without_declared_tables(self, team: Team, ann: Caller) -> None:
        assert team.caller(ADMIN).post("/v1/table/a$t001/create", ROWS).status_code == 200
        answer = ann.get("/v1/namespace/a/table/list?include_declared=false&limit=1").json()
        assert answer == {"tables": [SHOWN[0]]}

    def test_all_tables(self, ann: Caller) -> None:
        found = pages(ann, "/v1/table", "tables", 4)
        assert [len(page) for page in found] == [4, 4, 4, 1]
        assert list(chain.from_iterable(found)) == ["a$n7$deep", *(f"a${name}" for name in SHOWN)]

    def test_namespaces(self, ann: Caller) -> None:
        assert ann.get("/v1/namespace/a/list").json() == {"namespaces": ["n7"]}
        assert ann.get("/v1/namespace/%24/list").json() == {"namespaces": ["a"]}

    def test_found_tables(self, team: Team, ann: Caller) -> None:
        found = ann.get("/v1/catalog/tables?text=A%20T0").json()
        assert found == {"tables": [["a", name] for name in SHOWN], "more": False}
        assert ann.get("/v1/catalog/tables?text=t0&limit=5").json() == {
            "tables": [["a", name] for name in SHOWN[:5]],
            "more": True,
        }
        assert ann.get("/v1/catalog/tables?text=n7.deep").json() == {"tables": [["a", "n7", "deep"]], "more": False}
        assert ann.get("/v1/catalog/tables?text=t001").json() == {"tables": [], "more": False}
        everything = team.caller(ADMIN).get("/v1/catalog/tables?text=t0&limit=100000").json()["tables"]
        assert len([path for path in everything if path[:1] == ["a"] and len(path) == 2]) == 100

    def test_found_tables_below_a_namespace(self, team: Team, ann: Caller) -> None:
        grants = [granted("namespace", "a$n7", "bob", "see"), granted("table", "a$t050", "bob", "see")]
        grants += [granted("namespace", "a$n1", "bob", "create"), granted("table", "a$n7$deep", "bob", "read")]
        put_rows(team.root, grants)
        try:
            bob = team.caller("bob")
            assert bob.get("/v1/catalog/tables?text=a").json() == {
                "tables": [["a", "n7", "deep"], ["a", "t050"]],
                "more": False,
            }
            assert bob.get("/v1/catalog/tables?text=deep").json()["tables"] == [["a", "n7", "deep"]]
            assert bob.get("/v1/catalog/tables?text=t05").json()["tables"] == [["a", "t050"]]
            put_rows(team.root, [], remove=[grants[1].object_id])
            assert bob.get("/v1/catalog/tables?text=t05").json()["tables"] == []
        finally:
            put_rows(team.root, [], remove=[each.object_id for each in (grants[0], grants[2], grants[3])])

    def test_found_tables_of_an_earlier_version(self, team: Team, ann: Caller) -> None:
        admin = team.caller(ADMIN)
        version = admin.get("/v1/catalog").json()["version"]
        assert admin.post("/v1/table/a$t009/rename", {"new_table_name": "t009renamed"}).status_code == 200
        try:
            at = {"x-lance-catalog-version": str(version)}
            assert ann.get("/v1/catalog/tables?text=t009", at).json()["tables"] == [["a", "t009"]]
            assert ann.get("/v1/catalog/tables?text=t001", at).json()["tables"] == []
            assert ann.get("/v1/catalog/tables?text=t009").json()["tables"] == [["a", "t009renamed"]]
        finally:
            assert admin.post("/v1/table/a$t009renamed/rename", {"new_table_name": "t009"}).status_code == 200

    def test_nobody_sees_nothing(self, team: Team, ann: Caller) -> None:
        nobody = team.caller("nobody")
        assert nobody.get("/v1/namespace/%24/list").json() == {"namespaces": []}
        assert nobody.get("/v1/catalog/tables?text=t0").json() == {"tables": [], "more": False}
        assert nobody.get("/v1/namespace/%24/table/list").json() == {"tables": []}
        assert nobody.get("/v1/table").json() == {"tables": []}
        assert nobody.get("/v1/namespace/a/table/list").status_code == 404

    def test_at_an_earlier_version(self, team: Team, ann: Caller) -> None:
        """Judged by the grants of today, through a rename; a table that has gone is not told of."""
        admin = team.caller(ADMIN)
        version = admin.get("/v1/catalog").json()["version"]
        assert admin.post("/v1/table/a$t009/rename", {"new_table_name": "renamed"}).status_code == 200
        assert admin.post("/v1/table/a$t018/drop").status_code == 200
        try:
            at = {"x-lance-catalog-version": str(version)}
            then = ann.get("/v1/namespace/a/table/list", at).json()["tables"]
            assert then == [name for name in SHOWN if name != "t018"]
            assert "renamed" in ann.get("/v1/namespace/a/table/list").json()["tables"]
            described = ann.get(f"/v1/catalog/versions/{version}").json()["tables"]
            assert ["a", "t009"] in [table["id"] for table in described]
            assert ["a", "t018"] not in [table["id"] for table in described]
            assert {tuple(table["id"]) for table in described if "version" in table} == {("a", SHOWN[0])}
        finally:
            assert admin.post("/v1/table/a$renamed/rename", {"new_table_name": "t009"}).status_code == 200
            assert admin.post("/v1/table/a$t018/undrop").status_code == 200


def told(answer: httpx.Response) -> str:
    assert answer.status_code == 200, answer.text
    return json.dumps(answer.json())


OURS = sorted(route.path for route in ROUTES if route.path.startswith("/v1/catalog/") and route.operation in PAGED)


def asking(path: str) -> str:
    """The beginning of a query, with what is required."""
    return "?text=t&" if path.endswith("/tables") else "?"


class TestLimits:
    """A list that the published API does not have refuses a limit of less than one by name, and what is no number."""

    def test_there_are_lists(self) -> None:
        assert len(OURS) == len(PAGED)
        of_document = {
            path
            for (_, path), operation in OPERATIONS.items()
            if path.startswith("/v1/catalog")
            and any(each.get("name") == "limit" for each in map(resolved, operation.get("parameters", ())))
        }
        assert set(OURS) == of_document

    @pytest.mark.parametrize(
        "limit", ["-1", "0", "-9223372036854775808", str(2**63), "9" * 30, "ten", "1.0", "", "1e3"]
    )
    @pytest.mark.parametrize("path", OURS)
    def test_one_that_is_none(self, team: Team, path: str, limit: str) -> None:
        refused = team.caller(ADMIN).get(f"{path}{asking(path)}limit={limit}")
        assert (refused.status_code, refused.json()["code"]) == (400, 13), refused.text
        assert refused.json()["error"].startswith("limit: expected "), refused.text

    @pytest.mark.parametrize("path", OURS)
    def test_one_that_is_one(self, team: Team, path: str) -> None:
        for limit in ("1", str(2**63 - 1)):
            answer = team.caller(ADMIN).get(f"{path}{asking(path)}limit={limit}")
            assert answer.status_code == (406 if path.endswith("/refused") else 200), answer.text  # it has no such log

    @pytest.mark.parametrize("operation", sorted(PAGED - {"list_refused_attempts"}))
    def test_in_process(self, team: Team, operation: str) -> None:
        namespace = DirectoryNamespace(root=str(team.root), durability="none")
        for limit in (-1, 0, 2**63, True, "1"):
            with pytest.raises(InvalidInputError, match=r"^limit: expected "):
                namespace.read(operation, {"limit": limit, **({"text": "t"} if operation == "find_tables" else {})})
        namespace.close()


class TestHistory:
    @pytest.fixture
    def since(self, team: Team, ann: Caller) -> int:
        """The catalog version before: a hidden batch, one that is half visible, a hidden one, and one of Ann's."""
        admin = team.caller(ADMIN)
        version: int = admin.get("/v1/catalog").json()["version"]
        for tables, message in (
            (["t001"], "secret one"),
            ([SHOWN[0], "t002"], "secret two"),
            (["t003"], "secret three"),
        ):
            operations = [
                {"set_table_properties": {"id": ["a", name], "updates": {"k": str(version)}}} for name in tables
            ]
            body = {"operations": operations, "context": {"message": message}}
            assert admin.post("/v1/table/batch-commit", body).status_code == 200
        assert ann.post(f"/v1/table/a${SHOWN[0]}/insert", ROWS).status_code == 200
        return version

    def test_events(self, team: Team, ann: Caller, since: int) -> None:
        answer = ann.get(f"/v1/catalog/events?since={since}")
        text, events = told(answer), answer.json()["events"]
        assert [event["data"]["catalog_version"] for event in events] == list(range(since + 1, since + 1 + len(events)))
        for hidden in ("t001", "t002", "t003", "secret"):
            assert hidden not in text
        kinds = [event["data"]["kind"] for event in events]
        assert kinds[0] == "hidden"
        assert events[0]["data"] == {"catalog_version": since + 1, "kind": "hidden", "batches": [], "tables": []}
        [half] = events[1]["data"]["batches"]
        assert half["num_operations"] == 1
        assert [operation["id"] for operation in half["operations"]] == [["a", SHOWN[0]]]
        own = next(event for event in events if event["data"]["tables"])
        assert own["data"]["tables"][0]["id"] == ["a", SHOWN[0]]
        assert "secret two" in told(team.caller(ADMIN).get(f"/v1/catalog/events?since={since}"))

    def test_a_stream_of_events(self, team: Team, ann: Caller, since: int) -> None:
        headers = {**ann.headers, "accept": "text/event-stream"}
        found: list[Any] = []
        with team.http.stream("GET", f"/v1/catalog/events?since={since}", headers=headers) as stream_of_events:
            for line in stream_of_events.iter_lines():
                if line.startswith("data:"):
                    assert "secret" not in line
                    found.append(json.loads(line[5:])["data"])
                if len(found) == 4:
                    break
        assert [event["catalog_version"] for event in found] == [since + 1, since + 2, since + 3, since + 4]
        assert found[0]["kind"] == "hidden"

    def test_versions(self, team: Team, ann: Caller, since: int) -> None:
        answer = ann.get("/v1/catalog/versions?limit=10")
        text = told(answer)
        for hidden in ("t001", "t002", "t003", "secret"):
            assert hidden not in text
        by_number = {version["version"]: version for version in answer.json()["versions"]}
        assert by_number[since + 1]["batches"] == []
        assert len(by_number[since + 2]["batches"]) == 1
        assert "secret three" in told(team.caller(ADMIN).get("/v1/catalog/versions?limit=10"))

    def test_who_sees_and_does_not_read(self, team: Team, since: int) -> None:
        """It is told which objects changed, and neither versions nor rows."""
        grant = granted("catalog", "", "carl", "see")
        put_rows(team.root, [grant])
        carl = team.caller("carl")
        try:
            for path in (f"/v1/catalog/events?since={since}", "/v1/catalog/versions?limit=10"):
                body = carl.get(path).json()
                found = [event["data"] for event in body["events"]] if "events" in body else body["versions"]
                told_of = [each for made in found for batch in made["batches"] for each in batch["operations"]]
                assert ["a", "t001"] in [each["id"] for each in told_of]
                assert {name for each in told_of for name in each} <= {"operation", "id", "new_id"}
                assert not any(made.get("tables") for made in found)
        finally:
            put_rows(team.root, [], remove=[grant.object_id])

    def test_batches_by_their_uuid(self, team: Team, ann: Caller, since: int) -> None:
        versions = team.caller(ADMIN).get("/v1/catalog/versions?limit=10").json()["versions"]
        [hidden] = next(version for version in versions if version["version"] == since + 1)["batches"]
        found = ann.post(f"/v1/transaction/{hidden['transaction_id']}/describe")
        absent = ann.post(f"/v1/transaction/{hidden['transaction_id'][:-6]}000000/describe")
        assert found.status_code == absent.status_code == 404
        assert found.json()["code"] == absent.json()["code"] == 10


class TestDropped:
    def test_who_sees_what_was_dropped(self, team: Team, ann: Caller) -> None:
        admin = team.caller(ADMIN)
        for name in ("t004", "t027"):
            assert admin.post(f"/v1/table/a${name}/drop").status_code == 200
        put_rows(team.root, [granted("namespace", "a", "bob", "see", since=0)])
        dropped = {
            who: [
                table["id"]
                for table in team.caller(who).get("/v1/catalog/dropped").json()["tables"]
                if table["id"][0] == "a"
            ]
            for who in (ADMIN, "ann", "bob", "nobody")
        }
        both = [["a", "t004"], ["a", "t027"]]
        assert sorted(dropped[ADMIN]) == sorted(dropped["bob"]) == both
        assert dropped["ann"] == dropped["nobody"] == []

    def test_who_has_a_new_namespace_does_not_read_the_old_one(self, team: Team) -> None:
        """Neither its tables at an earlier version, nor its history."""
        admin, carl = team.caller(ADMIN), team.caller("carl")
        assert admin.post("/v1/namespace/old/create").status_code == 200
        assert admin.post("/v1/table/old$private/create", ROWS).status_code == 200
        version = admin.get("/v1/catalog").json()["version"]
        assert admin.post("/v1/namespace/old/drop", {"behavior": "Cascade"}).status_code == 200
        assert admin.post("/v1/namespace/old/create").status_code == 200
        newest = admin.get("/v1/catalog").json()["version"]
        put_rows(team.root, [granted("namespace", "old", "carl", "own", since=newest + 1)])
        at = {"x-lance-catalog-version": str(version)}
        assert carl.post("/v1/namespace/old/describe").status_code == 200
        assert carl.get("/v1/namespace/old/table/list", at).json() == {"tables": []}
        for route in ("describe", "count_rows", "version/list"):
            assert carl.post(f"/v1/table/old$private/{route}", {}, at).status_code == 404
            assert admin.post(f"/v1/table/old$private/{route}", {}, at).status_code == 200
        assert "private" not in told(carl.get("/v1/catalog/versions?limit=20"))
        assert "private" not in told(carl.get("/v1/catalog/dropped"))
        assert "private" not in told(carl.get(f"/v1/catalog/events?since={version - 2}"))


class TestOwn:
    """Pins, cursors and intents are those of their principal."""

    def test_lists(self, team: Team, ann: Caller) -> None:
        admin = team.caller(ADMIN)
        assert admin.post("/v1/catalog/pins", {"name": "kept"}).status_code == 200
        for who, name in ((admin, "of-admin"), (ann, "of-ann")):
            assert who.post("/v1/catalog/cursors", {"name": name, "version": 1}).status_code == 200
        assert ann.get("/v1/catalog/pins").json() == {"pins": []}
        assert [cursor["name"] for cursor in ann.get("/v1/catalog/cursors").json()["cursors"]] == ["of-ann"]
        assert len(admin.get("/v1/catalog/cursors").json()["cursors"]) == 2
        gone = ann.post("/v1/catalog/cursors/delete", {"name": "of-admin"})
        absent = ann.post("/v1/catalog/cursors/delete", {"name": "of-nobody"})
        assert (gone.status_code, gone.json()["code"]) == (absent.status_code, absent.json()["code"]) == (404, 11)
        assert gone.text.replace("of-admin", "") == absent.text.replace("of-nobody", "")


class TestKeptAnswers:
    """An answer that is kept for one caller is never that of another one, and ends with the grant."""

    def test_between_callers(self, team: Team, ann: Caller) -> None:
        for _ in range(3):  # the second and third answers are kept ones
            assert team.caller(ADMIN).get("/v1/namespace/a/list").json()["namespaces"][0] == "n0"
            assert ann.get("/v1/namespace/a/list").json() == {"namespaces": ["n7"]}
            assert team.caller("nobody").get("/v1/namespace/a/list").status_code == 404

    def test_after_a_revoke_by_another_process(self, team: Team) -> None:
        carl, grant = team.caller("carl"), granted("table", "a$t050", "carl", "read")
        put_rows(team.root, [grant])
        for _ in range(3):
            assert carl.post("/v1/table/a$t050/describe").status_code == 200
            assert carl.post("/v1/table/a$t050/version/list").status_code == 200
        put_rows(team.root, [], remove=[grant.object_id])
        assert carl.post("/v1/table/a$t050/describe").status_code == 404
        assert carl.post("/v1/table/a$t050/version/list").status_code == 404
        put_rows(team.root, [grant])
        assert carl.post("/v1/table/a$t050/describe").status_code == 200


class TestTheWholeCatalog:
    def test_probes_are_public_and_figures_are_not(self, team: Team, ann: Caller) -> None:
        assert team.http.get("/health/live").status_code == 200
        assert team.http.get("/health/ready").status_code == 200
        assert ann.get("/v1/catalog").status_code == 200
        assert team.http.get("/v1/catalog").status_code == 401


class TestAPageOfAnEarlierVersion:
    """Who sees few tables of many has no page for which the others are looked at, also under names of then."""

    @pytest.fixture
    def ground(self, tmp_path: Path) -> Iterator[Ground]:
        """In `a` bob sees six of two thousand tables today."""
        ground = Ground(tmp_path / "root")
        for name in ("a", "b"):
            ground.make_namespace(name)
        ground.batch(*({"declare_table": {"id": ["a", f"t{number:04}"]}} for number in range(2_000)))
        seen = (granted("table", f"a$t{number:04}", "bob", "see") for number in (500, 501, 502, 1200, 1998, 1999))
        flip(ground.catalog.table, changes_of([AccessEntry(), *seen]))
        yield ground
        ground.namespace.close()

    def names(self, ground: Ground, version: int, **page: Any) -> Any:
        request = {"id": ["a"], **page}
        return ground.namespace.read("list_tables", request, at=version, subject=Subject("bob")).body

    @pytest.mark.parametrize("most", [10_000, 3])
    def test_holds_what_it_held(self, ground: Ground, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sight, "_MOST_LOOKED_UP", most)
        before = ground.catalog.snapshot().version
        ground.call("rename_table", id=["a", "t1200"], new_table_name="another")
        ground.call("rename_table", id=["a", "t1998"], new_namespace_id=["b"], new_table_name="t")
        ground.call("drop_table", id=["a", "t0500"])
        ground.call("declare_table", id=["a", "t0500"])
        looks, find = [0], AccessPolicy._find

        def counted(*arguments: Any) -> Any:
            looks[0] += 1
            return find(*arguments)

        monkeypatch.setattr(AccessPolicy, "_find", counted)
        first = self.names(ground, before, limit=3)
        rest = self.names(ground, before, page_token=first["page_token"])
        assert [*first["tables"], *rest["tables"]] == ["t0501", "t0502", "t1200", "t1998", "t1999"]
        found: Any = ground.namespace.read("find_tables", {"text": "t"}, at=before, subject=Subject("bob")).body
        assert [name for _, name in found["tables"]] == [*first["tables"], *rest["tables"]]
        assert (looks[0] < 300) is (most > 3), looks
