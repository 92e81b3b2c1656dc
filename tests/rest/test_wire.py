"""What a request may look like, and what the namespace is asked in consequence."""

from __future__ import annotations

import logging
import socket
import struct
from typing import Any

import httpx
import pytest
from lance_namespace.errors import ErrorCode, InvalidInputError, LanceNamespaceError, ServiceUnavailableError

from lance_core.errors import StorageError
from namespace_server.directory.model.errors import BatchConflict, BatchUnknown, ConflictDetail
from namespace_server.rest.errors import STATUS


def asked(response: httpx.Response) -> dict[str, Any]:
    """The request that an echoing server handed to its catalog."""
    assert response.status_code == 200, response.text
    return response.json()["request"]


def refused(response: httpx.Response, status: int = 400, code: int = 13) -> str:
    """The message of an ErrorResponse with that status and code."""
    assert (response.status_code, response.headers["content-type"]) == (status, "application/json"), response.text
    body = response.json()
    assert body["code"] == code
    assert response.headers["x-lance-catalog-version"].isdigit()
    return body["error"]


class TestIds:
    @pytest.mark.parametrize(
        ("segment", "names"),
        [
            ("a", ["a"]),
            ("a%24b", ["a", "b"]),
            ("a$b", ["a", "b"]),
            ("%24", []),
            ("a%24%24b", ["a", "b"]),
            ("%24a%24", ["a"]),
            ("a%2Fb", ["a/b"]),
            ("%2E%2E%24t", ["..", "t"]),
            ("a%0Ab", ["a\nb"]),
            ("%C3%A9%20x", ["é x"]),
            ("a%2Bb", ["a+b"]),
            ("version", ["version"]),
            ("batch-commit", ["batch-commit"]),
        ],
    )
    def test_is_decoded_after_the_path_was_matched(self, http: httpx.Client, segment: str, names: list[str]) -> None:
        assert asked(http.post(f"/v1/table/{segment}/describe", json={}))["id"] == names

    def test_a_name_with_a_slash_reaches_no_other_endpoint(self, http: httpx.Client) -> None:
        response = http.post("/v1/table/ws%24t%2Fversion/describe", json={})
        assert (response.json()["operation"], asked(response)["id"]) == ("describe_table", ["ws", "t/version"])

    @pytest.mark.parametrize(
        ("delimiter", "segment", "names"),
        [
            (".", "a.b", ["a", "b"]),
            ("%2F", "a%2Fb", ["a", "b"]),
            ("::", "a::b", ["a", "b"]),
            ("::", "::", []),
            (".", "a$b", ["a$b"]),
        ],
    )
    def test_is_split_on_the_delimiter_of_the_request(
        self, http: httpx.Client, delimiter: str, segment: str, names: list[str]
    ) -> None:
        assert asked(http.post(f"/v1/table/{segment}/describe?delimiter={delimiter}", json={}))["id"] == names

    def test_an_empty_delimiter_is_refused(self, http: httpx.Client) -> None:
        assert "delimiter" in refused(http.post("/v1/table/a/describe?delimiter=", json={}))

    def test_bytes_that_are_not_utf8_are_refused(self, http: httpx.Client) -> None:
        assert "UTF-8" in refused(http.post("/v1/table/a%FF/describe", json={}))
        assert "UTF-8" in refused(http.get("/v1/table?page_token=%FF"))

    def test_the_body_may_repeat_it(self, http: httpx.Client) -> None:
        assert asked(http.post("/v1/table/a%24b/describe", json={"id": ["a", "b"]}))["id"] == ["a", "b"]
        assert asked(http.post("/v1/table/a%24b/describe", json={"id": None}))["id"] == ["a", "b"]

    def test_the_body_may_not_contradict_it(self, http: httpx.Client) -> None:
        message = refused(http.post("/v1/table/a/describe", json={"id": ["ignored"]}))
        assert message == 'request body names ["ignored"], the route names ["a"]'

    def test_an_empty_list_in_the_body_is_no_id(self, http: httpx.Client) -> None:
        assert asked(http.post("/v1/table/a/describe", json={"id": []}))["id"] == ["a"]
        assert asked(http.post("/v1/table/a/drop", json={"id": []}))["id"] == ["a"]

    @pytest.mark.parametrize("value", ["a", 1, [1], {"a": 1}, [["a"]]])
    def test_in_a_body_is_a_list_of_names(self, catalog_http: httpx.Client, value: object) -> None:
        answer = catalog_http.post("/v1/table/a/describe", json={"id": value})
        assert "id: expected a list of strings" in refused(answer)
        answer = catalog_http.post("/v1/table/a/delete", json={"id": value, "predicate": "true"})
        assert "id: expected a list of names" in refused(answer)

    def test_a_trailing_slash_does_not_matter_where_a_path_has_one_dialect(self, http: httpx.Client) -> None:
        assert asked(http.post("/v1/table/a/declare/", json={}))["id"] == ["a"]
        assert asked(http.post("/v1/namespace/a/describe/", json={}))["id"] == ["a"]

    def test_the_delimiter_reaches_the_operations_whose_answer_uses_it(self, http: httpx.Client) -> None:
        assert asked(http.get("/v1/table?delimiter=."))["delimiter"] == "."


