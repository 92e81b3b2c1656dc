"""Integer arithmetic in an update or a new column does not wrap round."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from lance_core.proto import lance_table_pb2 as pb
from table_data.arrow.fitting import fit
from table_data.errors import InvalidCall
from table_data.sql.arithmetic import Arithmetic, FoundArithmetic, Integer, Operand, arithmetic_of
from table_data.staging.columns import stage_columns
from table_data.staging.matching import matching_rows
from table_data.staging.overflow import common_type

KINDS = {
    f"{letter}{bits}": pa.type_for_alias(f"{name}{bits}")
    for letter, name in (("i", "int"), ("u", "uint"))
    for bits in (8, 16, 32, 64)
}
LEAST = {name: -(1 << kind.bit_width - 1) if name[0] == "i" else 0 for name, kind in KINDS.items()}
MOST = {name: (1 << kind.bit_width - (name[0] == "i")) - 1 for name, kind in KINDS.items()}
ROWS = pa.table(
    {name: pa.array([MOST[name], LEAST[name], 1, None], kind) for name, kind in KINDS.items()}
    | {"f32": pa.array([1.5, 3e38, None, 0.0], pa.float32()), "f64": [1e300, 1.5, 2.0, None]}
    | {"d": pa.array([Decimal("9" * 38), Decimal(1), Decimal(-1), None], pa.decimal128(38, 0))}
    | {"s": ["a", "bb", "ccc", None], "st": [{"x": 127}] * 4, "small": pa.array([1, -2, 3, None], pa.int8())}
)


@pytest.fixture(scope="module")
def table() -> lance.LanceDataset:
    return lance.write_dataset(ROWS, "memory://integer-arithmetic")


def updated(table: lance.LanceDataset, column: str, expression: str, where: str | None = None) -> list[Any]:
    batches = list(matching_rows(table, {column: expression}, where, ROWS.num_rows))
    wanted = pa.schema([ROWS.schema.field(column)])
    return [value for batch in batches for value in fit(batch.select([column]), wanted).column(0).to_pylist()]


@pytest.mark.parametrize("operator", ["+", "-", "*"])
def test_types_are_those_in_which_pylance_computes(table: lance.LanceDataset, operator: str) -> None:
    for left, right in itertools.product(KINDS, KINDS):
        columns = {"v": f"coalesce({left} {operator} {right})", "s": "s"}
        kind = table.scanner(columns=columns).projected_schema.field("v").type
        expected = common_type(KINDS[left], KINDS[right])
        assert expected == kind if expected is not None else not pa.types.is_integer(kind), (left, right)


@pytest.mark.parametrize("name", KINDS)
def test_each_width_is_refused_at_its_ends_and_done_below(table: lance.LanceDataset, name: str) -> None:
    for expression in (f"{name} + 1", f"{name} - 1", f"{name} * 2", f"{name} + {name}", f"1 + {name}"):
        with pytest.raises(InvalidCall, match=f"column {name!r}: expected a result from {LEAST[name]} to {MOST[name]}"):
            updated(table, name, expression)
        if "- 1" in expression and name[0] == "u":
            assert updated(table, name, expression, f"{name} = 1") == [0]
        else:
            assert len(updated(table, name, expression, f"{name} = 1")) == 1
    assert updated(table, name, f"{name} + 0") == ROWS[name].to_pylist()
    assert updated(table, name, f"{name} - {name}")[:3] == [0, 0, 0]


@pytest.mark.parametrize(
    ("column", "expression", "found"),
    [
        ("i8", "i8 + 100", "127 + 100 = 227"),
        ("u8", "(u8) - 1", "0 - 1 = -1"),
        ("i64", "`i64` + 1 -- one more", "9223372036854775807 + 1 = 9223372036854775808"),
        ("i64", "-i64", "-(-9223372036854775808) = 9223372036854775808"),
        ("i64", "- - i64", "-(-9223372036854775808) = 9223372036854775808"),
        ("i64", "coalesce(i8 * i8, 0)", "127 * 127 = 16129"),
        ("i64", "i64 / 2 + i64", "4611686018427387903 + 9223372036854775807 = 13835058055282163710"),
        ("i64", "abs(i32 + i32) / 2", "2147483647 + 2147483647 = 4294967294"),
        ("f64", "i8 * i8", "127 * 127 = 16129"),
        ("s", "concat(s, cast(i16 * i16 AS string))", "32767 * 32767 = 1073676289"),
        ("i64", "9223372036854775807 + 1", "9223372036854775807 + 1 = 9223372036854775808"),
        ("i64", "length(s) * 9223372036854775807", "2 * 9223372036854775807 = 18446744073709551614"),
        ("i64", "(i64 * i64) / 9223372036854775807", "9223372036854775807 * 9223372036854775807"),
    ],
)
def test_what_wraps_round_is_refused_with_its_operands(
    table: lance.LanceDataset, column: str, expression: str, found: str
) -> None:
    with pytest.raises(InvalidCall) as refused:
        updated(table, column, expression)
    assert f"found {found}" in str(refused.value)


@pytest.mark.parametrize(
    ("column", "expression"),
    [
        ("i64", "i32 * 2::bigint"),
        ("i64", "10 - small - 100"),
        ("small", "small * small + 1 - small"),
        ("i64", "i64 % 7 * 3"),
        ("i64", "u32 + i32"),
        ("f64", "i64 * 1.0::double"),
        ("f32", "f32 * 2"),
        ("s", "concat(s, '1 + 1')"),
        ("i64", "case_free"),
    ],
)
def test_what_fits_is_as_pylance_has_it(table: lance.LanceDataset, column: str, expression: str) -> None:
    if expression == "case_free":
        expression = "coalesce(nullif(i8, 127), 0) + i16 * 2"
    stock = lance.write_dataset(ROWS, f"memory://stock-{abs(hash(expression))}")
    stock.update({column: expression})
    assert str(updated(table, column, expression)) == str(stock.to_table()[column].to_pylist())


@pytest.mark.parametrize(
    ("column", "expression", "message"),
    [
        ("i8", "1.7", "1.7"),
        ("i64", "f64", "column 'i64', row 1: expected int64, found 1e+300"),
        ("f32", "1e300", "column 'f32', row 1: expected float, found 1e"),
        ("f32", "f64", "found 1e+300"),
        ("i8", "coalesce(i8 + 100, 0)", "227"),
    ],
)
def test_a_value_that_does_not_fit_its_column_is_refused(
    table: lance.LanceDataset, column: str, expression: str, message: str
) -> None:
    with pytest.raises((InvalidCall, pa.ArrowInvalid)) as refused:
        updated(table, column, expression)
    assert message in str(refused.value)
    assert updated(table, "i8", "2.0") == [2] * 4


def test_decimals_have_the_digits_of_their_type(table: lance.LanceDataset) -> None:
    """Pylance takes 39 digits for a decimal of 38."""
    for expression in ("d + 1", "d - (-1)", "coalesce(d + 1, d)"):
        with pytest.raises(InvalidCall, match="column 'd': expected results that decimal128"):
            updated(table, "d", expression)
        with pytest.raises(InvalidCall, match="column 'v': expected results that decimal128"):
            stage_columns(table, pb.Manifest(), {"v": expression}, None)
    assert updated(table, "d", "d + 1", "d < 5") == [Decimal(2), Decimal(0)]


def test_names_in_another_case_are_found(tmp_path: Path) -> None:
    dataset = lance.write_dataset(ROWS, tmp_path / "t")
    assert updated(dataset, "i16", "SMALL + 1") == [2, -1, 4, None]
    assert updated(dataset, "i16", "ST.x + SMALL", "small < 0") == [125]
    with pytest.raises(InvalidCall, match=r"found 127 \+ 1 = 128"):
        updated(dataset, "i8", "I8 + 1")


def test_new_columns_are_checked(table: lance.LanceDataset) -> None:
    for expression in ("i8 + 100", "i64 * i64", "100 + (9223372036854775807 + 1)"):
        with pytest.raises(InvalidCall, match="column 'v': expected a result from"):
            stage_columns(table, pb.Manifest(), {"v": expression}, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", []),
        ("a - -1", [FoundArithmetic(Arithmetic("-", Operand("a"), Integer(-1)), whole=True)]),
        ("(a) + 1", [FoundArithmetic(Arithmetic("+", Operand("a"), Integer(1)), whole=True)]),
        ("-a::bigint", [FoundArithmetic(Arithmetic("-", None, Operand("a::bigint")), whole=True)]),
        ("a + 1 > 2", [FoundArithmetic(Arithmetic("+", Operand("a"), Integer(1)), whole=False)]),
        ("f(a * 2)", [FoundArithmetic(Arithmetic("*", Operand("a"), Integer(2)), whole=False)]),
        ("a / (b + 1)", [FoundArithmetic(Arithmetic("+", Operand("b"), Integer(1)), whole=False)]),
        ("x.y[1 + 1].z", [FoundArithmetic(Arithmetic("+", Integer(1), Integer(1)), whole=False)]),
        (
            "a IN (1, b + 1) AND '1 + 1' = `2 + 2`",
            [FoundArithmetic(Arithmetic("+", Operand("b"), Integer(1)), whole=False)],
        ),
        (
            "a + b * c - d",
            [
                FoundArithmetic(
                    Arithmetic(
                        "-",
                        Arithmetic("+", Operand("a"), Arithmetic("*", Operand("b"), Operand("c"))),
                        Operand("d"),
                    ),
                    whole=True,
                )
            ],
        ),
        (
            "cast(a + 1 AS decimal(10, 2)) * 2",
            [
                FoundArithmetic(Arithmetic("+", Operand("a"), Integer(1)), whole=False),
                FoundArithmetic(Arithmetic("*", Operand("cast(a + 1 AS decimal(10, 2))"), Integer(2)), whole=True),
            ],
        ),
    ],
)
def test_arithmetic_is_found_wherever_it_stands(text: str, expected: Sequence[FoundArithmetic]) -> None:
    assert arithmetic_of(text) == expected
