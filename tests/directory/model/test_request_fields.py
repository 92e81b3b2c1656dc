"""Every field of a change is checked, also those that the catalog does not use."""

from __future__ import annotations

import base64
import copy
import typing
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import lance_namespace as models
import pytest
from lance_namespace.errors import InvalidInputError, UnsupportedOperationError
from lance_namespace_urllib3_client.models.identity import Identity
from pydantic import BaseModel, ValidationError

from lance_core.proto import lance_table_pb2 as pb
from namespace_server.directory.namespace import DirectoryNamespace

T = ["g", "t"]
APPEND = pb.Transaction(read_version=1, uuid=str(uuid.uuid4()), append=pb.Transaction.Append())
TRANSACTION = base64.b64encode(APPEND.SerializeToString()).decode()
VERSION = {"id": T, "version": 2, "manifest_path": "x"}
RANGES = [{"start_version": 1, "end_version": 2}]
CALLS: dict[str, tuple[type[BaseModel], dict[str, Any]]] = {
    "create_namespace": (models.CreateNamespaceRequest, {"id": ["h"]}),
    "drop_namespace": (models.DropNamespaceRequest, {"id": ["h"]}),
    "declare_table": (models.DeclareTableRequest, {"id": T}),
    "register_table": (models.RegisterTableRequest, {"id": T, "location": "x"}),
    "deregister_table": (models.DeregisterTableRequest, {"id": T}),
    "drop_table": (models.DropTableRequest, {"id": T}),
    "rename_table": (models.RenameTableRequest, {"id": T, "new_table_name": "u"}),
    "create_table_version": (models.CreateTableVersionRequest, VERSION),
    "batch_delete_table_versions": (models.BatchDeleteTableVersionsRequest, {"id": T, "ranges": RANGES}),
    "create_table_branch": (models.CreateTableBranchRequest, {"id": T, "name": "dev"}),
    "batch_create_table_versions": (models.BatchCreateTableVersionsRequest, {"entries": [VERSION]}),
    "batch_commit_tables": (models.BatchCommitTablesRequest, {"operations": [{"declare_table": {"id": T}}]}),
}
BATCHES = [
    {"declare_table": {"id": T}},
    {"create_table_version": VERSION},
    {"delete_table_versions": {"id": T, "ranges": RANGES}},
    {"deregister_table": {"id": T}},
]
WRONG = (0, 1.5, "x", True, [1], {"a": 1}, -1, [[]], {"api_key": 1}, [None], {"a": None})
CHANGES: dict[str, tuple[type[BaseModel], dict[str, Any]]] = {
    "create_table_tag": (models.CreateTableTagRequest, {"id": T, "tag": "a", "version": 1}),
    "update_table_tag": (models.UpdateTableTagRequest, {"id": T, "tag": "a", "version": 1}),
    "delete_table_tag": (models.DeleteTableTagRequest, {"id": T, "tag": "a"}),
    "delete_table_branch": (models.DeleteTableBranchRequest, {"id": T, "name": "dev"}),
    "alter_transaction": (
        models.AlterTransactionRequest,
        {"id": T, "actions": [{"setPropertyAction": {"key": "a", "value": "b"}}]},
    ),
}
OURS = [
    ("commit_transaction", {"transaction": TRANSACTION}, ["stable_row_ids", "data_storage_version"]),
    ("assert_table_version", {"version": 1}, []),
    ("set_table_properties", {"updates": {"a": "b"}}, ["properties", "updates", "removals"]),
]


@pytest.fixture(scope="module")
def namespace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DirectoryNamespace]:
    opened = DirectoryNamespace(root=str(tmp_path_factory.mktemp("root")), durability="none")
    opened.commit_batch({"operations": [{"declare_table": {"id": ["t"]}}]})
    yield opened
    opened.close()


def wrong_requests(model: type[BaseModel], request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The request with one field of another type; without those that the published model takes."""
    for path in _fields(model, request):
        for wrong in WRONG:
            changed = copy.deepcopy(request)
            place: Any = changed
            for part in path[:-1]:
                place = place.setdefault(part, {}) if isinstance(place, dict) else place[part]
            place[path[-1]] = wrong
            try:
                model.model_validate(copy.deepcopy(changed))
            except ValidationError:
                yield changed


def _fields(model: type[BaseModel], request: dict[str, Any]) -> Iterator[tuple[str | int, ...]]:
    for field, info in model.model_fields.items():
        name = info.alias or field
        yield (name,)
        value = request.get(name)
        for inner in _models(info.annotation):
            if inner is Identity:
                yield from ((name, part) for part in inner.model_fields)
            elif isinstance(value, list):
                yield (name, 0)
                yield from ((name, 0, *path) for path in _fields(inner, value[0]))
            elif isinstance(value, dict):
                yield from ((name, *path) for path in _fields(inner, value))


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in typing.get_args(annotation):
        yield from _models(part)


def accepted(ask: Callable[[dict[str, Any]], object], requests: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of the requests that are not refused as malformed."""
    found = []
    count = 0
    for request in requests:
        count += 1
        try:
            ask(request)
        except (InvalidInputError, UnsupportedOperationError):
            continue
        found.append(request)
    assert count > 10
    return found


def without_identity(requests: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A server takes credentials from headers, and drops those in a body unread."""
    return (request for request in requests if "identity" not in request)


@pytest.mark.parametrize("call", CALLS)
def test_of_a_call(namespace: DirectoryNamespace, call: str) -> None:
    wrong = without_identity(wrong_requests(*CALLS[call]))
    assert accepted(lambda request: namespace.prepare(call, request), wrong) == []


@pytest.mark.parametrize("operation", BATCHES, ids=lambda operation: next(iter(operation)))
def test_of_an_operation_in_a_batch(namespace: DirectoryNamespace, operation: dict[str, Any]) -> None:
    wrong = without_identity(wrong_requests(models.BatchCommitTablesRequest, {"operations": [operation]}))
    assert accepted(lambda request: namespace.prepare("batch_commit_tables", request), wrong) == []


@pytest.mark.parametrize("change", CHANGES)
def test_of_a_change_beside_the_catalog(namespace: DirectoryNamespace, change: str) -> None:
    wrong = without_identity(wrong_requests(*CHANGES[change]))
    assert accepted(lambda request: namespace.change(change, request), wrong) == []


@pytest.mark.parametrize(("name", "request_", "more"), OURS, ids=lambda value: value if isinstance(value, str) else "")
def test_of_an_operation_of_ours(
    namespace: DirectoryNamespace, name: str, request_: dict[str, Any], more: list[str]
) -> None:
    fields = ("id", "branch", "location", "manifest_sha256", *request_, *more)
    skipped = {"set_table_properties": {"branch", "manifest_sha256"}}.get(name, set())
    wrong = (
        {"operations": [{name: {"id": T, **request_, field: value}}]}
        for field in fields
        if field not in skipped
        for value in (1.5, [1], {"a": 1}, [[]])
    )
    assert accepted(lambda request: namespace.prepare("batch_commit_tables", request), wrong) == []
    taken = {"operations": [{name: {"id": T, **request_}}]}
    assert namespace.prepare("batch_commit_tables", taken).batch.operations[0].name == name
