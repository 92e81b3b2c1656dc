"""What is hidden is as what is not there for lancedb's remote clients, and where values of blobs are read."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx
import pyarrow as pa
import pytest

from namespace_server.rest.routers import ROUTES
from namespace_server.rest.routing import LANCEDB, Route
from tests.access.conftest import Team
from tests.access.granting import ADMIN, Caller, granted, put_rows
from tests.data.arrow import ARROW, stream

ROWS = stream(pa.table({"x": [1, 2, 3]}))
HIDDEN, ABSENT = "secret", "absent"  # names of one length
CLIENT = {"user-agent": "LanceDB-Rust-Client/0.40.0"}
BODIES: dict[str, Any] = {
    "insert_into_table": ROWS,
    "merge_insert_into_table": ROWS,
    "create_table": ROWS,
    "rename_table": {"new_table_name": "other"},
    "update_table": {"updates": [["x", "1"]]},
    "delete_from_table": {"predicate": "x = 1"},
    "query_table": {"vector": [], "k": 3},
    "explain_table_query_plan": {"query": {"vector": [], "k": 3}},
    "analyze_table_query_plan": {"vector": [], "k": 3},
    "restore_table": {"version": 1},
    "create_table_index": {"column": "x", "index_type": "BTREE"},
    "create_table_scalar_index": {"column": "x", "index_type": "BTREE"},
    "update_field_metadata": {"updates": [{"path": "x", "metadata": {"k": "v"}}]},
    "alter_table_add_columns": {"new_columns": [{"name": "y", "expression": "x"}]},
    "alter_table_alter_columns": {"alterations": [{"path": "x", "rename": "z"}]},
    "alter_table_drop_columns": {"columns": ["x"]},
    "get_table_tag_version": {"tag": "v"},
    "create_table_tag": {"tag": "w", "version": 1},
    "update_table_tag": {"tag": "v", "version": 1},
    "delete_table_tag": {"tag": "v"},
    "create_table_branch": {"name": "other"},
    "delete_table_branch": {"name": "dev"},
    "fetch_table_blobs": {"column": "b", "row_ids": [0]},
    "prewarm_table_pages": {"columns": ["x"]},
}
"""Bodies of lancedb's clients; all others are empty."""
QUERIES = {"merge_insert_into_table": "on=x&when_not_matched_insert_all=true", "find_table_blob": "filter=x%3D1"}
OF_TABLES = [route for route in ROUTES if "/v1/table/{id}" in route.path]
SPOKEN = [route for route in OF_TABLES if LANCEDB in route.dialects]
BLOBS = [route for route in OF_TABLES if "blob" in route.path]
VALUES = {"column": "b", "row": "0", "index_name": "i", "name": "i"}


def path(route: Route, table: str) -> str:
    found = route.path.replace("{id}", quote(table, safe="$"))
    for name, value in VALUES.items():
        found = found.replace(f"{{{name}}}", value)
    assert "{" not in found
    query = QUERIES.get(route.operation)
    return found if query is None else f"{found}?{query}"


def ask(caller: Caller, route: Route, table: str, headers: dict[str, str]) -> tuple[Any, ...]:
    body = BODIES.get(route.operation, {})
    given = {**caller.headers, **headers, **(ARROW if isinstance(body, bytes) else {})}
    if route.method == "GET":
        answer = caller.http.get(path(route, table), headers=given)
    elif isinstance(body, bytes):
        answer = caller.http.post(path(route, table), content=body, headers=given)
    else:
        answer = caller.http.post(path(route, table), json=body, headers=given)
    return seen(answer)


def seen(answer: httpx.Response) -> tuple[Any, ...]:
    told = {
        name: value
        for name, value in answer.headers.items()
        if name not in {"date", "x-request-id", "x-lance-catalog-version"}
    }
    return answer.status_code, answer.text.replace(HIDDEN, ABSENT), told


