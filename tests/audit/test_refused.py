"""What is recorded of requests over HTTP, and who may read it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError, PermissionDeniedError, TableNotFoundError

from namespace_server.app import create_app
from namespace_server.attempts import Authorization, with_authorizations
from namespace_server.directory.committing.committer import Committer
from namespace_server.directory.model.errors import BatchUnknown
from namespace_server.directory.model.operations import Batch, DropTable
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.rest.audit import refused_attempt
from namespace_server.rest.identity import Authenticator
from namespace_server.rest.middleware import local_hosts
from namespace_server.rest.request.ids import IdScope
from tests.access.granting import ADMIN, as_principal, granted, keys, switch_on
from tests.audit.lines import log_in, written
from tests.audit.served import ANN, BOB, KEYS, audited
from tests.rest.conftest import EchoCatalog
from tests.running import running, serving
from tests.waiting import until


def lines(root: Path) -> list[dict[str, Any]]:
    return written(root / "audit")


def test_accepted_requests_and_reads_of_what_is_not_there_are_none(tmp_path: Path) -> None:
    with audited(tmp_path) as server:
        assert server.post("/v1/namespace/n/create").status_code == 200
        assert server.post("/v1/table/n$t/describe").status_code == 404
        assert server.http.get("/v1/nothing", headers=ANN).status_code == 404
        assert server.post("/v1/table/n$t/describe", {"id": 5}).status_code == 400
    assert not (tmp_path / "audit").exists()


def test_requests_without_the_right_credentials_are_denied(tmp_path: Path) -> None:
    with audited(tmp_path) as server:
        server.post("/v1/table/n$t/drop", headers={"x-request-id": "none"})
        server.http.get("/v1/catalog", headers={"x-api-key": "a-wrong-key", "x-request-id": "wrong"})
        for _ in range(3):
            server.post("/v1/table/n$t/describe", headers={"x-api-key": "another-wrong-key"})
    none, wrong, *_, bounded = lines(tmp_path)
    assert none["authorizations"] == [
        {
            "privilege": "authenticate",
            "allowed": False,
            "kind": "server",
            "id": [],
            "reason": "credentials: expected x-api-key or Authorization: Bearer, found neither",
        }
    ]
    assert (none["action"], none["decision"], none["status"]) == ("drop_table", "denied", 401)
    assert none["request_id"] == "none"
    assert none["objects"] == [{"kind": "table", "id": ["n", "t"]}]
    assert (none["client"], none["user_agent"]) == ("127.0.0.1", "client/1")
    assert "principal" not in none
    assert len(wrong["key_sha256"]) == 12
    assert wrong["action"] == "describe_catalog"
    assert (bounded["status"], bounded["decision"]) == (429, "denied")
    assert "wrong-key" not in json.dumps(lines(tmp_path))


def test_a_page_of_another_site_is_denied(tmp_path: Path) -> None:
    with audited(tmp_path, hosts=local_hosts("127.0.0.1")) as server:
        server.http.get("/v1/catalog", headers={"host": "evil.example", **ANN})
        server.post("/v1/namespace/n/create", headers={"origin": "https://evil.example", **ANN})
    host, origin = lines(tmp_path)
    assert host["decision"] == origin["decision"] == "denied"
    assert host["authorizations"][0]["privilege"] == "call"
    assert (host["status"], host["action"]) == (403, "unmatched")


def test_a_conflict_tells_operation_expected_found_and_kind(tmp_path: Path) -> None:
    with audited(tmp_path) as server:
        server.post("/v1/namespace/n/create")
        server.post("/v1/table/n$t/declare")
        wanted = {"id": ["n", "t"], "version": 3}
        operations = [{"declare_table": {"id": ["n", "u"]}}, {"assert_table_version": wanted}]
        answer = server.post("/v1/table/batch-commit", {"operations": operations})
        assert answer.status_code == 409
        transaction = server.http.get("/v1/catalog/versions", headers=ANN).json()["versions"]
    [line] = lines(tmp_path)
    assert (line["action"], line["decision"]) == ("batch_commit_tables", "rejected")
    assert (line["principal"], line["means"]) == ("ann", "api_key")
    assert line["objects"] == [{"kind": "table", "id": ["n", "u"]}]  # those that it would change
    [failure] = line["failures"]
    assert failure.pop("kind") in {"retryable", "incompatible"}
    assert {
        "operation_index": 1,
        "operation": "assert_table_version",
        "id": ["n", "t"],
        "expected": 3,
    }.items() <= failure.items()
    assert line["transaction_id"] not in json.dumps(transaction)
    assert line["code"] == 14


def test_other_refusals_of_changes_tell_what_was_expected_without_literals(tmp_path: Path) -> None:
    place = "s3://user:secret-1@bucket/x?sig=secret-2"
    with audited(tmp_path) as server:
        server.post("/v1/table/n$t/drop")
        server.post("/v1/table/n$t/tags/create", {"tag": "secret-3", "version": 1})
        server.post("/v1/table/t/register", {"location": place})
        server.post("/v1/namespace/n/create", {"properties": {"x": {"secret-4": 1}}})
        server.post("/v1/namespace/n/create", {"mode": "secret-5"})
    dropped, tag, registered, properties, mode = lines(tmp_path)
    assert dropped["detail"].startswith("Table not found: n$t")
    assert (dropped["objects"], dropped["status"]) == ([{"kind": "table", "id": ["n", "t"]}], 404)
    assert (tag["action"], tag["decision"]) == ("create_table_tag", "rejected")
    assert registered["objects"] == [{"kind": "table", "id": ["t"]}]
    assert properties["objects"] == mode["objects"] == [{"kind": "namespace", "id": ["n"]}]
    assert {line["status"] for line in (registered, properties, mode)} == {400}
    assert "secret-" not in json.dumps(lines(tmp_path))


def _no_place(*_: object) -> IdScope:
    raise AssertionError("the objects of a batch are those of its operations")


def test_the_text_of_a_verdict_has_no_literals_and_no_addresses() -> None:
    error = InvalidInputError(
        "table t: expected a place below the root, found 'secret-1' at s3://user:secret-2@bucket/x?sig=secret-3, "
        'property "secret-4" and \'secret-5'
    )
    scope = {
        "is_change": True,
        "batch": Batch("b-1", (DropTable(("t",)),), "h"),
        "operation": "drop_table",
        "header_map": {},
        "client_address": None,
        "request_id": "r-1",
    }
    found = refused_attempt(error, error, 400, scope, _no_place, shows_text=True)
    assert found is not None
    assert found.detail == "table t: expected a place below the root, found (…) at (…) property (…) and (…)"
    hidden = refused_attempt(error, error, 400, scope, _no_place, shows_text=False)
    assert hidden is not None
    assert hidden.detail is None


def test_nothing_of_rows_and_filters_is_told(tmp_path: Path) -> None:
    rows = pa.table({"name": ["secret-1"]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    content = {"content-type": "application/vnd.apache.arrow.stream", **ANN}
    with audited(tmp_path) as server:
        server.post("/v1/namespace/n/create")
        assert (
            server.http.post("/v1/table/n$t/create", content=bytes(sink.getvalue()), headers=content).status_code == 200
        )
        server.post("/v1/table/n$t/delete", {"predicate": "name = 'secret-2' AND secret_3 = 1"})
        server.post("/v1/table/n$t/update", {"updates": [["name", "secret_4"]]})
        server.post("/v1/table/n$t/query", {"filter": "secret_5 = 1", "k": 1, "vector": []})
        options = {"storage_options": json.dumps({"aws_secret_access_key": "secret-6"})}
        server.http.post("/v1/table/n$t/create", params=options, content=bytes(sink.getvalue()), headers=content)
    assert [line["action"] for line in lines(tmp_path)] == ["delete_from_table", "update_table", "create_table"]
    text = json.dumps(lines(tmp_path))
    assert "secret" not in text
    assert '"id": ["n", "t"]' in text


def test_an_unknown_outcome_is_told_with_its_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with audited(tmp_path) as server:
        server.post("/v1/namespace/n/create")

        def decide(_self: Committer, batches: Any) -> Any:
            raise BatchUnknown(batches[0].uuid, "the store said secret-1")

        monkeypatch.setattr(Committer, "decide", decide)
        assert server.post("/v1/table/n$t/declare").status_code == 503
    [line] = lines(tmp_path)
    assert (line["decision"], line["status"], line["action"]) == ("unknown", 503, "declare_table")
    assert len(line["transaction_id"]) == 36
    assert "secret" not in json.dumps(line)


def test_an_error_carries_its_authorizations_whatever_the_client_is_told(tmp_path: Path) -> None:
    catalog = EchoCatalog()
    hidden = Authorization("see", False, "no grant of ann or everyone", "table", ("n", "t"))
    checks = [
        Authorization("create", True, "create on namespace n, by role team", "namespace", ("n",), 0),
        Authorization("drop", False, "no grant", "table", ("n", "u"), 1),
    ]
    with audited(tmp_path, catalog) as server:
        catalog.failure = with_authorizations(TableNotFoundError("Table not found: n$t does not exist"), [hidden])
        answer = server.post("/v1/table/n$t/describe")
        assert (answer.status_code, answer.json()["error"]) == (404, "Table not found: n$t does not exist")
        assert "grant" not in answer.text
        catalog.failure = with_authorizations(PermissionDeniedError("nothing was done"), checks)
        assert server.post("/v1/namespace/n/list", headers=ANN).status_code == 405
        assert server.http.get("/v1/namespace/n/list", headers=ANN).status_code == 403
    read, listed = lines(tmp_path)
    assert (read["decision"], read["action"], read["principal"]) == ("denied", "describe_table", "ann")
    assert read["authorizations"][0]["reason"] == "no grant of ann or everyone"
    assert [each["allowed"] for each in listed["authorizations"]] == [True, False]
    assert listed["authorizations"][1]["operation_index"] == 1


@pytest.mark.parametrize("name", ["a%0Ab", "a%00b", "x" * 10_000, "%FF", "%E2%80%AE", "%1B%5B2J"])
def test_names_of_any_kind_are_recorded_in_one_line(tmp_path: Path, name: str) -> None:
    with audited(tmp_path) as server:
        assert server.post(f"/v1/table/{name}/drop").status_code in {400, 404}
        server.post(f"/v1/table/{name}/drop", headers={"x-api-key": "a-wrong-key"})
    rejected, denied = lines(tmp_path)
    assert (rejected["decision"], denied["decision"]) == ("rejected", "denied")
    assert rejected["objects"] == denied["objects"]
    assert len(rejected["objects"]) == 1


def test_a_log_that_fails_fails_no_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with audited(tmp_path) as server:
        monkeypatch.setattr("namespace_server.rest.middleware.refused_attempt", lambda *_, **__: 1 / 0)
        assert server.post("/v1/table/n$t/drop").status_code == 404
        monkeypatch.undo()
        (tmp_path / "audit").write_bytes(b"in the way")
        assert server.post("/v1/table/n$t/drop").status_code == 404
        assert 'refused_attempts_total{decision="rejected"} 1.0' in server.http.get("/metrics", headers=ANN).text


def test_auditors_alone_read_what_was_refused(tmp_path: Path) -> None:
    with audited(tmp_path) as server:
        refused = "/v1/catalog/audit/refused"
        server.post("/v1/table/n$t/drop", headers={"x-request-id": "1", **ANN})
        server.post("/v1/table/n$u/drop", headers={"x-request-id": "2", **ANN})
        answer = server.http.get(refused, headers={"x-request-id": "3", **ANN})
        assert (answer.status_code, answer.json()["code"]) == (403, 15)
        assert server.http.get("/v1/catalog/audit/versions", headers=ANN).status_code == 403
        assert server.http.get(refused).status_code == 401
        until(lambda: len(written(server.directory)) == 5)
        page = server.http.get(refused, params={"limit": 2}, headers=BOB).json()
        more = server.http.get(refused, params={"page_token": page["page_token"]}, headers=BOB).json()
        everything = page["attempts"] + more["attempts"]
        assert [line["request_id"] for line in everything][2:] == ["3", "2", "1"]
        assert "page_token" not in more
        assert everything[2]["authorizations"][0]["privilege"] == "grant"

        def found(**given: Any) -> list[str]:
            rows = server.http.get(refused, params=given, headers=BOB).json()["attempts"]
            return [line["request_id"] for line in rows]

        assert found(object="n$u") == found(object="n.u", delimiter=".") == ["2"]
        assert found(principal="ann", decision="rejected") == ["2", "1"]
        for wrong in ({"decision": "x"}, {"page_token": "x"}, {"unknown": "1"}, {"limit": "x"}):
            assert server.http.get(refused, params=wrong, headers=BOB).status_code == 400
        pinned = {"x-lance-catalog-version": "1", **BOB}
        assert server.http.get(refused, headers=pinned).status_code == 400


def test_auditors_alone_read_where_changes_came_from(tmp_path: Path) -> None:
    with audited(tmp_path) as server:
        server.post("/v1/namespace/n/create", headers={"x-request-id": "r-1", **ANN})
        [version, *_] = server.http.get("/v1/catalog/audit/versions", headers=BOB).json()["versions"]
        [batch] = version["batches"]
        assert batch["origin"] == {"client": "127.0.0.1", "user_agent": "client/1", "request_id": "r-1"}
        assert batch["principal"] == "ann"


def test_a_server_without_keys_has_no_auditors(tmp_path: Path) -> None:
    namespace = DirectoryNamespace(root=str(tmp_path / "root"), durability="none")
    app = create_app(namespace, Authenticator({}), attempts=log_in(tmp_path / "audit"), auditors=["bob"])
    with serving(app) as url:
        assert httpx.get(f"{url}/v1/catalog/audit/refused").status_code == 403


def test_a_server_that_records_nothing_says_so(tmp_path: Path) -> None:
    namespace = DirectoryNamespace(root=str(tmp_path), durability="none")
    with serving(create_app(namespace, Authenticator(KEYS), auditors=["bob"])) as url:
        answer = httpx.get(f"{url}/v1/catalog/audit/refused", headers=BOB)
        assert (answer.status_code, answer.json()["code"]) == (406, 0)
        assert "audit_log is off" in answer.text


def test_with_grants_each_check_is_told_and_grant_on_the_catalog_makes_an_auditor(tmp_path: Path) -> None:
    root = tmp_path / "root"
    operations = [{"declare_table": {"id": ["n", "u"]}}, {"deregister_table": {"id": ["n", "t"]}}]
    eve = as_principal("eve")
    with (
        running(root, keys(ADMIN, "eve"), log_in(tmp_path / "audit")) as url,
        httpx.Client(base_url=url, headers=as_principal(ADMIN), timeout=60) as http,
    ):
        assert http.post("/v1/namespace/n/create", json={}).status_code == 200
        assert http.get("/v1/catalog/audit/refused").status_code == 403
        switch_on(root, granted("namespace", "n", "eve", "create"))
        assert http.post("/v1/table/n$t/declare", json={}).status_code == 200
        batch = http.post("/v1/table/batch-commit", json={"operations": operations}, headers=eve)
        assert batch.status_code in {403, 404}
        assert http.post("/v1/table/n$t/describe", json={}, headers=eve).status_code == 404
        assert http.get("/v1/catalog/audit/refused", headers=eve).status_code == 403
        until(lambda: len(written(tmp_path / "audit")) == 4)
        assert len(http.get("/v1/catalog/audit/refused").json()["attempts"]) == 4
        [newest, *_] = http.get("/v1/catalog/audit/versions").json()["versions"]
        [declared] = newest["batches"]
        assert declared["granted"][0]["privilege"] == "create"
        assert "granted" not in http.get("/v1/catalog/versions").text
    _, denied, hidden, audit = lines(tmp_path)
    assert {line["decision"] for line in (denied, hidden, audit)} == {"denied"}
    refused = [each for each in denied["authorizations"] if not each["allowed"]]
    assert [(each["id"], each["operation_index"]) for each in refused] == [(["n", "t"], 1)]
    assert hidden["authorizations"][0]["privilege"] == "see"
    assert (hidden["status"], hidden["principal"]) == (404, "eve")
