"""A request that succeeds for every route of the OpenAPI document, each on objects of its own."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import lance
import pyarrow as pa

from tests.data.arrow import ARROW, stream

ROWS = stream(pa.table({"a": [1, 2], "s": ["x", "y"]}))
MORE = stream(pa.table({"a": [2, 3], "s": ["w", "z"]}))
_BLOB = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
BLOBS = stream(
    pa.table([pa.array([1, 2]), pa.array([b"x", b"y"], pa.large_binary())], pa.schema([("a", "int64"), _BLOB]))
)
NAMESPACE = "h"
PART = "0a9b4a53-6f0c-4a7e-9c1e-7d3f4a2b8e10"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: names in its path beside the id, its query, and its body: JSON, or rows."""

    body: Any = None
    id: str | None = None
    query: Mapping[str, str] | None = None
    names: Mapping[str, str] | None = None

    def send(
        self, http: httpx.Client, method: str, path: str, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        filled = path.format(**{"id": self.id or "", **(self.names or {})})
        given = dict(headers or {})
        if isinstance(self.body, bytes):
            return http.request(method, filled, params=self.query, content=self.body, headers={**ARROW, **given})
        return http.request(method, filled, params=self.query, json=self.body, headers=given)


class Scene:
    """A catalog over HTTP, and the directory that it is in."""

    def __init__(self, http: httpx.Client, root: Path) -> None:
        self.http = http
        self.root = root

    def ask(self, path: str, body: Any = None, **query: str) -> Any:
        answer = Asked(body, query=query).send(self.http, "POST", path)
        assert answer.status_code == 200, answer.text
        return answer.json() if answer.content else None

    def table(self, name: str, *, versions: int = 1, kept: bool = False) -> str:
        """A table with rows and so many versions, whose rows keep their ids if they are `kept`; its id."""
        found = f"{NAMESPACE}${name}"
        options = {"storage_options": '{"new_table_enable_stable_row_ids": "true"}'} if kept else {}
        self.ask(f"/v1/table/{found}/create", ROWS, **options)
        for _ in range(versions - 1):
            self.ask(f"/v1/table/{found}/insert", MORE)
        return found

    def location(self, found: str) -> str:
        return str(self.ask(f"/v1/table/{found}/describe", {})["location"])

    def blobs(self, name: str) -> str:
        found = f"{NAMESPACE}${name}"
        self.ask(f"/v1/table/{found}/create", BLOBS)
        return found

    def declared(self, name: str) -> str:
        found = f"{NAMESPACE}${name}"
        self.ask(f"/v1/table/{found}/declare", {})
        return found

    def tagged(self, name: str) -> str:
        found = self.table(name, versions=2)
        self.ask(f"/v1/table/{found}/tags/create", {"tag": "v", "version": 1})
        return found

    def dropped(self, name: str) -> str:
        found = self.table(name)
        self.ask(f"/v1/table/{found}/drop", {})
        return found

    def dropped_namespace(self, name: str) -> str:
        self.ask(f"/v1/namespace/{name}/create", {})
        self.ask(f"/v1/table/{name}$t/declare", {})
        self.ask(f"/v1/namespace/{name}/drop", {"behavior": "Cascade"})
        return name

    def branched(self, name: str) -> str:
        found = self.table(name)
        self.ask(f"/v1/table/{found}/branches/create", {"name": "dev"})
        return found

    def grown(self, name: str) -> str:
        found = self.branched(name)
        self.ask(f"/v1/table/{found}/delete", {"predicate": "a = 1", "branch": "dev"})
        return found

    def indexed(self, name: str) -> str:
        found = self.table(name)
        index = {"column": "a", "index_type": "BTREE", "name": "i"}
        self.ask(f"/v1/table/{found}/create_scalar_index", index)
        return found

    def upload(self, table: str) -> str:
        """The id of an upload of rows for a table, with one part."""
        begun: str = self.ask(f"/v1/table/{table}/multipart_write/create")["upload_id"]
        self.ask(f"/v1/table/{table}/insert", MORE, upload_id=begun, upload_part_id=PART)
        return begun

    def staged_version(self, name: str) -> dict[str, Any]:
        """The first version of a declared table, with its manifest staged as stock clients stage one."""
        found = self.declared(name)
        location = Path(self.ask(f"/v1/table/{found}/describe", {})["location"].removeprefix("file://"))
        written = self.root.parent / f"written-{name}"
        lance.write_dataset(pa.table({"a": [1]}), str(written))
        for below in ("data", "_transactions"):
            shutil.copytree(written / below, location / below)
        [manifest] = (written / "_versions").glob("*.manifest")
        (location / "_versions").mkdir()
        staged = location / "_versions" / f"{manifest.name}-{uuid.uuid4()}"
        shutil.copy(manifest, staged)
        size = staged.stat().st_size
        return {"id": found.split("$"), "version": 1, "manifest_path": str(staged)[1:], "manifest_size": size}

    def dataset(self, name: str) -> str:
        """A dataset below the root that no table has."""
        lance.write_dataset(pa.table({"a": [1]}), str(self.root / name))
        return name


def _without_id(version: dict[str, Any]) -> Asked:
    return Asked({key: value for key, value in version.items() if key != "id"}, "$".join(version["id"]))


def _batch(name: str) -> Asked:
    return Asked({"operations": [{"declare_table": {"id": [NAMESPACE, name]}}]})


def _uuid(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))


