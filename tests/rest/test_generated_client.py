"""Every operation of the generated Python client, blocking and async, against a server."""

from __future__ import annotations

import asyncio
import importlib
import io
import pkgutil
import types
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, get_args, get_type_hints

import httpx
import lance
import lance_namespace_server_client.api as api
import pyarrow as pa
import pytest
from lance_namespace_server_client import Client
from lance_namespace_server_client.models import ErrorResponse
from lance_namespace_server_client.types import File

from tests.audit.lines import log_in
from tests.data.arrow import stream
from tests.rest.promised import BLOBS
from tests.running import running

pytestmark = pytest.mark.slow

ROWS = pa.table({"a": range(300), "s": [f"word{n % 7} text" for n in range(300)]})
MODULES = {
    found.name.rpartition(".")[2]: found.name
    for found in pkgutil.walk_packages(api.__path__, f"{api.__name__}.")
    if not found.ispkg
}
KEY = {"x-api-key": "key-of-ann"}
Call = Callable[..., Any]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    place = tmp_path_factory.mktemp("catalog")
    with running(place / "root", {"key-of-ann": "ann"}, log_in(place / "audit"), ["ann"]) as url:
        yield url


class Caller:
    """Calls operations by name, with bodies as JSON or bytes, and notes which it called."""

    def __init__(self, url: str, *, in_background: bool) -> None:
        self._url = url
        self._in_background = in_background
        self.called: set[str] = set()

    def __call__(self, operation: str, *path: Any, body: Any = None, **parameters: Any) -> Any:
        self.called.add(operation)
        module = importlib.import_module(MODULES[operation])
        function = module.asyncio_detailed if self._in_background else module.sync_detailed
        if body is not None:
            parameters["body"] = self._body(function, body)
        client = Client(base_url=self._url, timeout=httpx.Timeout(60), headers=KEY)
        if self._in_background:
            response = asyncio.run(_answer(client, partial(function, *path, **parameters)))
        else:
            with client:
                response = function(*path, client=client, **parameters)
        assert response.status_code == 200, (operation, response.content)
        assert not isinstance(response.parsed, ErrorResponse)
        if isinstance(response.parsed, File):
            return response.parsed.payload.read()
        to_dict = getattr(response.parsed, "to_dict", None)
        found = response.parsed if to_dict is None else to_dict()
        if to_dict is not None:
            assert type(response.parsed).from_dict(found) == response.parsed
        return found

    @staticmethod
    def _body(function: Call, body: Any) -> Any:
        if isinstance(body, bytes):
            return File(payload=io.BytesIO(body), mime_type="application/vnd.apache.arrow.stream")
        kind = get_type_hints(function)["body"]
        kinds = get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
        return next(one for one in kinds if hasattr(one, "from_dict")).from_dict(body)


async def _answer(client: Client, function: Call) -> Any:
    async with client:
        return await function(client=client)


