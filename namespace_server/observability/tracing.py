"""Spans of OpenTelemetry: of requests, of the groups that commit them, their steps, and calls of the object store.

Imported only where the environment names an endpoint (`OTEL_EXPORTER_OTLP_ENDPOINT`): everything is off without it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import Context
from typing import Any, Final, TypeVar

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from namespace_server.observability.observation import (
    BatchOutcome,
    FlipOutcome,
    ForwardingOutcome,
    GcRun,
    Observer,
    Step,
)

T = TypeVar("T")

_SERVER_ERROR: Final = 500
_NANOSECONDS: Final = 1_000_000_000


def open_tracing(observer: Observer) -> Tracing:
    """Tracing as the environment describes it, by the variables `OTEL_*`. `observer` receives every event too."""
    resource = Resource.create({} if os.environ.get("OTEL_SERVICE_NAME") else {SERVICE_NAME: "lance-namespace"})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Tracing(observer, provider)


class Tracing(Observer):
    """An observer that makes spans of the events within a request, and passes them on. Thread-safe.

    Work in the background, such as sweeps, makes no spans. No span names a table or a principal, nor has one the text
    of an error: that may hold values of rows, and what a client sent.
    """

    def __init__(self, observer: Observer, provider: TracerProvider) -> None:
        self._observer = observer
        self._provider = provider
        self._tracer = provider.get_tracer("namespace_server")
        self._propagator = TraceContextTextMapPropagator()

    def close(self) -> None:
        """Send the spans that are left."""
        self._provider.shutdown()

    @contextmanager
    def request(self, scope: Mapping[str, Any]) -> Iterator[None]:
        """A span for a request (an ASGI scope), in the trace of the client that sent `traceparent`.

        Its name is the operation that the router left in the scope.
        """
        headers: Mapping[bytes, bytes] = scope["header_map"]
        given = {name: headers[name.encode()].decode("latin-1") for name in _CONTEXT if name.encode() in headers}
        with self._tracer.start_as_current_span(
            "request",
            context=self._propagator.extract(given),
            kind=SpanKind.SERVER,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            yield
            status = scope["response_start"]["status"] if "response_start" in scope else 0
            span.update_name(scope.get("operation", "unmatched"))
            span.set_attribute("http.request.method", scope["method"][:16])
            span.set_attribute("http.response.status_code", status)
            if status >= _SERVER_ERROR:
                span.set_status(Status(StatusCode.ERROR))

    def commit_together(self, contexts: Sequence[Context], work: Callable[[], T]) -> T:
        """Do the work of a group of changes, given the contexts in which they were handed over.

        Its span is in the trace of the first change; the spans of the others are linked with it.
        """
        return contexts[0].run(self._commit, contexts[1:], work)

    def _commit(self, others: Sequence[Context], work: Callable[[], T]) -> T:
        spans = [context.run(trace.get_current_span) for context in others]
        links = [Link(span.get_span_context()) for span in spans]
        attributes = {"lance.group.changes": 1 + len(spans)}
        with self._tracer.start_as_current_span(
            "commit", links=links, attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as group:
            for span in spans:
                span.add_link(group.get_span_context())
            return work()

    def step(self, step: Step) -> AbstractContextManager[object]:
        """See `Observer`."""
        return self._within(step, self._observer.step(step))

    def job(self, pool: str) -> AbstractContextManager[object]:
        """See `Observer`."""
        return self._within(f"worker {pool}", self._observer.job(pool))

    @contextmanager
    def _within(self, name: str, measured: AbstractContextManager[object]) -> Iterator[None]:
        with measured:
            if not trace.get_current_span().is_recording():
                yield
                return
            with self._tracer.start_as_current_span(
                name, record_exception=False, set_status_on_exception=False
            ) as span:
                try:
                    yield
                except BaseException:
                    span.set_status(Status(StatusCode.ERROR))
                    raise

    def storage_calls(self, kind: str, outcome: str) -> Callable[[float], None]:
        """See `Observer`."""
        measure = self._observer.storage_calls(kind, outcome)

        def observe(seconds: float) -> None:
            measure(seconds)
            if trace.get_current_span().is_recording():
                end = time.time_ns()
                begin = end - int(seconds * _NANOSECONDS)
                attributes = {"lance.storage.outcome": outcome}
                self._tracer.start_span(
                    f"storage {kind}", kind=SpanKind.CLIENT, start_time=begin, attributes=attributes
                ).end(end)

        return observe

    def group(self, batches: int) -> None:
        """See `Observer`."""
        self._observer.group(batches)

    def flip(self, outcome: FlipOutcome, tries: int) -> None:
        """See `Observer`."""
        trace.get_current_span().add_event("flip", {"outcome": outcome, "tries": tries})
        self._observer.flip(outcome, tries)

    def batch(self, outcome: BatchOutcome, seconds: float) -> None:
        """See `Observer`."""
        trace.get_current_span().add_event("batch", {"outcome": outcome})
        self._observer.batch(outcome, seconds)

    def conflict(self, operation: str, committed: str) -> None:
        """See `Observer`."""
        trace.get_current_span().add_event("conflict", {"operation": operation, "committed": committed})
        self._observer.conflict(operation, committed)

    def forwarded(self, outcome: ForwardingOutcome, seconds: float) -> None:
        """See `Observer`."""
        trace.get_current_span().add_event("forwarded", {"outcome": outcome})
        self._observer.forwarded(outcome, seconds)

    def adopted(self, versions: int) -> None:
        """See `Observer`."""
        self._observer.adopted(versions)

    def quarantined(self) -> None:
        """See `Observer`."""
        self._observer.quarantined()

    def garbage_collection(self, run: GcRun) -> None:
        """See `Observer`."""
        self._observer.garbage_collection(run)


_CONTEXT: Final = ("traceparent", "tracestate")