class TestBodies:
    def test_their_fields_reach_the_namespace_but_not_the_credentials(self, http: httpx.Client) -> None:
        body = {"properties": {"k": "v"}, "identity": {"api_key": "secret"}, "context": {"a": "b"}}
        assert asked(http.post("/v1/table/a/declare", json=body)) == {
            "id": ["a"],
            "properties": {"k": "v"},
            "context": {"a": "b"},
        }

    @pytest.mark.parametrize(
        "content_type", [None, "text/plain", "application/x-www-form-urlencoded", "application/jsonx"]
    )
    def test_need_the_content_type_of_json(self, http: httpx.Client, content_type: str | None) -> None:
        headers = {} if content_type is None else {"content-type": content_type}
        message = refused(http.post("/v1/table/a/describe", content=b"{}", headers=headers))
        assert message == "Expected request with `Content-Type: application/json`"

    @pytest.mark.parametrize(
        "content_type", ["application/json", "application/json; charset=utf-8", "Application/JSON"]
    )
    def test_content_types_of_json(self, http: httpx.Client, content_type: str) -> None:
        response = http.post("/v1/table/a/describe", content=b"{}", headers={"content-type": content_type})
        assert response.status_code == 200

    @pytest.mark.parametrize("body", [b"", b"{", b"{'a': 1}", b"\xff", b'{"a": NaN}', b"[" * 100_000])
    def test_that_are_not_json(self, http: httpx.Client, body: bytes) -> None:
        response = http.post("/v1/table/a/describe", content=body, headers={"content-type": "application/json"})
        assert "expected a JSON object, found invalid JSON" in refused(response)

    @pytest.mark.parametrize("body", [b"null", b"[]", b"1", b'"text"'])
    def test_that_are_json_but_no_object(self, http: httpx.Client, body: bytes) -> None:
        response = http.post("/v1/table/a/describe", content=body, headers={"content-type": "application/json"})
        assert f"expected a JSON object, found {body.decode()}" in refused(response)

    @pytest.mark.parametrize("path", ["/v1/table/a/version/list", "/v1/table/a/drop", "/v1/namespace/a/drop"])
    @pytest.mark.parametrize("body", [None, b"null", b"{}"])
    def test_that_stock_clients_leave_out_or_send_as_null(
        self, http: httpx.Client, path: str, body: bytes | None
    ) -> None:
        headers = {} if body is None else {"content-type": "application/json"}
        assert asked(http.post(path, content=body, headers=headers)) == {"id": ["a"]}

    def test_that_may_be_left_out_are_read_if_they_are_there(self, http: httpx.Client) -> None:
        assert asked(http.post("/v1/namespace/a/drop", json={"behavior": "Cascade"}))["behavior"] == "Cascade"
        refused(http.post("/v1/table/a/drop", content=b"garbage", headers={"content-type": "application/json"}))

    def test_that_are_too_long(self, serve: Any, echo_catalog: Any) -> None:
        server = serve(echo_catalog, body=100)
        with httpx.Client(base_url=server.url) as http:
            long = {"properties": {"k": "v" * 200}}
            assert "expected at most 100 bytes" in refused(http.post("/v1/table/a/declare", json=long), 413)
            in_chunks = http.post(
                "/v1/table/a/declare",
                content=iter([b'{"k":"' + b"v" * 90, b"v" * 90 + b'"}']),
                headers={"content-type": "application/json"},
            )
            assert "expected at most 100 bytes" in refused(in_chunks, 413)
            assert http.post("/v1/table/a/declare", json={}).status_code == 200

    def test_in_chunks(self, http: httpx.Client) -> None:
        response = http.post(
            "/v1/table/a/declare",
            content=iter([b'{"location"', b':"x"}']),
            headers={"content-type": "application/json"},
        )
        assert asked(response)["location"] == "x"

    def test_that_never_arrive_change_nothing(
        self, serve: Any, echo_catalog: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        server = serve(echo_catalog)
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(
                b"POST /v1/table/a/declare HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
                b"content-length: 100\r\n\r\n{"
            )
        server.stop()
        assert echo_catalog.groups == []
        assert "ASGI" not in caplog.text

    def test_whose_sender_does_not_wait_are_committed_all_the_same(
        self, serve: Any, echo_catalog: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        server = serve(echo_catalog)
        echo_catalog.gate.clear()
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.sendall(
                b"POST /v1/table/a/declare HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
                b"content-length: 2\r\n\r\n{}"
            )
            assert echo_catalog.entered.acquire(timeout=30)
        echo_catalog.gate.set()
        server.stop()
        assert [[call.request["id"] for call in group] for group in echo_catalog.groups] == [[["a"]]]
        assert "ASGI" not in caplog.text


class TestQueries:
    def test_parameters_are_typed(self, http: httpx.Client) -> None:
        response = http.post("/v1/table/a/version/list?delimiter=%24&limit=1&descending=true&branch=dev&page_token=5")
        assert asked(response) == {"id": ["a"], "limit": 1, "descending": True, "branch": "dev", "page_token": "5"}

    def test_parameters_win_over_the_body(self, http: httpx.Client) -> None:
        response = http.post("/v1/table/a/version/list?limit=1", json={"limit": 5, "descending": False})
        assert asked(response) == {"id": ["a"], "limit": 1, "descending": False}

    @pytest.mark.parametrize("value", ["ten", "", "1.5", "9223372036854775808", "1" * 40, "٣"])
    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("GET", "/v1/namespace/%24/list"),
            ("GET", "/v1/namespace/%24/table/list"),
            ("GET", "/v1/table"),
            ("POST", "/v1/table/a/version/list"),
            ("GET", "/v1/catalog/versions"),
        ],
    )
    def test_limit_is_a_number(self, http: httpx.Client, method: str, path: str, value: str) -> None:
        assert "limit: expected a number" in refused(http.request(method, path, params={"limit": value}))

    @pytest.mark.parametrize(
        "body", [{"limit": "1"}, {"limit": True}, {"descending": 1}, {"branch": 1}, {"context": 1}]
    )
    def test_the_same_rules_hold_in_a_body(self, catalog_http: httpx.Client, body: dict[str, Any]) -> None:
        catalog_http.post("/v1/table/a/declare", json={})
        assert next(iter(body)) in refused(catalog_http.post("/v1/table/a/version/list", json=body))

    @pytest.mark.parametrize("value", [0, -1])
    def test_limit_may_ask_for_nothing_or_for_everything(self, http: httpx.Client, value: int) -> None:
        assert asked(http.get("/v1/table", params={"limit": value})) == {"limit": value}

    def test_flags_are_true_or_false(self, http: httpx.Client) -> None:
        assert asked(http.get("/v1/table?include_declared=False"))["include_declared"] is False
        assert "include_declared" in refused(http.get("/v1/table?include_declared=maybe"))

    def test_page_tokens_are_decoded(self, http: httpx.Client) -> None:
        assert asked(http.get("/v1/namespace/%24/list?page_token=%C3%A9%20x+y"))["page_token"] == "é x y"

    def test_unknown_parameters_are_refused(self, http: httpx.Client) -> None:
        assert refused(http.get("/v1/catalog?colour=red")) == "colour: expected no such field, found 'red'"


