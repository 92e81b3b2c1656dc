"""Bad input to each route of lancedb's dialect: refused so that clients raise it at once, and nothing is done."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import httpx
import pyarrow as pa
import pytest
from lance.blob import blob_array, blob_field

from namespace_server.rest.request.limits import RequestLimits
from namespace_server.rest.routers import ROUTES
from namespace_server.rest.routing import LANCEDB, Route
from tests.data.arrow import ARROW, stream
from tests.lancedb_remote.remote import new_name, rows
from tests.lancedb_remote.valid_requests import RAW, REQUESTS, ROWS, TOLERATED, ValidRequest, mutations

AGENT: Final = {"user-agent": "LanceDB-Python-Client/0.40.0"}
ROUTED: Final = {route.operation: route for route in ROUTES if LANCEDB in route.dialects}
DATABASE: Final = "x-lancedb-database"
REFUSED: Final = {400, 406, 413}
LIMITS: Final = RequestLimits()


def with_blobs() -> pa.Table:
    """Three rows, each with a blob."""
    return rows(3).append_column(blob_field("b"), blob_array([b"x", b"y", b"z"]))


class Scene:
    """A database with one table, and what must not change."""

    def __init__(self, url: str) -> None:
        self.database = new_name()
        self.http = httpx.Client(base_url=url, headers={**AGENT, DATABASE: self.database}, timeout=60)
        self.published = httpx.Client(base_url=url)
        self.table = self.location = self.upload = ""
        self._done = 0

    def close(self) -> None:
        self.http.close()
        self.published.close()

    def build(self) -> None:
        """A new table with a tag, a branch and an index."""
        self._done += 1
        self.table = f"t{self._done}"
        made = [
            self.http.post(f"/v1/table/{self.table}/create/?mode=create", content=stream(rows(3)), headers=ARROW),
            self.ask("POST", "/v1/table/{t}blobs/create/", with_blobs()),
            self.ask("POST", "/v1/table/{t}/tags/create/", {"tag": "first", "version": 1}),
            self.ask("POST", "/v1/table/{t}/branches/create/", {"name": "side"}),
            self.ask("POST", "/v1/table/{t}/create_index/", {"column": "text", "index_type": "FTS", "name": "words"}),
        ]
        self.http.post("/v1/namespace/inner/create", json={"mode": "ExistOk"})
        assert [answer.status_code for answer in made] == [200] * 5, [answer.text for answer in made]
        self.location = self.http.post(f"/v1/table/{self.table}/describe/").json()["location"]
        self.upload = self.ask("POST", "/v1/table/{t}/multipart_write/create").json()["upload_id"]
        part = self.ask(
            "POST", "/v1/table/{t}/insert/", ROWS, query=[("upload_id", self.upload), ("upload_part_id", "a")]
        )
        assert part.status_code == 200, part.text

    def filled(self, value: Any) -> Any:
        if isinstance(value, str):
            known = {"t": self.table, "n": f"new{self._done}", "location": self.location, "upload": self.upload}
            for name, each in known.items():
                value = value.replace(f"{{{name}}}", each)
            return value
        if isinstance(value, dict):
            return {key: self.filled(each) for key, each in value.items()}
        return [self.filled(each) for each in value] if isinstance(value, list) else value

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, Any] | None = None, query: Any = ()
    ) -> httpx.Response:
        given: dict[str, Any] = {"headers": headers or {}}
        if isinstance(body, pa.Table):
            given = {"content": stream(body), "headers": {**ARROW, **(headers or {})}}
        elif isinstance(body, bytes):
            given = {"content": body, "headers": {"content-type": "application/json", **(headers or {})}}
        elif body is not None:
            written = json.dumps(self.filled(body)).encode()  # also numbers that have more than 64 bits
            given = {"content": written, "headers": {"content-type": "application/json", **(headers or {})}}
        return self.http.request(
            method, self.filled(path), params=[(name, self.filled(each)) for name, each in query], **given
        )

    def state(self) -> tuple[int, int, int]:
        """The version of the catalog, that of the table, and its rows."""
        described = self.http.post(f"/v1/table/{self.table}/describe/").json()["version"]
        counted = self.http.post(f"/v1/table/{self.table}/count_rows/", json={}).json()
        return self.published.get("/v1/catalog").json()["version"], described, counted


@pytest.fixture(scope="module")
def scene(remote_url: str) -> Iterator[Scene]:
    made = Scene(remote_url)
    made.build()
    yield made
    made.close()


def send(scene: Scene, route: Route, request: ValidRequest, **given: Any) -> httpx.Response:
    asked = {"body": request.body, "query": request.query, **given}
    return scene.ask(route.method, asked.pop("path", request.path), **asked)


def test_there_is_a_valid_request_of_each_route() -> None:
    assert REQUESTS.keys() == ROUTED.keys()


@pytest.mark.parametrize("operation", ROUTED)
def test_bad_input_is_refused_and_nothing_is_done(scene: Scene, operation: str) -> None:
    route, request = ROUTED[operation], REQUESTS[operation]
    before, wrong = scene.state(), []

    def judge(what: str, answer: httpx.Response, statuses: set[int]) -> None:
        if answer.status_code not in statuses | ({406} if request.status == 406 else set()):
            wrong.append((what, answer.status_code, answer.text[:200]))

    for what, answer, statuses in _bad(scene, route, request):
        judge(what, answer, statuses)
    after = scene.state()
    assert wrong == []
    assert after == before


def _bad(scene: Scene, route: Route, request: ValidRequest) -> Iterator[tuple[str, httpx.Response, set[int]]]:
    for name in (b"\xff", b"a$b", b""):
        yield f"database {name!r}", send(scene, route, request, headers={DATABASE: name}), {400}
    yield "parameter", send(scene, route, request, query=[*request.query, ("nonsense", "1")]), {400}
    if request.of_table:
        yield "no table", send(scene, route, request, path=request.path.replace("{t}", "none")), {404}
        yield "no database", send(scene, route, request, headers={DATABASE: "none"}), {404}
        for name in ("%FF", "a$$b", "x" * 5000):
            answer = send(scene, route, request, path=request.path.replace("{t}", name))
            yield f"table {name[:20]}", answer, {400, 404}
    if request.has_rows:
        yield from _bad_rows(scene, route, request)
    elif route.method == "POST" and request.status != 406:
        yield from _bad_json(scene, route, request)


def _bad_json(scene: Scene, route: Route, request: ValidRequest) -> Iterator[tuple[str, httpx.Response, set[int]]]:
    for raw in RAW:
        yield f"{raw[:40]!r}", send(scene, route, request, body=raw), {400}
    large = LIMITS.read_body if not request.path.endswith(("query/", "plan/", "count_rows/")) else LIMITS.data.query
    many = b'{"nonsense":"' + b"x" * large + b'"}'
    if request.path.startswith("/v1/table"):
        yield "a large body", send(scene, route, request, body=many), {413, 400}
    yield "a type of text", send(scene, route, request, body=b"{}", headers={"content-type": "text/plain"}), {400}
    if isinstance(request.body, dict):
        for what, body in mutations(request):
            yield what, send(scene, route, request, body=body), {400, TOLERATED.get(what, 400)}


def _bad_rows(scene: Scene, route: Route, request: ValidRequest) -> Iterator[tuple[str, httpx.Response, set[int]]]:
    whole = stream(rows(3))
    for body in (b"", b"no rows", b"\xff" * 100, whole[:200], whole[:-40], whole[: len(whole) // 2]):
        answer = send(scene, route, request, body=body, headers=ARROW)
        yield f"{len(body)} bytes", answer, {400}
    yield "JSON", send(scene, route, request, body={"id": 1}), {400}
    double = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["id", "id"])
    yield "one name twice", send(scene, route, request, body=double), {400}
    invalid = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")]
    )
    yield "text that is no UTF-8", send(scene, route, request, body=pa.table({"id": [1], "text": invalid})), {400}
    for name, _ in request.query:
        others = [(key, "nonsense" if key == name else value) for key, value in request.query]
        yield f"{name}=nonsense", send(scene, route, request, query=others), {400}
    if request.of_table:
        yield "another schema", send(scene, route, request, body=pa.table({"other": [1]})), {400}
        yield "another type", send(scene, route, request, body=pa.table({"id": ["x"]})), {400}
        yield (
            "a branch that is missing",
            send(scene, route, request, query=[*request.query, ("branch", "none")]),
            {400, 404},
        )


@pytest.mark.parametrize("operation", [name for name, each in REQUESTS.items() if each.has_rows])
def test_streams_with_wrong_bytes_are_refused_or_are_what_they_say(scene: Scene, operation: str) -> None:
    """A byte of a stream may be one of a value, and then the rows are added."""
    route, request = ROUTED[operation], REQUESTS[operation]
    scene.build()
    whole, chance = stream(ROWS), random.Random(7)
    for number in range(60):
        torn = bytearray(whole)
        for _ in range(1 + number % 3):
            torn[chance.randrange(len(torn))] = chance.randrange(256)
        _, version, count = scene.state()
        answer = send(scene, route, request, body=bytes(torn), headers=ARROW)
        assert answer.status_code in {200, 400, 413}, answer.text
        _, newer, counted = scene.state()
        if answer.status_code != 200:
            assert (newer, counted) == (version, count)


@pytest.mark.parametrize("operation", ROUTED)
def test_the_valid_request_is_one(scene: Scene, operation: str) -> None:
    """What is refused elsewhere is so for the one thing that is wrong with it."""
    request = REQUESTS[operation]
    scene.build()
    answer = send(scene, ROUTED[operation], request)
    assert answer.status_code == request.status, answer.text
    with suppress(StopIteration):
        assert answer.status_code != 200 or next(answer.iter_bytes()) is not None
