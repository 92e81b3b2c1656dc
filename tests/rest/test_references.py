"""Tags, branches and transactions over HTTP: stock clients and the real catalog behind the server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import lance
import lance_namespace as models
import pytest
from lance.namespace import RestNamespace
from lance_namespace.errors import (
    InvalidInputError,
    LanceNamespaceError,
    TableBranchAlreadyExistsError,
    TableBranchNotFoundError,
    TableTagAlreadyExistsError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
    TransactionNotFoundError,
)
from lance_namespace_server_client import Client
from lance_namespace_server_client import models as ours
from lance_namespace_server_client.api.reference import create_table_tag, list_table_branches
from lance_namespace_urllib3_client import ApiClient, Configuration
from lance_namespace_urllib3_client.api.branch_api import BranchApi
from lance_namespace_urllib3_client.api.tag_api import TagApi
from lance_namespace_urllib3_client.api.transaction_api import TransactionApi
from lance_namespace_urllib3_client.models.alter_transaction_action import AlterTransactionAction

from lance_core.tables.dataset import Dataset
from namespace_server.directory.namespace import DirectoryNamespace
from tests.directory.tables import Ground, rows
from tests.emulators import Emulator
from tests.rest.conftest import EchoCatalog, Serve

T = ["g", "t"]
PATH = "/v1/table/g%24t"
JSON = {"content-type": "application/json"}


class Scene:
    """A served catalog with a table of two versions, and a stock client of it."""

    def __init__(self, ground: Ground, url: str) -> None:
        self.ground = ground
        self.url = url
        self.stock = RestNamespace(uri=url)
        self.http = httpx.Client(base_url=url)

    def open(self) -> lance.LanceDataset:
        return lance.dataset(namespace_client=self.stock, table_id=T)

    def post(self, path: str, body: Any = None, **headers: str) -> httpx.Response:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.http.post(path, json={} if body is None else body, headers=names)


@pytest.fixture
def scene(tmp_path: Path, serve: Serve) -> Iterator[Scene]:
    ground = Ground(tmp_path / "root")
    ground.make_namespace("g")
    ground.make_table("g", "t")
    ground.write(T, rows(3, 5))
    scene = Scene(ground, serve(ground.namespace).url)
    with scene.http:
        yield scene


class TestTags:
    def test_by_the_stock_client(self, scene: Scene) -> None:
        stock = scene.stock
        stock.create_table_tag(models.CreateTableTagRequest(id=T, tag="v", version=1))
        assert scene.open().tags.list()["v"]["version"] == 1
        assert scene.open().checkout_version("v").count_rows() == 3
        stock.update_table_tag(models.UpdateTableTagRequest(id=T, tag="v", version=2))
        assert stock.get_table_tag_version(models.GetTableTagVersionRequest(id=T, tag="v")).version == 2
        scene.open().tags.create("theirs", 1)
        listed = stock.list_table_tags(models.ListTableTagsRequest(id=T)).tags
        assert {name: tag.version for name, tag in listed.items()} == {"theirs": 1, "v": 2}
        stock.delete_table_tag(models.DeleteTableTagRequest(id=T, tag="v"))
        assert list(scene.open().tags.list()) == ["theirs"]

    def test_errors_by_the_stock_client(self, scene: Scene) -> None:
        stock = scene.stock
        stock.create_table_tag(models.CreateTableTagRequest(id=T, tag="v", version=1))
        refused: list[tuple[Callable[[], object], type[LanceNamespaceError]]] = [
            (
                lambda: stock.create_table_tag(models.CreateTableTagRequest(id=T, tag="v", version=1)),
                TableTagAlreadyExistsError,
            ),
            (
                lambda: stock.create_table_tag(models.CreateTableTagRequest(id=T, tag="w", version=9)),
                TableVersionNotFoundError,
            ),
            (
                lambda: stock.update_table_tag(models.UpdateTableTagRequest(id=T, tag="w", version=1)),
                TableTagNotFoundError,
            ),
            (lambda: stock.delete_table_tag(models.DeleteTableTagRequest(id=T, tag="w")), TableTagNotFoundError),
            (
                lambda: stock.get_table_tag_version(models.GetTableTagVersionRequest(id=T, tag="w")),
                TableTagNotFoundError,
            ),
            (
                lambda: stock.create_table_tag(models.CreateTableTagRequest(id=T, tag="a/b", version=1)),
                InvalidInputError,
            ),
        ]
        for call, error in refused:
            with pytest.raises(error):
                call()

    def test_pages_in_the_query_and_no_body(self, scene: Scene) -> None:
        for name in ("a", "b", "c"):
            scene.post(f"{PATH}/tags/create", {"tag": name, "version": 1}).raise_for_status()
        first = scene.http.post(f"{PATH}/tags/list?limit=2").json()
        assert (list(first["tags"]), first["page_token"]) == (["a", "b"], "b")
        last = scene.http.post(f"{PATH}/tags/list?limit=2&page_token=b", content=b"null", headers=JSON).json()
        assert (list(last["tags"]), "page_token" in last) == (["c"], False)

    def test_a_list_is_never_an_old_one(self, scene: Scene) -> None:
        """The files of tags change without a catalog version: no answer about them is cached."""
        for number in range(3):
            assert len(scene.http.post(f"{PATH}/tags/list").json()["tags"]) == number
            scene.open().tags.create(f"n{number}", 1)
        scene.open().tags.update("n0", 2)
        assert scene.post(f"{PATH}/tags/version", {"tag": "n0"}).json() == {"version": 2}
        assert scene.post(f"{PATH}/tags/version", {"tag": "n1"}).json() == {"version": 1}

    def test_a_catalog_version_is_refused(self, scene: Scene) -> None:
        for path, body in (("tags/list", {}), ("tags/version", {"tag": "v"}), ("branches/list", {})):
            response = scene.post(f"{PATH}/{path}", body, x_lance_catalog_version="1")
            assert (response.status_code, response.json()["code"]) == (400, 13)
            assert "not versioned with the catalog" in response.json()["error"]

    def test_every_answer_has_its_catalog_version(self, scene: Scene) -> None:
        before = scene.ground.catalog.snapshot().version
        made = scene.post(f"{PATH}/tags/create", {"tag": "v", "version": 1})
        assert int(made.headers["x-lance-catalog-version"]) == before + 1
        told = scene.post(f"/v1/transaction/{made.json()['transaction_id']}/describe")
        assert told.json()["properties"]["catalog_version"] == str(before + 1)


class TestBranches:
    def test_by_the_stock_client(self, scene: Scene) -> None:
        stock = scene.stock
        stock.create_table_branch(models.CreateTableBranchRequest(id=T, name="dev", from_version=1))
        assert scene.open().branches.list()["dev"]["parent_version"] == 1
        dev = scene.open().checkout_version(("dev", None))
        lance.write_dataset(rows(7, 9), dev, mode="append")
        assert scene.open().checkout_version(("dev", None)).count_rows() == 5
        assert scene.open().count_rows() == 5
        assert scene.ground.head(T, "dev") == 2
        scene.open().create_branch("theirs", 2)
        listed = stock.list_table_branches(models.ListTableBranchesRequest(id=T)).branches
        assert {name: contents.parent_version for name, contents in listed.items()} == {"dev": 1, "theirs": 2}
        stock.create_table_branch(models.CreateTableBranchRequest(id=T, name="sub", from_branch="dev"))
        with pytest.raises(InvalidInputError, match="sub"):
            stock.delete_table_branch(models.DeleteTableBranchRequest(id=T, name="dev"))
        for name in ("sub", "dev", "theirs"):
            stock.delete_table_branch(models.DeleteTableBranchRequest(id=T, name=name))
        assert scene.open().branches.list() == {}
        assert not (scene.ground.root / scene.ground.location(T) / "tree").exists()

    def test_errors_by_the_stock_client(self, scene: Scene) -> None:
        stock = scene.stock
        create = models.CreateTableBranchRequest
        stock.create_table_branch(create(id=T, name="dev"))
        refused: list[tuple[Any, type[LanceNamespaceError]]] = [
            (create(id=T, name="dev"), TableBranchAlreadyExistsError),
            (create(id=T, name="x", from_branch="nope"), TableBranchNotFoundError),
            (create(id=T, name="x", from_version=9), TableVersionNotFoundError),
            (create(id=T, name="main"), InvalidInputError),
        ]
        for request, error in refused:
            with pytest.raises(error):
                stock.create_table_branch(request)
        with pytest.raises(TableBranchNotFoundError):
            stock.delete_table_branch(models.DeleteTableBranchRequest(id=T, name="x"))

    @pytest.mark.parametrize(
        "longest", ["b" * 211, "b" * 100 + "/" + "c" * 106, "t" * 211], ids=["flat", "nested", "tag"]
    )
    def test_a_name_is_as_long_as_stock_clients_make_it(self, scene: Scene, longest: str) -> None:
        branch = longest[0] == "b"
        path, field, version = ("branches", "name", "from_version") if branch else ("tags", "tag", "version")
        refused = scene.post(f"{PATH}/{path}/create", {field: longest + "x", version: 1})
        assert (refused.status_code, refused.json()["code"]) == (400, 13)
        assert "expected at most 211 characters" in refused.json()["error"]
        scene.post(f"{PATH}/{path}/create", {field: longest, version: 1}).raise_for_status()
        stock = scene.open()
        assert longest in (stock.branches.list() if branch else stock.tags.list())
        assert stock.checkout_version((longest, None) if branch else longest).count_rows() > 0
        with pytest.raises(OSError, match="name too long"):
            stock.create_branch(longest + "x", 1) if branch else stock.tags.create(longest + "x", 1)

    def test_metadata_of_a_branch_is_told(self, scene: Scene) -> None:
        location = scene.ground.location(T)
        Dataset.open(scene.ground.store, location=location).branches.create("dev", 1, metadata={"owner": "ann"})
        told = scene.http.post(f"{PATH}/branches/list").json()["branches"]["dev"]
        assert (told["metadata"], told["parentVersion"]) == ({"owner": "ann"}, 1)

    def test_a_tag_over_http_names_a_branch(self, scene: Scene) -> None:
        scene.post(f"{PATH}/branches/create", {"name": "dev"}).raise_for_status()
        scene.post(f"{PATH}/tags/create", {"tag": "d", "version": 2, "branch": "dev"}).raise_for_status()
        assert scene.open().tags.list()["d"]["branch"] == "dev"
        response = scene.post(f"{PATH}/branches/delete", {"name": "dev"})
        assert (response.status_code, response.json()["code"]) == (400, 13)
        assert "expected no tag on it, found d" in response.json()["error"]

    def test_of_many_creators_one_wins(self, scene: Scene) -> None:
        statuses: list[int] = []

        def create() -> None:
            with httpx.Client(base_url=scene.url) as http:
                statuses.append(http.post(f"{PATH}/branches/create", json={"name": "dev"}).status_code)

        threads = [threading.Thread(target=create) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(statuses) == [200, *[409] * 5]


class TestTransactions:
    def test_by_the_stock_client(self, scene: Scene) -> None:
        stock = scene.stock
        read = scene.open().read_transaction(2)
        told = stock.describe_transaction(models.DescribeTransactionRequest(id=[*T, "2"]))
        assert told.properties["uuid"] == read.uuid
        made = stock.create_namespace(models.CreateNamespaceRequest(id=["x"]))
        name = scene.post("/v1/namespace/y/create", {"properties": {}}).json()["transaction_id"]
        assert made is not None
        batch = stock.describe_transaction(models.DescribeTransactionRequest(id=[name]))
        assert (batch.status, batch.properties["operation"]) == ("Succeeded", "create_namespace")
        with pytest.raises(TransactionNotFoundError):
            stock.describe_transaction(models.DescribeTransactionRequest(id=[*T, "9"]))
        action = AlterTransactionAction.from_dict({"setPropertyAction": {"key": "k", "value": "v"}})
        with pytest.raises(InvalidInputError, match="found none"):  # pylance 14 sends actions without their content
            stock.alter_transaction(models.AlterTransactionRequest(id=[*T, "2"], actions=[action]))

    def test_alterations(self, scene: Scene) -> None:
        name = scene.post("/v1/namespace/y/create", {"properties": {}}).json()["transaction_id"]
        for path in ("/v1/transaction/g%24t%242/alter", f"/v1/transaction/{name}/alter"):
            action = {"setPropertyAction": {"key": "k", "value": "v", "mode": "Fail"}}
            assert scene.post(path, {"actions": [action]}).json()["properties"]["k"] == "v"
            again = scene.post(path, {"actions": [action]})
            assert (again.status_code, again.json()["code"]) == (409, 14)
            cancel = scene.post(path, {"actions": [{"setStatusAction": {"status": "Canceled"}}]})
            assert (cancel.status_code, cancel.json()["code"]) == (400, 13)
            assert "it is Succeeded, not Canceled" in cancel.json()["error"]

    def test_as_of_a_catalog_version(self, scene: Scene) -> None:
        pinned = str(scene.ground.catalog.snapshot().version)
        name = scene.post("/v1/namespace/y/create", {"properties": {}}).json()["transaction_id"]
        assert scene.post(f"/v1/transaction/{name}/describe").status_code == 200
        response = scene.post(f"/v1/transaction/{name}/describe", x_lance_catalog_version=pinned)
        assert (response.status_code, response.json()["code"]) == (404, 10)

    def test_an_answer_changes_with_its_notes(self, scene: Scene) -> None:
        path = "/v1/transaction/g%24t%242"
        before = scene.post(f"{path}/describe").json()["properties"]
        note = {"actions": [{"setPropertyAction": {"key": "k", "value": "v"}}]}
        assert scene.post(f"{path}/alter", note).json()["properties"] == {**before, "k": "v"}
        assert scene.post(f"{path}/describe").json()["properties"] == {**before, "k": "v"}


def test_the_generated_clients(scene: Scene) -> None:
    configuration = Configuration(host=scene.url)
    with ApiClient(configuration) as api:
        tags, branches, transactions = TagApi(api), BranchApi(api), TransactionApi(api)
        tags.create_table_tag("g$t", models.CreateTableTagRequest(tag="v", version=1))
        branches.create_table_branch("g$t", models.CreateTableBranchRequest(name="dev"))
        tags.create_table_tag("g$t", models.CreateTableTagRequest(tag="d", version=2, branch="dev"))
        assert list(tags.list_table_tags("g$t", limit=1).tags) == ["d"]
        assert tags.get_table_tag_version("g$t", models.GetTableTagVersionRequest(tag="d")).branch == "dev"
        [dev] = branches.list_table_branches("g$t").branches.values()
        assert (dev.parent_version, dev.parent_branch) == (2, None)
        assert transactions.describe_transaction("g$t$2", models.DescribeTransactionRequest()).status == "Succeeded"
        action = AlterTransactionAction.from_dict({"setPropertyAction": {"key": "k", "value": "v"}})
        altered = transactions.alter_transaction("g$t$2", models.AlterTransactionRequest(actions=[action]))
        assert altered.properties["k"] == "v"
        tags.delete_table_tag("g$t", models.DeleteTableTagRequest(tag="d"))
        branches.delete_table_branch("g$t", models.DeleteTableBranchRequest(name="dev"))
    with Client(base_url=scene.url) as client:
        body = ours.CreateTableTagRequest(tag="w", version=2)
        assert create_table_tag.sync("g$t", client=client, body=body).transaction_id  # type: ignore[union-attr]
        listed = list_table_branches.sync("g$t", client=client)
        assert isinstance(listed, ours.ListTableBranchesResponse)
        assert listed.branches.to_dict() == {}


def test_keys_are_required_and_stand_in_the_record(tmp_path: Path, serve: Serve) -> None:
    ground = Ground(tmp_path / "root")
    ground.make_namespace("g")
    ground.make_table("g", "t")
    url = serve(ground.namespace, keys={"secret-key": "ann"}).url
    with httpx.Client(base_url=url) as http:
        for path in ("tags/list", "tags/create", "branches/create", "branches/delete"):
            assert http.post(f"{PATH}/{path}", json={"tag": "v", "version": 1, "name": "x"}).status_code == 401
        assert http.post("/v1/transaction/g%24t%241/describe").status_code == 401
        made = http.post(f"{PATH}/tags/create", json={"tag": "v", "version": 1}, headers={"x-api-key": "secret-key"})
    record = ground.catalog.snapshot().record(made.json()["transaction_id"])
    assert record is not None
    assert record.principal == "ann"


def test_a_change_that_waits_for_storage_holds_nobody_up(serve: Serve, echo_catalog: EchoCatalog) -> None:
    """Changes beside the catalog run in threads of their own: reads and commits go on."""
    entered, leave = threading.Event(), threading.Event()
    change = echo_catalog.change

    def slow(*given: Any, **more: Any) -> Any:
        entered.set()
        assert leave.wait(30)
        return change(*given, **more)

    echo_catalog.change = slow  # type: ignore[method-assign]
    url = serve(echo_catalog).url
    with httpx.Client(base_url=url) as http:
        answers: list[httpx.Response] = []
        waiting = threading.Thread(
            target=lambda: answers.append(httpx.post(f"{url}{PATH}/branches/delete", json={"name": "x"}))
        )
        waiting.start()
        assert entered.wait(30)
        assert http.post(f"{PATH}/describe", json={}).status_code == 200
        assert http.post(f"{PATH}/tags/list").status_code == 200
        assert http.post(f"{PATH}/branches/create", json={"name": "y"}).status_code == 200
        assert answers == []
        leave.set()
        waiting.join()
    assert [answer.status_code for answer in answers] == [200]


@pytest.mark.services
@pytest.mark.parametrize("service", ["moto_server", "azurite"])
def test_on_an_object_store(service: str, serve: Serve, request: pytest.FixtureRequest) -> None:
    emulator: Emulator = request.getfixturevalue(service)
    options = emulator.storage_options
    properties = {"root": emulator.new_root(), "sweep_interval_seconds": "0"}
    properties |= {f"storage.{name}": value for name, value in options.items()}
    with closing(DirectoryNamespace(**properties)) as namespace:
        url = serve(namespace).url
        stock = RestNamespace(uri=url)
        stock.create_namespace(models.CreateNamespaceRequest(id=["g"]))
        for mode, data in (("create", rows(0, 3)), ("append", rows(3, 5))):
            lance.write_dataset(data, mode=mode, namespace_client=stock, table_id=T, storage_options=options)

        def opened() -> lance.LanceDataset:
            return lance.dataset(namespace_client=stock, table_id=T, storage_options=options)

        stock.create_table_tag(models.CreateTableTagRequest(id=T, tag="v", version=1))
        stock.update_table_tag(models.UpdateTableTagRequest(id=T, tag="v", version=2))
        assert opened().checkout_version("v").count_rows() == 5
        stock.create_table_branch(models.CreateTableBranchRequest(id=T, name="dev", from_version=1))
        dev = opened().checkout_version(("dev", None))
        lance.write_dataset(rows(7, 9), dev, mode="append", storage_options=options)
        assert opened().checkout_version(("dev", None)).count_rows() == 5

        def ask(path: str, **body: object) -> dict[str, Any]:
            answer = httpx.post(f"{url}/v1/table/{path}", json=body, timeout=60)
            assert answer.is_success, answer.text
            return dict(answer.json())

        ask("g%24t/delete", predicate="id in (0, 7)", branch="dev")
        assert ask("g%24t/branches/cherry_pick", from_branch="dev")["status"] == "cherry_picked"
        ask("g%24t/branches/create", name="columns")
        ask("g%24t/add_columns", branch="columns", new_columns=[{"name": "twice", "expression": "id * 2"}])
        assert ask("g%24t/branches/cherry_pick", from_branch="columns")["preview"]["promoted_columns"] == ["twice"]
        ask("g%24t/branches/delete", name="columns")
        cloned = ask("g%24clone/clone", source_location=ask("g%24t/describe")["location"])
        for place in (cloned["location"], opened().uri):
            dataset = lance.dataset(place, storage_options=options)
            dataset.validate()
            found = sorted(dataset.to_table(columns=["id", "twice"]).to_pylist(), key=lambda row: row["id"])
            assert found == [{"id": each, "twice": 2 * each} for each in (1, 2, 3, 4, 8)]
        stock.delete_table_branch(models.DeleteTableBranchRequest(id=T, name="dev"))
        assert opened().branches.list() == {}
        assert not [meta.path for meta in namespace.catalog.store.list("") if "/tree/" in meta.path]
        note = {"actions": [{"setPropertyAction": {"key": "k", "value": "v"}}]}
        httpx.post(f"{url}/v1/transaction/g%24t%242/alter", json=note).raise_for_status()
        told = stock.describe_transaction(models.DescribeTransactionRequest(id=[*T, "2"]))
        assert told.properties["k"] == "v"
        stock.delete_table_tag(models.DeleteTableTagRequest(id=T, tag="v"))
        assert opened().tags.list() == {}
