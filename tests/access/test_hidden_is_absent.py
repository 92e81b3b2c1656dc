"""What a caller may not see is answered as what does not exist: same status, code, words and headers."""

from __future__ import annotations

from typing import Any

import httpx
import pyarrow as pa
import pytest

from tests.access.conftest import Team
from tests.access.granting import ADMIN, Caller, granted, put_rows
from tests.data.arrow import stream

ROWS = stream(pa.table({"x": [1, 2, 3]}))
HIDDEN, ABSENT = "secret", "absent"  # names of one length
READS: dict[str, Any] = {
    "describe": {},
    "exists": {},
    "version/list": {},
    "version/describe": {"version": 1},
    "tags/list": {},
    "tags/version": {"tag": "v"},
    "branches/list": {},
    "query": {"k": 0, "vector": {"single_vector": []}},
    "count_rows": {},
    "stats": {},
    "explain_plan": {"query": {"k": 0, "vector": {"single_vector": []}}},
    "analyze_plan": {"k": 0, "vector": {"single_vector": []}},
    "index/list": {},
    "index/i/stats": {},
}
CHANGES: dict[str, Any] = {
    "insert": ROWS,
    "merge_insert?on=x&when_not_matched_insert_all=true": ROWS,
    "update": {"updates": [["x", "1"]]},
    "delete": {"predicate": "x = 1"},
    "restore": {"version": 1},
    "stage?mode=append": ROWS,
    "create_index": {"column": "x", "index_type": "BTREE"},
    "create_scalar_index": {"column": "x", "index_type": "BTREE"},
    "index/i/drop": {},
    "schema_metadata/update": {"k": "v"},
    "update_field_metadata": {"updates": [{"path": "x", "metadata": {"k": "v"}}]},
    "add_columns": {"new_columns": [{"name": "y", "expression": "x"}]},
    "alter_columns": {"alterations": [{"path": "x", "rename": "z"}]},
    "drop_columns": {"columns": ["x"]},
    "tags/create": {"tag": "w", "version": 1},
    "tags/update": {"tag": "v", "version": 1},
    "tags/delete": {"tag": "v"},
    "branches/delete": {"name": "dev"},
}


@pytest.fixture(scope="module")
def bob(team: Team) -> Caller:
    """Bob may read one table of the namespace `a`, which has another one that is hidden from him."""
    admin = team.caller(ADMIN)
    for name in ("open", HIDDEN):
        assert admin.post(f"/v1/table/a${name}/create", ROWS).status_code == 200
        assert admin.post(f"/v1/table/a${name}/tags/create", {"tag": "v", "version": 1}).status_code == 200
        assert admin.post(f"/v1/table/a${name}/branches/create", {"name": "dev"}).status_code == 200
    put_rows(team.root, [granted("table", "a$open", "bob", "read")])
    return team.caller("bob")


@pytest.fixture(scope="module")
def carl(team: Team, bob: Caller) -> Caller:
    """Carl may see the table that Bob may read."""
    put_rows(team.root, [granted("table", "a$open", "carl", "see")])
    return team.caller("carl")


def same(hidden: httpx.Response, absent: httpx.Response) -> None:
    """Both are the same answer, but for the name that was asked for, and the name of the request."""

    def seen(response: httpx.Response) -> tuple[Any, ...]:
        headers = {name: value for name, value in response.headers.items() if name not in {"x-request-id", "date"}}
        return response.status_code, response.text.replace(HIDDEN, ABSENT), headers

    assert seen(hidden) == seen(absent)


