"""Spans of a graph write in a driver that uses the SDK of OpenTelemetry."""

# ruff: noqa: PT012 - leaving the block is what raises

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from spark_catalog import GraphCheckFailed, StagedTable
from tests.lossy_proxy import LossyProxy
from tests.spark.social import Social

pytestmark = pytest.mark.spark


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """The spans of this process."""
    made, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(made))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    yield made
    provider.shutdown()


def tree(spans: tuple[ReadableSpan, ...]) -> dict[str | None, list[str]]:
    """The names of the children of each name, sorted; of None those without a parent."""
    names = {span.context.span_id: span.name for span in spans}
    found: dict[str | None, list[str]] = {}
    for span in spans:
        found.setdefault(None if span.parent is None else names[span.parent.span_id], []).append(span.name)
    return {parent: sorted(children) for parent, children in found.items()}


def test_a_graph_write_is_one_tree(social: Social, exporter: InMemorySpanExporter) -> None:
    current: set[int] = set()

    def note(_: StagedTable) -> None:
        current.add(trace.get_current_span().get_span_context().trace_id)

    with trace.get_tracer("test").start_as_current_span("mine"), social.write(progress=note) as tx:
        tx.append("person", social.people(1, 2))
        tx.append("knows", social.pairs((1, 2)))

    spans = exporter.get_finished_spans()
    assert tree(spans) == {
        None: ["mine"],
        "mine": ["graph write"],
        "graph write": ["check", "publish", "stage append", "stage append"],
    }
    assert {span.context.trace_id for span in spans} == current
    assert all(span.status.is_unset for span in spans)


def test_the_request_of_the_batch_is_part_of_it(
    social: Social, proxy: LossyProxy, exporter: InMemorySpanExporter
) -> None:
    with social.write(proxy.url) as tx:
        tx.append("person", social.people(1))

    [publish] = [span for span in exporter.get_finished_spans() if span.name == "publish"]
    [sent] = proxy.traces
    assert sent is not None
    assert sent.split("-")[1:3] == [
        trace.format_trace_id(publish.context.trace_id),
        trace.format_span_id(publish.context.span_id),
    ]


def test_what_fails_is_marked(social: Social, exporter: InMemorySpanExporter) -> None:
    with pytest.raises(GraphCheckFailed), social.write() as tx:
        tx.append("person", social.people(1, 1))
    with pytest.raises(ZeroDivisionError), social.write() as tx:
        tx.append("person", social.people(1))
        _ = 1 // 0

    failed = [span.name for span in exporter.get_finished_spans() if not span.status.is_ok and span.events]
    assert sorted(failed) == ["check", "graph write", "graph write"]
    assert trace.get_current_span() is trace.INVALID_SPAN
