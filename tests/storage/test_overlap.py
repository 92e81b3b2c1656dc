"""Blocking calls beside each other."""

from __future__ import annotations

import threading

import pytest

from lance_core.storage.overlap import Overlap


def test_all_calls_are_made_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    overlap = Overlap(8, "test")
    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", refuse)
        assert overlap.map(lambda number: number + 1, [1, 2, 3]) == [2, 3, 4]
    assert overlap.map(lambda number: number + 1, [1, 2, 3]) == [2, 3, 4]
    overlap.close()
