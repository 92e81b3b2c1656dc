"""Text files as people have them: dialects, encodings, and the types that are found in all values. No catalog."""

from __future__ import annotations

import bz2
import gzip
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
import zstandard

from namespace_server.cli.files import chunks
from namespace_server.cli.files.csv_files import CsvRows
from namespace_server.cli.files.json_files import JsonRows
from namespace_server.cli.files.refusals import FileRefused
from namespace_server.cli.files.shapes import joined_fields
from table_data.values.type_texts import schema_of
from tests.cli.test_file_types import read_again, source_of


def csv_types(*files: str) -> dict[str, str]:
    found: dict[str, Any] = {}
    for text in files:
        found = joined_fields(found, CsvRows(source_of(text.encode())).shapes())
    return {name: str(shape.type) for name, shape in found.items()}


def json_types(text: str, *, as_text: bool = False) -> dict[str, str]:
    shapes = JsonRows(source_of(text.encode(), "jsonl")).shapes(as_text=as_text)
    return {name: str(shape.type) for name, shape in shapes.items()}


def csv_rows(data: bytes | str, schema: str, **options: Any) -> list[dict[str, Any]]:
    rows = CsvRows(source_of(data if isinstance(data, bytes) else data.encode()), **options)
    return pa.Table.from_batches(rows.batches(schema_of(schema)), schema_of(schema)).to_pylist()


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        *[(cells, "int64") for cells in (["1", "-2", "0"], ["9223372036854775807"])],
        *[(cells, "uint64") for cells in (["0", "18446744073709551615"], ["18446744073709551615"])],
        *[
            (cells, "double")
            for cells in (["10.50", "3"], ["1e5", "2.5"], [".5"], ["-0", "1"], ["NaN", "1.5"], ["inf", "0.5"])
        ],
        *[(cells, "double") for cells in (["0.1234567890123456"], [repr(1 / 3)], ["1.7976931348623157e308"])],
        *[(["true", "False"], "bool"), (["2026-03-01"], "date32[day]"), (["12:30:00"], "time32[s]")],
        *[(["12:30:00.5"], "time64[us]"), (["2026-03-01T12:00:00Z"], "timestamp[us, tz=UTC]")],
        *[(["2026-03-01 12:00", "2026-03-01 12:00:00.123456789"], "timestamp[ns]")],
        *[(cells, "string") for cells in (["007", "1"], ["+4917", "1"], ["1_000"], ["1,5"], ["0x10"], [" 1"], ["1 "])],
        *[
            (cells, "string")
            for cells in (["12345678901234567890123"], ["-1", "18446744073709551615"], ["00.5"], ["1e400"])
        ],
        *[
            (cells, "string")
            for cells in (["0.12345678901234567890"], ["9007199254740993", "0.5"], ["1e-400"], ["+1.5"])
        ],
        *[(cells, "string") for cells in (["NO", "true"], ["yes"], ["0", "true"], ["NaN"], ["NA"], ["null"], ["inf"])],
        *[(cells, "string") for cells in (["2026-03-01", "1"], ["2026-02-30"], ["2026-03-01 12:00", "2026-03-01"])],
        *[(cells, "string") for cells in (["2026-03-01T12:00:00+02:00"], ["2026-03-01 12:00Z", "2026-03-01 12:00"])],
        *[(cells, "string") for cells in (["12:30"], ["25:00:00"], ["2026-03-01T12:00:00.5+00:00"], ["1", '""'])],
        *[([""], "string"), ([], "string")],
        *[
            (["1" + "0" * 22], "string"),
            (["9223372036854775808", "-1"], "string"),
            (["9007199254740994", "0.5"], "string"),
        ],
        *[([f"{year}-01-01 00:00:00.123456789"], "string") for year in (1600, 3000)],
    ],
)
def test_a_column_of_csv_is_what_gives_all_cells_back(cells: list[str], kind: str) -> None:
    lines = "".join(
        f'{number},"{cell}"\n' if "," in cell else f"{number},{cell}\n" for number, cell in enumerate(cells)
    )
    assert csv_types(f"n,v\n{lines}")["v"] == kind
    if len(cells) == 2:  # in two files, in either order
        parts = [f'v,n\n"{cell}",1\n' if "," in cell else f"v,n\n{cell},1\n" for cell in cells]
        assert csv_types(*parts)["v"] == csv_types(*reversed(parts))["v"] == kind


