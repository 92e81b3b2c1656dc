"""What an SQL text is to pylance is what it says: one expression, or an error."""

from __future__ import annotations

import itertools
import re
import time
from contextlib import suppress
from pathlib import Path

import duckdb
import lance
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from table_data.errors import InvalidCall
from table_data.sql.bounds import MAX_DEPTH, MAX_HEIGHT, MAX_LOGICAL, MAX_RETRIED_DEPTH
from table_data.sql.expressions import SqlExpression, column_expression, same_names_of, sql_expression
from table_data.staging.handles import ReadOnlyTable

ROWS = pa.table(
    {
        "a": pa.array([1, 2, 3, None], pa.int64()),
        "s": ["x", "y", '"a"', None],
        "Column": ["x", "y", "z", "q"],
        "a b": [1, 2, 3, 4],
        "Id": [1, 2, 3, 4],
        "id": [4, 3, 2, 1],
        "b": [True, False, None, True],
        "n": [{"x": 1, "X": 9}] * 4,
    }
)


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("sql") / "t.lance"
    lance.write_dataset(ROWS, path)
    return str(path)


@pytest.fixture(scope="module")
def table(uri: str) -> ReadOnlyTable:
    return ReadOnlyTable(uri)


def found(dataset: lance.LanceDataset, where: str) -> list[int | None]:
    return dataset.to_table(columns=["a"], filter=where).column(0).to_pylist()


IGNORED_BY_PYLANCE = (
    *("a = 1;", "a = 1; a = 2", "a = 1)", "a = 1))", "a = 1, a = 2", "a = 1 AS x", "a = 1 x", "a = 1\0 or a = 2"),
    *("a = 1 LIMIT 1", "a = 1 ORDER BY a", "a = 1 GROUP BY a", "a = 1 HAVING true", "a = 1 WHERE a = 2"),
    *("a = 1 QUALIFY a", "a = 1 FETCH FIRST 1 ROWS ONLY", "a = 1 INTO x", "a = 1 FROM x", "a = 1 FOR UPDATE"),
    *("a = 1 SETTINGS x = 1", "a = 1 FORMAT json", "a = 1 OVER ()", "a = 1 \\ or a = 2", "a = 1 {", "a = 1_000"),
    *("s = 'x' 'y'", "abs(DISTINCT a) = 1", "abs(ALL a) = 1", "abs(a ORDER BY a) = 1", "abs(a) OVER () = 1"),
    *("abs(a) WITHIN GROUP (ORDER BY a) = 1", "abs(a) IGNORE NULLS = 1", "cast(a AS int FORMAT 'x') = 1"),
)
READ_AS_SOMETHING_ELSE = ("\"Column\" <> 'x'", 's = "x"', '"a" IS NOT NULL', "s = x'zz' or a = 1", "a = 0b1")
UNKNOWN_TO_PYLANCE = ("a = ?", "a = $1", "a = :x", "s = N'x'", "s = B'1'", "s = R'x'", "s = $$x$$", "s = $t$x$t$")
WRONG = (
    *("", " ", "-- nothing", "(a = 1", "a = 1]", "(a = 1]", "s = 'x", "`a = 1", "a = 1 /* x", "s = \u2018x\u2019"),
    *("s = \u201cx\u201d", "a =--1", "a = 0x1", "s = x'6'", "{a}", "'a''"),
)


PARTS = (
    *("a", "=", "1", "(", ")", "'", "''", '"', "`", "--", "/*", "*/", "\n", "\r", " ", "-", "/", "*", ";", ",", "$$"),
    *("$a$", "\\", "E'", "N'", "x'", "or", "true", "[", "]", "\0", "<", "é", "²", "\u0301", "{", "#"),
)


