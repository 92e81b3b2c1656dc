"""Which two changes of one table both commit: the first table of the conflict matrix, cell by cell."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import count

import pyarrow as pa
import pytest

from namespace_client import Catalog, IncompatibleConflict, MultiTableTransaction, RetryableConflict
from tests.server.servers import REPOSITORY

pytestmark = pytest.mark.slow

PAGE = REPOSITORY / "docs/reference/conflict-matrix.md"
NUMBERS = count()
Call = Callable[[MultiTableTransaction, str], object]


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [str(each) for each in ids], "spare": [0.5] * len(ids)})


CALLS: dict[str, Call] = {
    "append": lambda tx, table: tx.append(table, rows(20, 21)),
    "merge": lambda tx, table: tx.merge(table, rows(1, 30), on="id"),
    "update": lambda tx, table: tx.update(table, {"name": "'x'"}, where="id = 1"),
    "delete": lambda tx, table: tx.delete(table, "id = 1"),
    "add_columns": lambda tx, table: tx.add_columns(table, {"twice": "id * 2"}),
    "drop_columns": lambda tx, table: tx.drop_columns(table, ["spare"]),
    "create_index": lambda tx, table: tx.create_index(table, "id", "BTREE"),
    "compact": lambda tx, table: tx.compact(table),
    "overwrite": lambda tx, table: tx.overwrite(table, rows(40, 41)),
    "restore": lambda tx, table: tx.restore(table, 1),
}
AROUND: dict[str, Callable[[Catalog, str], object]] = {
    "rename": lambda catalog, table: catalog.rename(table, f"{table}-renamed"),
    "drop": lambda catalog, table: catalog.drop(table),
    "tag, branch": lambda catalog, table: (catalog.create_tag(table, "v"), catalog.create_branch(table, "b")),
}


@pytest.fixture(scope="module")
def catalogs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Catalog, Catalog]]:
    """Two connections to one root."""
    root = str(tmp_path_factory.mktemp("pairs") / "catalog")
    with Catalog.connect(root) as one, Catalog.connect(root) as other:
        yield one, other


def outcome(catalogs: tuple[Catalog, Catalog], first: Callable[[Catalog, str], object], second: Call) -> str:
    """What becomes of a transaction when another change was committed since it began."""
    one, other = catalogs
    table = f"t{next(NUMBERS)}"
    with one.begin() as tx:
        tx.create(table, rows(0, 1, 2))
    with one.begin() as tx:
        tx.append(table, rows(3, 4, 5))
    tx = one.begin()
    tx.__enter__()
    second(tx, table)
    first(other, table)
    try:
        tx.commit()
    except RetryableConflict:
        return "again"
    except IncompatibleConflict:
        return "no"
    return "yes"


def committed(call: Call) -> Callable[[Catalog, str], object]:
    def commit(catalog: Catalog, table: str) -> None:
        with catalog.begin() as tx:
            call(tx, table)

    return commit


FIRST = {name: committed(call) for name, call in CALLS.items()} | AROUND


def documented() -> dict[tuple[str, str], str]:
    """The cells of the table, by the change that came first and the one that is committed after it."""
    lines = [line.strip("| ").split(" | ") for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    head = next(index for index, line in enumerate(lines) if line[0].startswith("yours"))
    columns = [name.strip("`") for name in lines[head][1:]]
    body = lines[head + 1 : head + 1 + len(CALLS)]
    assert columns == list(FIRST)
    assert [line[0].strip("`") for line in body] == list(CALLS)
    return {
        (first, line[0].strip("`")): re.sub(r"\W.*", "", cell)
        for line in body
        for first, cell in zip(columns, line[1:], strict=True)
    }


@pytest.mark.parametrize("second", CALLS)
def test_the_page_says_what_happens(catalogs: tuple[Catalog, Catalog], second: str) -> None:
    found = {first: outcome(catalogs, call, CALLS[second]) for first, call in FIRST.items()}
    assert found == {first: word for (first, other), word in documented().items() if other == second}


@pytest.mark.parametrize("first", ["update", "delete"])
@pytest.mark.parametrize(
    "second",
    [
        lambda tx, table: tx.update(table, {"name": "'y'"}, where="id = 2"),
        lambda tx, table: tx.delete(table, "id = 2"),
        lambda tx, table: tx.merge(table, rows(2), on="id", not_matched="ignore"),
    ],
    ids=["update", "delete", "merge without inserts"],
)
def test_changes_of_other_rows_both_commit(catalogs: tuple[Catalog, Catalog], first: str, second: Call) -> None:
    """Also in the same fragment."""
    assert outcome(catalogs, FIRST[first], second) == "yes"


@pytest.mark.parametrize(
    ("first", "word"), [("append", "again"), ("update", "again"), ("merge", "yes"), ("delete", "yes")]
)
def test_a_merge_that_inserts_does_not_know_the_keys_of_others(
    catalogs: tuple[Catalog, Catalog], first: str, word: str
) -> None:
    """Those of a merge are known: it inserts another one here."""
    assert outcome(catalogs, FIRST[first], lambda tx, table: tx.merge(table, rows(50), on="id")) == word


def test_a_schema_change_is_refused_where_the_rows_do_not_fit(catalogs: tuple[Catalog, Catalog]) -> None:
    """An append without the new column, whose values are null for it, commits; an add_columns over it does not."""
    assert outcome(catalogs, FIRST["add_columns"], CALLS["append"]) == "yes"
    assert outcome(catalogs, FIRST["append"], CALLS["add_columns"]) == "again"


def test_the_page_has_no_other_words() -> None:
    assert set(documented().values()) == {"yes", "again", "no"}