def test_a_column_is_what_its_last_cell_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 1000)
    monkeypatch.setattr("namespace_server.cli.files.csv_files.CHUNK_BYTES", 1000)
    monkeypatch.setattr("namespace_server.cli.files.json_rows.CHUNK_BYTES", 1000)
    numbers = "".join(f"{number},{number},{number}\n" for number in range(5000))
    assert csv_types(f"a,b,c\n{numbers}007,1.5,x\n") == {"a": "string", "b": "double", "c": "string"}
    lines = "".join(f'{{"a": {number}, "b": {number}}}\n' for number in range(2000))
    assert json_types(lines + '{"a": 1.5, "b": 12345678901234567890123}\n') == {"a": "double", "b": "decimal128(38, 0)"}
    with pytest.raises(FileRefused, match=r"^line 2001: column a: expected values of one type, found integer and text"):
        json_types(lines + '{"a": "text"}\n')


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        *[(values, "string") for values in (['"2020-01-01"', '"2020-01-01T00:00:00Z"'], ['"7"', '"NaN"'], ["null"])],
        *[(["1", "-2"], "int64"), (["1", "18446744073709551615"], "uint64"), (["1", "1.5"], "double")],
        *[(["9007199254740993", "1.5"], "decimal128(38, 1)"), (["12345678901234567890123", "1"], "decimal128(38, 0)")],
        *[
            (["0.12345678901234567890", "1"], "decimal128(38, 20)"),
            (["NaN", "1"], "double"),
            (["-0", "1"], "double"),
            (['"NaN"', "1.5"], "double"),
        ],
        *[(["true", "null"], "bool"), (["[]", "[1]"], "list<item: int64>"), (["[]", "null"], "list<item: string>")],
        *[
            (['{"a": 1}', '{"b": "x"}'], "struct<a: int64, b: string>"),
            (['[{"a": 1.5}]', "[]"], "list<item: struct<a: double>>"),
        ],
    ],
)
def test_a_key_of_json_is_what_gives_all_values_back(values: list[str], kind: str) -> None:
    assert json_types("".join(f'{{"v": {value}}}\n' for value in values)) == {"v": kind}
    objects = ", ".join(f'{{"w": 1, "v": {value}}}' for value in values)
    assert json_types(f"[{objects}]") == {"w": "int64", "v": kind}


@pytest.mark.parametrize(
    "values",
    [
        ["1", '"x"'],
        ["true", "1"],
        ["[1]", "1"],
        ['{"a": 1}', "[]"],
        ["[1]", '["x"]'],
    ],
)
def test_a_mixture_of_json_is_refused_with_its_line(values: list[str]) -> None:
    with pytest.raises(FileRefused, match=r"^line 2: column v"):
        json_types("".join(f'{{"v": {value}}}\n' for value in values))


def test_text_is_text_where_that_is_said() -> None:
    assert json_types('{"a": 1, "b": [1.50]}\n{"a": "x", "b": null}\n', as_text=True) == {
        "a": "string",
        "b": "list<item: string>",
    }
    assert read_again("jsonl", b'{"a": 1.50}\n{"a": "x"}\n', schema_of("a text"))["a"].to_pylist() == ["1.50", "x"]


PLAIN = [{"a": "1", "b": "x;y"}, {"a": "", "b": None}]


@pytest.mark.parametrize(
    "data",
    [
        'a;b\n1;"x;y"\n"";\n',
        'a\tb\n1\tx;y\n""\t\n',
        'a|b\r\n1|x;y\r\n""|\r\n',
        'a,b\r1,x;y\r"",\r',
        '\ufeffa,b\n1,x;y\n"",\n',
        'sep=;\na;b\n1;"x;y"\n"";\n',
        '\n\na,b\n\n1,x;y\n\n"",',
        '"a","b"\n"1","x;y"\n"",\n',
        '\ufeffsep=;\r\na;b\r\n1;"x;y"\r\n"";\r\n',
    ],
)
def test_dialects_are_seen(data: str) -> None:
    assert csv_rows(data, "a text, b text") == PLAIN


