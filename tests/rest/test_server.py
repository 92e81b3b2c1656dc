"""The real catalog behind the server, asked by the generated client and by stock ones."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import jsonschema
import lance
import lancedb
import pyarrow as pa
import pytest
import yaml
from lance.namespace import RestNamespace
from lance_namespace import (
    CreateNamespaceRequest,
    CreateTableVersionRequest,
    DescribeTableRequest,
    LanceNamespace,
    ListTablesRequest,
    NamespaceNotFoundError,
    TableNotFoundError,
    connect,
)
from lance_namespace_server_client import Client, models
from lance_namespace_server_client.api.batch import batch_commit_tables, batch_create_table_versions
from lance_namespace_server_client.api.catalog import (
    describe_catalog,
    describe_catalog_version,
    list_catalog_versions,
)
from lance_namespace_server_client.api.health import health_live, health_ready
from lance_namespace_server_client.api.namespace import (
    create_namespace,
    describe_namespace,
    drop_namespace,
    list_namespaces,
    namespace_exists,
)
from lance_namespace_server_client.api.table import (
    declare_table,
    deregister_table,
    describe_table,
    drop_table,
    list_all_tables,
    list_tables,
    register_table,
    rename_table,
    table_exists,
)
from lance_namespace_server_client.api.table_version import (
    batch_delete_table_versions,
    create_table_version,
    describe_table_version,
    list_table_versions,
)

from lance_core.data import fragment_message
from lance_core.proto import lance_table_pb2 as pb
from namespace_server.directory.namespace import DirectoryNamespace
from tests.server.servers import ServerProcess

ROOT = Path(__file__).resolve().parents[2]
SPEC: dict[str, Any] = yaml.load((ROOT / "openapi" / "lance-namespace.yaml").read_text(), yaml.CSafeLoader)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "catalog"


@pytest.fixture
def url(serve: Any, root: Path) -> str:
    return serve(DirectoryNamespace(root=str(root), durability="none")).url


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client(base_url=url, timeout=httpx.Timeout(60)) as client:
        yield client


class Staging(LanceNamespace):
    """A namespace for pylance that keeps back the versions it is asked to create: what a batch is made from."""

    def __init__(self, url: str) -> None:
        self._inner = connect("rest", {"uri": url})
        self.staged: list[dict[str, Any]] = []

    def namespace_id(self) -> str:
        return f"staging over {self._inner.namespace_id()}"

    def describe_table(self, request: Any) -> Any:
        return self._inner.describe_table(request)

    def declare_table(self, request: Any) -> Any:
        return self._inner.declare_table(request)

    def list_table_versions(self, request: Any) -> Any:
        return self._inner.list_table_versions(request)

    def describe_table_version(self, request: Any) -> Any:
        return self._inner.describe_table_version(request)

    def create_table_version(self, request: Any) -> Any:
        body = request.model_dump()
        wanted = {key: value for key, value in body.items() if value is not None}
        self.staged.append(wanted)
        kept = {key: wanted[key] for key in ("version", "manifest_path", "manifest_size") if key in wanted}
        return {"version": kept}


def stage(url: str, table: str, rows: pa.Table, mode: str = "append") -> dict[str, Any]:
    """Write rows with stock pylance, up to but without the commit; the version that would be created."""
    staging = Staging(url)
    lance.write_dataset(rows, namespace_client=staging, table_id=["ws", table], mode=mode)
    (version,) = staging.staged
    return version


def rows(*values: int) -> pa.Table:
    return pa.table({"x": pa.array(values, pa.int64())})


def count(url: str, table: str) -> int:
    return lance.dataset(namespace_client=connect("rest", {"uri": url}), table_id=["ws", table]).count_rows()


def new_table(client: Client, name: str) -> None:
    created = declare_table.sync(f"ws${name}", client=client, body=models.DeclareTableRequest())
    assert isinstance(created, models.DeclareTableResponse), created


@pytest.fixture
def workspace(client: Client) -> Client:
    """A client of a catalog with a namespace `ws`."""
    created = create_namespace.sync("ws", client=client, body=models.CreateNamespaceRequest())
    assert isinstance(created, models.CreateNamespaceResponse), created
    return client


class TestGeneratedClient:
    def test_namespaces(self, client: Client) -> None:
        properties = models.Properties.from_dict({"owner": "ann"})
        body = models.CreateNamespaceRequest(properties=properties)
        created = create_namespace.sync("ws", client=client, body=body)
        assert created.properties.to_dict() == {"owner": "ann"}
        create_namespace.sync("ws$inner", client=client, body=models.CreateNamespaceRequest())
        again = create_namespace.sync("ws", client=client, body=models.CreateNamespaceRequest())
        assert (type(again), again.code) == (models.ErrorResponse, 2)
        found = describe_namespace.sync("ws", client=client, body=models.DescribeNamespaceRequest())
        assert found.properties.to_dict() == {"owner": "ann"}
        assert list_namespaces.sync("$", client=client).namespaces == ["ws"]
        assert list_namespaces.sync("ws", client=client).namespaces == ["inner"]
        there = namespace_exists.sync_detailed("ws$inner", client=client, body=models.NamespaceExistsRequest())
        assert (there.status_code, there.content) == (200, b"")
        full = drop_namespace.sync("ws", client=client, body=models.DropNamespaceRequest())
        assert (type(full), full.code) == (models.ErrorResponse, 3)
        drop_namespace.sync("ws", client=client, body=models.DropNamespaceRequest(behavior="Cascade"))
        gone = namespace_exists.sync("ws$inner", client=client, body=models.NamespaceExistsRequest())
        assert (type(gone), gone.code) == (models.ErrorResponse, 1)

    def test_pages(self, workspace: Client) -> None:
        for name in "edcba":
            new_table(workspace, name)
        first = list_tables.sync("ws", client=workspace, limit=2)
        second = list_tables.sync("ws", client=workspace, limit=2, page_token=first.page_token)
        third = list_tables.sync("ws", client=workspace, limit=2, page_token=second.page_token)
        assert [first.tables, second.tables, third.tables] == [["a", "b"], ["c", "d"], ["e"]]
        assert not third.page_token
        everything = list_all_tables.sync(client=workspace, limit=4)
        assert everything.tables == ["ws$a", "ws$b", "ws$c", "ws$d"]
        assert list_all_tables.sync(client=workspace, page_token=everything.page_token).tables == ["ws$e"]
        assert list_all_tables.sync(client=workspace, limit=1, delimiter=".").tables == ["ws.a"]

    def test_a_batch_of_many_tables_is_one_catalog_version(self, url: str, workspace: Client) -> None:
        for name in ("a", "b", "old"):
            new_table(workspace, name)
        before = describe_catalog.sync(client=workspace).version
        operations = [
            models.CommitTableOperation.from_dict({"create_table_version": stage(url, name, rows(1, 2))})
            for name in ("a", "b")
        ]
        operations.append(models.CommitTableOperation.from_dict({"declare_table": {"id": ["ws", "new"]}}))
        operations.append(models.CommitTableOperation.from_dict({"deregister_table": {"id": ["ws", "old"]}}))
        operations.append(
            models.CommitTableOperation.from_dict({"assert_table_version": {"id": ["ws", "a"], "version": 1}})
        )
        answer = batch_commit_tables.sync_detailed(
            client=workspace, body=models.BatchCommitTablesRequest(operations=operations), idempotency_key="k"
        )
        assert isinstance(answer.parsed, models.BatchCommitTablesResponse), answer.content
        assert int(answer.headers["x-lance-catalog-version"]) == before + 1
        kinds = [next(iter(result.to_dict())) for result in answer.parsed.results]
        assert kinds == [next(iter(operation.to_dict())) for operation in operations]
        assert list_tables.sync("ws", client=workspace).tables == ["a", "b", "new"]
        assert (count(url, "a"), count(url, "b")) == (2, 2)

        repeated = batch_commit_tables.sync(
            client=workspace, body=models.BatchCommitTablesRequest(operations=operations), idempotency_key="k"
        )
        assert repeated == answer.parsed
        other = batch_commit_tables.sync(
            client=workspace, body=models.BatchCommitTablesRequest(operations=operations[:1]), idempotency_key="k"
        )
        assert (type(other), other.code) == (models.ErrorResponse, 13)

    def test_a_conflict_explains_itself_and_can_be_described(self, url: str, workspace: Client) -> None:
        new_table(workspace, "a")
        first, second = (stage(url, "a", rows(value)) for value in (1, 2))
        create_table_version.sync("ws$a", client=workspace, body=models.CreateTableVersionRequest.from_dict(first))
        lost = batch_commit_tables.sync_detailed(
            client=workspace,
            body=models.BatchCommitTablesRequest(
                operations=[models.CommitTableOperation.from_dict({"create_table_version": second})]
            ),
        )
        assert (lost.status_code, lost.parsed.code) == (409, 14)
        (failure,) = lost.parsed.failures
        assert (failure.operation_index, failure.id, failure.actual) == (0, ["ws", "a"], 1)
        found = describe_table_version.sync(
            "ws$a", client=workspace, body=models.DescribeTableVersionRequest(version=1)
        )
        assert isinstance(found, models.DescribeTableVersionResponse), found

    def test_history_and_pins(self, url: str, workspace: Client) -> None:
        new_table(workspace, "a")
        pinned = describe_catalog.sync(client=workspace).version
        create_table_version.sync(
            "ws$a", client=workspace, body=models.CreateTableVersionRequest.from_dict(stage(url, "a", rows(1)))
        )
        body = models.DescribeTableRequest(check_declared=True)
        now = describe_table.sync("ws$a", client=workspace, body=body)
        then = describe_table.sync("ws$a", client=workspace, body=body, x_lance_catalog_version=pinned)
        assert (now.is_only_declared, then.is_only_declared) == (False, True)
        (newest,) = list_catalog_versions.sync(client=workspace, limit=1).versions
        assert newest.version == pinned + 1
        assert len(newest.batches) == 1
        (table,) = describe_catalog_version.sync(newest.version, client=workspace).tables
        assert (table.id, table.version) == (["ws", "a"], 1)
        nothing = describe_catalog_version.sync(newest.version + 100, client=workspace)
        assert isinstance(nothing, models.ErrorResponse)

    def test_probes(self, client: Client) -> None:
        assert health_live.sync(client=client).to_dict() == {"status": "live"}
        assert health_ready.sync(client=client).to_dict() == {
            "status": "ready",
            "catalog_version": 0,
            "mode": "read-write",
        }


NAMES = ["a$b", "a/b", "..", ".", "a\nb", "a\x00b", "a\\b", "x" * 256]


class TestBadInput:
    @pytest.mark.parametrize("name", NAMES)
    def test_names_that_are_none_change_nothing(self, url: str, workspace: Client, root: Path, name: str) -> None:
        before = self._files(root)
        # Under another delimiter a dollar sign is part of the name.
        segment = quote(f"ws:{name}", safe="")
        for kind, operation in (("namespace", "create"), ("table", "declare")):
            response = httpx.post(f"{url}/v1/{kind}/{segment}/{operation}?delimiter=%3A", json={})
            assert (response.status_code, response.json()["code"]) == (400, 13), response.text
            assert repr(name)[1:20] in response.json()["error"]
        assert self._files(root) == before

    @staticmethod
    def _files(root: Path) -> list[Path]:
        """All but what is staged: readiness probes and the clean-up of earlier changes work there."""
        return sorted(path for path in root.rglob("*") if "_staging" not in path.parts)

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            ("/v1/table/batch-commit", {}),
            ("/v1/table/batch-commit", {"operations": []}),
            ("/v1/table/batch-commit", {"operations": [{}]}),
            ("/v1/table/batch-commit", {"operations": [1]}),
            ("/v1/table/batch-commit", {"operations": [{"paint_table": {}}]}),
            (
                "/v1/table/batch-commit",
                {"operations": [{"declare_table": {"id": ["ws", "n"]}, "deregister_table": {"id": ["ws", "n"]}}]},
            ),
            (
                "/v1/table/batch-commit",
                {"operations": [{"commit_transaction": {"id": ["ws", "n"], "transaction": "%"}}]},
            ),
            ("/v1/table/version/batch-create", {"entries": []}),
            ("/v1/table/ws%24t/version/create", {"version": 1}),
            ("/v1/table/ws%24t/version/create", {"version": "1", "manifest_path": "x"}),
            ("/v1/table/ws%24t/version/delete", {}),
            ("/v1/table/ws%24t/version/delete", {"ranges": [{"start_version": 5, "end_version": 1}]}),
            ("/v1/table/ws%24t/register", {}),
            ("/v1/table/ws%24t/register", {"location": "../elsewhere"}),
            ("/v1/table/ws%24t/rename", {}),
            ("/v1/namespace/x/create", {"properties": {"a": 1}}),
            ("/v1/namespace/x/create", {"mode": "perhaps"}),
            ("/v1/namespace/%24/drop", {}),
        ],
    )
    def test_bodies_that_say_nothing_change_nothing(
        self, url: str, workspace: Client, root: Path, path: str, body: dict[str, Any]
    ) -> None:
        before = self._files(root)
        response = httpx.post(url + path, json=body)
        assert (response.status_code, response.json()["code"]) == (400, 13), response.text
        assert self._files(root) == before


class TestStockClients:
    def test_rest_namespace(self, url: str) -> None:
        namespace = RestNamespace(uri=url)
        with pytest.raises(NamespaceNotFoundError):
            namespace.list_tables(ListTablesRequest(id=["ws"]))
        namespace.create_namespace(CreateNamespaceRequest(id=["ws"]))
        with pytest.raises(TableNotFoundError):
            namespace.describe_table(DescribeTableRequest(id=["ws", "t"]))
        lance.write_dataset(rows(1, 2), namespace_client=namespace, table_id=["ws", "t"], mode="create")
        lance.write_dataset(rows(3), namespace_client=namespace, table_id=["ws", "t"], mode="append")
        dataset = lance.dataset(namespace_client=namespace, table_id=["ws", "t"])
        assert (dataset.version, dataset.count_rows()) == (2, 3)
        assert namespace.list_tables(ListTablesRequest(id=["ws"])).tables == ["t"]

    def test_lancedb(self, url: str) -> None:
        database = lancedb.connect_namespace("rest", {"uri": url})
        database.create_namespace(["ws"])
        table = database.create_table("t", rows(1, 2), namespace_path=["ws"])
        table.add(rows(3))
        assert database.open_table("t", namespace_path=["ws"]).count_rows() == 3
        database.drop_table("t", namespace_path=["ws"])
        assert list(database.list_tables(namespace_path=["ws"]).tables) == []

    def test_what_is_not_served_is_unsupported(self, url: str) -> None:
        with pytest.raises(Exception, match="Not supported: refresh_materialized_view") as caught:
            RestNamespace(uri=url)._inner.refresh_materialized_view({"id": ["ws", "t"]})
        assert getattr(caught.value, "code", 0) == 0


class TestShapes:
    """Every answer has the fields that the document declares, and every declared field is answered by something."""

    def test_answers_and_document_agree(self, url: str, root: Path) -> None:
        recorder = Recorder(url)
        exercise(recorder, url)
        missing = {
            f"{name}.{field}"
            for name, fields in recorder.answered.items()
            for field in set(SPEC["components"]["schemas"][name].get("properties", {})) - fields
        }
        missing -= {"ErrorResponse.detail", "ErrorResponse.instance"}  # these need a fault: see test_wire
        # These need a key: see test_promised_headers.
        missing -= {f"{kind}.principal" for kind in ("CatalogBatch", "CatalogPin", "Cursor", "DroppedTable", "Intent")}
        # These need a token: see tests/tokens.
        missing -= {f"WhoAmIResponse.{field}" for field in ("principal", "issuer", "expires_at")}
        # These need a writer without the catalog: see tests/directory/reading/test_catalog_history.py.
        missing -= {"CatalogVersion.adopted", "CatalogVersion.unmanaged", "ListTableVersionsResponse.adopted_in"}
        # These as well, and a collection: see tests/events.
        missing -= {"EventData.adopted", "Cursor.expired"}
        missing -= {"MaintainTableResponse.reason"}  # work that is not done: see tests/maintenance/test_route.py
        # These need deletions and a clone: see tests/client/test_shown_tables.py.
        missing -= {"DataFile.base_id", "Fragment.deletion_file", "Fragment.num_deleted_rows"}
        missing -= OF_GRANTS  # these need a key: see below
        # These need a server that hands them out: see tests/credentials.
        missing -= {f"{kind}TableResponse.storage_options" for kind in ("Declare", "Describe")}
        assert missing == set()
        expected = {
            operation["operationId"]
            for item in SPEC["paths"].values()
            for operation in item.values()
            if CATALOG & set(operation["tags"])
        }
        assert recorder.operations == expected - {"ListAuditedVersions"} - GRANTS  # they need a key: tests/audit, below

    def test_answers_about_grants_and_document_agree(self, tmp_path: Path) -> None:
        keys = {"ann-secret-key": "ann", "bob-secret-key": "bob"}
        with ServerProcess(tmp_path / "root", log=tmp_path / "log", keys=keys) as server:
            ann, bob = (Recorder(server.url, {"x-api-key": key}) for key in keys)
            exercise_grants(ann, bob)
        answered = {
            f"{name}.{field}" for each in (ann, bob) for name, fields in each.answered.items() for field in fields
        }
        assert OF_GRANTS - answered == set()
        assert ann.operations >= GRANTS
        for name in ("Grant", "RoleMembership", "GrantChange", "ListGrantsResponse", "CheckPrivilegeResponse"):
            declared = {f"{name}.{field}" for field in SPEC["components"]["schemas"][name]["properties"]}
            assert declared - answered == set()


GRANTS = {"EnableGrants", "ChangeGrants", "ListGrants", "CheckPrivilege"}
"""Operations that need callers with names."""
OF_GRANTS = {
    *(f"CatalogChange.{field}" for field in ("administrators", "on", "privileges", "role", "to")),
    *(
        f"CommitTableResult.{operation}"
        for operation in ("enable_grants", "grant_privileges", "grant_role", "revoke_privileges", "revoke_role")
    ),
    "OperationFailure.privilege",
}
"""Fields that such answers alone have."""


CATALOG = {"Namespace", "Table", "TableVersion", "Reference", "Transaction", "Batch", "Catalog", "Caller", "Health"}
"""Tags of the operations that do not concern the rows of one table."""


class Recorder:
    """Sends requests, checks each answer against the document without tolerance, and notes which fields were used."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        self._url = url
        self._headers = dict(headers or {})
        self.answered: dict[str, set[str]] = {}
        self.operations: set[str] = set()

    def __call__(self, operation_id: str, body: Any = None, expect: int = 200, query: str = "", **path: str) -> Any:
        self.operations.add(operation_id)
        template, method, operation = next(
            (template, method, operation)
            for template, item in SPEC["paths"].items()
            for method, operation in item.items()
            if operation["operationId"] == operation_id
        )
        filled = template.format(**{name: quote(value, safe="") for name, value in path.items()})
        content = {"json": body} if body is not None else {}
        response = httpx.request(
            method.upper(), f"{self._url}{filled}{query}", headers=self._headers, timeout=60, **content
        )
        assert response.status_code == expect, response.text
        described = operation["responses"].get(str(expect), operation["responses"]["default"])
        if "$ref" in described:
            described = SPEC["components"]["responses"][described["$ref"].rpartition("/")[2]]
        if "content" not in described:
            assert response.content == b""
            return None
        reference = described["content"]["application/json"]["schema"]["$ref"]
        self._check(response.json(), reference)
        return response.json()

    def _check(self, value: Any, reference: str) -> None:
        name = reference.rpartition("/")[2]
        schema = SPEC["components"]["schemas"][name]
        jsonschema.validate(value, {**schema, "components": SPEC["components"]})
        if "properties" not in schema:
            return
        assert set(value) <= set(schema["properties"]), f"{name} does not declare {set(value)}"
        self.answered.setdefault(name, set()).update(value)
        for field, item in value.items():
            kind = schema["properties"][field]
            for entry in item if kind.get("type") == "array" else [item]:
                inner = kind.get("items", kind)
                if "$ref" in inner:
                    self._check(entry, inner["$ref"])