class TestTables:
    @pytest.mark.parametrize("route", READS)
    def test_reads(self, bob: Caller, route: str) -> None:
        found = bob.post(f"/v1/table/a${HIDDEN}/{route}", READS[route])
        same(found, bob.post(f"/v1/table/a${ABSENT}/{route}", READS[route]))
        assert found.status_code == 404, found.text

    @pytest.mark.parametrize("route", ["version/list", "version/describe", "describe", "count_rows"])
    def test_reads_of_an_earlier_version(self, team: Team, bob: Caller, route: str) -> None:
        version = {"x-lance-catalog-version": team.caller(ADMIN).get("/v1/catalog").headers["x-lance-catalog-version"]}
        found = bob.post(f"/v1/table/a${HIDDEN}/{route}", READS[route], version)
        same(found, bob.post(f"/v1/table/a${ABSENT}/{route}", READS[route], version))
        assert found.status_code == 404, found.text
        assert bob.post(f"/v1/table/a$open/{route}", READS[route], version).status_code == 200

    @pytest.mark.parametrize("route", CHANGES)
    def test_changes_beside_the_flip(self, bob: Caller, route: str) -> None:
        found = bob.post(f"/v1/table/a${HIDDEN}/{route}", CHANGES[route])
        same(found, bob.post(f"/v1/table/a${ABSENT}/{route}", CHANGES[route]))
        assert found.status_code == 404, found.text

    def test_with_a_field_that_is_wrong(self, bob: Caller) -> None:
        for body in ({"branch": 1}, {"version": "x"}, {"nothing": 1}):
            same(
                bob.post(f"/v1/table/a${HIDDEN}/version/list", body),
                bob.post(f"/v1/table/a${ABSENT}/version/list", body),
            )

    def test_a_name_with_a_plus(self, team: Team, bob: Caller) -> None:
        """Which of two names a `+` stands for is not decided by a table that is hidden."""
        assert team.caller(ADMIN).post("/v1/table/a$x%2By/create", ROWS).status_code == 200
        found = bob.post("/v1/table/a$x+y/describe")
        assert found.status_code == 404
        assert "x+y" in found.json()["error"]


class TestNamespaces:
    def test_hidden_and_absent(self, team: Team, bob: Caller) -> None:
        assert team.caller(ADMIN).post(f"/v1/namespace/{HIDDEN}/create", {"properties": {"k": "v"}}).status_code == 200
        for path in ("describe", "exists"):
            found = bob.post(f"/v1/namespace/{HIDDEN}/{path}")
            same(found, bob.post(f"/v1/namespace/{ABSENT}/{path}"))
            assert found.status_code == 404
        for path in ("list", "table/list"):
            found = bob.get(f"/v1/namespace/{HIDDEN}/{path}")
            same(found, bob.get(f"/v1/namespace/{ABSENT}/{path}"))
            assert found.status_code == 404

    def test_what_holds_something_visible_is_there_by_name(self, team: Team, bob: Caller) -> None:
        admin = team.caller(ADMIN)
        for name in ("outer", "outer$inner", "outer$other"):
            assert admin.post(f"/v1/namespace/{name}/create", {"properties": {"k": "v"}}).status_code == 200
        assert admin.post("/v1/table/outer$inner$t/declare").status_code == 200
        put_rows(team.root, [granted("table", "outer$inner$t", "bob", "see")])
        assert bob.post("/v1/namespace/outer/describe").json() == {"properties": {}}
        assert bob.get("/v1/namespace/outer/list").json() == {"namespaces": ["inner"]}
        assert bob.get("/v1/namespace/outer$inner/table/list").json() == {"tables": ["t"]}
        assert admin.post("/v1/namespace/outer/describe").json() == {"properties": {"k": "v"}}


class TestSeenAndNotRead:
    """What may be seen and not read is refused by name."""

    @pytest.mark.parametrize("route", READS)
    def test_reads(self, carl: Caller, route: str) -> None:
        found = carl.post(f"/v1/table/a$open/{route}", READS[route])
        if route in {"describe", "exists"}:
            assert found.status_code == 200
        else:
            assert (found.status_code, found.json()["code"]) == (403, 15), found.text
            assert "expected read on table a$open" in found.json()["error"]

    def test_details_of_a_description(self, carl: Caller) -> None:
        for more in ({"load_detailed_metadata": True}, {"version": 1}, {"branch": "dev"}, {"tag": "v"}):
            assert carl.post("/v1/table/a$open/describe", more).status_code == 403
        assert carl.post("/v1/table/a$open/exists", {"version": 1}).status_code == 403
        assert carl.post("/v1/table/a$open/exists", {"version": 99}).status_code == 403

    @pytest.mark.parametrize("route", CHANGES)
    def test_changes(self, carl: Caller, route: str) -> None:
        found = carl.post(f"/v1/table/a$open/{route}", CHANGES[route])
        assert (found.status_code, found.json()["code"]) == (403, 15), found.text