def test_compressed_text_is_seen_by_its_bytes() -> None:
    data = b'a,b\n1,x;y\n"",\n'
    for packed in (
        gzip.compress(data),
        bz2.compress(data),
        zstandard.compress(data),
        gzip.compress(data[:6]) + gzip.compress(data[6:]),
    ):
        assert csv_rows(packed, "a text, b text") == PLAIN
    with pytest.raises((FileRefused, OSError, pa.ArrowException, EOFError)):
        csv_rows(gzip.compress(data * 1000)[:-20], "a text, b text")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"a,b\n1,2\n3\n4,5,6\n", "line 3: expected 2 cells, found 1"),
        (b'a,b\n"x\ny",2\n3,4,5\n', "line 4: expected 2 cells, found 3"),
        (b"a\ncaf\xe9\n", "line 2: expected UTF-8, found the byte 0xe9"),
        (b"caf\xe9\n1\n", "line 1: expected UTF-8"),
        (b"a,b\n1,2\n3,\xe9\n", "line 3: expected UTF-8, found the byte 0xe9"),
        *[("a,b\n1,2\n".encode(f"utf-{bits}"), f"line 1: expected UTF-8, found UTF-{bits}") for bits in (16, 32)],
        *[("a,b\n1,2\n".encode(f"utf-{kind}"), "found a NUL byte") for kind in ("16-le", "16-be", "32-le", "32-be")],
        (b"a long name,b\0\n1,2\n", "line 1: expected names of columns, found a NUL byte in 'b\\x00'"),
        (b"\xfd7zXZ\x00b", "expected text, found xz"),
        (b"a,a\n1,2\n", "line 1: expected different names of columns, found 'a' twice"),
        (b",a\n0,1\n", "line 1: expected a name for each column, found none for column 1"),
        (b'a,b\n1,2\n"x,2\n3,4\n', "line 3: expected a quote that ends the cell"),
        (b'a,b\n1,"x"y\n', "line 2: expected ',' or the end of the line after a quote"),
        (b"a;b,c;d\n1;2,3;4\n", "expected one delimiter, found ',' and ';' in each line; --delimiter says which it is"),
        (b"", "found an empty file"),
        (b"PK\x03\x04rest", "found a ZIP archive"),
    ],
)
def test_what_is_wrong_with_csv_is_said_with_its_line(data: bytes, said: str) -> None:
    with pytest.raises(FileRefused) as refused:
        csv_rows(data, "a text, b text" if b"b" in data else "a text")
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"a": 1}\n{"a": \n{"a": 3}\n', "line 2: expected JSON"),
        (b'{"a": 1}\n[1]\n', "line 2: expected a JSON object, found '[1]'"),
        (b'{"a": 1}\n{"b": 1}\n', "line 2: expected fields among a, found b"),
        (b'{"a": 1}\n\n{"a": "\xff"}\n', "line 3: expected UTF-8, found the byte 0xff"),
        (b'[{"a": 1},\n {"a": 2}\n {"a": 3}]', "line 3: expected , or ] after a value of the array, found '{'"),
        (b'[{"a": 1},\n {"a": 2.5}\n]', "line 2: column a: expected int64, found '2.5'"),
        (b'[{"a": 1},\n {"a": 2}', "expected , or ] after a value of the array, found 'the end'"),
        (b'[{"a": 1}] x', "line 1: expected the end of the file after the array, found 'x'"),
        (b"null\n", "line 1: expected a JSON object, found 'null'"),
        (b'{"a": 1}\n null\n', "line 2: expected a JSON object, found 'null'"),
        (b'{"a": 1} null\n', "line 1: expected a JSON object, found 'null'"),
        (b'[{"a": 1}, null]', "line 1: expected a JSON object, found 'null'"),
        (b'{"a": 1}, {"a": 2}\n', "line 1: expected JSON, found ', {\"a\": 2}'"),
        (b'{"a": ' + b"[" * 100_000 + b"\n", "line 1: "),
    ],
)
def test_what_is_wrong_with_json_is_said_with_its_line(data: bytes, said: str) -> None:
    with pytest.raises(FileRefused) as refused:
        read_again("jsonl", data, schema_of("a int64"))
    assert said in str(refused.value)


def test_objects_over_several_lines_and_arrays_are_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"a": number, "b": "x\ny" * number} for number in range(50)]
    for size in (7, 1000, 8 << 20):
        monkeypatch.setattr("namespace_server.cli.files.json_rows.CHUNK_BYTES", size)
        for data in (
            json.dumps(rows),
            json.dumps(rows, indent=2),
            "\n".join(json.dumps(row, indent=1) for row in rows),
        ):
            assert read_again("jsonl", data.encode(), schema_of("a int64, b text")).to_pylist() == rows
    for marks in ("\n", "\r\n", "\r", " ", ""):  # also several objects in a line, and numbers that need a second look
        for number in ("2", "2.0"):
            data = f'{{"a": 1}}{marks}{{"a": {number}}}{marks}'.encode()
            assert read_again("jsonl", data, schema_of("a int64"))["a"].to_pylist() == [1, 2], data
    assert read_again("jsonl", b"[]", schema_of("a int64")).num_rows == 0
    assert read_again("jsonl", b"", schema_of("a int64")).num_rows == 0


def test_rows_of_any_size_and_cells_over_the_ends_of_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 64)
    monkeypatch.setattr("namespace_server.cli.files.csv_files.CHUNK_BYTES", 64)
    cells = ["x" * 500, 'a "quoted" word', "two\nlines\n", '"', "", 'a,b\n"', "\r", "end"]
    quoted = "\n".join('"' + cell.replace('"', '""') + '",1' for cell in cells)
    assert [row["a"] for row in csv_rows(f"a,b\n{quoted}", "a text, b int64")] == cells
    stray = ['5" pipe', "no", '6" pipe', 'a"b"c', "end"]  # quotes in cells that are not quoted are letters
    assert [
        row["a"] for row in csv_rows("a,b\n" + "".join(f"{cell},1\n" for cell in stray), "a text, b int64")
    ] == stray
    monkeypatch.setattr(chunks, "LONGEST_ROW", 1000)
    with pytest.raises(FileRefused, match=r"^line 2: expected a row of at most 1,000 bytes"):
        csv_rows('a,b\n"' + "x" * 5000 + '",1\n', "a text, b int64")


