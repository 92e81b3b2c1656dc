"""Tables that are worth work, runs of maintenance on them, and what must be the same after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lance
import pyarrow as pa
import pytest

from namespace_server.data.port import CommittedChange
from namespace_server.directory.maintenance.report import MaintenanceReport
from namespace_server.directory.maintenance.run import Maintenance
from tests.directory.tables import Ground, rows

T = ["g", "t"]
COUNT = 6
"""Fragments of a table that is worth work."""


def make_table(
    ground: Ground, *path: str, index: bool = False, stable: bool = False, appends: int = COUNT - 1
) -> list[str]:
    """A table of three rows in each of six fragments, the first four of which an index covers."""
    table_id = list(path) or T
    lance.write_dataset(
        rows(0, 3),
        mode="create",
        namespace_client=ground.namespace,
        table_id=table_id,
        enable_stable_row_ids=stable,
    )
    for number in range(1, appends + 1):
        if index and number == COUNT - 2:
            ground.namespace.data.change(
                "create_table_scalar_index", {"id": table_id, "column": "id", "index_type": "BTREE"}
            )
        ground.write(table_id, rows(3 * number, 3 * number + 3))
    return table_id


def maintenance(ground: Ground, **given: Any) -> Maintenance:
    """Maintenance of a catalog, by the changes of rows in this process."""
    catalog = ground.catalog
    return Maintenance(catalog.store, catalog.table, ground.namespace.data.change, **given)


def maintain(ground: Ground, **given: Any) -> MaintenanceReport:
    """One run over all tables, also those that were changed just now."""
    return maintenance(ground).run(forced=True, **given)


def contents(dataset: lance.LanceDataset) -> pa.Table:
    """All rows by id."""
    return dataset.to_table().sort_by("id")


def found_by_index(dataset: lance.LanceDataset, number: int) -> list[int]:
    """The rows with an id, found by the index."""
    scanner = dataset.scanner(filter=f"id = {number}", columns=["id"])
    assert "ScalarIndexQuery" in scanner.explain_plan()
    return list(scanner.to_table()["id"].to_pylist())


def served_ids(ground: Ground, table_id: list[str], predicate: str | None = None) -> list[int]:
    """The ids in a table as the server reads them."""
    request: dict[str, Any] = {"id": table_id, "vector": {}, "k": 1000, "columns": {"column_names": ["id"]}}
    if predicate is not None:
        request["filter"] = predicate
    data = ground.namespace.row_reads.rows("query_table", request)
    return sorted(pa.ipc.open_file(data).read_all()["id"].to_pylist())


def once(act: Callable[[], object]) -> Callable[[], None]:
    """The same, done by the first call alone."""
    done: list[bool] = []

    def first() -> None:
        if not done:
            done.append(True)
            act()

    return first


def meet(ground: Ground, monkeypatch: pytest.MonkeyPatch, operation: str, act: Callable[[], object]) -> None:
    """Another writer acts once: between the staging of an operation of this kind and its commit."""
    commit, act_once = ground.namespace.commit_change, once(act)

    def commit_after(staged: Any, record: Any) -> CommittedChange:
        [change] = staged
        if change.transaction.WhichOneof("operation") == operation:
            act_once()
        return commit(staged, record)

    monkeypatch.setattr(ground.namespace, "commit_change", commit_after)
    monkeypatch.delitem(vars(ground.namespace), "data", raising=False)  # it may hold the original