class TestHeaders:
    @pytest.mark.parametrize("path", ["/v1/table", "/v1/catalog", "/health/live", "/health/ready", "/nowhere"])
    def test_every_response_says_its_catalog_version(self, http: httpx.Client, path: str) -> None:
        http.get("/v1/catalog")
        assert int(http.get(path).headers["x-lance-catalog-version"]) >= 7

    def test_a_read_may_be_pinned(self, http: httpx.Client) -> None:
        response = http.post("/v1/table/a/describe", json={}, headers={"x-lance-catalog-version": "3"})
        assert response.headers["x-lance-catalog-version"] == "3"

    @pytest.mark.parametrize("value", ["latest", "-1", "1.0", "", "9223372036854775808"])
    def test_a_pin_is_a_catalog_version(self, http: httpx.Client, value: str) -> None:
        response = http.post("/v1/table/a/describe", json={}, headers={"x-lance-catalog-version": value})
        assert "x-lance-catalog-version" in refused(response)

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            ("/v1/table/batch-commit", {"operations": []}),
            ("/v1/table/version/batch-create", {"entries": []}),
            ("/v1/table/a/version/delete", {"ranges": []}),
            ("/v1/table/a/declare", {}),
            ("/v1/table/a/tags/create", {"tag": "v", "version": 1}),
        ],
    )
    def test_changes_take_an_idempotency_key(self, http: httpx.Client, path: str, body: dict[str, Any]) -> None:
        answer = http.post(path, json=body, headers={"idempotency-key": "k-1"}).json()
        assert answer["idempotency_key"] == "k-1"
        assert http.post(path, json=body).json()["idempotency_key"] is None

    @pytest.mark.parametrize("key", ["", "k" * 256, "a\tb", "é"])
    def test_a_key_has_its_limits(self, http: httpx.Client, key: str) -> None:
        headers = {b"idempotency-key": key.encode("latin-1")}
        assert "Idempotency-Key" in refused(
            http.post("/v1/table/batch-commit", json={"operations": []}, headers=headers)
        )

    def test_the_longest_key(self, http: httpx.Client) -> None:
        response = http.post("/v1/table/batch-commit", json={"operations": []}, headers={"idempotency-key": "k" * 255})
        assert response.json()["idempotency_key"] == "k" * 255


