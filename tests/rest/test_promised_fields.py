"""Every field and query parameter that the OpenAPI document promises is read, and no other one is taken and ignored."""

from __future__ import annotations

import ast
import base64
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import lance
import pyarrow as pa
import pytest

import namespace_server
import table_data
from lance_core.proto import lance_table_pb2 as pb
from namespace_server.directory.json_api import JsonCatalog
from namespace_server.directory.maintenance.requested import OPERATION
from namespace_server.directory.model.batch_requests import CALLS, IN_BATCHES, read_operations
from namespace_server.directory.model.promised_fields import FIELDS
from table_data.requests import table_requests
from tests.audit.lines import log_in
from tests.data.arrow import ARROW
from tests.rest.promised import MORE, NAMESPACE, REQUESTS, Asked, Scene
from tests.rest.test_openapi import OPERATIONS
from tests.running import running

_TABLE = {"id": ["t"]}
_UUID = str(uuid.UUID(int=1))
_ON, _TO = {"table": ["t"]}, {"principal": "ann"}


def test_the_operations_of_the_document_are_those_of_the_catalog() -> None:
    """`make check` compares the fields with the document."""
    assert FIELDS.keys() == JsonCatalog.READS | JsonCatalog.CHANGES | CALLS | IN_BATCHES.keys() | {OPERATION}