class TestOneExpression:
    @pytest.mark.parametrize("where", IGNORED_BY_PYLANCE)
    def test_what_pylance_ignores_is_refused(self, uri: str, table: ReadOnlyTable, where: str) -> None:
        assert found(lance.dataset(uri), where) in ([1], [])  # stock pylance reads the first part of it
        with pytest.raises((ValueError, OSError)):
            found(table, where)

    @pytest.mark.parametrize("where", [*READ_AS_SOMETHING_ELSE, *UNKNOWN_TO_PYLANCE, *WRONG])
    def test_what_is_something_else_or_nothing_to_pylance_is_refused(self, table: ReadOnlyTable, where: str) -> None:
        with pytest.raises((ValueError, OSError)):
            found(table, where)
        with pytest.raises((ValueError, OSError)):
            table.count_rows(where)

    def test_a_name_in_double_quotes_is_text_to_pylance(self, uri: str, table: ReadOnlyTable) -> None:
        assert len(found(lance.dataset(uri), "\"Column\" <> 'x'")) == 4  # so a deletion takes every row
        with pytest.raises(InvalidCall, match=r"filter: expected column names in backticks \(`name`\)"):
            found(table, "\"Column\" <> 'x'")
        assert found(table, "`Column` <> 'x'") == [2, 3, None]

    @pytest.mark.parametrize(
        ("where", "expected"),
        [
            ("s = '\"a\"'", [3]),
            ("s = 'a;b' OR a = 1", [1]),
            ('a = 1 -- ; "x" (', [1]),
            ("a = 1 -- )\n OR a = 2", [1, 2]),
            ("a = 1 -- \r OR a = 2", [1]),
            ('a = 1 /* ; " ( */ OR a = 2', [1, 2]),
            ("`a b` = 2", [2]),
            ("s = 'it''s -- /* ` \" ;' OR a IN (1, 2)", [1, 2]),
            ("a IN (1, 2, 3) AND s IN ('x', 'a''b', '(', '\"a\"')", [1, 3]),
            ("a - -1 = 2", [1]),
            ("a IS NOT DISTINCT FROM 1", [1]),
            ("a\u00a0=\u30001", [1]),
            ("a = 1.0e0::bigint", [1]),
        ],
    )
    def test_what_is_one_expression_is_read(
        self, uri: str, table: ReadOnlyTable, where: str, expected: list[int]
    ) -> None:
        assert found(table, where) == expected
        assert found(lance.dataset(uri), where) == expected
        assert table.count_rows(where) == len(expected)

    def test_computed_columns_are_checked_too(self, table: ReadOnlyTable) -> None:
        assert table.to_table(columns={"v": "a + 1", "w": "Column"}).column_names == ["v", "w"]
        for text in ('"Column"', "a, s", "a; s", "a AS s", "a)", "*", ""):
            with pytest.raises((ValueError, OSError)):
                table.to_table(columns={"v": text, "w": "a"})

    def test_an_expression_is_checked_once(self) -> None:
        checked = sql_expression("a = 1", "filter")
        assert checked == "(a = 1)"
        assert sql_expression(checked, "filter") is checked
        assert not isinstance(f"{checked}", SqlExpression)
        assert column_expression("t`k") == "`t``k`"

    @settings(max_examples=400, deadline=None)
    @given(
        st.lists(
            st.sampled_from(PARTS),
            max_size=14,
        )
    )
    def test_no_text_leaves_its_brackets(self, table: ReadOnlyTable, parts: list[str]) -> None:
        try:
            checked = sql_expression(" ".join(parts) if len(parts) % 2 else "".join(parts), "filter")
            matching = found(table, SqlExpression(f"{checked} AND false"))
        except (ValueError, OSError, RuntimeError):
            return
        assert matching == []


class TestLargeIntegers:
    """Pylance takes an integer beyond 64 bits for a floating-point number, which rounds most of them."""

    @pytest.mark.parametrize(
        "where",
        [
            "a = 18446744073709551617",
            "a IN (1, 99999999999999999999999, 2)",
            "a IN (99999999999999999999999, 2)",
            "a = 1" + "0" * 400,
        ],
    )
    def test_one_that_would_be_rounded_is_refused(self, table: ReadOnlyTable, where: str) -> None:
        with pytest.raises(InvalidCall, match="filter: expected an integer of at most 64 bits"):
            found(table, where)

    @pytest.mark.parametrize(
        "where",
        ["a < 18446744073709551615", "a < 100000000000000000000", "a IN (1, 2, 3)", "a < 1e30", "a < 1" + "0" * 22],
    )
    def test_others_are_read(self, where: str) -> None:
        assert sql_expression(where, "filter") == f"({where})"