class TestAnswers:
    def test_existence_is_an_empty_200(self, http: httpx.Client) -> None:
        for path in ("/v1/namespace/a/exists", "/v1/table/a/exists"):
            response = http.post(path, json={})
            assert (response.status_code, response.content, response.headers["content-length"]) == (200, b"", "0")

    def test_creation_is_a_200(self, http: httpx.Client) -> None:
        assert http.post("/v1/namespace/a/create", json={}).status_code == 200

    def test_a_change_says_the_version_that_it_made(self, http: httpx.Client) -> None:
        assert http.post("/v1/namespace/a/create", json={}).headers["x-lance-catalog-version"] == "8"


class Refusal(LanceNamespaceError):
    def __init__(self, code: ErrorCode) -> None:
        super().__init__("no")
        self.code = code


class TestErrors:
    @pytest.mark.parametrize(
        ("status", "codes"),
        [
            (404, [1, 4, 6, 8, 10, 11, 12, 22]),
            (409, [2, 3, 5, 7, 9, 14, 19, 23]),
            (400, [13, 20]),
            (406, [0]),
            (403, [15]),
            (401, [16]),
            (503, [17]),
            (429, [21]),
            (500, [18]),
        ],
    )
    def test_the_status_follows_from_the_code(
        self, serve: Any, echo_catalog: Any, status: int, codes: list[int]
    ) -> None:
        with httpx.Client(base_url=serve(echo_catalog).url) as http:
            for code in codes:
                echo_catalog.failure = Refusal(ErrorCode(code))
                assert refused(http.post("/v1/table/a/describe", json={}), status, code) == "no"
                assert refused(http.post("/v1/table/a/declare", json={}), status, code) == "no"

    def test_every_code_has_a_status(self) -> None:
        assert set(STATUS) == {int(code) for code in ErrorCode}

    def test_a_conflict_says_which_operation_failed(self, serve: Any, echo_catalog: Any) -> None:
        detail = ConflictDetail(1, ("ws", "t"), None, 3, 4, "txn", "rebase onto version 4")
        echo_catalog.failure = BatchConflict("version 3 of ws$t exists", detail, "create_table_version")
        with httpx.Client(base_url=serve(echo_catalog).url) as http:
            response = http.post("/v1/table/batch-commit", json={"operations": []})
        refused(response, 409, 14)
        assert response.json()["failures"] == [
            {
                "operation_index": 1,
                "id": ["ws", "t"],
                "expected": 3,
                "actual": 4,
                "winner_transaction_id": "txn",
                "hint": "rebase onto version 4",
                "kind": "retryable",
            }
        ]

    def test_an_unknown_outcome_names_the_batch(self, serve: Any, echo_catalog: Any) -> None:
        echo_catalog.failure = BatchUnknown("8a3c", "the store did not answer")
        with httpx.Client(base_url=serve(echo_catalog).url) as http:
            response = http.post("/v1/table/batch-commit", json={"operations": []})
        refused(response, 503, 17)
        assert response.json()["detail"] == "8a3c"

    def test_a_commit_that_breaks_is_an_unknown_outcome(
        self, serve: Any, echo_catalog: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        echo_catalog.failure = ZeroDivisionError("a secret of the house")
        with httpx.Client(base_url=serve(echo_catalog).url) as http:
            response = http.post("/v1/table/t/declare", json={})
        assert "unknown" in refused(response, 503, 17)
        assert response.json()["detail"] == "batch-['t']"
        assert "secret" not in response.text
        assert "a secret of the house" in caplog.text

    def test_an_unhandled_error_keeps_its_trace_to_the_log(
        self, serve: Any, echo_catalog: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        echo_catalog.failure = ZeroDivisionError("a secret of the house")
        with caplog.at_level(logging.ERROR), httpx.Client(base_url=serve(echo_catalog).url) as http:
            response = http.post("/v1/table/a/describe", json={})
        assert refused(response, 500, 18).startswith("internal error")
        assert "secret" not in response.text
        assert "Traceback" not in response.text
        assert "a secret of the house" in caplog.text
        assert response.json()["instance"] in caplog.text

    def test_a_store_that_does_not_answer_is_no_fault_of_the_server(self, serve: Any, echo_catalog: Any) -> None:
        echo_catalog.failure = StorageError("s3://bucket: a secret of the house")
        with httpx.Client(base_url=serve(echo_catalog).url) as http:
            response = http.post("/v1/table/a/describe", json={})
        assert "storage did not answer" in refused(response, 503, 17)
        assert "secret" not in response.text

    def test_an_error_may_know_its_catalog_version(self, serve: Any, echo_catalog: Any) -> None:
        echo_catalog.failure = InvalidInputError("no")
        echo_catalog.failure.catalog_version = 42
        with httpx.Client(base_url=serve(echo_catalog).url) as http:
            assert http.post("/v1/table/a/describe", json={}).headers["x-lance-catalog-version"] == "42"


class TestHealth:
    def test_live_and_ready(self, http: httpx.Client) -> None:
        assert http.get("/health/live").json() == {"status": "live"}
        assert http.get("/health/ready").json() == {"status": "ready", "catalog_version": 7, "mode": "read-write"}

    def test_a_catalog_that_cannot_be_read_is_not_ready(self, serve: Any, echo_catalog: Any) -> None:
        echo_catalog.failure = ServiceUnavailableError("no")
        with httpx.Client(base_url=serve(echo_catalog).url) as http:
            assert "cannot be read" in refused(http.get("/health/ready"), 503, 17)
            assert http.get("/health/live").status_code == 200

    @pytest.mark.parametrize(
        ("failure", "is_traced"), [(StorageError("s3://a/b: no such host"), False), (KeyError("x"), True)]
    )
    def test_the_log_says_why_without_a_trace_where_the_store_does(
        self, serve: Any, echo_catalog: Any, caplog: pytest.LogCaptureFixture, failure: Exception, is_traced: bool
    ) -> None:
        echo_catalog.failure = failure
        answer = refused(httpx.get(f"{serve(echo_catalog).url}/health/ready"), 503, 17)
        assert str(failure) not in answer
        assert f"not ready: {failure}" in caplog.text
        [record] = [record for record in caplog.records if "not ready" in record.getMessage()]
        assert (record.exc_info is not None) == is_traced


class TestPlacement:
    def test_local_reads_run_on_the_event_loop(self, serve: Any, echo_catalog: Any) -> None:
        with httpx.Client(base_url=serve(echo_catalog).url) as http:
            http.get("/v1/catalog")
        assert not any(name.startswith("read") for name in echo_catalog.read_threads)

    def test_remote_reads_run_in_threads(self, serve: Any, remote_echo_catalog: Any) -> None:
        with httpx.Client(base_url=serve(remote_echo_catalog).url) as http:
            assert http.get("/v1/catalog").headers["x-lance-catalog-version"] == "7"
        assert all(name.startswith("read") for name in remote_echo_catalog.read_threads)
