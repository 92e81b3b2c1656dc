"""The OpenAPI document, the routes, the stock client's models and the generated client say the same."""

from __future__ import annotations

import copy
import re
from importlib import metadata
from pathlib import Path
from typing import Any, get_type_hints

import httpx
import lance_namespace_urllib3_client.models as stock
import pytest
import yaml
from openapi_spec_validator import validate
from pydantic import TypeAdapter

from namespace_server.rest.models import QueryParameters
from namespace_server.rest.routers import caller, health
from tests.rest.served import SERVED, Served

ROOT = Path(__file__).resolve().parents[2]
SPEC: dict[str, Any] = yaml.load((ROOT / "openapi" / "lance-namespace.yaml").read_text(), yaml.CSafeLoader)
SCHEMAS: dict[str, Any] = SPEC["components"]["schemas"]
OPERATIONS = {
    (method.upper(), path): operation for path, item in SPEC["paths"].items() for method, operation in item.items()
}

OUR_OPERATIONS = {
    "commit_transaction",
    "assert_table_version",
    "set_table_properties",
    "undrop_table",
    "drop_table",
    "rename_table",
    "pin_catalog_version",
    "unpin_catalog_version",
    "advance_cursor",
    "delete_cursor",
    "register_intent",
    "end_intent",
    "enable_grants",
    "grant_privileges",
    "revoke_privileges",
    "grant_role",
    "revoke_role",
}

# What this server adds to the published models.
OURS = {
    "CommitTableOperation": OUR_OPERATIONS,
    "CommitTableResult": OUR_OPERATIONS,
    "AlterTableAddColumnsRequest": {"arrow_schema"},
    "AnalyzeTableQueryPlanRequest": {"order_by"},
    "CreateTableIndexRequest": {
        *("replace", "custom_stop_words", "min_ngram_length", "max_ngram_length", "prefix_only", "block_size"),
        *("index_operators", "preserve_original", "split_identifiers", "split_on_numerics"),
    },
    "DropNamespaceRequest": {"purge"},
    "DropTableRequest": {"purge"},
    "ErrorResponse": {"failures", "outcome"},
    "QueryTableRequest": {"order_by"},
    "TableVersion": {"manifest_sha256"},
    "ListTableVersionsResponse": {"adopted_in"},
}


