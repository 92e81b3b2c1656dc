"""Classes of faults that catalogs with access control had, each as a whole: none of them is here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import CodeType
from typing import Any
from urllib.parse import quote

import httpx
import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import LanceNamespaceError, PermissionDeniedError, TableNotFoundError

from lance_core.storage.local import LocalStore
from lance_core.storage.wrappers.counting import CountingStore
from namespace_server.access.grants import AccessEntry
from namespace_server.access.subjects import ANONYMOUS_SUBJECT, Subject
from namespace_server.app import create_app
from namespace_server.credentials.temporary import Credentials, TemporaryCredentials
from namespace_server.credentials.vending import Permission, Vendor
from namespace_server.data.change_request import Caller as DataCaller
from namespace_server.directory.model.entries import Entry, changes_of
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.directory.reading.sight import VisibleSnapshot
from namespace_server.observability.metrics.measures import ServerMetrics
from namespace_server.rest.identity import Authenticator
from tests.access.conftest import Team
from tests.access.granting import ADMIN, Caller, as_principal, granted, keys, put_rows, switch_on
from tests.data.arrow import stream
from tests.directory.flipping import flip
from tests.directory.tables import QUIET, Ground
from tests.running import serving

ROWS = stream(pa.table({"x": [1, 2, 3]}))
QUERY = {"k": 0, "vector": {"single_vector": []}}
BOB = Subject("bob")


def on_ground(ground: Ground, *rows: Entry) -> None:
    """Put grants in force on a catalog in this process."""
    flip(ground.catalog.table, changes_of([AccessEntry(), *rows]))


class TestBasePaths:
    """Who reads a table reads the files of others that it is made of, and needs `read` on those (class A4)."""

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def clone(cls, team: Team) -> str:
        """`b$copy` is a shallow clone of `b$source`: its rows lie in the directory of the other one."""
        admin = team.caller(ADMIN)
        assert admin.post("/v1/table/b$source/create", ROWS).status_code == 200
        location = admin.post("/v1/table/b$source/describe").json()["location"]
        lance.dataset(location).shallow_clone(str(team.root / "copy"), 1)
        assert admin.post("/v1/table/b$copy/register", {"location": "copy"}).status_code == 200
        put_rows(team.root, [granted("table", "b$copy", "bob", "read", "write")])
        return "b$copy"

    def ask(self, caller: Caller, headers: dict[str, str] | None = None) -> set[int]:
        """The statuses of all reads of the rows of the clone, and of a change that reads them."""
        asked = [("query", QUERY), ("count_rows", {}), ("analyze_plan", QUERY)]
        if headers is None:
            asked.append(("update", {"updates": [["x", "x"]], "predicate": "x > 9"}))
        return {caller.post(f"/v1/table/b$copy/{route}", body, headers).status_code for route, body in asked}

    def test_follows_the_grants_of_what_is_reached(self, team: Team) -> None:
        admin, bob = team.caller(ADMIN), team.caller("bob")
        assert self.ask(admin) == {200}
        assert self.ask(bob) == {403}
        refused = bob.post("/v1/table/b$copy/count_rows").json()["error"]
        assert "source" not in refused
        read = granted("table", "b$source", "bob", "read")
        before = put_rows(team.root, [read])
        assert self.ask(bob) == {200}
        assert admin.post("/v1/table/b$source/rename", {"new_table_name": "other"}).status_code == 200
        renamed = granted("table", "b$other", "bob", "read")
        put_rows(team.root, [renamed], remove=[read.object_id])
        assert self.ask(bob) == {200}
        put_rows(team.root, [], remove=[renamed.object_id])
        assert self.ask(bob) == {403}
        assert self.ask(bob, {"x-lance-catalog-version": str(before)}) == {403}
        assert admin.post("/v1/table/b$other/drop").status_code == 200
        assert self.ask(bob) == {403}
        assert self.ask(admin) == {200}


class TestNoTraceInTheStore:
    """What is hidden is looked for in storage no more than what does not exist, and is not looked at (A1, A12)."""

    @pytest.fixture
    def ground(self, tmp_path: Path) -> Iterator[Ground]:
        ground = Ground(tmp_path / "root", CountingStore(LocalStore(tmp_path / "root", "none")))
        ground.namespace.write("create_namespace", {"id": ["a"]})
        ground.namespace.data.create_table({"id": ["a", "hidden"]}, ROWS)
        ground.namespace.change("create_table_tag", {"id": ["a", "hidden"], "tag": "v", "version": 1})
        ground.namespace.write("create_namespace", {"id": ["b"]})
        ground.namespace.write("declare_table", {"id": ["b", "hidden"]})
        on_ground(ground, granted("namespace", "a", "bob", "create"))
        yield ground
        ground.namespace.close()

    def cost(self, ground: Ground, call: Any) -> tuple[Any, ...]:
        assert isinstance(ground.store, CountingStore)
        ground.namespace.newest()
        with ground.store.measure() as cost, pytest.raises(LanceNamespaceError) as refused:
            call()
        return dict(cost.by_verb), int(refused.value.code)

    @pytest.mark.parametrize(
        ("operation", "more"),
        [
            ("describe_table", {}),
            ("describe_table", {"load_detailed_metadata": True}),
            ("table_exists", {"version": 1}),
            ("list_table_versions", {}),
            ("list_table_versions", {"descending": True, "limit": 1}),
            ("describe_table_version", {}),
            ("list_table_tags", {}),
            ("list_table_branches", {}),
            ("describe_transaction", {"of": "1"}),
        ],
    )
    def test_reads(self, ground: Ground, operation: str, more: dict[str, Any]) -> None:
        def ask(name: str, at: int | None) -> Any:
            request = {"id": ["a", name, *([more["of"]] if "of" in more else [])]}
            request |= {field: value for field, value in more.items() if field != "of"}
            return self.cost(ground, lambda: ground.namespace.read(operation, request, subject=BOB, at=at))

        assert ask("hidden", None) == ask("absent", None)
        version = ground.namespace.newest().version
        ask("absent", version)  # the snapshot of that version is loaded
        assert ask("hidden", version) == ask("absent", version)

    def test_work_on_rows(self, ground: Ground) -> None:
        tables = ground.namespace.tables()
        for more in ({}, {"version": 1}, {"branch": "dev"}):
            hidden, absent = (
                self.cost(ground, partial(tables.find_table, {"id": ["a", name], **more}, subject=BOB))
                for name in ("hidden", "absent")
            )
            assert hidden == absent

    @pytest.mark.parametrize("operation", ["create_table_tag", "update_table_tag", "delete_table_tag"])
    def test_changes_of_files(self, ground: Ground, operation: str) -> None:
        def ask(name: str) -> Any:
            request = {"id": ["a", name], "tag": "v", **({} if operation.startswith("delete") else {"version": 1})}
            return self.cost(ground, lambda: ground.namespace.change(operation, request, principal="bob", subject=BOB))

        assert ask("hidden") == ask("absent")

    def test_a_blob_in_a_file_of_what_is_hidden(self, tmp_path: Path) -> None:
        """Whether such a file is there is not told where files below the root may be read at all (A4)."""
        root = tmp_path / "root"
        ground = Ground(root, options=replace(QUIET, blob_locations=(str(root),)))
        ground.namespace.write("create_namespace", {"id": ["a"]})
        for name in ("hidden", "open"):
            ground.namespace.data.create_table({"id": ["a", name]}, ROWS)
        on_ground(ground, granted("table", "a$open", "bob", "read"))
        there, own = (root / ground.location(["a", name]) / "_versions" for name in ("hidden", "open"))
        [manifest], [readable] = there.iterdir(), own.iterdir()
        refusal = partial(ground.namespace.tables().blob_refusal, subject=BOB)
        assert refusal(str(readable)) is None
        assert refusal(str(manifest)) is not None
        told = {refusal(str(path)) for path in (manifest, there / "0.manifest", root / "absent" / "file", there, root)}
        assert len(told) == 1
        ground.namespace.close()

    def test_a_creation_below_what_is_hidden(self, ground: Ground) -> None:
        """Where the namespaces above are made too, a hidden table in their place is told no more than none."""
        tables = ground.namespace.tables()
        words = []
        for name in ("hidden", "absent"):
            with pytest.raises(PermissionDeniedError) as refused:
                tables.new_table({"id": ["b", name, "t"]}, Subject("bob"), ("b", name))
            words.append(str(refused.value).replace("hidden", "absent"))
        assert words[0] == words[1]


class TestCredentials:
    """Options are handed out by what their caller may do, and none of one caller to another (A1, A12)."""

    class Issuer:
        def __init__(self, permission: Permission) -> None:
            self.permission = permission
            self.asked: list[str] = []

        def issue(self, path: str) -> Credentials:
            self.asked.append(path)
            return Credentials({"token": f"{self.permission} {path}"}, 0, 2**40)

    def test_by_privilege(self, tmp_path: Path) -> None:
        ground = Ground(tmp_path / "root")
        writing, reading = self.Issuer("write"), self.Issuer("read")
        ground.namespace.write("create_namespace", {"id": ["a"]})
        for name in ("t", "ab", "a*"):
            ground.namespace.data.create_table({"id": ["a", name]}, ROWS)
        on_ground(
            ground,
            granted("table", "a$t", "seer", "see"),
            granted("table", "a$t", "reader", "read"),
            granted("table", "a$t", "writer", "read", "write"),
            granted("table", "a$a*", "bob", "read"),
        )
        ground.catalog.vendor = Vendor({"region": "here"}, TemporaryCredentials(writing), TemporaryCredentials(reading))

        def options(who: str | None, name: str = "t") -> Any:
            subject = ANONYMOUS_SUBJECT if who is None else Subject(who)
            body = ground.namespace.read("describe_table", {"id": ["a", name]}, subject=subject, cache_key="k").body
            return body.get("storage_options", {}).get("token", "none").partition(" ")[0]

        for _ in range(2):  # the second answer is of kept credentials
            assert options("seer") == "none"
            assert options("reader") == "read"
            assert options("writer") == "write"
        assert options("bob", "a*") == "read"
        asked = list(reading.asked)
        for who in ("bob", None):
            for hidden in ("ab", "t"):
                with pytest.raises(TableNotFoundError):
                    options(who, hidden)
        assert reading.asked == asked, "nothing is issued before a check"
        ground.namespace.close()

    def test_of_a_repeated_creation(self, tmp_path: Path) -> None:
        """The answer is that of the first request, the options are by the grants of today."""
        ground, ann = Ground(tmp_path / "root"), Subject("ann")
        ground.namespace.write("create_namespace", {"id": ["a"]})
        on_ground(ground, granted("namespace", "a", "ann", "create"))
        ground.catalog.vendor = Vendor(temporary=TemporaryCredentials(self.Issuer("write")))

        def declare() -> Any:
            request = {"id": ["a", "mine"]}
            call = ground.namespace.prepare("declare_table", request, idempotency_key="k", principal="ann", subject=ann)
            [answer] = ground.namespace.commit_calls([call])
            assert not isinstance(answer, LanceNamespaceError), answer
            return ground.namespace.with_storage_options(answer, ann).body

        made = declare()
        assert made["storage_options"]["token"].startswith("write")
        assert declare() == made
        flip(ground.catalog.table, changes_of(removes=[granted("table", "a$mine", "ann", "own").object_id]))
        again = declare()
        assert again["transaction_id"] == made["transaction_id"]
        assert "storage_options" not in again
        ground.namespace.close()


class TestBeforeWorkBegins:
    """What is refused has no file written for it: a worker did not begin."""

    @pytest.mark.parametrize("route", ["insert?mode=overwrite", "create?mode=overwrite", "stage?mode=overwrite"])
    def test_replacing_a_table(self, team: Team, route: str) -> None:
        admin, carl = team.caller(ADMIN), team.caller("carl")
        name = f"b$replaced-{route.partition('?')[0]}"
        assert admin.post(f"/v1/table/{name}/create", ROWS).status_code == 200
        location = Path(admin.post(f"/v1/table/{name}/describe").json()["location"].removeprefix("file://"))
        before = sorted(location.rglob("*"))
        put_rows(team.root, [granted("table", name, "carl", "read", "write", "alter", "drop")])
        refused = carl.post(f"/v1/table/{name}/{route}", ROWS)
        assert (refused.status_code, refused.json()["code"]) == (403, 15), refused.text
        assert f"create on table {name}" in refused.json()["error"]
        assert sorted(location.rglob("*")) == before
        assert admin.post(f"/v1/table/{name}/{route}", ROWS).status_code == 200


class TestKeptTables:
    """A table that a worker has open for one caller is not one for another caller (A12)."""

    def test_after_another_one_and_after_a_revoke(self, team: Team) -> None:
        admin, carl, nobody = (team.caller(name) for name in (ADMIN, "carl", "nobody"))
        assert admin.post("/v1/table/b$open/create", ROWS).status_code == 200
        grant = granted("table", "b$open", "carl", "read")
        put_rows(team.root, [grant])
        for _ in range(3):
            assert carl.post("/v1/table/b$open/query", QUERY).status_code == 200
            assert nobody.post("/v1/table/b$open/query", QUERY).status_code == 404
        put_rows(team.root, [], remove=[grant.object_id])
        assert carl.post("/v1/table/b$open/query", QUERY).status_code == 404
        assert carl.post("/v1/table/b$open/count_rows").status_code == 404


class TestNames:
    """A grant is on one name exactly, whatever characters it has (A2, A11)."""

    def test_wildcards_and_beginnings(self, team: Team) -> None:
        admin, carl = team.caller(ADMIN), team.caller("carl")
        names = ["w", "w*", "wx", "w?", "[w]", "w%25", "%2A", "w'", 'w"']
        for name in names:
            answer = admin.http.post(
                f"/v1/table/b:{quote(name, safe='')}/declare", params={"delimiter": ":"}, json={}, headers=admin.headers
            )
            assert answer.status_code == 200, (name, answer.text)
        put_rows(team.root, [granted("table", f"b${name}", "carl", "see") for name in ("w*", "w?", "%2A")])
        listed = carl.get("/v1/namespace/b/table/list").json()["tables"]
        assert [name for name in listed if name in names] == ["%2A", "w*", "w?"]


class TestDefaultIsDeny:
    """What nobody thought of is refused (A10)."""

    def test_each_method_of_a_snapshot_is_decided_for_callers(self) -> None:
        """A method of `CatalogSnapshot` that reads the state is one of these, or `VisibleSnapshot` has its own.

        All others ask these methods.
        """
        told = {
            # of the version as a whole, and of what is made of the methods below
            "is_empty_root", "collected", "policy", "facts", "all_tables",
            # by a location, which its caller has from a table that it sees
            "tombstone_at",
            # by `record`
            "record_by_request",
            # makes what searches of all callers use, and tells nothing; `find_tables` asks it for what may be seen
            "prepare_search", "_index",
        }  # fmt: skip
        methods = {name for name, each in vars(CatalogSnapshot).items() if _reads_state(each)}
        assert methods > {"table_at", "_stored", "_own", "_all_own", "_children"}
        assert methods - told - vars(VisibleSnapshot).keys() == set()

    def test_a_caller_that_was_forgotten_is_nobody(self, team: Team) -> None:
        """The operator is named where it is meant: requests over HTTP always have a subject."""
        assert DataCaller().subject is None
        nobody = team.caller("nobody")
        for path in ("/v1/table/b$source/describe", "/v1/namespace/b/describe"):
            assert nobody.post(path).status_code == 404


class TestFigures:
    """Metrics and figures count all tables: they are for who sees all of the catalog (A13), not for who may create."""

    def test_over_http(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        metrics = ServerMetrics()
        namespace = DirectoryNamespace(root=str(root), durability="none", observer=metrics)
        app = create_app(namespace, Authenticator(keys("boss", "bob", "maker")), metrics=metrics)
        with serving(app) as url, httpx.Client(base_url=url, verify=False) as http:
            assert http.get("/metrics", headers=as_principal("bob")).status_code == 200
            assert http.post("/v1/namespace/hushed/create", json={}, headers=as_principal("bob")).status_code == 200
            grants = [granted("catalog", "", "boss", "see"), granted("namespace", "hushed", "bob", "own")]
            switch_on(root, *grants, granted("catalog", "", "maker", "create"))
            assert http.post("/v1/namespace/hushed/describe", json={}, headers=as_principal("bob")).status_code == 200
            for path in ("/metrics", "/v1/catalog/figures"):
                for principal in ("bob", "maker"):
                    refused = http.get(path, headers=as_principal(principal))
                    assert (refused.status_code, refused.json()["code"]) == (403, 15)
                told = http.get(path, headers=as_principal("boss"))
                assert told.status_code == 200
                assert "hushed" not in told.text


class TestOwnOnly:
    """What is of one principal is not there for another one (A8)."""

    def test_notes_on_batches(self, team: Team) -> None:
        admin, carl = team.caller(ADMIN), team.caller("carl")
        body = {"operations": [{"declare_table": {"id": ["b", "noted"]}}]}
        name = admin.post("/v1/table/batch-commit", body).json()["transaction_id"]
        action = {"actions": [{"setPropertyAction": {"key": "k", "value": "v"}}]}
        for uid in (name, f"{name[:-6]}000000"):
            assert carl.post(f"/v1/transaction/{uid}/describe").status_code == 404
            assert carl.post(f"/v1/transaction/{uid}/alter", action).status_code == 404
        assert admin.post(f"/v1/transaction/{name}/alter", action).status_code == 200

    def test_keys_of_repeated_requests(self, team: Team) -> None:
        """The key of one principal is no key of another one: what was answered is not answered again."""
        admin, carl = team.caller(ADMIN), team.caller("carl")
        key = {"idempotency-key": "one and the same"}
        assert admin.post("/v1/table/b$once/create", ROWS, key).status_code == 200
        assert admin.post("/v1/table/b$once/create", ROWS, key).status_code == 200
        refused = carl.post("/v1/table/b$once/create", ROWS, key)
        assert refused.status_code in {403, 404}, refused.text
        assert "transaction_id" not in refused.json()


def _reads_state(member: object) -> bool:
    """Whether a method or property reads the state of the snapshot by itself."""
    code = getattr(getattr(member, "fget", member), "__code__", None)
    return code is not None and any("_state" in each.co_names for each in _codes(code)) and code.co_name != "__init__"


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def test_the_operator_in_process_is_not_judged(tmp_path: Path) -> None:
    ground = Ground(tmp_path / "root")
    ground.namespace.write("create_namespace", {"id": ["a"]})
    on_ground(ground, granted("namespace", "a", "bob", "see"))
    ground.namespace.data.create_table({"id": ["a", "t"]}, ROWS)
    assert ground.namespace.read("list_tables", {"id": ["a"]}).body == {"tables": ["t"]}
    assert ground.namespace.row_reads.value("count_table_rows", {"id": ["a", "t"]}).body == 3
    with pytest.raises(PermissionDeniedError):
        ground.namespace.tables().find_table({"id": ["a", "t"]}, subject=BOB, privileges={"read"})
    ground.namespace.close()
