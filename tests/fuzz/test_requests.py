"""Requests that are generated from our OpenAPI document: no 5xx, and no status, type or shape that it does not name.

The requests are the same in every run. To try more of them for each operation:

    LANCE_FUZZ_EXAMPLES=900 python -m pytest tests/fuzz --timeout 0
"""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.data.arrow import ARROW, stream
from tests.running import running

EXAMPLES = int(os.environ.get("LANCE_FUZZ_EXAMPLES", "12"))
DOCUMENT = Path(__file__).parents[2] / "openapi" / "lance-namespace.yaml"
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
ROWS = pa.table(
    {
        "a": pa.array(range(300), pa.int64()),
        "s": [f"word{number % 7} text" for number in range(300)],
        "v": pa.FixedSizeListArray.from_arrays(pa.array([float(n % 11) for n in range(1200)], pa.float32()), 4),
    }
)
BODIES = [
    stream(ROWS),
    stream(ROWS.slice(0, 0)),
    stream(ROWS.drop_columns(["v"])),
    stream(pa.table({"z": ["1", None]})),
]
REMOVING = {"DropTable", "DeregisterTable", "RenameTable", "DropNamespace"}
"""Operations after which the object of the request is gone: each gets one of its own."""
MAKING = {"DeclareTable", "CreateTable", "CreateNamespace", "StageRows"}

WORDS: dict[str, list[Any]] = {
    "id": [["w", "t"]],
    "column": ["a", "s", "v", "a"],
    "columns": [["a"], ["s"], ["v"]],
    "vector_column": ["v"],
    "predicate": ["a < 3", "s = 'word1 text'", "a / 0 > 1", "nope = 1", "true"],
    "filter": ["a < 9", "s IS NULL", "a IN (1, 2)"],
    "updates": [[["a", "a + 1"]], [["s", "upper(s)"]]],
    "tag": ["one", "two", "three"],
    "branch": ["side", None],
    "version": [1, 2, 3],
    "name": ["one", "a_idx", "extra"],
    "index_type": ["BTREE", "FTS", "BITMAP", "IVF_FLAT"],
    "index_name": ["a_idx", "s_idx"],
    "distance_type": ["l2", "cosine"],
    "single_vector": [[0.5, 1.0, 2.0, 3.0]],
    "vector": [{"single_vector": [1.0, 1.0, 2.0, 3.0]}, {}],
    "k": [0, 1, 10],
    "from_branch": ["side", None],
    "from_version": [1, 2],
    "to_branch": ["side", None],
    "row_ids": [[0, 1]],
    "since": [2, 3],
    "text": ["t", "w"],
    "path": ["a", "s"],
    "rename": ["a", "b"],
    "expression": ["a * 2", "length(s)"],
    "mode": ["append", "overwrite", "create", "exist_ok"],
    "on": ["a", "s"],
    "query": [{"k": 3, "vector": {}}, {"k": 3, "vector": {"single_vector": [1.0, 1.0, 2.0, 3.0]}}],
    "operations": [
        [{"assert_table_version": {"id": ["w", "t"], "version": 2}}],
        [{"declare_table": {"id": ["w", "made"]}}],
        [{"set_table_properties": {"id": ["w", "t"], "set": {"a": "b"}}}],
    ],
    "limit": [1, 3],
    "page_token": [""],
    "properties": [{"owner": "x"}, {}],
    "delimiter": ["$"],
    "upload_part_id": ["one", "two"],
    "parts": [["one"], ["one"], ["one", "two"]],
    "intent_id": ["00000000-0000-4000-8000-000000000001"],
    "seconds": [3_600, 7_200],
}
"""Values that mean something for the table, by the names of fields and parameters."""

schemathesis.openapi.media_type(ARROW["content-type"], st.sampled_from(BODIES) | st.binary(max_size=64))
schema = schemathesis.openapi.from_path(str(DOCUMENT))
answered: dict[str, Counter[int]] = {}
"""How often each operation was answered with each status."""