def append(dataset: lance.LanceDataset, table: pa.Table) -> str:
    """A Lance transaction that appends rows, as `commit_transaction` takes it."""
    fragments = lance.fragment.write_fragments(table, dataset.uri, schema=table.schema)
    transaction = pb.Transaction(read_version=dataset.version, uuid=str(uuid.uuid4()))
    transaction.append.fragments.extend(fragment_message(fragment) for fragment in fragments)
    return base64.b64encode(transaction.SerializeToString()).decode()


def exercise_grants(ann: Recorder, bob: Recorder) -> None:
    """Every operation on grants, alone or in a batch, and a batch that is denied."""
    on, to = {"namespace": ["ws"]}, {"role": "staff"}
    ann("CreateNamespace", {}, id="ws")
    ann("BatchCommitTables", {"operations": [{"enable_grants": {"administrators": [{"principal": "ann"}]}}]})
    ann("EnableGrants", {"administrators": [{"principal": "bob"}]}, expect=400)
    change = {"on": on, "to": to, "privileges": ["read"]}
    member = {"role": "staff", "to": {"principal": "bob"}}
    operations = (
        {"grant_privileges": change},
        {"grant_role": member},
        {"revoke_privileges": change},
        {"revoke_role": member},
    )
    ann("BatchCommitTables", {"operations": list(operations)})
    ann("ChangeGrants", {"grants": [change], "role_grants": [member]})
    ann(
        "ChangeGrants", {"revokes": [{**change, "privileges": ["write"]}], "role_revokes": [{**member, "role": "none"}]}
    )
    ann("ListGrants", query="?limit=1")
    bob("CheckPrivilege", {"privilege": "read", "on": on})
    ann("CheckPrivilege", {"privilege": "write", "on": on, "principal": "bob"})
    bob("BatchCommitTables", {"operations": [{"declare_table": {"id": ["ws", "t"]}}]}, expect=403)
    ann("ListCatalogVersions")


