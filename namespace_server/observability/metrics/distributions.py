"""Histograms of the most frequent measurements.

Those of the client library take twice as long for each value, which is more than a cached read may cost (note 023).
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Final

from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

Observe = Callable[[float], None]
"""Adds a value. Thread-safe."""


class Distributions(Collector):
    """Values by their labels, counted in buckets up to the `bounds`, which ascend. Thread-safe."""

    def __init__(self, name: str, text: str, labels: Sequence[str], bounds: Sequence[float]) -> None:
        self._name = name
        self._text = text
        self._labels = tuple(labels)
        self._bounds = tuple(map(float, bounds))
        self._names = [*map(repr, self._bounds), "+Inf"]
        self._lock: Final = threading.Lock()
        self._cells: dict[tuple[str, ...], _Cell] = {}

    def of(self, *labels: str) -> Observe:
        """The function that adds a value under these labels; the same each time."""
        with self._lock:
            cell = self._cells.get(labels)
            if cell is None:
                cell = self._cells[labels] = _Cell(self._bounds)
        return cell.observe

    def describe(self) -> Iterable[Metric]:
        """The metric without values: those who want others need not wait for it to be collected."""
        yield self._family()

    def collect(self) -> Iterable[Metric]:
        """The metric now."""
        family = self._family()
        with self._lock:
            cells = list(self._cells.items())
        for labels, cell in cells:
            counts, total = cell.state()
            family.add_metric(labels, list(zip(self._names, accumulate(counts), strict=True)), total)
        yield family

    def _family(self) -> HistogramMetricFamily:
        return HistogramMetricFamily(self._name, self._text, labels=self._labels)


class _Cell:
    """The values under one set of labels."""

    __slots__ = ("_bounds", "_counts", "_lock", "_sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0
        self._lock = threading.Lock()

    def observe(self, value: float) -> None:
        at = bisect_left(self._bounds, value)
        with self._lock:
            self._counts[at] += 1
            self._sum += value

    def state(self) -> tuple[list[int], float]:
        """The number of values in each bucket, and their sum."""
        with self._lock:
            return list(self._counts), self._sum
