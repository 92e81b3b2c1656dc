"""Traces of programs that use the SDK of OpenTelemetry: spans of what is done here, and headers that hand a trace on.

Nothing of it is loaded, and nothing is done, in other programs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


def trace_context() -> dict[str, str]:
    """The headers that put a request into the trace of the caller; none unless the process uses OpenTelemetry."""
    headers: dict[str, str] = {}
    if _is_used():
        from opentelemetry import propagate

        propagate.inject(headers)
    return headers


@contextmanager
def span(name: str) -> Iterator[None]:
    """A span of the program's own tracing, current within the block. An exception that leaves it is recorded."""
    if not _is_used():
        yield
        return
    from opentelemetry import trace

    with trace.get_tracer("namespace_client").start_as_current_span(name):
        yield


def _is_used() -> bool:
    return "opentelemetry.sdk.trace" in sys.modules