def exercise(call: Recorder, url: str) -> None:
    """Every operation at least once, so that every field is answered at least once."""
    call("HealthLive")
    call("HealthReady")
    call("CreateNamespace", {"properties": {"owner": "ann"}}, id="ws")
    call("CreateNamespace", {}, id="other")
    call("ListNamespaces", query="?limit=1", id="$")
    call("DescribeNamespace", {}, id="ws")
    call("NamespaceExists", {}, id="ws")
    for name in ("a", "b", "c"):
        call("DeclareTable", {"properties": {"owner": "ann"}}, id=f"ws${name}")
    call("TableExists", {}, id="ws$a")
    table = pa.table(
        {"x": pa.array([1], pa.int64()), "v": pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2))},
        schema=pa.schema(
            [pa.field("x", pa.int64(), metadata={"unit": "m"}), pa.field("v", pa.list_(pa.float32(), 2))],
            metadata={"made": "here"},
        ),
    )
    first = stage(url, "a", table)
    first["metadata"] = {"run": "1"}
    call("CreateTableVersion", first, id="ws$a")
    conflict = stage(url, "a", table)
    call("CreateTableVersion", {**conflict, "manifest_size": 1}, expect=400, id="ws$a")
    second, rival = stage(url, "a", table), stage(url, "a", table)
    call("BatchCreateTableVersions", {"entries": [second, stage(url, "b", table)]})
    call("BatchCommitTables", {"operations": [{"create_table_version": rival}]}, expect=409)
    dataset = lance.dataset(namespace_client=connect("rest", {"uri": url}), table_id=["ws", "a"])
    dataset.update_metadata({"owner": "ann"})
    dataset.create_branch("dev")
    call("DescribeTable", {"load_detailed_metadata": True, "check_declared": True, "with_table_uri": True}, id="ws$a")
    call("ListTableVersions", query="?limit=1&descending=true", id="ws$a")
    call("DescribeTableVersion", {"version": 1}, id="ws$a")
    call("ListTableFragments", id="ws$a", query="?limit=1")
    call("MaintainTable", {"dry_run": True, "forced": True, "seconds": 5}, id="ws$a")
    call(
        "BatchCommitTables",
        {
            "operations": [
                {"declare_table": {"id": ["ws", "d"], "properties": {"a": "b"}}},
                {"delete_table_versions": {"id": ["ws", "a"], "ranges": [{"start_version": 1, "end_version": 2}]}},
                {"deregister_table": {"id": ["ws", "c"]}},
                {"assert_table_version": {"id": ["ws", "a"], "version": dataset.latest_version}},
                {"set_table_properties": {"id": ["ws", "a"], "properties": {"owner": "ann"}}},
                {"create_table_version": stage(url, "b", table)},
                {"commit_transaction": {"id": ["ws", "a"], "transaction": append(dataset, table)}},
            ],
            "context": {"message": "the rest of it"},
        },
    )
    on_branch = {"id": ["ws", "a"], "branch": "dev", "version": 99}
    call("BatchCommitTables", {"operations": [{"assert_table_version": on_branch}]}, expect=409)
    call("BatchDeleteTableVersions", {"ranges": [{"start_version": 2, "end_version": 3}]}, id="ws$a")
    call("CreateTableBranch", {"name": "sub", "from_branch": "dev"}, id="ws$a")
    [first_of_sub] = call("ListTableVersions", query="?branch=sub", id="ws$a")["versions"]
    for name in ("kept", "moved"):
        call("CreateTableTag", {"tag": name, "version": first_of_sub["version"], "branch": "sub"}, id="ws$a")
    call("GetTableTagVersion", {"tag": "kept"}, id="ws$a")
    call("UpdateTableTag", {"tag": "moved", "version": dataset.latest_version}, id="ws$a")
    call("ListTableTags", query="?limit=1", id="ws$a")
    call("DeleteTableTag", {"tag": "kept"}, id="ws$a")
    call("ListTableBranches", query="?limit=1", id="ws$a")
    call("DescribeTransaction", {}, id=f"ws$a${dataset.latest_version}")
    made = call("DeleteTableBranch", {"name": "sub"}, id="ws$a")["transaction_id"]
    call("AlterTransaction", {"actions": [{"setPropertyAction": {"key": "k", "value": "v"}}]}, id=made)
    call("ListTables", query="?limit=1", id="ws")
    call("ListAllTables", query="?limit=1")
    call("RenameTable", {"new_table_name": "e"}, id="ws$d")
    gone = call("DeregisterTable", {}, id="ws$e")
    call("RegisterTable", {"location": gone["location"].rpartition("/")[2], "properties": {"a": "b"}}, id="ws$e")
    source = call("DescribeTable", {}, id="ws$a")["location"]
    call(
        "CloneTable",
        {"source_location": source, "source_version": dataset.latest_version, "is_shallow": True},
        id="ws$g",
    )
    call("DropTable", id="ws$g")
    call("DropTable", id="ws$e")
    call("UndropTable", {}, id="ws$e")
    call("DropTable", id="ws$e")
    call("DropTable", {"purge": True}, id="ws$b")
    call("ListDroppedTables", query="?limit=1")
    call("DescribeCatalogFigures")
    call("FindTables", query="?text=b&limit=1")
    call("BatchCommitTables", {"operations": [{"undrop_table": {"id": ["ws", "e"], "new_id": ["ws", "f"]}}]})
    names = [{"rename_table": {"id": ["ws", "f"], "new_table_name": "e"}}, {"drop_table": {"id": ["ws", "e"]}}]
    for operation in names:
        call("BatchCommitTables", {"operations": [operation]})
    call("BatchCommitTables", {"operations": [{"undrop_table": {"id": ["ws", "e"], "new_id": ["ws", "f"]}}]})
    call("DropNamespace", id="other")
    call("PinCatalogVersion", {"name": "p", "seconds": 60, "reason": "a test"})
    call("ListCatalogPins")
    call("UnpinCatalogVersion", {"name": "p"})
    call("BatchCommitTables", {"operations": [{"pin_catalog_version": {"name": "q"}}]})
    call("BatchCommitTables", {"operations": [{"unpin_catalog_version": {"name": "q"}}]})
    put = {"name": "c", "version": 1}
    call("AdvanceCursor", put)
    call("AdvanceCursor", put | {"version": 2, "expected": 1})
    call("AdvanceCursor", put | {"expected": 1}, expect=409)
    call("AdvanceCursor", put | {"backwards": True})
    call("ListCursors")
    call("DeleteCursor", {"name": "c"})
    call("BatchCommitTables", {"operations": [{"advance_cursor": put}]})
    call("BatchCommitTables", {"operations": [{"delete_cursor": {"name": "c"}}]})
    call("ListCatalogEvents", query="?since=0&limit=1000")
    call("DeclareTable", {}, id="ws$job")
    read = {"id": ["ws", "a"], "read_version": dataset.latest_version}
    tables = [{"id": ["ws", "job"]}, {"id": ["ws", "n"], "branch": "dev", "location": "x"}, read]
    intent = {"intent_id": str(uuid.uuid4()), "tables": tables}
    call("RegisterIntent", intent | {"seconds": 3_600, "reason": "a test"})
    call("ListIntents")
    call("EndIntent", {"intent_id": intent["intent_id"]})
    call("BatchCommitTables", {"operations": [{"register_intent": intent}]})
    call("BatchCommitTables", {"operations": [{"end_intent": {"intent_id": intent["intent_id"]}}]})
    call("CreateNamespace", {"properties": {"owner": "ann"}}, id="lost")
    call("DeclareTable", {}, id="lost$a")
    call("DropNamespace", {"behavior": "Cascade"}, id="lost")
    call("UndropNamespace", {}, id="lost")
    call("WhoAmI")
    call("DescribeCatalog")
    call("ListCatalogVersions")
    newest = call("ListCatalogVersions", query="?limit=1")["versions"][0]["version"]
    call("DescribeCatalogVersion", version=str(newest))


