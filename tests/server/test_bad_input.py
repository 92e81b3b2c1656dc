"""What cannot be done is refused with its code and a message that names the thing, and nothing changes on disk."""

from __future__ import annotations

import base64
import shutil
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest

from lance_core.proto import lance_table_pb2 as pb
from namespace_server.directory.model.root_layout import AUDIT
from tests.directory.tables import Ground, rows
from tests.server.servers import Answer, ServerProcess, send
from tests.server.stock import tree

JSON = {"content-type": "application/json"}
V3 = "18446744073709551612.manifest"


@dataclass(frozen=True, slots=True)
class Scene:
    """`g` holds `t` (head 2), `u` (head 1) and `d` (declared). `good` would create version 3 of `t`."""

    url: str
    root: Path
    location: str
    good: dict[str, Any]
    other: dict[str, Any]

    def beside(self, name: str) -> str:
        """The object-store path of a file in the table's `_versions`."""
        return str(self.root / self.location / "_versions" / name)[1:]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    home = tmp_path_factory.mktemp("input")
    ground = Ground(home / "root")
    ground.make_namespace("g")
    t, u = ground.make_table("g", "t"), ground.make_table("g", "u")
    ground.write(t, rows(3, 5))
    ground.call("declare_table", id=["g", "d"])
    location = ground.location(t)
    versions = ground.root / location / "_versions"
    good = ground.stage(t, rows(5, 6))["create_table_version"]
    other = ground.stage(u, rows(5, 6))["create_table_version"]
    (versions / f"{V3}-text").write_bytes(b"no manifest at all, but long enough to hold a footer")
    (versions / f"{V3}-cut").write_bytes((Path("/") / good["manifest_path"]).read_bytes()[:-7])
    (versions / f"{V3}-empty").write_bytes(b"")
    for base in (ground.root / location, ground.root / location / "tree" / "dev"):
        (base / "data").mkdir(parents=True, exist_ok=True)
        (base / "data" / "0.lance").write_bytes(b"a data file")
    (versions / f"{V3}-two").write_bytes((versions / "18446744073709551613.manifest").read_bytes())
    ground.catalog.sweep()
    ground.catalog.flush_record_housekeeping()
    assert not ground.catalog.snapshot().open_records()
    ground.namespace.close()
    with ServerProcess(ground.root, log=home / "log") as server:
        yield Scene(server.url, ground.root, location, good, other)


@pytest.fixture(autouse=True)
def untouched(scene: Scene) -> Iterator[None]:
    """Whatever a test asks of the server, nothing changes on disk."""
    before = tree(scene.root, apart_from=[AUDIT])
    yield
    after = tree(scene.root, apart_from=[AUDIT])
    assert after.keys() == before.keys()
    assert [name for name in after if after[name] != before[name]] == []


def _refused(answer: Answer, status: int, code: int, *named: str) -> None:
    assert (answer.status, answer.code) == (status, code), answer.body
    for part in named:
        assert part in answer.body["error"], answer.body


# Staged manifests


@dataclass(frozen=True, slots=True)
class Create:
    """A change to the good request, and what is expected of the answer."""

    change: Callable[[Scene], dict[str, Any]]
    named: tuple[str, ...]
    status: int = 400
    code: int = 13


def _path(name: str) -> Callable[[Scene], dict[str, Any]]:
    return lambda scene: {"manifest_path": scene.beside(name), "manifest_size": None}