@pytest.fixture(scope="module")
def bob(team: Team) -> Caller:
    """Bob may read and change one table of the database `a`; its other one, and the database `b`, are hidden."""
    admin = team.caller(ADMIN)
    blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    blobs = pa.table([[1], pa.array([b"bytes"], blob.type)], schema=pa.schema([("x", pa.int64()), blob]))
    for name in (f"a${HIDDEN}", "a$open", f"b${HIDDEN}"):
        assert admin.post(f"/v1/table/{name}/create", stream(blobs)).status_code == 200
        assert admin.post(f"/v1/table/{name}/tags/create", {"tag": "v", "version": 1}).status_code == 200
        assert admin.post(f"/v1/table/{name}/branches/create", {"name": "dev"}).status_code == 200
    put_rows(team.root, [granted("table", "a$open", "bob", "read", "write", "alter", "maintain", "reference")])
    return team.caller("bob")


class TestLancedb:
    @pytest.mark.parametrize("route", SPOKEN, ids=lambda route: route.operation)
    def test_a_table(self, bob: Caller, route: Route) -> None:
        headers = {**CLIENT, "x-lancedb-database": "a"}
        hidden, absent = (ask(bob, route, name, headers) for name in (HIDDEN, ABSENT))
        assert hidden == absent
        assert hidden[0] >= 400

    @pytest.mark.parametrize("route", SPOKEN, ids=lambda route: route.operation)
    def test_a_table_of_a_hidden_database(self, bob: Caller, route: Route) -> None:
        hidden, absent = (
            ask(bob, route, HIDDEN, {**CLIENT, "x-lancedb-database": database}) for database in ("b", "z")
        )
        assert (hidden[0], hidden[1].replace("b$", "z$").replace("namespace b", "namespace z"), hidden[2]) == absent
        assert hidden[0] >= 400

    def test_lists(self, team: Team, bob: Caller) -> None:
        for address in ("/v1/table", "/v1/namespace/$/table/list", "/v1/namespace/$/list"):
            hidden, absent, own = (
                bob.get(address, {**CLIENT, "x-lancedb-database": database}) for database in ("b", "z", "a")
            )
            assert seen(hidden) == seen(absent)
            assert HIDDEN not in own.text
        told = bob.get("/v1/table", {**CLIENT, "x-lancedb-database": "a"})
        assert told.json()["tables"] == ["open"]


class TestBlobs:
    @pytest.mark.parametrize("route", BLOBS, ids=lambda route: route.operation)
    def test_of_a_table(self, bob: Caller, route: Route) -> None:
        conditions = ({"range": "bytes=0-0"}, {"if-none-match": "*"}) if route.method == "GET" else ()
        for headers in ({}, *conditions):
            hidden, absent = (ask(bob, route, f"a${name}", headers) for name in (HIDDEN, ABSENT))
            assert hidden == absent
            assert hidden[0] == 404
        assert ask(bob, route, "a$open", {})[0] == 200

    @pytest.mark.parametrize("route", BLOBS, ids=lambda route: route.operation)
    def test_of_a_table_whose_grant_is_gone(self, team: Team, bob: Caller, route: Route) -> None:
        """Also with the tag of what was read before."""
        admin = team.caller(ADMIN)
        grant = granted("table", f"a${HIDDEN}", "bob", "read")
        put_rows(team.root, [grant])
        assert ask(bob, route, f"a${HIDDEN}", {})[0] == 200
        conditions: list[dict[str, str]] = [{}]
        if route.method == "GET":
            conditions.append({"if-none-match": bob.get(path(route, f"a${HIDDEN}")).headers["etag"]})
        put_rows(team.root, [], remove=[grant.object_id])
        for headers in conditions:
            assert ask(bob, route, f"a${HIDDEN}", headers) == ask(bob, route, f"a${ABSENT}", headers)
        assert ask(admin, route, f"a${HIDDEN}", {})[0] == 200
