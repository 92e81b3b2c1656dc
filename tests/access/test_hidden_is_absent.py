"""What a caller may not see is answered as what does not exist: same status, code, words and headers."""

from __future__ import annotations

import base64
import uuid
from typing import Any

import httpx
import pyarrow as pa
import pytest

from lance_core.proto import lance_table_pb2 as pb
from tests.access.conftest import Team
from tests.access.granting import ADMIN, Caller, granted, put_rows
from tests.data.arrow import stream
from tests.rest.promised import PART

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
    "multipart_write/create": {},
    f"multipart_write/complete?upload_id={PART}": {},
    f"multipart_write/abort?upload_id={PART}": {},
    f"insert?upload_id={PART}&upload_part_id={PART}": ROWS,
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


class TestChangedAndNotRead:
    def test_a_column_whose_expression_fails(self, team: Team) -> None:
        """The error would name a value."""
        admin, nobody = team.caller(ADMIN), team.caller("nobody")
        rows = stream(pa.table({"s": ["a value"]}))
        assert admin.post("/v1/table/a$texts/create", rows).status_code == 200
        grant = granted("table", "a$texts", "nobody", "alter")
        put_rows(team.root, [grant])
        try:
            for route, body in (
                ("add_columns", {"new_columns": [{"name": "y", "expression": "cast(s as bigint)"}]}),
                ("alter_columns", {"alterations": [{"path": "s", "nullable": False}]}),
            ):
                found = nobody.post(f"/v1/table/a$texts/{route}", body)
                assert (found.status_code, found.json()["code"]) == (403, 15), found.text
                assert "a value" not in found.text
                assert "expected read on table a$texts" in found.text
        finally:
            put_rows(team.root, [], remove=[grant.object_id])

    def test_an_index_of_a_version_with_files_of_a_table_that_may_not_be_read(self, team: Team) -> None:
        """It would have values of them, and lie in the table of its maker."""
        admin, nobody = team.caller(ADMIN), team.caller("nobody")
        for name in ("lender", "borrower"):
            assert admin.post(f"/v1/table/a${name}/create", ROWS).status_code == 200
        location = admin.post("/v1/table/a$lender/describe").json()["location"]
        message = pb.Transaction(read_version=1, uuid=str(uuid.uuid4()))
        message.update_bases.new_bases.add(id=7, path=location.removeprefix("file://"), is_dataset_root=True)
        encoded = base64.b64encode(message.SerializeToString()).decode()
        operation = {"commit_transaction": {"id": ["a", "borrower"], "transaction": encoded}}
        lent, owned = (granted("table", f"a${name}", "nobody", "own") for name in ("lender", "borrower"))
        put_rows(team.root, [lent, owned])
        body = {"column": "x", "index_type": "BTREE"}
        assert nobody.post("/v1/table/batch-commit", {"operations": [operation]}).status_code == 200
        assert nobody.post("/v1/table/a$borrower/create_scalar_index", body).status_code == 200
        put_rows(team.root, [], remove=[lent.object_id])
        refused = nobody.post("/v1/table/a$borrower/create_scalar_index", body)
        assert (refused.status_code, refused.json()["code"]) == (403, 15), refused.text
        put_rows(team.root, [], remove=[owned.object_id])


class TestOperationsOfTwoNames:
    """An operation that names two objects says of a hidden one what it says of one that is not there."""

    @pytest.mark.parametrize("into", ["a", "absent"])
    def test_a_rename(self, bob: Caller, into: str) -> None:
        body = {"new_table_name": "new", "new_namespace_id": [into]}
        found = bob.post(f"/v1/table/a${HIDDEN}/rename", body)
        same(found, bob.post(f"/v1/table/a${ABSENT}/rename", body))
        assert (found.status_code, found.json()["code"]) == (404, 4), found.text

    @pytest.mark.parametrize("version", [0, 1, 99])
    def test_an_intent_for_a_location(self, team: Team, bob: Caller, version: int) -> None:
        """Where nothing lies a new table may be made."""
        location = team.caller(ADMIN).post(f"/v1/table/a${HIDDEN}/describe").json()["location"]
        nowhere = location.replace(HIDDEN, ABSENT)

        def asked(name: str, location: str) -> tuple[int, str]:
            table = {"id": ["a", name], "location": location, **({"read_version": version} if version else {})}
            answer = bob.post("/v1/catalog/intents", {"intent_id": str(uuid.uuid4()), "tables": [table]})
            return answer.status_code, answer.json().get("error", "").replace(HIDDEN, ABSENT)

        for name in ("open", HIDDEN, "new"):
            assert asked(name, location) == asked(ABSENT if name == HIDDEN else name, nowhere)
        assert asked("open", location)[0] == 400  # a location of another name
        assert asked(HIDDEN, location)[0] == 403
        grant = granted("namespace", "a", "bob", "create")
        put_rows(team.root, [grant])
        try:
            assert asked("open", location) == asked("open", nowhere)
            assert asked(HIDDEN, location) == asked(ABSENT, nowhere)
            assert asked(HIDDEN, location)[0] == (404 if version else 200)
        finally:
            put_rows(team.root, [], remove=[grant.object_id])


