"""What a transaction wrote goes if it is certainly not committed, and nothing else goes."""

# ruff: noqa: PT012 - leaving the block is what raises

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pytest
from lance.fragment import write_fragments

from namespace_client import CommitRejected, CommitUnknown, InvalidCall, MultiTableTransaction, RetryableConflict
from namespace_client.access import ChangeUnknown
from table_data.descriptions import append_operation
from tests.client.scene import SCHEMA, Scene, rows


class Stop(Exception):
    """Ends a block."""


def files(scene: Scene) -> set[str]:
    root = Path(unquote(urlsplit(scene.catalog.access.state().root).path))
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()} - _of_the_catalog(root)


def _of_the_catalog(root: Path) -> set[str]:
    places = (root / "__manifest", root / "_staging")
    return {str(path.relative_to(root)) for place in places for path in place.rglob("*") if path.is_file()}


def blobs(count: int) -> pa.Table:
    field = pa.field("data", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    data = [bytes([number]) * 100_000 for number in range(count)]
    return pa.table([pa.array(data, pa.large_binary())], schema=pa.schema([field]))


Write = Callable[[MultiTableTransaction], object]
WRITES: dict[str, Write] = {
    "append": lambda tx: tx.append("t", rows(50, 51)),
    "two appends": lambda tx: (tx.append("t", rows(50)), tx.append("t", rows(51))),
    "overwrite": lambda tx: tx.overwrite("t", rows(50)),
    "create": lambda tx: tx.create("new", rows(1, 2)),
    "create and append": lambda tx: (tx.create("new", rows(1, 2)), tx.append("new", rows(3))),
    "blobs": lambda tx: tx.create("new", blobs(3)),
    "delete": lambda tx: tx.delete("t", "id < 3"),
    "update": lambda tx: tx.update("t", {"v": "v + 1"}, where="id < 12"),
    "merge": lambda tx: tx.merge("t", rows(3, 70), on="id"),
    "columns": lambda tx: tx.add_columns("t", {"w": "v * 2"}),
    "append, delete, update": lambda tx: (
        tx.append("t", rows(50, 51)),
        tx.delete("t", "id in (2, 50)"),
        tx.update("t", {"v": "0.0"}, where="id = 51"),
    ),
    "compaction": lambda tx: tx.compact("t"),
}


@pytest.fixture
def table(local: Scene) -> Scene:
    """A table of two fragments, one of which has deleted rows."""
    local.make("t", *range(15))
    with local.catalog.begin() as tx:
        tx.delete("t", "id = 14")
    return local


@pytest.mark.parametrize("name", WRITES)
def test_after_an_exception_in_the_block(table: Scene, name: str) -> None:
    before = files(table)
    with pytest.raises(Stop), table.catalog.begin() as tx:
        WRITES[name](tx)
        assert files(table) > before
        raise Stop
    assert files(table) == before
    assert table.ids() == list(range(14))


def test_after_a_conflict(scene: Scene) -> None:
    scene.make("t", *range(15))
    before = files(scene)
    with pytest.raises(RetryableConflict), scene.catalog.begin() as tx:
        tx.update("t", {"v": "v + 1"}, where="id < 12")
        mine = files(scene) - before
        with scene.catalog.begin() as other:
            other.delete("t", "id = 3")
    assert mine
    assert not mine & files(scene)
    assert scene.ids() == [number for number in range(15) if number != 3]
    with pytest.raises(InvalidCall, match="nothing to send again"):
        tx.resend()


def test_after_a_refusal(table: Scene) -> None:
    before = files(table)
    with pytest.raises(CommitRejected), table.catalog.begin() as tx:
        tx.create("new", rows(1))
        with table.catalog.begin() as other:
            other.create("new", schema=SCHEMA)
        mine = {path for path in files(table) - before if "/data/" in path}
    assert len(mine) == 1
    assert not mine & files(table)


def test_not_while_the_outcome_is_unknown(table: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = table.catalog.access._backend
    send, lost = backend.send, [True]

    def lose(*given: object) -> object:
        found = send(*given)
        return ChangeUnknown("lost by the test") if lost else found

    monkeypatch.setattr(backend, "send", lose)
    monkeypatch.setattr(table.catalog.access, "_retries", 0)
    with pytest.raises(CommitUnknown), table.catalog.begin() as tx:
        tx.append("t", rows(50))
    lost.clear()
    tx.resend()
    assert table.ids() == [*range(14), 50]


def test_not_what_the_caller_has_staged(table: Scene) -> None:
    """Not even where a later call of the transaction names it too."""
    with pytest.raises(Stop), table.catalog.begin() as tx:
        state = tx.describe("t")
        assert state is not None
        before = files(table)
        fragments = write_fragments(rows(50, 51), state.uri, mode="append")
        staged = files(table) - before
        tx.stage("t", append_operation(fragments), call="append")
        tx.delete("t", "id = 50")
        tx.append("t", rows(60))
        raise Stop
    assert files(table) == before | staged


def test_after_a_commit_nothing_goes(table: Scene) -> None:
    with table.catalog.begin() as tx:
        tx.append("t", rows(50))
        tx.commit()
    with pytest.raises(Stop), table.catalog.begin() as tx:
        tx.append("t", rows(51))
        tx.commit()
        raise Stop
    assert table.ids() == [*range(14), 50, 51]