CREATES = {
    "path in another table": Create(
        lambda scene: {"manifest_path": scene.other["manifest_path"], "manifest_size": None}, ("g$t", "manifest_path")
    ),
    "path outside the root": Create(
        lambda _: {"manifest_path": "etc/hostname", "manifest_size": None}, ("g$t", "etc/hostname")
    ),
    "path with dots": Create(
        lambda scene: {"manifest_path": scene.beside(f"../_versions/{V3}-text"), "manifest_size": None}, ("g$t", "..")
    ),
    "path with dots below _staging": Create(
        lambda scene: {
            "manifest_path": str(scene.root / "_staging" / ".." / scene.location / "_versions" / f"{V3}-text"),
            "manifest_size": None,
        },
        ("g$t", ".."),
    ),
    "a URI": Create(lambda scene: {"manifest_path": f"file:///{scene.good['manifest_path']}"}, ("g$t", "file://")),
    "a canonical name": Create(_path("18446744073709551613.manifest"), ("g$t", "18446744073709551613.manifest")),
    "the version hint": Create(_path("latest_version_hint.json"), ("g$t", "latest_version_hint.json")),
    "the catalog's own manifest": Create(
        lambda scene: {
            "manifest_path": str(next((scene.root / "__manifest" / "_versions").glob("*.manifest")))[1:] + "-x",
            "manifest_size": None,
        },
        ("g$t", "__manifest"),
    ),
    "a path with a backslash": Create(_path(f"{V3}-a\\b"), ("g$t", "a\\\\b")),
    "a path with a null": Create(_path(f"{V3}-a\0b"), ("g$t", "a\\x00b")),
    "an empty path": Create(lambda _: {"manifest_path": ""}, ("g$t",)),
    "no path": Create(lambda _: {"manifest_path": None}, ("manifest_path",)),
    "a path that is no string": Create(lambda _: {"manifest_path": 3}, ("manifest_path",)),
    "not a manifest": Create(_path(f"{V3}-text"), ("g$t", f"{V3}-text")),
    "cut off": Create(_path(f"{V3}-cut"), ("g$t", f"{V3}-cut")),
    "empty": Create(_path(f"{V3}-empty"), ("g$t", f"{V3}-empty")),
    "another version inside": Create(_path(f"{V3}-two"), ("version 3 of table g$t", f"{V3}-two", "2")),
    "another size": Create(
        lambda scene: {"manifest_size": scene.good["manifest_size"] + 1}, ("version 3 of table g$t", "manifest_size")
    ),
    "a negative size": Create(lambda _: {"manifest_size": -1}, ("manifest_size",)),
    "a missing file": Create(_path(f"{V3}-missing"), ("version 3 of table g$t", f"{V3}-missing")),
    "a gap": Create(lambda _: {"version": 5}, ("version 5 of table g$t", "expected head + 1 = 3")),
    "the wrong number for the file": Create(lambda _: {"version": 4}, ("version 4 of table g$t",)),
    "version 0": Create(lambda _: {"version": 0}, ("version 0 of g$t",)),
    "a detached version": Create(lambda _: {"version": -7}, ("version -7 of g$t",), 406, 0),
    "a version beyond 64 bits": Create(lambda _: {"version": 2**63}, ("version",)),
    "a version that is no number": Create(lambda _: {"version": "3"}, ("version",)),
    "no version": Create(lambda _: {"version": None}, ("version",)),
    "a taken version": Create(lambda _: {"version": 2}, ("version 2 of table g$t", "the head is 2"), 409, 14),
    "another naming scheme": Create(lambda _: {"naming_scheme": "V1"}, ("g$t", "V2")),
    "an unknown branch": Create(lambda _: {"branch": "dev"}, ("g$t on branch dev",)),
    "a branch with a dollar": Create(lambda _: {"branch": "a$b"}, ("a$b",)),
    "a branch with dots": Create(lambda _: {"branch": "a/../b"}, ("a/../b",)),
    "metadata that is no text": Create(lambda _: {"metadata": {"a": 1}}, ("metadata",)),
    "an unknown table": Create(lambda _: {"id": ["g", "nowhere"]}, ("g$nowhere",), 404, 4),
    "a namespace for a table": Create(lambda _: {"id": ["g"]}, ("g",), 404, 4),
}


