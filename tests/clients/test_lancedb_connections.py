"""Every method of lancedb's namespace connections to this server, beside the same calls on lancedb's own catalog."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from lance_namespace import CreateTableRequest
from lancedb.namespace import AsyncLanceNamespaceDBConnection, LanceNamespaceDBConnection

from namespace_server.rest.data_service import DataService
from tests.clients.databases import PUSHED, Subject, async_connections, connections, rows, served
from tests.clients.outcomes import Differs, Raised, Step, differences
from tests.data.arrow import stream

_numbers = count()


def _names(answer: Any, field: str, s: Subject) -> list[str]:
    found = getattr(answer, field) if hasattr(answer, field) else answer[field]
    return [name for name in found if name.startswith(s.name)]


def _tables(s: Subject) -> list[str]:
    return _names(s.db.list_tables(list(s.namespace)), "tables", s)


MISSING = "a namespace that does not exist is an error, as the specification has it"

SHARED: dict[str, list[Step]] = {
    "create_materialized_view": [lambda s: s.db.create_materialized_view(f"{s.name}_v", "nothing")],
    "create_materialized_view_async": [lambda s: s.db.create_materialized_view_async(f"{s.name}_v", "nothing")],
    "open_materialized_view": [lambda s: s.db.open_materialized_view(f"{s.name}_v")],
    "list_materialized_views": [lambda s: s.db.list_materialized_views()],
    "drop_materialized_view": [lambda s: s.db.drop_materialized_view(f"{s.name}_v")],
    "drop_materialized_view_async": [lambda s: s.db.drop_materialized_view_async(f"{s.name}_v") and None],
    "create_namespace": [
        lambda s: s.db.create_namespace([f"{s.name}_n"], properties={"a": "b"}).properties,
        lambda s: s.db.create_namespace([f"{s.name}_n"]),
        lambda s: s.db.create_namespace(["absent", "n"]),
    ],
    "create_table": [
        lambda s: s.create("_c").count_rows(),
        lambda s: s.create("_c"),
        lambda s: s.create("_c", exist_ok=True).count_rows(),
        lambda s: s.create("_c", rows(0, 3), mode="overwrite").count_rows(),
        lambda s: s.create("_empty", schema=rows().schema, data=rows(0, 0)).count_rows(),
        lambda s: s.create("_d", mode="unknown"),
        lambda s: s.create("_bad/name"),
        lambda s: s.open("_c").to_arrow(),
    ],
    "describe_namespace": [
        lambda s: s.db.create_namespace([f"{s.name}_n"], properties={"a": "b"}).properties,
        lambda s: s.db.describe_namespace([f"{s.name}_n"]).properties,
        lambda s: s.db.describe_namespace([f"{s.name}_absent"]),
    ],
    "drop_all_tables": [
        lambda s: s.db.create_namespace([f"{s.name}_n"]) and None,
        lambda s: s.db.create_table("t", rows(), namespace_path=[f"{s.name}_n"]).count_rows(),
        lambda s: s.db.drop_all_tables(namespace_path=[f"{s.name}_n"]),
        lambda s: list(s.db.list_tables([f"{s.name}_n"]).tables),
    ],
    "drop_database": [lambda s: s.db.drop_database()],
    "drop_namespace": [
        lambda s: s.db.create_namespace([f"{s.name}_n"]) and None,
        lambda s: s.db.drop_namespace(["w"]),
        lambda s: s.db.drop_namespace([f"{s.name}_n"]) and None,
        lambda s: s.db.drop_namespace([f"{s.name}_n"]),
    ],
    "drop_table": [
        lambda s: s.db.drop_table(s.name, namespace_path=list(s.namespace)),
        _tables,
        lambda s: s.db.drop_table(s.name, namespace_path=list(s.namespace)),
    ],
    "drop_table_async": [
        lambda s: s.db.drop_table_async(s.name, namespace_path=list(s.namespace)) and None,
        _tables,
    ],
    "list_namespaces": [
        lambda s: s.db.create_namespace([f"{s.name}_n"]) and None,
        lambda s: _names(s.db.list_namespaces(), "namespaces", s),
        lambda s: len(s.db.list_namespaces(limit=1).namespaces),
        Differs(
            lambda s: s.db.list_namespaces([f"{s.name}_absent"]),
            Raised("RuntimeError"),
            MISSING,
        ),
    ],
    "list_tables": [_tables, lambda s: len(s.db.list_tables(["w"], limit=1).tables)],
    "namespace_client": [lambda s: s.db.namespace_client() is not None],
    "namespace_exists": [
        lambda s: s.db.namespace_exists(["w"]),
        lambda s: s.db.namespace_exists([f"{s.name}_absent"]),
    ],
    "open_table": [
        lambda s: s.open().count_rows(),
        lambda s: s.open(version=1).count_rows(),
        lambda s: s.open(version=99),
        lambda s: s.open("_absent"),
        lambda s: s.open(branch="none"),
    ],
    "rename_table": [
        Differs(
            lambda s: s.db.rename_table(s.name, f"{s.name}_new", ["w"], ["w"]),
            None,
            "lancedb's own catalog cannot rename",
        ),
        Differs(lambda s: s.open("_new").count_rows(), 64, "as above"),
    ],
    "table_exists": [
        lambda s: s.db.table_exists(["w", s.name]),
        lambda s: s.db.table_exists(["w", f"{s.name}_absent"]),
    ],
    "table_names": [
        lambda s: [name for name in s.db.table_names(namespace_path=["w"], limit=1000) if name.startswith(s.name)],
        lambda s: len(list(s.db.table_names(namespace_path=["w"], limit=1))),
    ],
    "execute_query": [lambda s: s.db.execute_query("select 1")],
    "execute_query_async": [lambda s: s.db.execute_query_async("select 1")],
    "describe_query": [lambda s: s.db.describe_query(UUID(int=1))],
}

SYNC: dict[str, list[Step]] = SHARED | {
    "alter_secret": [lambda s: s.db.alter_secret("a", "b")],
    "cancel_job": [lambda s: s.db.cancel_job("a")],
    "create_function": [lambda s: s.db.create_function(object())],
    "create_function_async": [lambda s: s.db.create_function_async(object())],
    "create_secret": [lambda s: s.db.create_secret("a", "b")],
    "create_view": [lambda s: s.db.create_view("a", "select 1")],
    "describe_secret": [lambda s: s.db.describe_secret("a")],
    "describe_view": [lambda s: s.db.describe_view("a")],
    "drop_function": [lambda s: s.db.drop_function("a")],
    "drop_function_async": [lambda s: s.db.drop_function_async("a")],
    "drop_secret": [lambda s: s.db.drop_secret("a")],
    "drop_view": [lambda s: s.db.drop_view("a")],
    "drop_view_async": [lambda s: s.db.drop_view_async("a")],
    "get_function": [lambda s: s.db.get_function("a")],
    "list_functions": [lambda s: s.db.list_functions()],
    "list_jobs": [lambda s: s.db.list_jobs()],
    "list_secrets": [lambda s: s.db.list_secrets()],
    "list_views": [lambda s: s.db.list_views()],
    "open_job": [lambda s: s.db.open_job("a")],
    "pause_job": [lambda s: s.db.pause_job("a")],
    "resume_job": [lambda s: s.db.resume_job("a")],
    "serialize": [lambda s: json.loads(s.db.serialize())["connection_type"]],
    "uri": [lambda s: isinstance(s.db.uri, str)],
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(tmp_path_factory.mktemp("root")) as found:
        yield found


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def test_every_method_has_a_case() -> None:
    for kind, cases in ((LanceNamespaceDBConnection, SYNC), (AsyncLanceNamespaceDBConnection, SHARED)):
        assert cases.keys() == {name for name in dir(kind) if not name.startswith("_")}


def _compare(steps: list[Step], remote: Any, local: Any) -> None:
    local.create_namespace(["w"])
    name = f"t{next(_numbers)}"
    ours, theirs = (Subject(db, name, ("w",)) for db in (remote, local))
    for subject in (ours, theirs):
        subject.create()
    assert differences(steps, ours, theirs) == []


@pytest.mark.filterwarnings("ignore:table_names:DeprecationWarning")
@pytest.mark.parametrize("pushed", PUSHED.values(), ids=PUSHED)
@pytest.mark.parametrize("name", SYNC)
def test_a_method_of_a_connection(url: str, tmp_path: Path, name: str, pushed: tuple[str, ...]) -> None:
    _compare(SYNC[name], *connections(url, tmp_path, pushed))


@pytest.mark.filterwarnings("ignore:table_names:DeprecationWarning")
@pytest.mark.parametrize("pushed", PUSHED.values(), ids=PUSHED)
@pytest.mark.parametrize("name", SHARED)
def test_a_method_of_an_asynchronous_connection(
    url: str, tmp_path: Path, name: str, pushed: tuple[str, ...], loop: asyncio.AbstractEventLoop
) -> None:
    _compare(SHARED[name], *async_connections(url, tmp_path, pushed, loop))


def test_a_creation_is_done_by_the_client_although_it_is_pushed_down(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of lancedb 0.40. When this fails, the cases above prove creations by the server."""
    created: list[list[str]] = []
    change = DataService.change_with_rows

    def noting(service: DataService, operation: str, request: dict[str, Any], *rest: Any, **more: Any) -> Any:
        if operation == "create_table":
            created.append(request["id"])
        return change(service, operation, request, *rest, **more)

    monkeypatch.setattr(DataService, "change_with_rows", noting)
    for pushed in PUSHED.values():
        db, _ = connections(url, tmp_path, pushed)
        Subject(db, f"made{len(pushed)}", ("w",)).create()
    assert created == []
    db.namespace_client().create_table(CreateTableRequest(id=["w", "made"]), stream(rows()))
    assert created == [["w", "made"]]
