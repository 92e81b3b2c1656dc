"""An index never changes an answer: reads, counts, deletions, updates and merges are the same with each kind of index.

The tables have nulls, NaN, zeros of both signs, empty texts and lists, deleted rows, and rows that no index covers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.storage.local import LocalStore
from lance_core.versions import read_version
from table_data.requests.merging import MergeClauses
from table_data.staging.handles import ReadOnlyTable
from table_data.staging.matching import ADDRESS, matching_addresses, matching_rows
from table_data.staging.merge import stage_merge

KINDS: dict[str, Sequence[tuple[str, str]]] = {
    "BTREE": [(column, "BTREE") for column in "ifst"],
    "BITMAP": [(column, "BITMAP") for column in "ifstb"],
    "ZONEMAP": [(column, "ZONEMAP") for column in "ifst"],
    "BLOOMFILTER": [(column, "BLOOMFILTER") for column in "ifst"],
    "NGRAM": [("s", "NGRAM")],
    "INVERTED": [("s", "INVERTED")],
    "LABEL_LIST": [("l", "LABEL_LIST")],
}
NEGATIVE_NAN = float(np.array([0xFFF8 << 48], np.uint64).view(np.float64)[0])
FLOATS = (None, 0.0, -0.0, 1.5, -1.5, float("inf"), float("-inf"), float("nan"), NEGATIVE_NAN)
LEAVES = (
    *("i = 1", "i <> 1", "i IN (1, 2)", "i NOT IN (1, 2)", "i IN (1, NULL)", "i NOT IN (1, NULL)", "i IS NULL"),
    *("i IS NOT NULL", "i > 0", "i <= 0", "i BETWEEN 0 AND 2", "i NOT BETWEEN 0 AND 2", "i = NULL", "i <> NULL"),
    *("i IS DISTINCT FROM 1", "i IS NOT DISTINCT FROM NULL", "f = 1.5", "f <> 1.5", "f < 1.5", "f > 1.5", "f >= 0.0"),
    *("f = 0.0", "f = -0.0", "f IS NULL", "isnan(f)", "f <> f", "f < 0.0", "f BETWEEN -1.0 AND 1.0", "f > 1e308"),
    *("f IN (1.5, 0.0)", "f NOT IN (1.5)", "s = 'a'", "s <> 'a'", "s LIKE 'a%'", "s NOT LIKE 'a%'", "s = ''"),
    *("s IS NULL", "s IN ('a', '')", "s NOT IN ('a')", "s > 'a'", "contains(s, 'a')", "starts_with(s, 'a')"),
    *("regexp_like(s, 'a.*')", "s LIKE '%b'", "s ILIKE 'A%'", "b", "b IS NULL", "b = true", "b <> true", "b IS TRUE"),
    *("b IS NOT TRUE", "b IS FALSE", "b IS NOT FALSE", "array_has(l, 'p')", "array_has_any(l, ['p', 'z'])"),
    *("array_has_all(l, ['p', 'q'])", "array_has_all(l, [])", "l IS NULL", "t = timestamp '1970-01-02 00:00:00'"),
    *("t < timestamp '1970-01-03 00:00:00'", "t IS NULL", "true", "false", "n > 5 AND i = 1"),
)
PAIRS = tuple(
    f"({left}) {operator} ({right})"
    for left, right in itertools.combinations(
        ["i = 1", "f < 1.5", "s <> 'a'", "b", "b IS TRUE", "array_has(l, 'p')", "i IS NULL", "NOT (f > 0.0)"], 2
    )
    for operator in ("AND", "OR")
)
PREDICATES = (*LEAVES, *PAIRS, *(f"NOT ({text})" for text in (*LEAVES, *PAIRS)))


def rows(count: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)

    def some(values: Sequence[Any]) -> list[Any]:
        return [values[int(place)] for place in random.integers(0, len(values), count)]

    return pa.table(
        {
            "i": pa.array(some([None, -1, 0, 1, 2, 3]), pa.int64()),
            "f": pa.array(some(FLOATS), pa.float64()),
            "s": pa.array(some([None, "", "a", "ab", "b", "x_y"])),
            "b": pa.array(some([None, True, False]), pa.bool_()),
            "l": pa.array(some([None, [], ["p"], ["p", None], ["q", "p"]]), pa.list_(pa.string())),
            "t": pa.array(some([None, 0, 86_400, 172_800]), pa.timestamp("s")),
            "n": np.arange(count),
        }
    )


def made(path: Path, indices: Sequence[tuple[str, str]]) -> ReadOnlyTable:
    dataset = lance.write_dataset(rows(60, 1), path, max_rows_per_file=25)
    dataset.delete("n % 10 = 3")
    for column, kind in indices:
        dataset.create_scalar_index(column, kind)
    lance.write_dataset(rows(20, 2), path, mode="append")
    dataset = lance.dataset(path)
    dataset.delete("n = 4")
    return ReadOnlyTable(str(path))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> ReadOnlyTable:
    return made(tmp_path_factory.mktemp("plain") / "t.lance", [])


@pytest.fixture(scope="module", params=KINDS)
def indexed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ReadOnlyTable:
    return made(tmp_path_factory.mktemp(request.param) / "t.lance", KINDS[request.param])


def addresses(table: pa.Table | pa.RecordBatchReader) -> list[int]:
    whole = table.read_all() if isinstance(table, pa.RecordBatchReader) else table
    found: list[int] = sorted(whole.column(ADDRESS).to_pylist())
    return found


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(lambda table, where: addresses(matching_addresses(table, where)), id="delete"),
        pytest.param(
            lambda table, where: addresses(table.to_table(columns=["n"], filter=where, with_row_address=True)),
            id="read",
        ),
        pytest.param(
            lambda table, where: sorted(
                address
                for batch in matching_rows(table, {"n": "n + 1"}, where, 80)
                for address in batch.column(ADDRESS).to_pylist()
            ),
            id="update",
        ),
        pytest.param(lambda table, where: table.count_rows(where), id="count"),
    ],
)
def test_the_same_rows_match(
    plain: ReadOnlyTable, indexed: ReadOnlyTable, found: Callable[[ReadOnlyTable, str], object]
) -> None:
    different = [where for where in PREDICATES if found(plain, where) != found(indexed, where)]
    assert different == []


SOURCES = {
    "i": pa.array([None, 1, 8, 2], pa.int64()),
    "s": pa.array([None, "new", "ab", ""]),
    "t": pa.array([None, 0, 1, 86_400], pa.timestamp("s")),
}
CLAUSES = {
    "upsert": {},
    "insert": {"matched": "keep"},
    "update": {"not_matched": "ignore"},
    "delete": {"matched": "delete", "not_matched": "ignore"},
    "replace": {"not_matched_by_source": "delete"},
}


@pytest.mark.combinations
@pytest.mark.parametrize("streamed", [False, True], ids=["rows", "stream"])
@pytest.mark.parametrize("clauses", CLAUSES)
@pytest.mark.parametrize("key", SOURCES)
@pytest.mark.parametrize("kind", ["BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"])
def test_merges_of_null_keys_are_the_same(tmp_path: Path, kind: str, key: str, clauses: str, streamed: bool) -> None:
    counts = []
    for number, indices in enumerate(([], [(key, kind)])):
        path = tmp_path / f"{number}.lance"
        present = pa.table({key: SOURCES[key].slice(1), "v": ["a", "b", "c"]})
        dataset = lance.write_dataset(present.slice(0, 2), path)
        for column, name in indices:
            dataset.create_scalar_index(column, name)
        lance.write_dataset(present.slice(2), path, mode="append")
        table = ReadOnlyTable(str(path))
        manifest = read_version(LocalStore(path), "", table.version)[1].outline
        source = pa.table({key: SOURCES[key], "v": ["N", "A", "B", "C"]}).slice(0, 3)
        for use_index in (None, True):
            merged = stage_merge(
                table,
                manifest,
                source.to_reader() if streamed else source,
                MergeClauses((key,), use_index=use_index, **CLAUSES[clauses]),  # type: ignore[arg-type]
            )
            counts.append((merged.inserted, merged.updated, merged.deleted))
    assert len(set(counts)) == 1, counts
    inserts, inserted = clauses in {"upsert", "insert", "replace"}, counts[0][0]
    assert inserted == (1 if inserts else 0)  # the null key


def test_a_new_key_that_comes_twice_is_inserted_twice(tmp_path: Path) -> None:
    """As in SQL's MERGE: neither row matches one of the table."""
    lance.write_dataset(pa.table({"k": [1], "v": ["a"]}), tmp_path / "t")
    table = ReadOnlyTable(str(tmp_path / "t"))
    manifest = read_version(LocalStore(tmp_path / "t"), "", 1)[1].outline
    twice = stage_merge(table, manifest, pa.table({"k": [2, 2], "v": ["b", "c"]}), MergeClauses(("k",)))
    assert (twice.inserted, twice.updated) == (2, 0)
    with pytest.raises(OSError, match=r"[Aa]mbiguous"):
        stage_merge(table, manifest, pa.table({"k": [1, 1], "v": ["b", "c"]}), MergeClauses(("k",)))


def test_nan_is_ordered_by_its_sign(plain: ReadOnlyTable) -> None:
    """Pylance orders floating-point numbers as IEEE 754 totally does; `isnan` finds every NaN."""
    present = [value for value in plain.to_table(columns=["f"]).column(0).to_pylist() if value is not None]
    nans = sum(value != value for value in present)
    negative = sum(value != value and np.signbit(value) for value in present)
    assert 0 < negative < nans
    assert plain.count_rows("isnan(f)") == nans
    below = sum(value < 1.5 for value in present)
    assert plain.count_rows("f < 1.5") == below + negative
    assert plain.count_rows("f < 1.5 AND NOT isnan(f)") == below
    assert plain.count_rows("f > 1.5 AND NOT isnan(f)") == sum(value > 1.5 for value in present)