@pytest.mark.parametrize("name", CREATES)
def test_a_version_that_cannot_be_created(scene: Scene, name: str) -> None:
    case = CREATES[name]
    body = {**scene.good, **case.change(scene)}

    path = f"/v1/table/{'%24'.join(body['id'])}/version/create"
    _refused(send(scene.url, "POST", path, orjson.dumps(body)), case.status, case.code, *case.named)
    entries = orjson.dumps({"entries": [body]})
    answer = send(scene.url, "POST", "/v1/table/version/batch-create", entries)
    _refused(answer, case.status, case.code, *case.named)
    companions = [{"declare_table": {"id": ["g", "made"]}}, {"create_table_version": body}]
    answer = send(scene.url, "POST", "/v1/table/batch-commit", orjson.dumps({"operations": companions}))
    _refused(answer, case.status, case.code, *case.named)


def test_the_request_without_a_fault_is_good(scene: Scene, tmp_path: Path) -> None:
    """On a copy of the root: it is the faults that were refused."""
    shutil.copytree(scene.root, tmp_path / "root")
    ground = Ground(tmp_path / "root")
    path = scene.good["manifest_path"].replace(str(scene.root)[1:], str(ground.root)[1:])

    answer = ground.call("create_table_version", **{**scene.good, "manifest_path": path})

    assert answer["version"]["version"] == 3
    assert ground.ids(["g", "t"]) == [0, 1, 2, 3, 4, 5]


# Batches


def _transaction(change: Callable[[pb.Transaction], object]) -> str:
    message = pb.Transaction(read_version=2, uuid=str(uuid.uuid4()))
    message.append.fragments.add(physical_rows=1).files.add(
        path="0.lance", fields=[0, 1], column_indices=[0, 1], file_major_version=2, file_minor_version=1
    )
    change(message)
    return base64.b64encode(message.SerializeToString()).decode()


def _commit(transaction: str, **more: Any) -> dict[str, Any]:
    return {"commit_transaction": {"id": ["g", "t"], "transaction": transaction, **more}}


def _set_path(path: str) -> Callable[[pb.Transaction], object]:
    return lambda message: setattr(message.append.fragments[0].files[0], "path", path)