def exercise(call: Caller, root: str, place: Path) -> None:
    """Call everything once or more."""
    name = f"{root}$t"
    call("health_live")
    call("health_ready")
    assert call("who_am_i") == {"principal": "ann", "means": "api_key", "roles": []}
    call("create_namespace", root, body={})
    call("namespace_exists", root, body={})
    assert call("describe_namespace", root, body={})["properties"] == {}
    assert root in call("list_namespaces", "$")["namespaces"]

    created = call("create_table", name, body=stream(ROWS), mode="create")
    assert created["version"] == 1
    call("insert_into_table", name, body=stream(ROWS.slice(0, 10)), mode="append")
    merged = call("merge_insert_into_table", name, body=stream(ROWS), on=["a"], when_matched_update_all=True)
    assert merged["num_updated_rows"] == 310
    assert call("update_table", name, body={"predicate": "a = 7", "updates": [["s", "'x'"]]})["updated_rows"] == 2
    call("delete_from_table", name, body={"predicate": "a >= 290"})
    begun, part = call("create_multipart_write", name), str(uuid.uuid4())
    rows_of_part = {"body": stream(ROWS.slice(0, 5)), "upload_part_id": part}
    call("insert_into_table", name, upload_id=begun["upload_id"], **rows_of_part)
    whole = call("complete_multipart_write", name, body={"parts": [part]}, upload_id=begun["upload_id"])
    assert whole["num_inserted_rows"] == 5
    given_up = call("create_multipart_write", name)
    call("abort_multipart_write", name, upload_id=given_up["upload_id"])
    staged = call("stage_rows", name, body=stream(ROWS.slice(0, 5)), mode="append")
    committed = call("batch_commit_tables", body={"operations": staged["operations"]})
    assert committed["results"]
    updated = call("stage_update", name, body={"predicate": "a = 8", "updates": [["s", "'y'"]]})
    deleted = call("stage_delete", name, body={"predicate": "a = 500"})
    assert (updated["updated_rows"], deleted) == (2, {"operations": [], "num_deleted_rows": 0})
    call("batch_commit_tables", body={"operations": [*updated["operations"], *deleted["operations"]]})
    merged = call("stage_merge", name, body=stream(ROWS.slice(0, 5)), on=["a"], when_matched_update_all=True)
    assert merged["num_updated_rows"] > 0
    call("batch_commit_tables", body={"operations": merged["operations"]})

    assert call("count_table_rows", name, body={"predicate": "a = 7"}) == 2
    rows = pa.ipc.open_file(call("query_table", name, body={"k": 5, "vector": {}, "filter": "a < 3"})).read_all()
    assert rows.num_rows == 5
    options = '{"new_table_enable_stable_row_ids": "true"}'
    kept = call("create_table", f"{root}$u", body=stream(ROWS), mode="create", storage_options=options)
    changes = call("read_table_changes", f"{root}$u", body={"since": 0, "columns": ["a"]})
    assert kept["version"] == 1
    assert pa.ipc.open_stream(changes).read_all().num_rows == 300
    query = {"query": {"k": 5, "vector": {}}}
    assert call("explain_table_query_plan", name, body=query)
    assert call("analyze_table_query_plan", name, body=query["query"])
    assert call("get_table_stats", name, body={})["num_rows"] == 310

    call("create_table_scalar_index", name, body={"column": "a", "index_type": "BTREE", "name": "by_a"})
    call("create_table_index", name, body={"column": "s", "index_type": "FTS", "name": "by_s"})
    assert {index["index_name"] for index in call("list_table_indices", name)["indexes"]} == {"by_a", "by_s"}
    assert call("describe_table_index_stats", name, "by_a", body={})["num_indexed_rows"] == 310
    call("drop_table_index", name, "by_s")
    assert call("maintain_table", name, body={"dry_run": True, "forced": True})["status"] == "planned"

    call("update_table_schema_metadata", name, body={"owner": "x"})
    call("update_field_metadata", name, body={"updates": [{"path": "a", "metadata": {"unit": "m"}}]})
    call("alter_table_add_columns", name, body={"new_columns": [{"name": "b", "expression": "a * 2"}]})
    call("alter_table_alter_columns", name, body={"alterations": [{"path": "b", "rename": "c"}]})
    call("alter_table_drop_columns", name, body={"columns": ["c"]})
    call("create_table", f"{root}$media", body=BLOBS)
    fetched = call("fetch_table_blobs", f"{root}$media", body={"column": "b", "row_ids": [1]})
    assert pa.ipc.open_file(fetched).read_all().to_pydict() == {"b": [b"y"]}
    assert call("read_table_blob", f"{root}$media", "b", 0) == b"x"
    assert call("find_table_blob", f"{root}$media", "b", filter_="a = 2") == b"y"
    call("drop_table", f"{root}$media", body={})

    restored = call("restore_table", name, body={"version": 1})
    assert call("count_table_rows", name, body={}) == 300

    call("create_table_tag", name, body={"tag": "one", "version": 1})
    call("update_table_tag", name, body={"tag": "one", "version": 2})
    assert call("get_table_tag_version", name, body={"tag": "one"})["version"] == 2
    assert "one" in call("list_table_tags", name)["tags"]
    call("delete_table_tag", name, body={"tag": "one"})
    call("create_table_branch", name, body={"name": "side"})
    assert "side" in call("list_table_branches", name)["branches"]
    call("create_table_branch", f"{root}$u", body={"name": "side"})
    call("delete_from_table", f"{root}$u", body={"predicate": "a = 3", "branch": "side"})
    assert call("diff_table_branch", f"{root}$u", body={"from_branch": "side"})["row_summary"]["unchanged"] == 299
    assert call("cherry_pick_table_branch", f"{root}$u", body={"from_branch": "side"})["status"] == "cherry_picked"
    call("delete_table_branch", name, body={"name": "side"})

    versions = call("list_table_versions", name)["versions"]
    assert len(versions) >= restored.get("version", 1)
    assert call("describe_table_version", name, body={"version": 2})["version"]["version"] == 2
    assert call("list_table_fragments", name, version=2)["fragments"][0]["files"][0]["columns"]
    call("batch_delete_table_versions", name, body={"ranges": [{"start_version": 2, "end_version": 3}]})
    transaction = committed["transaction_id"]
    assert call("describe_transaction", transaction, body={})["status"]
    call("alter_transaction", transaction, body={"actions": [{"setPropertyAction": {"key": "a", "value": "b"}}]})

    call("declare_table", f"{root}$made", body={})
    call("table_exists", f"{root}$made", body={})
    assert call("describe_table", name, body={})["location"]
    publish(call, root)
    source = call("describe_table", name, body={})["location"]
    assert call("clone_table", f"{root}$clone", body={"source_location": source})["version"] > 3
    call("drop_table", f"{root}$clone", body={})
    call("rename_table", f"{root}$made", body={"new_table_name": "renamed"})
    assert sorted(call("list_tables", root)["tables"]) == ["renamed", "t", "two", "u"]
    assert call("list_all_tables")["tables"]
    location = f"{root}_registered.lance"
    lance.write_dataset(ROWS, str(place / location))
    call("register_table", f"{root}$registered", body={"location": location})
    call("deregister_table", f"{root}$registered", body={})
    for left in ("renamed", "two", "t", "u"):
        call("drop_table", f"{root}${left}", body={})

    assert call("undrop_table", name, body={})["id"] == [root, "t"]
    assert [root, "two"] in [table["id"] for table in call("list_dropped_tables")["tables"]]
    figures = call("describe_catalog_figures")
    assert figures["known_tables"] == figures["tables"] > 0
    assert call("find_tables", text=f"{root.upper()} t")["tables"][0] == [root, "t"]

    pinned = call("pin_catalog_version", body={"name": root, "seconds": 60})["pin"]
    assert pinned in call("list_catalog_pins")["pins"]
    assert call("unpin_catalog_version", body={"name": root})["pin"] == pinned

    put = call("advance_cursor", body={"name": root, "version": 1})["cursor"]
    [listed] = [each for each in call("list_cursors")["cursors"] if each["name"] == root]
    assert {key: listed[key] for key in put} == put
    [event] = call("list_catalog_events", since=1, limit=1)["events"]
    assert event["data"]["catalog_version"] == 2
    assert call("delete_cursor", body={"name": root})["cursor"] == put

    asked = {"intent_id": str(uuid.uuid4()), "tables": [{"id": [root, "t"], "read_version": 1}], "seconds": 3_600}
    intent = call("register_intent", body=asked)["intent"]
    [listed] = [each for each in call("list_intents")["intents"] if each["intent_id"] == intent["intent_id"]]
    assert listed["tables"][0]["id"] == [root, "t"]
    assert call("end_intent", body={"intent_id": intent["intent_id"]})["intent"] == intent

    newest = call("describe_catalog")["version"]
    assert call("list_catalog_versions", limit=2)["versions"]
    assert call("list_audited_versions", limit=2)["versions"][0]["batches"][0]["origin"]["client"] == "127.0.0.1"
    assert call("list_refused_attempts", limit=2)["attempts"][0]["decision"] == "denied"
    assert call("describe_catalog_version", newest)["version"] == newest
    call("drop_namespace", root, body={"behavior": "Cascade"})
    assert call("undrop_namespace", root, body={})["id"] == [root]
    assert call("count_table_rows", name, body={}) == 300
    call("drop_table", name, body={"purge": True})
    call("drop_namespace", root, body={})


