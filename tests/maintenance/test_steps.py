"""Maintenance after any changes of an indexed table: it ends, the rows stay, and nothing is left to do."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lance_core.errors import CorruptFile
from namespace_client import Catalog
from namespace_client.transaction import MultiTableTransaction
from namespace_server.directory.maintenance.report import TableStatus
from namespace_server.directory.maintenance.run import Maintenance
from namespace_server.directory.namespace import DirectoryNamespace

Step = Callable[[MultiTableTransaction], object]


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "kind": ["ABCDE"[each % 5] for each in ids]})


def data_files(root: Path) -> set[Path]:
    return {path for path in root.rglob("data/*.lance") if "__manifest" not in path.parts}


STEPS: dict[str, Step] = {
    "bitmap": lambda tx: tx.create_index("t", "kind", "BITMAP", replace=True),
    "btree": lambda tx: tx.create_index("t", "id", "BTREE", replace=True),
    "delete": lambda tx: tx.delete("t", "kind = 'A'"),
    "update": lambda tx: tx.update("t", {"kind": "'B'"}, where="id < 25"),
    "merge": lambda tx: tx.merge("t", rows(1, 900), on="id"),
    "append": lambda tx: tx.append("t", rows(*range(500, 530))),
}


@given(steps=st.lists(st.sampled_from(sorted(STEPS)), min_size=2, max_size=6), stable=st.booleans())
@example(steps=["bitmap", "delete", "append", "append"], stable=False)
@example(steps=["btree", "delete", "update", "merge", "append"], stable=True)
@example(steps=["bitmap", "update", "merge", "append", "delete"], stable=False)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
def test_it_ends_and_leaves_nothing_to_do(steps: list[str], stable: bool) -> None:
    root = Path(tempfile.mkdtemp())
    namespace = DirectoryNamespace(root=str(root), durability="none", sweep_interval_seconds="0")
    try:
        with Catalog.connect(namespace) as catalog:
            with catalog.begin() as tx:
                tx.create("t", rows(*range(200)), stable_row_ids=stable)
            for step in steps:
                with catalog.begin() as tx:
                    STEPS[step](tx)
            before = catalog.read("t").sort_by([("id", "ascending"), ("kind", "ascending")])
            work = Maintenance(namespace.catalog.store, namespace.catalog.table, namespace.data.change)
            for outcome in work.run(forced=True).outcomes:
                assert outcome.status is TableStatus.DONE, outcome.line()
            assert catalog.read("t").sort_by([("id", "ascending"), ("kind", "ascending")]) == before
            for kind in "AB":
                wanted = sum(each == kind for each in before["kind"].to_pylist())
                assert catalog.read("t", filter=f"kind = '{kind}'").num_rows == wanted
            assert not work.run(forced=True).outcomes
    finally:
        namespace.close()
        shutil.rmtree(root)


def test_a_compaction_that_cannot_be_read_is_not_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor are fragment ids reserved for it again and again."""
    namespace = DirectoryNamespace(root=str(tmp_path), durability="none", sweep_interval_seconds="0")
    with Catalog.connect(namespace) as catalog:
        with catalog.begin() as tx:
            tx.create("t", rows(*range(200)))
        for step in ("bitmap", "delete", "append", "append"):
            with catalog.begin() as tx:
                STEPS[step](tx)
        before = catalog.read("t")
        files = data_files(tmp_path)

        def unreadable(*_: object) -> tuple[int, int]:
            raise CorruptFile("column 'kind' cannot be read again")

        monkeypatch.setattr("lance_core.data.compacted_rows", unreadable)
        later = namespace.catalog.snapshot().timestamp_ms / 1000 + 120
        given = (namespace.catalog.store, namespace.catalog.table, namespace.data.change)
        [first] = Maintenance(*given, now=lambda: later).run().outcomes
        assert first.status is TableStatus.FAILED
        assert "nothing was committed" in str(first.reason)
        head = catalog.describe("t").version
        [again] = Maintenance(*given, now=lambda: later).run().outcomes
        assert again.status is TableStatus.FAILED
        assert f"version {head} reserved fragment ids" in str(again.reason)
        assert catalog.describe("t").version == head
        assert catalog.read("t") == before
        assert data_files(tmp_path) == files
        monkeypatch.undo()
        [done] = Maintenance(*given, now=lambda: later + 86_400).run().outcomes
        assert done.status is TableStatus.DONE, done.line()
    namespace.close()