DEREGISTER = {"deregister_table": {"id": ["g", "u"]}}
BATCHES: dict[str, tuple[Any, int, int, tuple[str, ...]]] = {
    "no operations": ([], 400, 13, ("operations",)),
    "operations that are no list": ({"a": 1}, 400, 13, ("operations",)),
    "null": (None, 400, 13, ("operations",)),
    "an operation that is no object": (["x"], 400, 13, ("operations[0]",)),
    "an operation without a field": ([DEREGISTER, {}], 400, 13, ("operations[1]", "none")),
    "an operation with a null field": ([{"declare_table": None}], 400, 13, ("operations[0]", "none")),
    "two fields": (
        [{**DEREGISTER, "declare_table": {"id": ["g", "x"]}}],
        400,
        13,
        ("operations[0]", "deregister_table, declare_table"),
    ),
    "an unknown field": ([{"drop_everything": {}}], 400, 13, ("operations[0]", "drop_everything")),
    "a field that is no object": ([{"deregister_table": ["g", "u"]}], 400, 13, ("operations[0].deregister_table",)),
    "an operation without id": ([{"deregister_table": {}}], 400, 13, ("operations[0].deregister_table", "id")),
    "an id that is text": ([{"deregister_table": {"id": "g$u"}}], 400, 13, ("id", "g$u")),
    "an empty id": ([{"deregister_table": {"id": []}}], 400, 13, ("id",)),
    "a good operation and an unknown table": ([DEREGISTER, {"deregister_table": {"id": ["g", "x"]}}], 404, 4, ("g$x",)),
    "the same twice": ([DEREGISTER, DEREGISTER], 404, 4, ("g$u",)),
    "a taken name": ([DEREGISTER, {"declare_table": {"id": ["g", "t"]}}], 409, 5, ("g$t",)),
    "a name with a slash": ([{"declare_table": {"id": ["g", "a/b"]}}], 400, 13, ("a/b",)),
    "a name with a dollar": ([{"declare_table": {"id": ["g", "a$b"]}}], 400, 13, ("a$b",)),
    "a name of dots": ([{"declare_table": {"id": ["g", ".."]}}], 400, 13, ("..",)),
    "a name with a line break": ([{"declare_table": {"id": ["g", "a\nb"]}}], 400, 13, ("a\\nb",)),
    "an empty name": ([{"declare_table": {"id": ["g", ""]}}], 400, 13, ("empty",)),
    "a table below a table": ([{"declare_table": {"id": ["g", "t", "x"]}}], 400, 13, ("g$t is a table",)),
    "a table below nothing": ([{"declare_table": {"id": ["n", "x"]}}], 404, 1, ("namespace n",)),
    "a location outside": ([{"declare_table": {"id": ["g", "x"], "location": "/etc/x"}}], 400, 13, ("/etc/x",)),
    "a location of another form": (
        [{"declare_table": {"id": ["g", "x"], "location": "x.lance"}}],
        400,
        13,
        ("x.lance",),
    ),
    "an assertion that fails": (
        [DEREGISTER, {"assert_table_version": {"id": ["g", "t"], "version": 1}}],
        409,
        14,
        ("table g$t", "expected version 1", "found 2"),
    ),
    "an assertion on an unknown table": (
        [{"assert_table_version": {"id": ["g", "x"], "version": 1}}],
        404,
        4,
        ("g$x",),
    ),
    "deleting the head alone": (
        [{"delete_table_versions": {"id": ["g", "t"], "ranges": [{"start_version": 2, "end_version": 3}]}}],
        400,
        13,
        ("g$t", "version 2 is the head"),
    ),
    "deleting backwards": (
        [{"delete_table_versions": {"id": ["g", "t"], "ranges": [{"start_version": 2, "end_version": 1}]}}],
        400,
        13,
        ("ranges",),
    ),
    "deleting nothing": ([{"delete_table_versions": {"id": ["g", "t"], "ranges": []}}], 400, 13, ("ranges",)),
    "deleting from an unknown branch": (
        [
            {
                "delete_table_versions": {
                    "id": ["g", "t"],
                    "branch": "dev",
                    "ranges": [{"start_version": 1, "end_version": 2}],
                }
            }
        ],
        404,
        22,
        ("dev", "g$t"),
    ),
    "a transaction that is no base64": ([_commit("%%%")], 400, 13, ("operations[0].commit_transaction", "g$t")),
    "a transaction that is no message": ([_commit(base64.b64encode(b"\xff" * 9).decode())], 400, 13, ("g$t",)),
    "a transaction without uuid": ([_commit(_transaction(lambda m: m.ClearField("uuid")))], 400, 13, ("g$t", "uuid")),
    "a transaction without operation": (
        [_commit(_transaction(lambda m: m.ClearField("append")))],
        400,
        13,
        ("g$t", "operation"),
    ),
    "a transaction of the future": (
        [_commit(_transaction(lambda m: setattr(m, "read_version", 9)))],
        400,
        13,
        ("g$t", "read version 9", "head is 2"),
    ),
    "a transaction on an unknown branch": ([_commit(_transaction(lambda _: None), branch="dev")], 404, 22, ("dev",)),
    "a transaction whose file is missing": ([_commit(_transaction(_set_path("1.lance")))], 400, 13, ("g$t", "1.lance")),
    "a transaction whose file lies elsewhere": (
        [_commit(_transaction(_set_path("../../__manifest/data/0.lance")))],
        400,
        13,
        ("g$t", "../../__manifest"),
    ),
    "a transaction whose file has no name": ([_commit(_transaction(_set_path("")))], 400, 13, ("g$t",)),
    "a transaction whose file has a backslash": ([_commit(_transaction(_set_path("a\\b")))], 400, 13, ("g$t", "a\\")),
    "a transaction whose file is absolute": ([_commit(_transaction(_set_path("/etc/hostname")))], 400, 13, ("g$t",)),
}


