"""The examples of the served OpenAPI document fit their schemas, and succeed on a server in the order they have."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import jsonschema
import pyarrow as pa
import pytest
import yaml

from tests.server.servers import REPOSITORY, ServerProcess

SPEC: dict[str, Any] = yaml.load((REPOSITORY / "openapi/lance-namespace.yaml").read_text(), yaml.CSafeLoader)
PATHS = {
    operation["operationId"]: (path, operation)
    for path, item in SPEC["paths"].items()
    for operation in item.values()
    if "operationId" in operation
}
EXAMPLES: list[dict[str, Any]] = [
    {"operation": name, **operation["x-example"]} for name, (_, operation) in PATHS.items() if "x-example" in operation
]
ROWS = pa.table(
    {
        "id": [1, 2, 3],
        "name": ["ann", "bob", "eve"],
        "age": [31, 17, 64],
        "embedding": pa.array([[0.1, 0.2, 0.3, 0.4]] * 3, pa.list_(pa.float32(), 4)),
    }
)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["operation"])
def test_they_fit_their_schemas(example: dict[str, Any]) -> None:
    schema = PATHS[example["operation"]][1]["requestBody"]["content"]["application/json"]["schema"]
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", "components": SPEC["components"], **schema}
    jsonschema.validate(example["body"], whole)


def test_they_succeed_in_their_order(tmp_path: Path) -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, ROWS.schema) as writer:
        writer.write_table(ROWS)
    with ServerProcess(tmp_path / "catalog", log=tmp_path / "log") as server, httpx.Client(base_url=server.url) as http:
        http.post("/v1/namespace/shop/create", json={}).raise_for_status()
        http.post(
            "/v1/table/shop$people/create",
            content=sink.getvalue().to_pybytes(),
            params={"storage_options": '{"new_table_enable_stable_row_ids": "true"}'},
            headers={"content-type": "application/vnd.apache.arrow.stream"},
            timeout=60,
        ).raise_for_status()
        steps = sorted((example for example in EXAMPLES if "step" in example), key=lambda example: example["step"])
        for example in steps:
            path = PATHS[example["operation"]][0]
            path = path.replace("{id}", quote(example.get("id", ""), safe=""))
            path = path.replace("{index_name}", example.get("index", ""))
            answer = http.post(path, json=example["body"], timeout=60)
            assert answer.is_success, (example, answer.text)
    assert len(steps) > 40


def test_the_served_document_has_one_for_each_body() -> None:
    served = yaml.safe_load((REPOSITORY / "namespace_server/rest/openapi.json").read_text())
    bodies = [
        content["application/json"]
        for item in served["paths"].values()
        for operation in item.values()
        if "application/json" in (content := operation.get("requestBody", {}).get("content", {}))
    ]
    assert len(bodies) == len(EXAMPLES)
    assert all("example" in body for body in bodies)
