"""How far rows are written."""

from __future__ import annotations

import io
import re

import pyarrow as pa
import pytest
from rich.console import Console

from namespace_client import InvalidCall, progress, with_progress
from tests.client.scene import Scene, rows

MANY = pa.table({"id": range(150_000), "v": [0.5] * 150_000})


def test_what_is_told(local: Scene) -> None:
    told: list[tuple[int, int | None]] = []

    def tell(done: int, total: int | None) -> None:
        told.append((done, total))

    with local.catalog.begin() as tx:
        tx.create("t", with_progress(MANY, tell=tell))
        assert told == [(65_536, 150_000), (131_072, 150_000), (150_000, 150_000)]
        told.clear()
        tx.append("t", with_progress(iter(rows(1, 2).to_batches()), tell=tell))
        tx.append("t", with_progress(rows(3).to_reader(), tell=tell))
        tx.append("t", with_progress([{"id": 4, "v": 1.0}], tell=tell))
        assert told == [(2, None), (1, None), (1, 1)]
        writer = tx.row_writer("t")
        tx.add_written(writer, [writer.write(with_progress(rows(5), tell=tell))])
        tx.merge("t", with_progress(rows(6), tell=tell), on="id")
    assert local.open().count_rows() == 150_005


def test_a_bar_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(progress, "Console", lambda **_: Console(file=shown, force_terminal=True, width=100))
    assert with_progress(MANY, "features").read_all() == MANY
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.getvalue())
    assert re.search(r"features .*150000/150000", text), text


def test_nothing_is_shown_elsewhere(capfd: pytest.CaptureFixture[str]) -> None:
    assert with_progress(rows(1)).read_all() == rows(1)
    assert capfd.readouterr() == ("", "")


def test_what_is_no_rows() -> None:
    for wrong in (5, iter([1]), iter([])):
        with pytest.raises(InvalidCall, match="rows of type"):
            with_progress(wrong)


def test_an_error_of_the_rows_ends_the_bar() -> None:
    def broken():
        yield rows(1).to_batches()[0]
        raise ValueError("a bad file")

    with pytest.raises(ValueError, match="a bad file"):
        with_progress(broken()).read_all()
