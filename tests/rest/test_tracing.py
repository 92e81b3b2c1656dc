"""Spans of a server, read back from the OTLP receiver of the test."""

from __future__ import annotations

import contextvars
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pyarrow as pa
import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from namespace_client.http import HttpClient
from namespace_server.app import create_app
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.observability.metrics.measures import ServerMetrics
from namespace_server.observability.observation import SILENT
from namespace_server.observability.tracing import Tracing, open_tracing
from namespace_server.rest.identity import Authenticator
from tests.rest.conftest import RunningServer

ARROW = {"content-type": "application/vnd.apache.arrow.stream"}
TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = "b7ad6b7169203331"


class Receiver:
    """An OTLP receiver (HTTP, protobuf)."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    for scope in resource.scope_spans:
                        receiver.spans += scope.spans
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def of(self, trace_id: str) -> list[Span]:
        return [span for span in self.spans if span.trace_id.hex() == trace_id]


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    made = Receiver()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", made.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
    yield made
    made.close()


class Traced:
    """A traced server; when the block ends, all spans have been sent."""

    def __init__(self, root: Path) -> None:
        self.metrics = ServerMetrics()
        self._tracing = open_tracing(self.metrics)
        namespace = DirectoryNamespace(observer=self._tracing, root=str(root), durability="none")
        app = create_app(namespace, Authenticator({}), metrics=self.metrics, tracing=self._tracing)
        self._server = RunningServer(app)
        self.url = self._server.url

    def __enter__(self) -> httpx.Client:
        self._client = httpx.Client(base_url=self.url, verify=False, timeout=60)
        return self._client

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self._server.stop()
        self._tracing.close()


def rows() -> bytes:
    table = pa.table({"x": [1, 2, 3]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def tree(spans: list[Span]) -> dict[str, set[str]]:
    """The names of the children of each name. Every span but those of the caller has its parent among them."""
    names = {span.span_id: span.name for span in spans}
    found: dict[str, set[str]] = {}
    for span in spans:
        parent = "caller" if span.parent_span_id.hex() == CALLER else names[span.parent_span_id]
        found.setdefault(parent, set()).add(span.name)
    return found


def test_one_change_of_rows_is_one_tree(tmp_path: Path, receiver: Receiver) -> None:
    context = {"traceparent": f"00-{TRACE}-{CALLER}-01"}
    with Traced(tmp_path) as client:
        answer = client.post("/v1/table/secret_name/create", content=rows(), headers={**ARROW, **context})
        assert answer.status_code == 200
    spans = receiver.of(TRACE)
    children = tree(spans)
    assert children["caller"] == {"create_table"}
    assert {"worker change", "commit"} <= children["create_table"]
    assert {"verify", "plan", "stage", "flip", "prove", "promote"} <= children["commit"]
    assert "storage put" in children["stage"]
    assert "storage put_if_absent" in children["flip"]
    assert "storage put_if_absent" in children["promote"]
    by_name = {span.name: span for span in spans}
    request, commit = by_name["create_table"], by_name["commit"]
    assert request.start_time_unix_nano <= commit.start_time_unix_nano
    assert commit.end_time_unix_nano <= request.end_time_unix_nano
    assert [event.name for event in commit.events] == ["flip", "batch"]
    assert "secret_name" not in "".join(map(str, spans))


def test_changes_of_a_group_are_linked(tmp_path: Path, receiver: Receiver) -> None:
    with Traced(tmp_path) as client:
        threads = [
            threading.Thread(target=lambda n=n: client.post(f"/v1/namespace/n{n}/create", json={})) for n in range(24)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    requests = {span.span_id: span for span in receiver.spans if span.name == "create_namespace"}
    commits = {span.span_id: span for span in receiver.spans if span.name == "commit"}
    assert len(requests) == 24
    reached = {span.parent_span_id for span in commits.values()} | {
        link.span_id for span in commits.values() for link in span.links
    }
    assert reached == requests.keys()
    for span in requests.values():
        assert all(link.span_id in commits for link in span.links)
    assert sum(len(span.links) for span in requests.values()) == 24 - len(commits)


def test_requests_without_a_caller_and_background_work(tmp_path: Path, receiver: Receiver) -> None:
    with Traced(tmp_path) as client:
        client.post("/v1/namespace/n/create", json={})
        client.get("/no/such/route")
    roots = [span.name for span in receiver.spans if not span.parent_span_id]
    assert sorted(roots) == ["create_namespace", "unmatched"]  # the last sweep made none


def test_the_client_hands_over_its_context(tmp_path: Path, receiver: Receiver) -> None:
    tracer = TracerProvider().get_tracer("test")
    traced = Traced(tmp_path)
    client = HttpClient(traced.url)
    with traced, tracer.start_as_current_span("mine") as mine:
        client.ask("POST", "/v1/namespace/n/create", {})
        client.close()
    of_mine = receiver.of(trace.format_trace_id(mine.get_span_context().trace_id))
    [request] = [span for span in of_mine if span.name == "create_namespace"]
    assert request.parent_span_id.hex() == trace.format_span_id(mine.get_span_context().span_id)


def test_what_is_traced_is_measured_too(tmp_path: Path, receiver: Receiver) -> None:
    traced = Traced(tmp_path)
    with traced as client:
        client.post("/v1/namespace/n/create", json={})
        text = client.get("/metrics").text
    assert 'lance_namespace_flips_total{outcome="committed"} 1.0' in text
    assert 'lance_namespace_step_seconds_count{step="flip"} 1.0' in text


def test_without_an_endpoint_nothing_is_loaded() -> None:
    program = (
        "import sys, namespace_server.cli.server; print(any(m.startswith('opentelemetry.sdk') for m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_no_span_has_the_text_of_an_error() -> None:
    """It may hold values of rows, and what a client sent."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing = Tracing(SILENT, provider)

    def fail() -> None:
        with tracing.step("stage"):
            raise ValueError("a secret value")

    def whole() -> None:
        with tracing.request({"header_map": {}, "method": "GET"}):
            with suppress(ValueError), tracing.job("read"):
                raise ValueError("a secret value")
            with suppress(ValueError):
                tracing.commit_together([contextvars.copy_context()], fail)
            raise ValueError("a secret value")

    with pytest.raises(ValueError, match="secret"):
        whole()
    spans = exporter.get_finished_spans()
    assert [span.name for span in spans] == ["worker read", "stage", "commit", "request"]
    assert not any("secret" in span.to_json() for span in spans)
    assert [span.status.is_ok for span in spans[:2]] == [False, False]
