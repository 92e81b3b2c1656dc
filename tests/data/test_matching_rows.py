"""Rows that an update changes are the same, whether all are read or those that match are taken."""

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.storage.local import LocalStore
from lance_core.table_files import TableFiles
from lance_core.versions import read_version
from table_data import staging
from table_data.staging import matching

ROWS = 3000
COLUMNS = {"id": "`id`", "n": "n * 2 + id", "text": "upper(text)", "s": "`s`", "list": "`list`"}


def make(path: Path, *, stable: bool) -> lance.LanceDataset:
    """Three fragments, of which rows are deleted and updated."""
    ids = list(range(ROWS))
    rows = pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "n": pa.array([None if number % 7 == 0 else number / 2 for number in ids], pa.float64()),
            "text": [f"row {number}" for number in ids],
            "s": [{"a": number, "b": str(number)} for number in ids],
            "list": [list(range(number % 4)) for number in ids],
        }
    )
    lance.write_dataset(rows, path, max_rows_per_file=1000, enable_stable_row_ids=stable)
    dataset = lance.dataset(path)
    dataset.delete("id % 10 = 3 OR id BETWEEN 1200 AND 1300")
    dataset.update({"n": "-1.0"}, where="id BETWEEN 40 AND 60")
    return lance.dataset(path)


def matched(dataset: lance.LanceDataset, where: str | None) -> pa.Table:
    return pa.Table.from_batches(list(matching.matching_rows(dataset, COLUMNS, where, ROWS)))


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize(
    "where",
    [
        "id = 5",
        "id BETWEEN 30 AND 80",
        "id BETWEEN 990 AND 1400",
        "n IS NULL",
        "n > 100 AND text LIKE '%9'",
        "s.a % 100 = 1",
        "id >= 0",
    ],
)
def test_rows_are_the_same_in_either_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, stable: bool
) -> None:
    dataset = make(tmp_path / "t", stable=stable)
    read = matched(dataset, where)
    monkeypatch.setattr(matching, "_MANY", 0)
    monkeypatch.setattr(matching, "_ROWS_PER_RUN", 1)
    taken = matched(dataset, where)
    assert read.num_rows
    assert taken == read
    assert {*taken.column_names} == {*COLUMNS, "_rowaddr", *(["_rowid"] if stable else [])}


def test_scattered_and_many_rows_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = make(tmp_path / "t", stable=False)
    monkeypatch.setattr(matching, "_MANY", 0)
    monkeypatch.setattr(matching, "_ROWS_PER_RUN", 1000)

    def refuse(*_: object) -> None:
        raise AssertionError("expected the rows to be read")

    monkeypatch.setattr(matching, "_take", refuse)
    assert matched(dataset, "id IN (5, 500, 1000, 2000)").num_rows == 4
    monkeypatch.setattr(matching, "_MOST", 100)
    assert matched(dataset, "id < 1000").num_rows == 900
    with pytest.raises(AssertionError, match="expected the rows to be read"):
        matched(dataset, "id < 10")


@pytest.mark.parametrize("fails_from", [0, 64])
def test_values_that_are_too_long_together_are_taken_in_fewer_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_from: int
) -> None:
    """As pylance does with more than 2 GiB of texts; also if the first rows were short."""
    dataset = make(tmp_path / "t", stable=False)
    monkeypatch.setattr(matching, "_MANY", 0)
    monkeypatch.setattr(matching, "_MOST_OF_ANY_SIZE", 500)
    wanted = matched(dataset, "id < 1000")
    monkeypatch.setattr(matching, "_ROWS_PER_RUN", 1)
    take, asked = matching._take, []

    def taken(dataset: lance.LanceDataset, columns: dict[str, str], part: pa.Table) -> pa.RecordBatch:
        asked.append(part.num_rows)
        if part.num_rows > 64 and len(asked) > fails_from // 64:
            raise ValueError("LanceError(Arrow): Offset overflow error: 2147483648")
        return take(dataset, columns, part)

    monkeypatch.setattr(matching, "_take", taken)
    assert matched(dataset, "id < 1000") == wanted
    assert (asked[0], asked[-2]) == (500, 64)


def test_without_a_match_a_wrong_expression_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = make(tmp_path / "t", stable=False)
    for many in (1 << 20, 0):
        monkeypatch.setattr(matching, "_MANY", many)
        assert list(matching.matching_rows(dataset, COLUMNS, "id < 0", ROWS)) == []
        with pytest.raises(ValueError, match="nothing_like_it"):
            list(matching.matching_rows(dataset, {"id": "nothing_like_it + 1"}, "id < 0", ROWS))


def test_an_update_of_few_rows_reads_little_of_a_wide_table(tmp_path: Path) -> None:
    rows, wide = 100_000, 20
    uri = str(tmp_path / "wide.lance")
    lance.write_dataset(
        pa.table({"id": np.arange(rows), **{f"f{number}": np.random.random(rows) for number in range(wide)}}), uri
    )
    for where, most in (("id BETWEEN 500 AND 599", 4_000_000), ("id < 0", 1_000_000)):
        store = LocalStore(uri, "none")
        _, file = read_version(store, "", 1)
        dataset = staging.open_version(uri, file, {})
        dataset.io_stats_incremental()
        operation, changed = staging.stage_update(dataset, TableFiles(store, ""), file, {"f0": "f0 + 1"}, where)
        assert changed == (100 if operation.new else 0)
        assert 0 < dataset.io_stats_incremental().read_bytes < most < rows * wide * 8 / 2