class _Recording(dict[str, Any]):
    """A request that knows which of its fields were looked at."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        super().__init__(fields)
        self.seen: set[object] = set()

    def get(self, field: Any, default: Any = None) -> Any:
        self.seen.add(field)
        return super().get(field, default)

    def __contains__(self, field: object) -> bool:
        self.seen.add(field)
        return super().__contains__(field)


def _transaction() -> str:
    message = pb.Transaction(uuid=_UUID, read_version=1)
    message.append.SetInParent()
    return base64.b64encode(message.SerializeToString()).decode()


_REQUESTS: Mapping[str, Mapping[str, Any]] = {
    "list_all_tables": {"id": []},
    "describe_catalog_version": {"version": 1},
    "describe_transaction": {"id": ["t", "1"]},
    "get_table_tag_version": {**_TABLE, "tag": "v"},
    "alter_transaction": {"id": ["t", "1"], "actions": [{"setStatusAction": {"status": "Succeeded"}}]},
    "update_table_tag": {**_TABLE, "tag": "v", "version": 1},
    "delete_table_tag": {**_TABLE, "tag": "gone"},
    "create_table_tag": {**_TABLE, "tag": "w", "version": 1},
    "clone_table": {"id": ["clone"], "source_location": "at the table", "source_tag": "v"},
    "delete_table_branch": {**_TABLE, "name": "dev"},
    "create_table_branch": {**_TABLE, "name": "new"},
    "register_table": {**_TABLE, "location": "found"},
    "rename_table": {**_TABLE, "new_table_name": "u"},
    "create_table_version": {**_TABLE, "version": 2, "manifest_path": "x"},
    "delete_table_versions": {**_TABLE, "ranges": [{"start_version": 1, "end_version": 2}]},
    "batch_delete_table_versions": {**_TABLE, "ranges": [{"start_version": 1, "end_version": 2}]},
    "pin_catalog_version": {"name": "p"},
    "unpin_catalog_version": {"name": "p"},
    "advance_cursor": {"name": "c"},
    "delete_cursor": {"name": "c"},
    "list_catalog_events": {"since": 0},
    "find_tables": {"text": "t"},
    "list_grants": {"principal": "ann", "object": "t"},
    "check_privilege": {"privilege": "read", "on": _ON},
    "enable_grants": {"administrators": [_TO]},
    "change_grants": {"grants": [{"on": _ON, "to": _TO, "privileges": ["read"]}]},
    "grant_privileges": {"on": _ON, "to": _TO, "privileges": ["read"]},
    "revoke_privileges": {"on": _ON, "to": _TO},
    "grant_role": {"role": "staff", "to": _TO},
    "revoke_role": {"role": "staff", "to": _TO},
    "register_intent": {"intent_id": _UUID, "tables": [_TABLE]},
    "end_intent": {"intent_id": _UUID},
    "commit_transaction": {**_TABLE, "transaction": _transaction()},
    "assert_table_version": {**_TABLE, "version": 1},
    "batch_commit_tables": {"operations": [{"declare_table": {"id": ["n"]}}]},
    "batch_create_table_versions": {"entries": [{**_TABLE, "version": 2, "manifest_path": "x"}]},
}
"""What a request of the operation needs; an id of a table, or of the root, where none is here."""


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JsonCatalog]:
    """A catalog with a table that has a tag and a branch."""
    root = tmp_path_factory.mktemp("fields")
    made = JsonCatalog(root=str(root))
    location = made.write("declare_table", {"id": ["t"]}).body["location"]
    lance.write_dataset(pa.table({"a": [1]}), str(location))
    made.change("create_table_tag", {"id": ["t"], "tag": "v", "version": 1})
    made.change("create_table_tag", {"id": ["t"], "tag": "gone", "version": 1})
    made.write("create_table_branch", {"id": ["t"], "name": "dev"})
    yield made
    made.close()


@pytest.mark.parametrize("operation", sorted(FIELDS))
def test_every_field_of_an_operation_of_the_catalog_is_read(catalog: JsonCatalog, operation: str) -> None:
    root = operation in {"describe_namespace", "namespace_exists", "list_namespaces", "list_tables"}
    needed = _REQUESTS.get(operation) or {"id": [] if root else ["ns" if "namespace" in operation else "t"]}
    request = _Recording({field: value for field, value in needed.items() if field in FIELDS[operation]})
    if operation == "clone_table":
        request["source_location"] = catalog.read("describe_table", _TABLE).body["location"]
    if operation in catalog.READS:
        catalog.read(operation, request)
    elif operation in catalog.CHANGES:
        catalog.change(operation, request)
    elif operation in CALLS:
        catalog.prepare(operation, request)
    elif operation == OPERATION:
        catalog.tables().maintain(request, catalog.data.change)
    else:
        read_operations("batch_commit_tables", {"operations": [{operation: request}]}, catalog._rules)
    elsewhere = {"identity", "delimiter"}  # dropped where it comes in; read with the path
    if operation in {"declare_table", "create_table_version"}:
        elsewhere |= {"context"} - request.seen
    missing = FIELDS[operation] - request.seen - elsewhere
    assert not missing


def _words(package: Path, without: str) -> set[str]:
    """All texts and names in the code of a package."""
    found: set[str] = set()
    for path in package.rglob("*.py"):
        if path.name != without:
            tree = ast.parse(path.read_text())
            found |= {
                node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
            }
            found |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg}
    return found


def test_every_field_of_an_operation_on_rows_is_read() -> None:
    kinds = [
        kind
        for kind in vars(table_requests).values()
        if isinstance(kind, type) and kind.__module__ == table_requests.__name__
    ]
    fields = set().union(*(kind.__annotations__ for kind in kinds))
    read = _words(Path(table_data.__file__).parent, "table_requests.py")
    read |= _words(Path(namespace_server.__file__).parent / "data", "")
    read |= _words(Path(namespace_server.__file__).parent / "directory", "promised_fields.py") & {
        "since",
        "cursor",
        "to",
    }
    assert len(fields) > 60
    assert not fields - read


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    root = tmp_path_factory.mktemp("promised") / "root"
    log, key = log_in(root.with_name("audit")), {"x-api-key": "key-of-ann"}
    with (
        running(root, {"key-of-ann": "ann"}, log, ["ann"]) as url,
        httpx.Client(base_url=url, timeout=60, headers=key) as http,
    ):
        made = Scene(http, root)
        made.ask(f"/v1/namespace/{NAMESPACE}/create", {})
        yield made


_PROBES = {"HealthLive", "HealthReady"}  # of load balancers, which may add what they like
_OTHER_CATALOGS = {"EnableGrants", "ChangeGrants"}  # they succeed where grants are in force, see tests/access


@pytest.mark.parametrize("place", OPERATIONS, ids=lambda place: OPERATIONS[place]["operationId"])
def test_what_an_operation_does_not_have_is_refused(scene: Scene, place: tuple[str, str]) -> None:
    name = OPERATIONS[place]["operationId"]
    if name in _PROBES:
        return
    asked = REQUESTS[name](scene, f"unknown-{name}")
    before = scene.http.get("/v1/catalog").json()["version"]

    query = Asked(asked.body, asked.id, {**(asked.query or {}), "lmit": "1"}, asked.names)
    answer = query.send(scene.http, *place)
    assert (answer.status_code, answer.json()["code"]) == (400, 13), answer.text
    assert "lmit" in answer.json()["error"]
    if isinstance(asked.body, dict) and name != "UpdateTableSchemaMetadata":  # whose body is keys of the client's own
        answer = Asked({**asked.body, "prefliter": True}, asked.id, asked.query, asked.names).send(scene.http, *place)
        assert (answer.status_code, answer.json()["code"]) == (400, 13), answer.text
        assert "prefliter" in answer.json()["error"]
    assert scene.http.get("/v1/catalog").json()["version"] == before

    if name in _OTHER_CATALOGS:
        return
    if isinstance(asked.body, dict) and name != "UpdateTableSchemaMetadata":
        asked = Asked({**asked.body, "later": None}, asked.id, asked.query, asked.names)
    assert asked.send(scene.http, *place).status_code == 200  # null is absent


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/table/batch-commit", {"operations": [{"declare_table": {"id": ["x"], "lokation": "y"}}]}),
        (
            "/v1/table/version/batch-create",
            {"entries": [{"id": ["x"], "version": 1, "manifest_path": "y", "lokation": 1}]},
        ),
        ("/v1/table/t/version/delete", {"ranges": [{"start_version": 1, "end_version": 2, "lokation": 1}]}),
        ("/v1/catalog/intents", {"intent_id": _UUID, "tables": [{"id": ["x"], "lokation": "y"}]}),
        (
            "/v1/transaction/t$1/alter",
            {"actions": [{"setPropertyAction": {"key": "a", "value": "b", "lokation": "y"}}]},
        ),
        ("/v1/table/t/query", {"k": 1, "vector": {"single_vector": [1], "lokation": 1}}),
        ("/v1/table/t/query", {"full_text_query": {"string_query": {"query": "x", "lokation": 1}}}),
        ("/v1/table/t/add_columns", {"new_columns": [{"name": "a", "expression": "1", "lokation": 1}]}),
        ("/v1/table/t/alter_columns", {"alterations": [{"path": "a", "lokation": 1}]}),
    ],
)
def test_what_is_inside_of_a_request_is_refused_too(scene: Scene, path: str, body: Any) -> None:
    answer = scene.http.post(path, json=body)
    assert (answer.status_code, answer.json()["code"]) == (400, 13), answer.text
    assert "lokation" in answer.json()["error"]


@pytest.mark.parametrize("place", [place for place in OPERATIONS if place[0] == "GET"], ids=str)
def test_a_body_that_nothing_reads_is_refused(scene: Scene, place: tuple[str, str]) -> None:
    name = OPERATIONS[place]["operationId"]
    if name in _PROBES:
        return
    asked = REQUESTS[name](scene, f"body-{name}")
    answer = Asked({"limit": 1}, asked.id, asked.query, asked.names).send(scene.http, *place)
    assert (answer.status_code, answer.json()["code"]) == (400, 13), answer.text
    assert "GET: expected no body" in answer.json()["error"]
    assert Asked({}, asked.id, asked.query, asked.names).send(scene.http, *place).status_code == 200


@pytest.mark.parametrize(
    ("change", "query", "error"),
    [
        ("insert", "mode=append&mode=overwrite", "mode: expected one value, found"),
        ("insert", "mode=", "mode '': expected one of append, overwrite"),
        ("insert", "branch=dev&delimiter=.&branch=main", "branch: expected one value, found"),
        ("insert", "delimiter=.&delimiter=$", "delimiter: expected one value, found"),
        ("merge_insert", "on=a&use_index=true&use_index=false", "use_index: expected one value"),
        ("create", "mode=", "mode '': expected one of create"),
    ],
)
def test_of_two_values_none_is_ignored(scene: Scene, scanned: str, change: str, query: str, error: str) -> None:
    answer = Asked(MORE, scanned).send(scene.http, "POST", f"/v1/table/{{id}}/{change}?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, 13), answer.text
    assert error in answer.json()["error"]


def test_the_same_value_twice_is_one(scene: Scene) -> None:
    table = scene.table("same", versions=3)
    listed = scene.http.post(f"/v1/table/{table}/version/list?limit=1&limit=1", json={})
    assert len(listed.json()["versions"]) == 1
    keys = scene.http.post(f"/v1/table/{table}/merge_insert?on=a&on=s", content=MORE, headers=ARROW)
    assert keys.json()["num_inserted_rows"] == 0
    refused = scene.http.get("/v1/catalog/versions?limit=1&limit=2")
    assert (refused.status_code, refused.json()["code"]) == (400, 13)


@pytest.mark.parametrize(
    "field",
    [
        *({"distance_type": "l2"}, {"ef": 4}, {"lower_bound": 0.5}, {"upper_bound": 1}),
        *({"nprobes": 1}, {"minimum_nprobes": 1}, {"maximum_nprobes": 1}, {"refine_factor": 2}, {"vector_column": "a"}),
    ],
    ids=str,
)
def test_settings_of_a_search_belong_to_one(scene: Scene, scanned: str, field: dict[str, Any]) -> None:
    answer = scene.http.post(f"/v1/table/{scanned}/query", json={"k": 1, **field})
    assert (answer.status_code, answer.json()["code"]) == (400, 13), answer.text
    assert f"{next(iter(field))}: expected a vector with it, found none" in answer.json()["error"]


@pytest.fixture(scope="module")
def scanned(scene: Scene) -> str:
    return scene.table("scanned")