@pytest.mark.parametrize("name", BATCHES)
def test_a_batch_that_cannot_be_done(scene: Scene, name: str) -> None:
    operations, status, code, named = BATCHES[name]
    body = orjson.dumps({"operations": operations})

    _refused(send(scene.url, "POST", "/v1/table/batch-commit", body), status, code, *named)


def test_a_conflict_is_explained(scene: Scene) -> None:
    body = {**scene.good, "version": 2}
    operations = [DEREGISTER, {"create_table_version": body}]

    answer = send(scene.url, "POST", "/v1/table/batch-commit", orjson.dumps({"operations": operations}))

    [failure] = answer.body["failures"]
    assert {key: failure[key] for key in ("operation_index", "id", "expected", "actual")} == {
        "operation_index": 1,
        "id": ["g", "t"],
        "expected": 3,
        "actual": 2,
    }
    assert uuid.UUID(failure["winner_transaction_id"])


# Everything else


@dataclass(frozen=True, slots=True)
class Request:
    path: str
    body: Any = field(default_factory=dict)
    status: int = 400
    code: int = 13
    named: tuple[str, ...] = ()
    method: str = "POST"
    headers: dict[str, str] = field(default_factory=lambda: dict(JSON))

    def data(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else orjson.dumps(self.body)


CREATE_NAMESPACE = "/v1/namespace/{}/create"
LONG = "n" * 256
REQUESTS = {
    # names
    "a dollar in a name": Request("/v1/namespace/a%24b/create?delimiter=.", {}, 400, 13, ("a$b",)),
    "a slash in a name": Request(CREATE_NAMESPACE.format("a%2Fb"), {}, 400, 13, ("a/b",)),
    "dots for a name": Request(CREATE_NAMESPACE.format("g%24.."), {}, 400, 13, ("..",)),
    "a dot for a name": Request(CREATE_NAMESPACE.format("g%24."), {}, 400, 13, ("'.'",)),
    "encoded dots for a name": Request(CREATE_NAMESPACE.format("%2E%2E"), {}, 400, 13, ("..",)),
    "plain dots in the path": Request(CREATE_NAMESPACE.format(".."), {}, 400, 13, ("..",)),
    "a backslash in a name": Request(CREATE_NAMESPACE.format("a%5Cb"), {}, 400, 13, ("a\\\\b",)),
    "a null in a name": Request(CREATE_NAMESPACE.format("a%00b"), {}, 400, 13, ("a\\x00b",)),
    "a line break in a name": Request(CREATE_NAMESPACE.format("a%0Ab"), {}, 400, 13, ("a\\nb",)),
    "a control character in a name": Request(CREATE_NAMESPACE.format("a%C2%85b"), {}, 400, 13, ("a\\x85b",)),
    "a name that is no UTF-8": Request(CREATE_NAMESPACE.format("a%FFb"), {}, 400, 13, ("UTF-8",)),
    "a name that is too long": Request(CREATE_NAMESPACE.format(LONG), {}, 400, 13, ("255",)),
    "a bad name for a table": Request("/v1/table/g%24a%2Fb/declare", {}, 400, 13, ("a/b",)),
    "a bad name to register": Request("/v1/table/g%24%2E%2E/register", {"location": "x"}, 400, 13, ("..",)),
    "a bad name to rename to": Request("/v1/table/g%24t/rename", {"new_table_name": "a/b"}, 400, 13, ("a/b",)),
    "no name to rename to": Request("/v1/table/g%24t/rename", {}, 400, 13, ("new_table_name",)),
    "renaming below a table": Request(
        "/v1/table/g%24t/rename", {"new_table_name": "x", "new_namespace_id": ["g", "u"]}, 400, 13, ("g$u is a table",)
    ),
    "renaming to a taken name": Request("/v1/table/g%24t/rename", {"new_table_name": "u"}, 409, 5, ("g$u",)),
    # locations
    "registering outside": Request("/v1/table/g%24x/register", {"location": "../x"}, 400, 13, ("../x",)),
    "registering an absolute path": Request("/v1/table/g%24x/register", {"location": "/etc"}, 400, 13, ("/etc",)),
    "registering a backslash": Request("/v1/table/g%24x/register", {"location": "a\\b"}, 400, 13, ("a\\\\b",)),
    "registering a URI": Request("/v1/table/g%24x/register", {"location": "s3://b/x"}, 400, 13, ("s3://b/x",)),
    "registering the catalog": Request(
        "/v1/table/g%24x/register", {"location": "__manifest"}, 400, 13, ("__manifest",)
    ),
    "registering the staging area": Request(
        "/v1/table/g%24x/register", {"location": "_staging/x"}, 400, 13, ("_staging",)
    ),
    "registering nothing": Request("/v1/table/g%24x/register", {}, 400, 13, ("location",)),
    # things that are not there, or are there already
    "an unknown table": Request("/v1/table/g%24x/describe", {}, 404, 4, ("g$x",)),
    "dropping an unknown table": Request("/v1/table/g%24x/drop", {}, 404, 4, ("g$x",)),
    "renaming an unknown table": Request("/v1/table/g%24x/rename", {"new_table_name": "y"}, 404, 4, ("g$x",)),
    "versions of an unknown table": Request("/v1/table/g%24x/version/list", {}, 404, 4, ("g$x",)),
    "versions of an unknown branch": Request("/v1/table/g%24t/version/list?branch=dev", {}, 404, 22, ("dev",)),
    "an unknown tag": Request("/v1/table/g%24t/describe", {"tag": "../../x"}, 404, 8, ("../../x", "g$t")),
    "an unknown version": Request("/v1/table/g%24t/version/describe", {"version": 9}, 404, 11, ("version 9", "g$t")),
    "a table where a namespace is": Request("/v1/table/g/declare", {}, 409, 2, ("g",)),
    "a namespace where a table is": Request(CREATE_NAMESPACE.format("g%24t"), {}, 409, 5, ("g$t",)),
    "a namespace that exists": Request(CREATE_NAMESPACE.format("g"), {}, 409, 2, ("g",)),
    "a namespace below nothing": Request(CREATE_NAMESPACE.format("n%24m"), {}, 404, 1, ("namespace n",)),
    "dropping what is not empty": Request("/v1/namespace/g/drop", {}, 409, 3, ("g", "3")),
    "dropping an unknown namespace": Request("/v1/namespace/n/drop", {}, 404, 1, ("n",)),
    "dropping the root": Request("/v1/namespace/%24/drop", {}, 400, 13, ("root",)),
    "an unknown mode": Request(CREATE_NAMESPACE.format("n"), {"mode": "perhaps"}, 400, 13, ("mode", "perhaps")),
    "an unknown behavior": Request("/v1/namespace/g/drop", {"behavior": "perhaps"}, 400, 13, ("behavior", "perhaps")),
    "properties that are no text": Request(
        CREATE_NAMESPACE.format("n"), {"properties": {"a": 1}}, 400, 13, ("properties",)
    ),
    # bodies
    "no JSON": Request(CREATE_NAMESPACE.format("n"), b"{mode", 400, 13, ("JSON",)),
    "half of a body": Request(CREATE_NAMESPACE.format("n"), b'{"mode": "cre', 400, 13, ("JSON",)),
    "no UTF-8": Request(CREATE_NAMESPACE.format("n"), b'{"mode": "\xff"}', 400, 13, ("JSON",)),
    "not a number": Request(CREATE_NAMESPACE.format("n"), b'{"mode": NaN}', 400, 13, ("JSON",)),
    "two bodies": Request(CREATE_NAMESPACE.format("n"), b"{}{}", 400, 13, ("JSON",)),
    "a list": Request(CREATE_NAMESPACE.format("n"), [1], 400, 13, ("JSON object", "[1]")),
    "a text": Request(CREATE_NAMESPACE.format("n"), "x", 400, 13, ("JSON object",)),
    "null": Request(CREATE_NAMESPACE.format("n"), None, 400, 13, ("JSON object",)),
    "nothing": Request(CREATE_NAMESPACE.format("n"), b"", 400, 13, ("JSON",)),
    "a body too deep": Request(CREATE_NAMESPACE.format("n"), b"[" * 5000, 400, 13, ("JSON",)),
    "another content type": Request(
        CREATE_NAMESPACE.format("n"), {}, 400, 13, ("application/json",), headers={"content-type": "text/plain"}
    ),
    "a body that is no JSON where none is needed": Request("/v1/table/g%24t/drop", b"x", 400, 13, ("JSON",)),
    "a batch that is no JSON": Request("/v1/table/batch-commit", b"operations", 400, 13, ("JSON",)),
    # ids
    "another namespace in the body": Request(CREATE_NAMESPACE.format("n"), {"id": ["m"]}, 400, 13, ('["m"]', '["n"]')),
    "another table in the body": Request("/v1/table/g%24t/drop", {"id": ["g", "u"]}, 400, 13, ('["g","u"]',)),
    "another table in a version": Request(
        "/v1/table/g%24t/version/create", {"id": ["g", "u"]}, 400, 13, ('["g","u"]', '["g","t"]')
    ),
    "an id that is no list": Request("/v1/table/g%24t/drop", {"id": "g$t"}, 400, 13, ("g$t",)),
    "an id of numbers": Request("/v1/table/g%24t/drop", {"id": [1]}, 400, 13, ("id", "1")),
    # parameters and headers
    "a limit that is no number": Request("/v1/table/g%24t/version/list?limit=x", {}, 400, 13, ("limit", "x")),
    "a flag that is none": Request("/v1/table/g%24t/version/list?descending=x", {}, 400, 13, ("descending", "x")),
    "a token that is none": Request("/v1/table/g%24t/version/list?page_token=x", {}, 400, 13, ("page_token", "x")),
    "a pin that is no number": Request(
        "/v1/table/g%24t/describe",
        {},
        400,
        13,
        ("x-lance-catalog-version",),
        headers={**JSON, "x-lance-catalog-version": "x"},
    ),
    "a pin of the future": Request(
        "/v1/table/g%24t/describe", {}, 404, 11, ("999",), headers={**JSON, "x-lance-catalog-version": "999"}
    ),
    "a key that is too long": Request(
        "/v1/table/batch-commit",
        {"operations": [DEREGISTER]},
        400,
        13,
        ("256",),
        headers={**JSON, "idempotency-key": "k" * 256},
    ),
    # operations that do not exist here
    "an operation that is not served": Request(
        "/v1/materialized_view/g%24t/refresh", b"", 406, 0, ("refresh_materialized_view",)
    ),
    "a path that is none": Request("/v1/nothing", {}, 404, 0, ("/v1/nothing",)),
    "another method": Request("/v1/table/g%24t/drop", b"", 405, 0, ("GET",), "GET"),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_that_cannot_be_served(scene: Scene, name: str) -> None:
    request = REQUESTS[name]

    answer = send(scene.url, request.method, request.path, request.data(), request.headers)

    _refused(answer, request.status, request.code, *request.named)
    assert answer.headers["content-type"] == "application/json"


def test_a_key_belongs_to_one_request(scene: Scene, tmp_path: Path) -> None:
    shutil.copytree(scene.root, tmp_path / "root")
    ground = Ground(tmp_path / "root")
    ground.batch({"declare_table": {"id": ["g", "x"]}}, key="k")
    before = tree(ground.root)

    with pytest.raises(Exception, match="'k' was used for another request"):
        ground.batch({"declare_table": {"id": ["g", "y"]}}, key="k")

    assert tree(ground.root) == before