def exercise_grants(call: Caller) -> None:
    """Grants, on a catalog of which the caller is the administrator."""
    assert call("enable_grants", body={"administrators": [{"principal": "ann"}]})["changed"] is True
    grant = {"on": {"catalog": True}, "to": {"role": "readers"}, "privileges": ["read"]}
    changed = call("change_grants", body={"grants": [grant]})
    assert changed["grants"] == [{"changed": True, "privileges": ["read"]}]
    [listed] = call("list_grants", role="readers")["grants"]
    assert {name: listed[name] for name in grant} == grant
    can = call("check_privilege", body={"privilege": "drop", "on": {"table": ["t"]}})
    assert can == {"allowed": True, "reason": "own granted to principal ann on the catalog", "in_force": True}


def publish(call: Caller, root: str) -> None:
    """Manifests that pylance staged, published alone and in a batch."""
    kept: list[dict[str, Any]] = []
    for name in ("made", "two"):
        if name == "two":
            call("declare_table", f"{root}$two", body={})
        location = call("describe_table", f"{root}${name}", body={})["location"]
        kept.append({"id": [root, name], **staged_version(location)})
    first, second = kept
    call("create_table_version", f"{root}$made", body={key: first[key] for key in first if key != "id"})
    call("batch_create_table_versions", body={"entries": [second]})


def staged_version(location: str) -> dict[str, Any]:
    """Write a table beside, and lay its manifest where a client stages one."""
    place = Path(location.removeprefix("file://"))
    lance.write_dataset(ROWS, str(place), enable_v2_manifest_paths=True)
    [manifest] = (place / "_versions").glob("*.manifest")
    staged = manifest.rename(manifest.with_name(f"{manifest.name}-00000000-0000-4000-8000-000000000000"))
    return {"version": 1, "manifest_path": str(staged), "manifest_size": staged.stat().st_size, "naming_scheme": "V2"}


@pytest.mark.parametrize("in_background", [False, True], ids=["sync", "async"])
def test_every_operation(url: str, tmp_path: Path, in_background: bool) -> None:
    root = "background" if in_background else "blocking"
    place = Path(httpx.get(f"{url}/v1/catalog", headers=KEY).json()["root"].removeprefix("file://"))
    call = Caller(url, in_background=in_background)
    assert httpx.get(f"{url}/v1/catalog").status_code == 401
    exercise(call, root, place)
    with running(tmp_path / "governed", {"key-of-ann": "ann"}) as governed:
        of_grants = Caller(governed, in_background=in_background)
        exercise_grants(of_grants)
    assert set(MODULES) - call.called - of_grants.called == set()