def resolved(node: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        found: Any = SPEC
        for part in node["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        node = found
    return node


def body_fields(operation: dict[str, Any]) -> set[str]:
    """The fields of the body of an operation, if that is JSON."""
    content = resolved(operation.get("requestBody", {})).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    return set(resolved(schema).get("properties", ()))


def parameters(operation: dict[str, Any], place: str) -> dict[str, dict[str, Any]]:
    items = [resolved(item) for item in operation.get("parameters", ())]
    return {item["name"]: resolved(item["schema"]) for item in items if item["in"] == place}


def required_names(query: type[QueryParameters]) -> list[str]:
    return TypeAdapter(query).json_schema().get("required", [])


def test_the_document_is_valid() -> None:
    validate(SPEC)


def test_it_describes_what_is_served_and_nothing_else() -> None:
    others = {(route.method, route.path) for route in (*health.PROBES, *caller.ROUTES)}
    assert set(OPERATIONS) == {(item.method, item.path) for item in SERVED} | others


@pytest.mark.parametrize("endpoint", SERVED, ids=lambda item: item.operation)
class TestEndpoints:
    def test_have_their_operation_id(self, endpoint: Served) -> None:
        camel = "".join(word.capitalize() for word in endpoint.operation.split("_"))
        assert OPERATIONS[endpoint.method, endpoint.path]["operationId"] == camel

    def test_take_the_query_parameters_described(self, endpoint: Served) -> None:
        described = parameters(OPERATIONS[endpoint.method, endpoint.path], "query")
        described.pop("delimiter", None)
        samples = {"string": "x", "boolean": "true", "integer": "1", "array": ["x"]}
        required = {name: samples[described[name]["type"]] for name in required_names(endpoint.query)}
        kinds = {"string": "str", "boolean": "bool", "integer": "int", "array": "list"}
        assert described.keys() == get_type_hints(endpoint.query).keys()
        for name, schema in described.items():
            is_json = schema.get("contentMediaType") == "application/json"
            sample, kind = ('{"a":"b"}', "dict") if is_json else (samples[schema["type"]], kinds[schema["type"]])
            value = TypeAdapter(endpoint.query).validate_python(required | {name: sample})[name]
            assert type(value).__name__ == kind

    def test_take_the_headers_described(self, endpoint: Served) -> None:
        described = set(parameters(OPERATIONS[endpoint.method, endpoint.path], "header"))
        # Rows that are staged are no change before their batch; an upload in parts is known again by its id.
        is_upload = endpoint.operation.startswith("stage_") or endpoint.operation.endswith("_multipart_write")
        keyed = endpoint.read is None and not endpoint.reads_rows and not is_upload
        assert described == (
            ({"x-lance-catalog-version"} if endpoint.pinned else set())
            | ({"x-lancedb-min-read-version"} if endpoint.fresh else set())
            | ({"Last-Event-ID"} if endpoint.operation == "list_catalog_events" else set())
            | ({"Range", "If-Range", "If-None-Match"} if endpoint.ranges else set())
            | ({"Idempotency-Key"} if keyed else set())
        )

    def test_read_a_body_where_one_is_described(self, endpoint: Served, http: httpx.Client) -> None:
        body = OPERATIONS[endpoint.method, endpoint.path].get("requestBody")
        path = endpoint.path.replace("{id}", "a").replace("{version}", "1").replace("{index_name}", "i")
        path = path.replace("{column}", "c").replace("{row}", "0")
        required = dict.fromkeys(required_names(endpoint.query), "x")
        response = http.request(endpoint.method, path, params=required)
        if endpoint.rows is None and body is not None and resolved(body)["required"]:
            assert response.status_code == 400
            assert "invalid JSON" in response.json()["error"]
        elif endpoint.data:
            assert (response.status_code, response.json()["code"]) == (404, 4)
        else:
            assert response.status_code == 200, response.text

    def test_answer_a_body_where_one_is_described(self, endpoint: Served) -> None:
        success = OPERATIONS[endpoint.method, endpoint.path]["responses"]["200"]
        assert ("content" not in success) is (endpoint.read is not None and endpoint.read.silent)


class TestDocumentation:
    def test_the_document_is_served(self, http: httpx.Client) -> None:
        served, expected = http.get("/openapi.json").json(), copy.deepcopy(SPEC)
        for operation in (each for item in expected["paths"].values() for each in item.values()):
            if (example := operation.pop("x-example", None)) is not None:
                operation["requestBody"]["content"]["application/json"]["example"] = example["body"]
        assert served == expected

    def test_the_page_and_its_assets_are_served_and_nothing_comes_from_elsewhere(self, http: httpx.Client) -> None:
        page = http.get("/docs")
        assert page.headers["content-type"].startswith("text/html")
        assets = re.findall(r"(?:href|src)=\"([^\"]+)\"", page.text)
        assert len(assets) >= 3
        for asset in assets:
            assert asset.startswith("docs/assets/")
            assert http.get(f"/{asset}").status_code == 200
        assert "url: 'openapi.json'" in page.text
        assert "//" not in page.text.replace("</", "").replace("<!--", "") or "http" not in page.text


class TestModels:
    @pytest.mark.parametrize("name", sorted(set(SCHEMAS) & set(vars(stock))))
    def test_have_the_fields_of_the_published_ones(self, name: str) -> None:
        fields = {info.alias or field: info for field, info in getattr(stock, name).model_fields.items()}
        described = set(SCHEMAS[name].get("properties", {})) - OURS.get(name, set())
        assert described <= set(fields)
        assert {field for field, info in fields.items() if info.is_required()} <= described
        if name.endswith("Request"):
            assert described == set(fields)

    def test_every_published_model_of_a_served_operation_is_there(self) -> None:
        for operation in OPERATIONS.values():
            for suffix in ("Request", "Response"):
                name = operation["operationId"] + suffix
                used = str(operation).count(f"/{name}'")
                if hasattr(stock, name) and used == 0:
                    # In the query, or an empty body, or, for all tables, the model of some.
                    assert name in {
                        "CreateTableRequest",
                        "InsertIntoTableRequest",
                        "MergeInsertIntoTableRequest",
                        "ListNamespacesRequest",
                        "ListTablesRequest",
                        "ListTableVersionsRequest",
                        "CountTableRowsResponse",
                        "DropTableIndexRequest",
                        "QueryTableResponse",
                        "ExplainTableQueryPlanResponse",
                        "AnalyzeTableQueryPlanResponse",
                        "ListTableTagsRequest",
                        "ListTableBranchesRequest",
                        "NamespaceExistsResponse",
                        "TableExistsResponse",
                        "UpdateTableSchemaMetadataRequest",
                        "UpdateTableSchemaMetadataResponse",
                    }


def test_the_address_alone_leads_to_the_documentation(http: httpx.Client) -> None:
    told = http.get("/").json()
    assert told["version"] == metadata.version("lance-namespace-server")
    assert {http.get(told[name]).status_code for name in ("documentation", "api")} == {200}
    page = http.get("/", headers={"accept": "text/html,application/xhtml+xml;q=0.9"}, follow_redirects=True)
    assert page.url.path == "/docs"
    assert http.post("/").status_code == 405


def test_a_browser_is_led_to_the_documentation_below_the_path_that_it_asked(http: httpx.Client) -> None:
    """A proxy may serve the catalog below a path: what is told is relative to that."""
    led = http.get("/", headers={"accept": "text/html"}, follow_redirects=False)
    assert (led.status_code, led.headers["location"]) == (307, "docs")


def test_the_document_calls_the_server_that_serves_it(http: httpx.Client) -> None:
    assert [server["url"] for server in http.get("/openapi.json").json()["servers"]] == ["."]
