"""Model test: random changes of two concurrent transactions, compared with two dictionaries."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterator
from typing import Any

import lance
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from namespace_client import Catalog, CommitConflict, MultiTableTransaction
from tests.client.scene import SCHEMA, Scene, rows

Rows = dict[int, float]
Call = tuple[str, int, int, float]

ROWS = ["append", "delete", "update", "upsert", "fix"]
ALL = [*ROWS, "overwrite", "compact", "add", "index"]


def calls(kinds: list[str], rows_at_most: int) -> st.SearchStrategy[Call]:
    return st.tuples(
        st.sampled_from(kinds), st.integers(0, 24), st.integers(1, rows_at_most), st.sampled_from([0.25, 0.5, 0.75])
    )


BLOCKS = st.one_of(st.lists(calls(ROWS, 2), min_size=1, max_size=3), st.lists(calls(ALL, 8), min_size=1, max_size=5))
OTHERS = st.one_of(st.lists(calls(ROWS, 2), min_size=1, max_size=2), st.lists(calls(ALL, 8), max_size=3))
_fresh = itertools.count(1000)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    root = str(tmp_path_factory.mktemp("models") / "catalog")
    with Catalog.connect(root, namespace=["ml"]) as catalog:
        catalog.ensure_namespace()
        yield Scene(catalog, "ml", root)


@pytest.mark.slow
@given(ours=BLOCKS, theirs=OTHERS, stable=st.booleans())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_concurrent_transactions_commit_both_or_one(
    models: Scene, ours: list[Call], theirs: list[Call], stable: bool
) -> None:
    name = f"t{secrets.token_hex(4)}"
    begin: Rows = {number: float(number) for number in range(20)}
    for start in (0, 10):
        lance.write_dataset(
            rows(*range(start, start + 10)),
            namespace_client=models.stock(),
            table_id=["ml", name],
            mode="append" if start else "create",
            enable_stable_row_ids=stable,
        )
    mine, other = dict(begin), dict(begin)
    committed = True
    try:
        with models.catalog.begin() as tx:
            for call in ours:
                _do(tx, name, mine, call)
                assert _rows(tx.table(name).to_table()) == mine
            with models.catalog.begin() as second:
                for call in theirs:
                    _do(second, name, other, call)
    except CommitConflict:
        committed = False
        assert theirs, "a conflict without a concurrent transaction"

    event(f"committed {committed}, beside others {bool(theirs)}")
    found = _rows(models.open(name).to_table())
    expected = other
    if committed:
        expected = mine if any(call[0] == "overwrite" for call in ours) else _merged(begin, mine, other)
    assert found == expected
    ids = models.open(name).to_table(with_row_id=True).column("_rowid").to_pylist()
    assert len(set(ids)) == len(ids)
    models.open(name).delete("id = 7")
    assert 7 not in _rows(models.open(name).to_table())


def _merged(begin: Rows, mine: Rows, other: Rows) -> Rows:
    """The rows of the other transaction with the changes of ours."""
    changed = {number for number in {*begin, *mine} if begin.get(number) != mine.get(number)}
    merged = {number: value for number, value in other.items() if number not in changed}
    return merged | {number: value for number, value in mine.items() if number in changed}


def _do(tx: MultiTableTransaction, name: str, model: Rows, call: Call) -> None:
    """Apply one call to the table and to the dictionary."""
    kind, first, count, value = call
    span = range(first, first + count)
    where = f"id >= {first} and id < {first + count}"
    hit = [number for number in model if number in span]
    match kind:
        case "append":
            new = {next(_fresh): value for _ in range(count)}
            tx.append(name, _table(new))
            model |= new
        case "delete":
            assert tx.delete(name, where) == len(hit)
            for number in hit:
                del model[number]
        case "update":
            assert tx.update(name, {"v": f"v + {value}"}, where=where) == len(hit)
            model |= {number: model[number] + value for number in hit}
        case "upsert" | "fix":
            counts = tx.merge(
                name, rows(*span, v=value), on="id", not_matched="insert" if kind == "upsert" else "ignore"
            )
            assert counts.updated == len(hit)
            model |= dict.fromkeys(span if kind == "upsert" else hit, value)
        case "overwrite":
            tx.overwrite(name, rows(*span, v=value))
            model.clear()
            model |= dict.fromkeys(span, value)
        case "compact":
            tx.compact(name)
        case "add":
            tx.add_columns(name, {f"c{next(_fresh)}": "v * 2"})
        case "index":
            if model:
                tx.create_index(name, "id", "BTREE", replace=True)


def _table(values: Rows) -> Any:
    return [{"id": number, "v": value} for number, value in values.items()]


def _rows(table: Any) -> Rows:
    ids = table.column("id").to_pylist()
    assert len(ids) == len(set(ids)), "a row stands twice"
    assert table.schema.names[:2] == SCHEMA.names
    return dict(zip(ids, table.column("v").to_pylist(), strict=True))
