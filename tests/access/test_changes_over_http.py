"""Grants over HTTP: put in force, changed all or nothing, listed by page, asked for with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from namespace_server.directory.namespace import DirectoryNamespace
from tests.access.granting import ADMIN, as_principal, keys
from tests.running import running

ON_A, ON_T = {"namespace": ["a"]}, {"table": ["a", "t"]}


def to(principal: str) -> dict[str, str]:
    return {"principal": principal}


class KeyedRequests:
    """Requests to a server, each in the name of a principal."""

    def __init__(self, http: httpx.Client, root: Path) -> None:
        self.root = root
        self.http = http

    def ask(self, who: str, path: str, body: Any = None, *, key: str | None = None, **query: Any) -> httpx.Response:
        headers = as_principal(who) | ({} if key is None else {"Idempotency-Key": key})
        method = "GET" if body is None else "POST"
        return self.http.request(method, path, json=body, headers=headers, params=query)

    def answer(self, who: str, path: str, body: Any = None, **given: Any) -> Any:
        answer = self.ask(who, path, body, **given)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def change(self, who: str, **lists: Any) -> Any:
        return self.answer(who, "/v1/catalog/grants", lists)

    @property
    def version(self) -> int:
        return int(self.answer(ADMIN, "/v1/catalog")["version"])


@pytest.fixture(scope="module")
def callers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedRequests]:
    root = tmp_path_factory.mktemp("http") / "root"
    with running(root, keys(ADMIN, "ann", "bob", "eve")) as url, httpx.Client(base_url=url, timeout=30) as http:
        made = KeyedRequests(http, root)
        made.answer("bob", "/v1/namespace/a/create", {})
        made.answer("bob", "/v1/table/a$t/declare", {})
        assert made.answer("bob", "/v1/catalog/can", {"privilege": "own", "on": ON_A}) == {
            "allowed": True,
            "reason": "grants are not in force: every caller may do everything",
            "in_force": False,
        }
        assert made.answer("bob", "/v1/catalog/grants") == {"in_force": False, "grants": [], "roles": []}
        enabled = made.ask("bob", "/v1/catalog/access", {"administrators": [to(ADMIN)]}, key="on")
        assert enabled.json()["changed"] is True
        again = made.ask("bob", "/v1/catalog/access", {"administrators": [to(ADMIN)]}, key="on")
        assert again.json() == enabled.json()
        yield made


def test_once_in_force_nothing_is_open(callers: KeyedRequests) -> None:
    refused = callers.ask("bob", "/v1/catalog/access", {"administrators": [to("bob")]})
    assert (refused.status_code, refused.json()["code"]) == (403, 15)
    assert callers.ask("bob", "/v1/namespace/a/describe", {}).status_code == 404
    again = callers.ask(ADMIN, "/v1/catalog/access", {"administrators": [to("bob")]})
    assert (again.status_code, again.json()["code"]) == (400, 13)


def test_changes_are_one_version_and_answered_in_their_lists(callers: KeyedRequests) -> None:
    before = callers.version
    answer = callers.change(
        ADMIN,
        grants=[
            {"on": ON_A, "to": {"role": "readers"}, "privileges": ["read"]},
            {"on": ON_T, "to": to("ann"), "privileges": ["write", "see"]},
        ],
        role_grants=[{"role": "readers", "to": to("bob")}],
        revokes=[{"on": ON_A, "to": to("nobody")}],
    )
    assert callers.version == before + 1
    assert answer.pop("transaction_id")
    assert answer == {
        "grants": [{"changed": True, "privileges": ["read"]}, {"changed": True, "privileges": ["see", "write"]}],
        "role_grants": [{"changed": True}],
        "revokes": [{"changed": False, "privileges": []}],
    }
    can = callers.answer("bob", "/v1/catalog/can", {"privilege": "read", "on": ON_T})
    assert can["allowed"] is True
    assert can["reason"] == "read granted to role readers on namespace a, a role of principal bob"
    part = callers.change(ADMIN, revokes=[{"on": ON_T, "to": to("ann"), "privileges": ["write"]}])
    assert part["revokes"] == [{"changed": True, "privileges": ["see"]}]
    callers.change(ADMIN, revokes=[{"on": ON_A, "to": {"role": "readers"}}, {"on": ON_T, "to": to("ann")}])
    assert callers.answer("bob", "/v1/catalog/can", {"privilege": "read", "on": ON_T})["allowed"] is False


def test_a_change_of_which_one_part_is_denied_does_nothing(callers: KeyedRequests) -> None:
    callers.change(ADMIN, grants=[{"on": ON_T, "to": to("ann"), "privileges": ["grant", "read"]}])
    before = callers.version
    grants = [{"on": ON_T, "to": to("eve"), "privileges": [each]} for each in ("read", "write", "drop")]
    refused = callers.ask("ann", "/v1/catalog/grants", {"grants": grants})
    assert (refused.status_code, refused.json()["outcome"]) == (403, "nothing_done")
    failures = refused.json()["failures"]
    assert [(each["operation_index"], each["id"], each["privilege"]) for each in failures] == [
        (1, ["a", "t"], "write"),
        (2, ["a", "t"], "drop"),
    ]
    assert callers.version == before
    callers.change("ann", grants=grants[:1], revokes=[{"on": ON_T, "to": to("eve")}])
    hidden = callers.ask("eve", "/v1/catalog/grants", {"grants": [{**grants[0], "on": {"table": ["a", "u"]}}]})
    assert (hidden.status_code, hidden.json()["code"]) == (404, 4)
    callers.change(ADMIN, revokes=[{"on": ON_T, "to": to(who)} for who in ("ann", "eve")])


def test_a_grant_stands_beside_a_creation_in_one_batch(callers: KeyedRequests) -> None:
    callers.change(ADMIN, grants=[{"on": ON_A, "to": to("ann"), "privileges": ["create"]}])
    shared = {"grant_privileges": {"on": {"table": ["a", "new"]}, "to": to("eve"), "privileges": ["read"]}}
    batch = {"operations": [{"declare_table": {"id": ["a", "new"]}}, shared]}
    answer = callers.answer("ann", "/v1/table/batch-commit", batch)
    assert answer["results"][1] == {"grant_privileges": {"changed": True, "privileges": ["read"]}}
    assert callers.answer("eve", "/v1/table/a$new/describe", {})["table"] == "new"
    [made] = callers.answer(ADMIN, "/v1/catalog/versions", limit=1)["versions"][0]["batches"]
    assert made["principal"] == "ann"
    assert made["operations"][1] == {
        "operation": "grant_privileges",
        "on": {"table": ["a", "new"]},
        "to": {"principal": "eve"},
        "privileges": ["read"],
    }


def test_callers_see_their_own_grants_and_those_that_they_may_give(callers: KeyedRequests) -> None:
    callers.change(
        ADMIN,
        grants=[{"on": ON_A, "to": to(who), "privileges": ["see"]} for who in ("ann", "bob", "eve")],
        role_grants=[{"role": "staff", "to": to("eve")}],
    )
    own = callers.answer("bob", "/v1/catalog/grants")
    assert [each["to"] for each in own["grants"]] == [to("bob")]
    assert {each["role"] for each in callers.answer("eve", "/v1/catalog/grants")["roles"]} == {"staff"}
    callers.change(ADMIN, grants=[{"on": ON_A, "to": to("bob"), "privileges": ["grant"]}])
    listed = callers.answer("bob", "/v1/catalog/grants", object="a")["grants"]
    assert [each["to"]["principal"] for each in listed] == ["ann", "bob", "eve"]
    assert listed[1] | {"since_version": 0, "timestamp_millis": 0} == {
        "on": ON_A,
        "to": to("bob"),
        "privileges": ["see", "grant"],
        "since_version": 0,
        "timestamp_millis": 0,
        "principal": ADMIN,
    }
    everything = callers.answer(ADMIN, "/v1/catalog/grants")["grants"]
    assert everything[0]["on"] == {"catalog": True}
    paged: list[Any] = []
    query: dict[str, Any] = {"limit": 2}
    while True:
        page = callers.answer(ADMIN, "/v1/catalog/grants", **query)
        assert len(page["grants"]) == 2 or "page_token" not in page
        paged += page["grants"]
        if "page_token" not in page:
            break
        query["page_token"] = page["page_token"]
    assert paged == everything
    assert callers.answer(ADMIN, "/v1/catalog/grants", principal="eve", object="a")["grants"] == [listed[2]]


def test_about_others_asks_who_may_grant(callers: KeyedRequests) -> None:
    asked = {"privilege": "see", "on": ON_A, "principal": "eve"}
    assert callers.answer("eve", "/v1/catalog/can", asked)["allowed"] is True
    assert callers.answer(ADMIN, "/v1/catalog/can", asked | {"principal": "x", "roles": ["staff"]})["allowed"] is False
    for on in (ON_A, {"table": ["a", "t"]}, {"table": ["no", "where"]}):
        refused = callers.ask("ann", "/v1/catalog/can", asked | {"on": on})
        assert (refused.status_code, refused.json()["code"]) == (403, 15)
    assert callers.answer("ann", "/v1/catalog/can", {"privilege": "drop", "on": {"catalog": True}})["allowed"] is False


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({}, "expected at least one of revokes, role_revokes, role_grants, grants"),
        ({"grants": []}, "grants: expected a non-empty list"),
        ({"grants": [{"on": {}, "to": to("x"), "privileges": ["read"]}]}, "on: expected exactly one of"),
        ({"grants": [{"on": {"table": []}, "to": to("x"), "privileges": ["read"]}]}, "expected at least one name"),
        ({"grants": [{"on": {"catalog": False}, "to": to("x"), "privileges": ["read"]}]}, "on.catalog: expected true"),
        ({"grants": [{"on": ON_A, "to": {}, "privileges": ["read"]}]}, "to: expected exactly one of principal, role"),
        ({"grants": [{"on": ON_A, "to": to(" "), "privileges": ["read"]}]}, "1 to 255 printable characters"),
        ({"grants": [{"on": ON_A, "to": to("x" * 256), "privileges": ["read"]}]}, "1 to 255 printable characters"),
        ({"grants": [{"on": ON_A, "to": to("x"), "privileges": ["reed"]}]}, "found 'reed'"),
        ({"grants": [{"on": ON_A, "to": to("x"), "privileges": ["read"], "deny": True}]}, "found deny"),
        ({"role_grants": [{"role": "everyone", "to": to("x")}]}, "which every caller has"),
        ({"role_grants": [{"role": "a", "to": {"role": "a"}}]}, "expected no cycle"),
    ],
)
def test_what_is_no_change_of_grants_is_refused(callers: KeyedRequests, body: Any, error: str) -> None:
    refused = callers.ask(ADMIN, "/v1/catalog/grants", body)
    assert (refused.status_code, refused.json()["code"]) == (400, 13), refused.text
    assert error in refused.json()["error"]


def test_ids_are_below_the_database_of_a_request(callers: KeyedRequests) -> None:
    grant = {"grant_privileges": {"on": {"table": ["t"]}, "to": to("eve"), "privileges": ["read"]}}
    headers = as_principal(ADMIN) | {"x-lancedb-database": "a"}
    answer = callers.http.post("/v1/table/batch-commit", json={"operations": [grant]}, headers=headers)
    assert answer.status_code == 200, answer.text
    assert callers.answer("eve", "/v1/catalog/can", {"privilege": "read", "on": ON_T})["allowed"] is True
    callers.change(ADMIN, revokes=[{"on": ON_T, "to": to("eve")}])


def test_in_this_process_the_operator_is_not_judged(callers: KeyedRequests) -> None:
    namespace = DirectoryNamespace(root=str(callers.root), durability="none")
    try:
        names = {"principal": "late"}
        changed = namespace.write("change_grants", {"grants": [{"on": ON_A, "to": names, "privileges": ["own"]}]}).body
        assert changed["grants"] == [{"changed": True, "privileges": ["own"]}]
        found = namespace.read("list_grants", names).body["grants"]
        assert isinstance(found, list)
        assert len(found) == 1
        decided = namespace.read("check_privilege", {"privilege": "drop", "on": ON_T, **names}).body
        assert decided["allowed"] is True
        assert namespace.read("check_privilege", {"privilege": "drop", "on": ON_T}).body["reason"] == (
            "the operator of the catalog is not judged"
        )
    finally:
        namespace.close()