def test_a_mark_in_front_of_a_later_row_is_a_letter_of_its_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    for size in (8, 8 << 20):
        monkeypatch.setattr(chunks, "CHUNK_BYTES", size)
        found = csv_rows("\ufeffa,b\n\ufeffx,1\n\ufeffy,2\n", "a text, b int64")
        assert [row["a"] for row in found] == ["\ufeffx", "\ufeffy"]


@pytest.mark.parametrize("name", ["ORCID", "PAR1", "BZh", "%PDF", "ARROW1"])
def test_a_header_that_begins_as_other_files_do_is_text(name: str) -> None:
    assert csv_rows(f"{name},n\nx,1\n", f'"{name}" text, n int64') == [{name: "x", "n": 1}]


def test_names_of_columns_end_somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("namespace_server.cli.files.csv_files.CHUNK_BYTES", 64)
    with pytest.raises(FileRefused, match="line 1: expected names of columns in 64 bytes, found more"):
        csv_rows(",".join(f"c{number}" for number in range(50)) + "\n1,2\n", "c1 text")


def test_null_and_empty_are_two_things() -> None:
    assert csv_rows('a\n\n""\nx\n', "a text") == [{"a": None}, {"a": ""}, {"a": "x"}]
    with pytest.raises(FileRefused, match="line 2: column a: expected int64, found ''"):
        csv_rows('a,b\n"",1\n', "a int64, b int64")
    words = 'a,b\nNA,1\n"NA",2\n,3\n"",4\n'
    assert [row["a"] for row in csv_rows(words, "a text")] == ["NA", "NA", None, ""]
    assert [row["a"] for row in csv_rows(words, "a text", nulls=["NA"])] == [None, "NA", None, ""]
    assert [row["a"] for row in csv_rows(words, "a text", nulls=["", "NA"])] == [None, None, None, None]
    not_null = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.int64())])
    for kind, data in (("csv", b"a,b\n1,1\n,2\n"), ("jsonl", b'{"a": 1}\n{"b": 2}\n')):
        with pytest.raises(FileRefused, match=r"^line [23]: column a: expected a value, found null"):
            read_again(kind, data, not_null)


def test_lists_and_objects_in_cells_are_json() -> None:
    data = 'n,v,s\n1,"[0.5, 2]","{""a"": 1}"\n2,,\n'
    assert csv_rows(data, "v float[2], s struct<a: int64>") == [
        {"v": [0.5, 2.0], "s": {"a": 1}},
        {"v": None, "s": None},
    ]
    with pytest.raises(FileRefused, match="line 3: column v: expected JSON for"):
        csv_rows('n,v\n1,"[1, 2]"\n2,"[1]"\n', "v float[2]")


def test_the_keys_of_json_that_any_row_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("namespace_server.cli.files.json_rows.CHUNK_BYTES", 40)
    rows = JsonRows(source_of(b'{"a": "d", "e": {"c": 1}}\n' * 10 + b'{"b": null}\n', "jsonl"))
    assert rows.columns(["a", "b", "c", "d"]) == ("a", "b")
    escaped = b'{"\\u0061": "\\n", "x\\/y" : 1, "\\u00E9": 2}\n'
    assert JsonRows(source_of(escaped, "jsonl")).columns(["x/y", "é", "a", "n"]) == ("x/y", "é", "a")


def test_the_quotes_of_cells_are_found_at_once_and_one_by_one() -> None:
    for text in (
        'a,"b",c\n',
        '"x""y","z"\n',
        '5" pipe,"a"\n',
        '"",""\n',
        'a""b,"c"\n',
        '"a\n""b"\n',
        'x,"",y"\n',
        '""""\n',
    ):
        data = text.encode()
        both = [list(chunks._quotes_one_by_one(data, ",")), chunks.quotes_of(data, ",").tolist()]
        marks = [place for place, mark in enumerate(text) if mark in ",\n"]
        one, other = ([sum(quote < mark for quote in quotes) % 2 for mark in marks] for quotes in both)
        assert one == other, text


def test_decimals_of_json_have_all_digits() -> None:
    data = b'{"v": 9007199254740993}\n{"v": 1.5}\n'
    [field] = json_types(data.decode()).items()
    again = read_again("jsonl", data, schema_of(f"v {field[1]}"))
    assert again["v"].to_pylist() == [Decimal("9007199254740993.0"), Decimal("1.5")]