def test_the_version_request_of_the_stock_client_is_taken_as_it_is(url: str, workspace: Client) -> None:
    new_table(workspace, "a")
    request = CreateTableVersionRequest(**stage(url, "a", rows(1)))
    answer = connect("rest", {"uri": url}).create_table_version(request.model_dump(exclude_none=True))
    assert answer["version"]["version"] == 1
    entries = [models.CreateTableVersionEntry.from_dict(stage(url, "a", rows(2)))]
    body = models.BatchCreateTableVersionsRequest(entries=entries)
    created = batch_create_table_versions.sync(client=workspace, body=body)
    assert [version.version for version in created.versions] == [2]
    assert [
        version.version for version in list_table_versions.sync("ws$a", client=workspace, descending=True).versions
    ] == [2, 1]
    ranges = [models.VersionRange(start_version=0, end_version=2)]
    deleted = batch_delete_table_versions.sync(
        "ws$a", client=workspace, body=models.BatchDeleteTableVersionsRequest(ranges=ranges)
    )
    assert deleted.deleted_count == 1
    renamed = rename_table.sync("ws$a", client=workspace, body=models.RenameTableRequest(new_table_name="b"))
    assert isinstance(renamed, models.RenameTableResponse), renamed
    there = table_exists.sync_detailed("ws$b", client=workspace, body=models.TableExistsRequest())
    assert there.status_code == 200
    left = deregister_table.sync("ws$b", client=workspace, body=models.DeregisterTableRequest())
    location = left.location.rpartition("/")[2]
    registered = register_table.sync("ws$c", client=workspace, body=models.RegisterTableRequest(location=location))
    assert isinstance(registered, models.RegisterTableResponse), registered
    assert count(url, "c") == 2
    dropped = drop_table.sync("ws$c", client=workspace)
    assert isinstance(dropped, models.DropTableResponse), dropped
