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
        order: list[str] = []
        with overlap.beside(lambda: order.append("call")):
            order.append("block")
        assert order == ["block", "call"]
    assert overlap.map(lambda number: number + 1, [1, 2, 3]) == [2, 3, 4]
    overlap.close()


def test_a_call_is_made_while_the_block_runs_and_by_its_thread_if_none_is_free() -> None:
    overlap, met = Overlap(1, "test"), threading.Barrier(2, timeout=30)
    by: list[int] = []

    def inner() -> None:
        by.append(threading.get_ident())

    with overlap.beside(met.wait):
        met.wait()  # it would never come to an end if the call came after the block
    go_on = threading.Event()
    with overlap.beside(go_on.wait):  # the one thread is busy
        with overlap.beside(inner):
            pass
        assert by == [threading.get_ident()]
        go_on.set()
    overlap.close()