@schemathesis.serializer(ARROW["content-type"])
def send_rows(_context: schemathesis.SerializationContext, value: Any) -> bytes:
    return value if isinstance(value, bytes) else repr(value).encode()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Our server, with pins, and a table that has versions, tags, a branch and indices."""
    with running(tmp_path_factory.mktemp("root")) as url:
        with httpx.Client(base_url=url, timeout=60) as http:
            http.post("/v1/namespace/w/create", json={}).raise_for_status()
            make_table(http, "w$t")
            for name in WORDS["name"]:
                http.post("/v1/catalog/pins", json={"name": name}).raise_for_status()
            WORDS["upload_id"] = [begin_upload(http, "w$t") for _ in range(5)]
        yield url


def make_table(http: httpx.Client, name: str) -> None:
    route = f"/v1/table/{name}"
    http.post(f"{route}/create", content=stream(ROWS), headers=ARROW).raise_for_status()
    http.post(f"{route}/insert", content=stream(ROWS), headers=ARROW).raise_for_status()
    http.post(f"{route}/tags/create", json={"tag": "one", "version": 1}).raise_for_status()
    http.post(f"{route}/branches/create", json={"name": "side"}).raise_for_status()
    http.post(f"{route}/create_scalar_index", json={"column": "a", "index_type": "BTREE"}).raise_for_status()
    http.post(f"{route}/create_scalar_index", json={"column": "s", "index_type": "FTS"}).raise_for_status()


def begin_upload(http: httpx.Client, name: str) -> str:
    """The id of an upload of rows for a table, with one part."""
    begun: str = http.post(f"/v1/table/{name}/multipart_write/create").json()["upload_id"]
    named = {"upload_id": begun, "upload_part_id": "one"}
    http.post(f"/v1/table/{name}/insert", params=named, content=stream(ROWS), headers=ARROW).raise_for_status()
    return begun


def declared(part: Any) -> Iterator[str]:
    """Names of the fields and parameters of a part of the document."""
    if isinstance(part, dict):
        yield from part.get("properties", ())
        if "in" in part and "name" in part:
            yield part["name"]
    for item in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from declared(item)


DECLARED = frozenset(declared(schema.raw_schema))


def sensible(value: Any, number: int) -> Any:
    """The value with its known fields replaced by values that mean something, and without those that nothing has."""
    if isinstance(value, list):
        return [sensible(item, number) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: WORDS[name][(number + place) % len(WORDS[name])] if name in WORDS else sensible(item, number)
        for place, (name, item) in enumerate(value.items())
        if name in DECLARED
    }


def steer(case: Case, url: str, number: int) -> None:
    """Let three of four requests name something that exists, and half of them mean something."""
    if number % 2:
        case.body = sensible(case.body, number // 2)
        if isinstance(case.query, dict):
            case.query = sensible(case.query, number // 2)
        for header in ("x-lance-catalog-version", "idempotency-key") if number // 2 % 4 else ():
            for name in [name for name in case.headers or () if name.lower() == header]:
                del case.headers[name]  # few versions are there, and few texts are keys
    if not number % 4 or not case.path_parameters:
        return
    operation = case.operation.definition.raw["operationId"]
    if "index_name" in case.path_parameters:
        case.path_parameters["index_name"] = "a_idx"
        if isinstance(case.body, dict):
            case.body.pop("index_name", None)
    if "id" not in case.path_parameters or "/transaction/" in case.operation.path:
        return
    named = "w" if "/namespace/" in case.operation.path else "w$t"
    if operation in REMOVING or operation in MAKING:
        named = f"w${operation}{number}"
    if operation in REMOVING:
        with httpx.Client(base_url=url, timeout=60) as http:
            if operation == "DropNamespace":
                http.post(f"/v1/namespace/{named}/create", json={})
            else:
                http.post(f"/v1/table/{named}/declare", json={})
    case.path_parameters["id"] = named
    if isinstance(case.query, dict):
        case.query.pop("delimiter", None)
    if isinstance(case.body, dict):
        case.body.pop("id", None)


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_answers_are_those_of_the_document(case: Case, url: str) -> None:
    counts = answered.setdefault(case.operation.definition.raw["operationId"], Counter())
    steer(case, url, zlib.crc32(repr((case.body, case.query)).encode()))
    response = case.call(base_url=url, timeout=120)
    counts[response.status_code] += 1
    case.validate_response(response, checks=CHECKS)


OUT_OF_REACH = {
    *("FetchTableBlobs", "FindTableBlob", "ReadTableBlob"),  # the table has no blobs
    *("ListAuditedVersions", "ListRefusedAttempts", "EnableGrants", "ChangeGrants"),  # callers have no names
    *("BatchCreateTableVersions", "CloneTable", "CreateTableVersion", "RegisterTable"),  # they name files
    *("AlterTransaction", "DescribeTransaction", "UndropNamespace", "UndropTable"),  # they name what was done before
}
"""Operations whose requests succeed by knowledge alone, which generated ones do not have."""


def test_most_operations_had_successes(url: str) -> None:
    """After all the others: requests that are refused show little.

    Hypothesis also takes values from constants of the code, so that another change may refuse others of them.
    """
    total = Counter[int]()
    for counts in answered.values():
        total.update(counts)
    print(f"\n{total.total()} requests: {dict(sorted(total.items()))}")
    succeeded = {name for name, counts in answered.items() if any(200 <= status < 300 for status in counts)}
    failed = sorted(answered.keys() - succeeded - OUT_OF_REACH)
    print(f"never successful: {failed}")
    assert httpx.get(f"{url}/health/ready").is_success
    assert len(failed) <= 12, failed