def _intent(table: str, name: str) -> dict[str, Any]:
    return {"intent_id": _uuid(name), "tables": [{"id": table.split("$")}]}


_QUERY = {"k": 0, "vector": {"single_vector": []}}

REQUESTS: Mapping[str, Callable[[Scene, str], Asked]] = {
    # Changes: the second argument is a name that nothing has yet.
    "CreateNamespace": lambda _, n: Asked({}, f"{NAMESPACE}${n}"),
    "DropNamespace": lambda s, n: (s.ask(f"/v1/namespace/{n}/create", {}), Asked({}, n))[1],
    "UndropNamespace": lambda s, n: Asked({}, s.dropped_namespace(n)),
    "DeclareTable": lambda _, n: Asked({}, f"{NAMESPACE}${n}"),
    "CloneTable": lambda s, n: Asked({"source_location": s.location(s.table(f"{n}-source"))}, f"{NAMESPACE}${n}"),
    "CherryPickTableBranch": lambda s, n: Asked({"from_branch": "dev"}, s.grown(n)),
    "DiffTableBranch": lambda s, n: Asked({"from_branch": "dev"}, s.grown(n)),
    "RegisterTable": lambda s, n: Asked({"location": s.dataset(n)}, f"{NAMESPACE}${n}"),
    "DeregisterTable": lambda s, n: Asked({}, s.table(n)),
    "RenameTable": lambda s, n: Asked({"new_table_name": f"{n}-new"}, s.table(n)),
    "DropTable": lambda s, n: Asked({}, s.table(n)),
    "PinCatalogVersion": lambda _, n: Asked({"name": n}),
    "UnpinCatalogVersion": lambda s, n: (s.ask("/v1/catalog/pins", {"name": n}), Asked({"name": n}))[1],
    "AdvanceCursor": lambda _, n: Asked({"name": n, "version": 1}),
    "DeleteCursor": lambda s, n: (s.ask("/v1/catalog/cursors", {"name": n}), Asked({"name": n}))[1],
    "RegisterIntent": lambda s, n: Asked(_intent(s.table(n), n)),
    "EndIntent": lambda s, n: (s.ask("/v1/catalog/intents", _intent(s.table(n), n)), Asked({"intent_id": _uuid(n)}))[1],
    "UndropTable": lambda s, n: Asked({}, s.dropped(n)),
    "CreateMultipartWrite": lambda s, n: Asked(id=s.table(n)),
    "CompleteMultipartWrite": lambda s, n: Asked(
        {"parts": [PART]}, f"{NAMESPACE}${n}", {"upload_id": s.upload(s.table(n))}
    ),
    "AbortMultipartWrite": lambda s, n: Asked(None, f"{NAMESPACE}${n}", {"upload_id": s.upload(s.table(n))}),
    "CreateTableVersion": lambda s, n: _without_id(s.staged_version(n)),
    "BatchCreateTableVersions": lambda s, n: Asked({"entries": [s.staged_version(n)]}),
    "BatchDeleteTableVersions": lambda s, n: Asked(
        {"ranges": [{"start_version": 1, "end_version": 2}]}, s.table(n, versions=2)
    ),
    "BatchCommitTables": lambda _, n: _batch(n),
    "CreateTableTag": lambda s, n: Asked({"tag": "v", "version": 1}, s.table(n)),
    "UpdateTableTag": lambda s, n: Asked({"tag": "v", "version": 2}, s.tagged(n)),
    "DeleteTableTag": lambda s, n: Asked({"tag": "v"}, s.tagged(n)),
    "CreateTableBranch": lambda s, n: Asked({"name": "dev"}, s.table(n)),
    "DeleteTableBranch": lambda s, n: Asked({"name": "dev"}, s.branched(n)),
    "AlterTransaction": lambda s, n: Asked(
        {"actions": [{"setPropertyAction": {"key": "who", "value": "me", "mode": "Fail"}}]}, f"{s.table(n)}$1"
    ),
    "CreateTable": lambda _, n: Asked(ROWS, f"{NAMESPACE}${n}", {"properties": '{"owner":"me"}'}),
    "InsertIntoTable": lambda s, n: Asked(MORE, s.table(n)),
    "MergeInsertIntoTable": lambda s, n: Asked(
        MORE, s.table(n), {"on": "a", "when_matched_update_all": "true", "when_not_matched_insert_all": "true"}
    ),
    "UpdateTable": lambda s, n: Asked({"updates": [["a", "a + 100"]]}, s.table(n)),
    "DeleteFromTable": lambda s, n: Asked({"predicate": "a = 1"}, s.table(n)),
    "RestoreTable": lambda s, n: Asked({"version": 1}, s.table(n, versions=2)),
    "UpdateTableSchemaMetadata": lambda s, n: Asked({"key": "value"}, s.table(n)),
    "UpdateFieldMetadata": lambda s, n: Asked({"updates": [{"path": "a", "metadata": {"k": "v"}}]}, s.table(n)),
    "CreateTableIndex": lambda s, n: Asked({"column": "a", "index_type": "BTREE"}, s.table(n)),
    "CreateTableScalarIndex": lambda s, n: Asked({"column": "a", "index_type": "BITMAP"}, s.table(n)),
    "DropTableIndex": lambda s, n: Asked(None, s.indexed(n), names={"index_name": "i"}),
    "MaintainTable": lambda s, n: Asked({}, s.table(n)),
    "AlterTableAddColumns": lambda s, n: Asked({"new_columns": [{"name": "b", "expression": "a * 2"}]}, s.table(n)),
    "AlterTableAlterColumns": lambda s, n: Asked({"alterations": [{"path": "a", "rename": "c"}]}, s.table(n)),
    "AlterTableDropColumns": lambda s, n: Asked({"columns": ["s"]}, s.table(n)),
    "StageRows": lambda _, n: Asked(ROWS, f"{NAMESPACE}${n}"),
    "StageUpdate": lambda s, n: Asked({"updates": [["a", "a + 100"]]}, s.table(n)),
    "StageDelete": lambda s, n: Asked({"predicate": "a = 1"}, s.table(n)),
    "StageMerge": lambda s, n: Asked(MORE, s.table(n), {"on": "a", "when_matched_update_all": "true"}),
    # Reads.
    "ListNamespaces": lambda _, n: Asked(id=NAMESPACE),
    "DescribeNamespace": lambda _, n: Asked({}, NAMESPACE),
    "NamespaceExists": lambda _, n: Asked({}, NAMESPACE),
    "ListTables": lambda _, n: Asked(id=NAMESPACE),
    "ListAllTables": lambda _, n: Asked(),
    "DescribeTable": lambda s, n: Asked({}, s.table(n)),
    "TableExists": lambda s, n: Asked({}, s.table(n)),
    "ListTableVersions": lambda s, n: Asked({}, s.table(n)),
    "ListTableFragments": lambda s, n: Asked(None, s.table(n), {"version": "1"}),
    "DescribeTableVersion": lambda s, n: Asked({}, s.table(n)),
    "ListTableTags": lambda s, n: Asked({}, s.tagged(n)),
    "GetTableTagVersion": lambda s, n: Asked({"tag": "v"}, s.tagged(n)),
    "ListTableBranches": lambda s, n: Asked({}, s.branched(n)),
    "DescribeTransaction": lambda s, n: Asked({}, f"{s.table(n)}$1"),
    "QueryTable": lambda s, n: Asked(_QUERY, s.table(n)),
    "ReadTableChanges": lambda s, n: Asked({"since": 0}, s.table(n, kept=True)),
    "CountTableRows": lambda s, n: Asked({}, s.table(n)),
    "ExplainTableQueryPlan": lambda s, n: Asked({"query": _QUERY}, s.table(n)),
    "AnalyzeTableQueryPlan": lambda s, n: Asked(_QUERY, s.table(n)),
    "FetchTableBlobs": lambda s, n: Asked({"column": "b", "row_ids": [1, 0]}, s.blobs(n)),
    "ReadTableBlob": lambda s, n: Asked(None, s.blobs(n), names={"column": "b", "row": "1"}),
    "FindTableBlob": lambda s, n: Asked(None, s.blobs(n), {"filter": "a = 2"}, {"column": "b"}),
    "GetTableStats": lambda s, n: Asked({}, s.table(n)),
    "ListTableIndices": lambda s, n: Asked({}, s.indexed(n)),
    "DescribeTableIndexStats": lambda s, n: Asked({}, s.indexed(n), names={"index_name": "i"}),
    "WhoAmI": lambda _, n: Asked(),
    "DescribeCatalog": lambda _, n: Asked(),
    "DescribeCatalogFigures": lambda _, n: Asked(),
    "ListCatalogVersions": lambda _, n: Asked(),
    "ListAuditedVersions": lambda _, n: Asked(),
    "ListRefusedAttempts": lambda _, n: Asked(query={"decision": "denied"}),
    "ListDroppedTables": lambda _, n: Asked(),
    "FindTables": lambda _, n: Asked(query={"text": n}),
    "ListCatalogPins": lambda _, n: Asked(),
    "ListIntents": lambda _, n: Asked(),
    "EnableGrants": lambda _, n: Asked({"administrators": [{"principal": n}]}),
    "ChangeGrants": lambda _, n: Asked({"role_grants": [{"role": n, "to": {"principal": n}}]}),
    "ListGrants": lambda _, n: Asked(query={"principal": n}),
    "CheckPrivilege": lambda _, n: Asked({"privilege": "read", "on": {"table": [n]}}),
    "ListCursors": lambda _, n: Asked(),
    "ListCatalogEvents": lambda _, n: Asked(query={"since": "0"}),
    "DescribeCatalogVersion": lambda _, n: Asked(names={"version": "1"}),
    "HealthLive": lambda _, n: Asked(),
    "HealthReady": lambda _, n: Asked(),
}