class TestNamesInAnotherCase:
    @pytest.mark.parametrize(("where", "expected"), [("Id = 4", [None]), ("id = 4", [1]), ("`Id` = 4", [None])])
    def test_an_exact_name_is_that_column(self, table: ReadOnlyTable, where: str, expected: list[int | None]) -> None:
        assert found(table, where) == expected

    @pytest.mark.parametrize("where", ["ID = 4", "iD = 4", "a = 1 OR abs(ID) = 4"])
    def test_one_that_could_be_two_columns_is_refused(self, table: ReadOnlyTable, where: str) -> None:
        with pytest.raises(InvalidCall, match="expected one of the columns Id, id, found"):
            found(table, where)

    def test_one_that_can_be_one_column_only_is_that(self, table: ReadOnlyTable) -> None:
        assert found(table, "COLUMN = 'x'") == found(table, "A = 1") == [1]
        assert found(table, "ABS(a) = 1") == [1]

    def test_fields_of_structs_count(self) -> None:
        assert same_names_of(ROWS.schema) == {"id": ("Id", "id"), "x": ("X", "x")}
        assert same_names_of(pa.schema([("a", pa.int8()), ("b", pa.int8())])) == {}


class TestBounds:
    @pytest.mark.parametrize(
        "text",
        [
            "CAST(" * (MAX_RETRIED_DEPTH + 1) + "a" + " AS BIGINT)" * (MAX_RETRIED_DEPTH + 1) + " = 1",
            "TRY_CAST ((" * 12 + "a" + ") AS BIGINT)" * 12 + " = 1",
            "NOT NOT NOT (" * 4 + "b" + ")" * 4,
            "NOT -(" * 12 + "a" + ")" * 12,
            "a.b[" * 12 + "a" + "]" * 12,
            "NOT(" * (MAX_RETRIED_DEPTH + 1) + "b" + ")" * (MAX_RETRIED_DEPTH + 1),
            "POSITION(" * 12 + "a ++" + " IN s)" * 12,
            "(" * (MAX_DEPTH + 1) + "b" + ")" * (MAX_DEPTH + 1),
            "abs(" * 5000 + "a" + ")" * 5000 + " = 1",
            "a = 1" + " + 1" * MAX_HEIGHT,
            "a = " + "- " * 20_000 + "1",
            "s || " * 692 + "s = 'x'",
            "a" + " IS NULL" * 1000,
            "a" + "::BIGINT" * 1000 + " = 1",
            "s" + " LIKE s" * 1000,
            "b" + " = b" * 1000,
            "CAST(a AS " + "ARRAY<" * 5000 + "INT" + ">" * 5000 + ") IS NULL",
            "a BETWEEN 0 AND 1" + " BETWEEN 0 AND 1" * 1000,
            "(" + "(a" + " + 1" * 100 + ")" + " + 1" * 120 + ") = 1",
            "b" + " OR b" * (MAX_LOGICAL + 1),
            "a" + ",a" * 300_000,
            "s = '" + "x" * (17 << 20) + "'",
        ],
        ids=itertools.count(),
    )
    def test_one_that_takes_pylance_too_long_or_too_deep_is_refused_at_once(self, text: str) -> None:
        began = time.process_time()
        with pytest.raises(InvalidCall, match=r"^filter: expected at most \d+ "):
            sql_expression(text, "filter")
        assert time.process_time() - began < 5

    @pytest.mark.parametrize(
        "text",
        [
            "(" * (MAX_DEPTH - 1) + "b" + ")" * (MAX_DEPTH - 1),
            "CAST(" * MAX_RETRIED_DEPTH + "a" + " AS BIGINT)" * MAX_RETRIED_DEPTH + " = 1",
            "a = 1" + " + 1" * (MAX_HEIGHT - 2),
            " OR ".join(["a = 1"] * MAX_LOGICAL),
            " OR ".join(f"(a + {number} = 1 AND s = 'x')" for number in range(2000)),
            f"a IN ({', '.join(map(str, range(30_000)))})",
            f"s IN ({', '.join(map(repr, map(str, range(20_000))))}, 'x')",
        ],
        ids=itertools.count(),
    )
    def test_one_at_the_bounds_is_done(self, table: ReadOnlyTable, text: str) -> None:
        found(table, text)

    @pytest.mark.parametrize("error", ["", " ++", " b"])
    @pytest.mark.parametrize(
        ("opening", "closing"),
        [
            *(("CAST(", " AS BIGINT)"), ("NOT(", ")"), ("POSITION(", " IN s)"), ("OVERLAY(", " PLACING s FROM 1)")),
            *(("a.b[", "]"), ("current_date(", ")"), ("CASE (", ") WHEN 1 THEN 1 END"), ("NOT -(", ")")),
        ],
    )
    def test_an_error_within_the_deepest_is_found_soon(
        self, table: ReadOnlyTable, opening: str, closing: str, error: str
    ) -> None:
        text = opening * MAX_RETRIED_DEPTH + "a" + error + closing * MAX_RETRIED_DEPTH
        deepest = "(" * (MAX_DEPTH - MAX_RETRIED_DEPTH - 1)
        began = time.process_time()
        for where in (text, f"1 = 2 OR 1 = 2 AND 1 = 1 + 2 * {text}", deepest + text + ")" * len(deepest)):
            with suppress(ValueError, OSError):
                found(table, where)
        assert time.process_time() - began < 10