class TestThePast:
    """What is hidden today is not told of as it was at an earlier catalog version."""

    def test_properties_of_a_namespace_of_the_same_name(self, team: Team) -> None:
        admin, ann = team.caller(ADMIN), team.caller("ann")
        assert admin.post("/v1/namespace/again/create", {"properties": {"k": "former"}}).status_code == 200
        then = {"x-lance-catalog-version": admin.get("/v1/catalog").headers["x-lance-catalog-version"]}
        assert admin.post("/v1/namespace/again/drop").status_code == 200
        put_rows(team.root, [granted("catalog", "", "ann", "create")])
        try:
            assert ann.post("/v1/namespace/again/create", {"properties": {"k": "now"}}).status_code == 200
            assert ann.post("/v1/namespace/again/describe").json() == {"properties": {"k": "now"}}
            assert ann.post("/v1/namespace/again/describe", headers=then).json() == {"properties": {}}
            assert admin.post("/v1/namespace/again/describe", headers=then).json() == {"properties": {"k": "former"}}
        finally:
            put_rows(team.root, [], remove=[granted("catalog", "", "ann", "create").object_id])

    def test_grants_of_others_on_what_had_the_name_before(self, team: Team) -> None:
        """Who has a new namespace of an old name does not learn who had which table in the old one."""
        admin, ann = team.caller(ADMIN), team.caller("ann")
        assert admin.post("/v1/namespace/reused/create").status_code == 200
        put_rows(team.root, [granted("namespace", "reused", "carl", "own")])
        assert team.caller("carl").post("/v1/table/reused$kept/create", ROWS).status_code == 200
        then = {"x-lance-catalog-version": admin.get("/v1/catalog").headers["x-lance-catalog-version"]}
        assert team.caller("carl").post("/v1/namespace/reused/drop", {"behavior": "Cascade"}).status_code == 200
        put_rows(team.root, [granted("catalog", "", "ann", "create")])
        try:
            assert ann.post("/v1/namespace/reused/create").status_code == 200
        finally:
            put_rows(team.root, [], remove=[granted("catalog", "", "ann", "create").object_id])
        for on in ({"namespace": ["reused"]}, {"table": ["reused", "kept"]}):
            question = {"privilege": "read", "on": on, "principal": "carl"}
            assert ann.post("/v1/catalog/can", question).json()["allowed"] is False
            refused = ann.post("/v1/catalog/can", question, then)
            assert (refused.status_code, refused.json()["code"]) == (403, 15), refused.text
            assert admin.post("/v1/catalog/can", question, then).json()["allowed"] is True

    def test_grants_that_were_revoked(self, team: Team, bob: Caller) -> None:
        admin = team.caller(ADMIN)
        change = {"on": {"table": ["a", HIDDEN]}, "to": {"role": "everyone"}}
        assert admin.post("/v1/catalog/grants", {"grants": [{**change, "privileges": ["read"]}]}).status_code == 200
        then = {"x-lance-catalog-version": admin.get("/v1/catalog").headers["x-lance-catalog-version"]}
        question = {"privilege": "read", "on": change["on"]}
        assert HIDDEN in bob.get("/v1/catalog/grants").text
        assert bob.post("/v1/catalog/can", question).json()["allowed"]
        assert admin.post("/v1/catalog/grants", {"revokes": [change]}).status_code == 200
        assert HIDDEN not in bob.get("/v1/catalog/grants", then).text
        assert not bob.post("/v1/catalog/can", question, then).json()["allowed"]
        assert HIDDEN in admin.get("/v1/catalog/grants", then).text


class TestBatchesOfOthers:
    @pytest.mark.parametrize("hidden", ["grant_role", "declare_table", "pin_catalog_version"])
    def test_the_message_of_one_that_did_more(self, team: Team, bob: Caller, hidden: str) -> None:
        """It is told to who sees all of it: operations that are no version of a table may be hidden."""
        admin = team.caller(ADMIN)
        asked = {
            "grant_role": {"role": f"r{HIDDEN}", "to": {"principal": "nobody"}},
            "declare_table": {"id": ["a", f"{HIDDEN}_beside"]},
            "pin_catalog_version": {"name": HIDDEN},
        }
        for more in ([], [{hidden: asked[hidden]}]):
            staged = admin.post("/v1/table/a$open/stage?mode=append", ROWS).json()["operations"]
            body = {"operations": [*more, *staged], "context": {"message": "of the batch"}}
            made = admin.post("/v1/table/batch-commit", body)
            assert made.status_code == 200, made.text
            path = f"/v1/transaction/{made.json()['transaction_id']}/describe"
            told = bob.post(path).json()["properties"]
            assert "open" in told["versions"]
            assert ("message" in told, "operation" in told) == (not more, not more)
            assert admin.post(path).json()["properties"]["message"] == "of the batch"
