"""The metrics of a server, scraped over HTTP."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import httpx
import pyarrow as pa
import pytest
from prometheus_client.parser import text_string_to_metric_families

from namespace_client.health import SERIES, read_health
from namespace_server.app import create_app
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.observability.metrics.measures import ServerMetrics
from namespace_server.observability.observation import GarbageCount, GcRun
from namespace_server.rest.identity import Authenticator
from scripts import generate_metrics
from tests.rest.conftest import EchoCatalog, RunningServer, Serve
from tests.server.servers import ServerProcess

KEY = "a-key-of-a-principal"
Start = Callable[..., httpx.Client]


def scrape(client: httpx.Client) -> Scraped:
    answer = client.get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return Scraped(answer.text)


class Scraped:
    """What a server said."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._samples = {
            (sample.name.removeprefix("lance_namespace_"), frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def __call__(self, name: str, **labels: str) -> float:
        return self._samples.get((name, frozenset(labels.items())), 0.0)

    def labels(self, name: str) -> list[Mapping[str, str]]:
        return [dict(labels) for found, labels in self._samples if found == name]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start measured servers, each on a root of its own; a client of it."""
    with contextlib.ExitStack() as stack:

        def started(keys: Mapping[str, str] | None = None, name: str = "root") -> httpx.Client:
            metrics = ServerMetrics()
            namespace = DirectoryNamespace(observer=metrics, root=str(tmp_path / name), durability="none")
            server = RunningServer(create_app(namespace, Authenticator(keys or {}), metrics=metrics))
            stack.callback(server.stop)
            return stack.enter_context(httpx.Client(base_url=server.url, verify=False, timeout=60))

        yield started


def rows() -> bytes:
    table = pa.table({"x": [1, 2, 3]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def test_requests_batches_and_storage(start: Start) -> None:
    client = start()
    assert client.post("/v1/namespace/secret_name/create", json={}).status_code == 200
    assert client.post("/v1/namespace/secret_name/create", json={}).status_code == 409
    assert client.post("/v1/namespace/secret_name/describe", json={}).status_code == 200
    assert client.post("/v1/namespace/secret_name/describe", json={}).status_code == 200
    assert client.get("/no/such/route").status_code == 404
    seen = scrape(client)
    requests = "request_seconds_count"
    assert seen(requests, operation="create_namespace", status="2xx") == 1
    assert seen(requests, operation="create_namespace", status="4xx") == 1
    assert seen(requests, operation="describe_namespace", status="2xx") == 2
    assert seen(requests, operation="unmatched", status="4xx") == 1
    assert seen("batch_seconds_count", outcome="committed") == 1
    assert seen("batch_seconds_count", outcome="rejected") == 1
    assert seen("flips_total", outcome="committed") == 1
    assert seen("group_batches_count") == 2
    for step in ("plan", "stage", "flip", "prove"):
        assert seen("step_seconds_count", step=step) >= 1, step
    assert seen("storage_seconds_count", kind="put_if_absent", outcome="ok") >= 1
    assert seen("storage_seconds_count", kind="get", outcome="not_found") >= 1
    assert (seen("cache_lookups_total", cache="responses", result="hit")) == 1
    assert (seen("cache_lookups_total", cache="responses", result="miss")) == 1
    assert (seen("catalog_version"), seen("catalog_entries", kind="namespace")) == (1, 1)
    assert 0 < seen("snapshot_age_seconds") < 60
    assert seen("queue_capacity") == 4096
    assert "secret_name" not in seen.text


def test_series_are_asked_for_by_name_and_health_is_the_same_from_those_that_it_reads() -> None:
    metrics = generate_metrics.example_metrics()
    name = "lance_namespace_storage_seconds_count"
    text = metrics.exposition([name, "lance_namespace_queued_changes", "no_such_name"]).decode()
    assert {line.partition("{")[0].partition(" ")[0] for line in text.splitlines() if line[0] != "#"} == {
        name,
        "lance_namespace_queued_changes",
    }
    whole, read = (metrics.exposition(names).decode() for names in ((), SERIES))
    assert len(read) < len(whole) / 2
    assert read_health(read, 0.0) == read_health(whole, 0.0)


def test_a_scrape_may_name_what_it_wants(start: Start) -> None:
    client = start()
    name = "lance_namespace_promotion_backlog"
    found = client.get("/metrics", params={"name[]": [name]}).text
    assert [line for line in found.splitlines() if not line.startswith("#")] == [f"{name} 0.0"]


def test_work_on_rows(start: Start) -> None:
    client = start()
    arrow = {"content-type": "application/vnd.apache.arrow.stream"}
    assert client.post("/v1/table/t/create", content=rows(), headers=arrow).status_code == 200
    assert client.post("/v1/table/t/count_rows", json={"predicate": "x > 1"}).text == "2"
    seen = scrape(client)
    for pool in ("change", "read"):
        assert seen("workers", pool=pool, state="busy") + seen("workers", pool=pool, state="free") == 1
        assert (seen("waiting_jobs", pool=pool), seen("lost_workers_total", pool=pool)) == (0, 0)
    assert seen("step_seconds_count", step="promote") == 1


def test_a_key_is_needed_where_reads_need_one(start: Start) -> None:
    client = start({KEY: "secret_principal"})
    assert client.get("/metrics").status_code == 401
    client.headers["authorization"] = f"Bearer {KEY}"
    assert "secret_principal" not in scrape(client).text


def test_servers_in_one_process_count_apart(start: Start) -> None:
    one, two = start(name="one"), start(name="two")
    one.post("/v1/namespace/n/create", json={})
    assert scrape(one)("flips_total", outcome="committed") == 1
    assert scrape(two)("flips_total", outcome="committed") == 0


def test_a_server_that_measures_nothing_has_none(serve: Serve) -> None:
    with httpx.Client(base_url=serve(EchoCatalog()).url, verify=False) as client:
        assert client.get("/metrics").status_code == 404


def test_collections() -> None:
    metrics = ServerMetrics()
    metrics.garbage_collection(
        GcRun(
            True,
            2.5,
            {"unreferenced": GarbageCount(2, 60), "catalog_version": GarbageCount(1, 10)},
            GarbageCount(5, 50),
        )
    )
    metrics.garbage_collection(GcRun(False, 1.5, {"unreferenced": GarbageCount(1, 7)}, GarbageCount(4, 40), 2))
    seen = Scraped(metrics.exposition().decode())
    assert (seen("collection_young_files"), seen("collection_young_bytes")) == (4, 40)
    metrics.garbage_collection(GcRun(None, 0.5))
    seen = Scraped(metrics.exposition().decode())
    assert [seen("collections_total", outcome=each) for each in ("complete", "partial", "failed")] == [1, 1, 1]
    for reason, files, size in (("unreferenced", 3, 67), ("catalog_version", 1, 10), ("other", 0, 0)):
        told = [seen(f"collected_{what}_total", reason=reason) for what in ("files", "bytes")]
        assert told == [files, size]
    assert (seen("collection_seconds"), seen("collection_left_tables")) == (0.5, 0)
    assert seen("collection_end_timestamp_seconds") > 1.7e9


def test_the_reference_is_current() -> None:
    assert generate_metrics.expected_page() == generate_metrics.TARGET.read_text("utf-8")


@pytest.mark.slow
def test_a_port_of_its_own_needs_no_key(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    settings = {"LANCE_NAMESPACE_METRICS_PORT": str(port), "LANCE_NAMESPACE_API_KEYS": f'{{"{KEY}": "p"}}'}
    with (
        ServerProcess(tmp_path / "root", log=tmp_path / "log", environment=settings) as server,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", verify=False, timeout=60) as client,
    ):
        assert server.call("GET", "/metrics").status == 401
        seen = scrape(client)
        assert seen("request_seconds_count", operation="metrics", status="4xx") == 1
        assert seen("process_resident_memory_bytes") > 0