def test_every_function_that_pylance_parses_in_its_own_way_is_counted(tmp_path: Path) -> None:
    """What the bound of repeated attempts does not count is refused in a time that depth does not double."""
    table = ReadOnlyTable(str(lance.write_dataset(ROWS, tmp_path / "t").uri))
    keywords = {str(word) for (word,) in duckdb.sql("SELECT keyword_name FROM duckdb_keywords()").fetchall()}
    for word in sorted({*keywords, "abs", "coalesce", "concat", "mod", "replace", "round", "unnest"}):
        began = time.process_time()
        for opening, closing in (("(", ")"), (" ", ""), (" - (", ")"), ("[", "]")):
            with suppress(ValueError, OSError):
                found(table, f"{word}{opening}" * (MAX_DEPTH - 1) + "a ++" + closing * (MAX_DEPTH - 1))
        assert time.process_time() - began < 2, word


def test_fragments_check_what_their_table_checks(table: ReadOnlyTable) -> None:
    [fragment] = table.get_fragments()
    assert fragment.to_table(columns=["a"], filter="`Column` <> 'x'").column(0).to_pylist() == [2, 3, None]
    assert fragment.count_rows("a > 1") == table.get_fragment(0).count_rows("a > 1") == 2
    assert fragment.count_rows() == 4
    assert sum(batch.num_rows for batch in fragment.to_batches(filter="a > 1")) == 2
    assert table.get_fragment(7) is None
    for call in (
        lambda: fragment.to_table(filter='"a" IS NOT NULL'),
        lambda: fragment.scanner(columns={"v": '"a"'}),
        lambda: fragment.count_rows("a = 1; a = 2"),
        lambda: fragment.delete("\"Column\" <> 'x'"),
    ):
        with pytest.raises(InvalidCall):
            call()


def test_no_message_holds_a_whole_text() -> None:
    for text in ('"' + "x" * 100_000, "(" * 10 + "'" + "y" * 100_000, "0x" + "1" * 100_000):
        with pytest.raises(InvalidCall) as refused:
            sql_expression(text, "filter")
        assert len(re.sub(r"\s+", " ", str(refused.value))) < 300
