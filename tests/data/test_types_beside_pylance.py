"""Random rows of many types, changed over HTTP and by pylance in process: the same rows, and the same refusals."""

from __future__ import annotations

import datetime as dt
import io
import json
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import lance
import pyarrow as pa
import pytest

from tests.data.arrow import ARROW

REFUSALS = (ValueError, OSError, RuntimeError, NotImplementedError)
WORDS = ("", "a", "b", "longer than sixteen bytes")
INNER = pa.struct([("k", pa.int32()), ("texts", pa.list_(pa.string()))])
Draw = Callable[[random.Random], Any]


def texts(draw: random.Random) -> list[str | None]:
    return [draw.choice((None, *WORDS)) for _ in range(draw.randrange(4))]


def instant(draw: random.Random) -> dt.datetime:
    return dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=draw.randrange(-(10**15), 10**15))


def amount(digits: int) -> Draw:
    return lambda draw: Decimal(draw.randrange(-(10**digits), 10**digits)).scaleb(-2)


COLUMNS: dict[str, tuple[pa.DataType, Draw]] = {
    "text": (pa.string(), lambda draw: draw.choice(WORDS)),
    "amount": (pa.decimal128(12, 2), amount(10)),
    "wide": (pa.decimal256(40, 2), amount(30)),
    "flag": (pa.bool_(), lambda draw: draw.random() < 0.5),
    "texts": (pa.list_(pa.string()), texts),
    "many": (pa.large_list(pa.bool_()), lambda draw: draw.choices((None, True, False), k=draw.randrange(4))),
    "inner": (INNER, lambda draw: {"k": draw.randrange(5), "texts": draw.choice((None, texts(draw)))}),
    "outer": (pa.struct([("inner", INNER)]), lambda draw: {"inner": {"k": draw.randrange(5), "texts": texts(draw)}}),
    "vector": (pa.list_(pa.float32(), 3), lambda draw: [draw.randrange(9) / 2 for _ in range(3)]),
    "at": (pa.timestamp("us", "UTC"), instant),
    "there": (pa.timestamp("ns", "Europe/Berlin"), instant),
    "data": (pa.binary(), lambda draw: draw.randbytes(draw.randrange(20))),
    "four": (pa.binary(4), lambda draw: draw.randbytes(4)),
    "word": (pa.dictionary(pa.int8(), pa.string()), lambda draw: draw.choice(WORDS)),
    "number": (pa.float64(), lambda draw: draw.choice((0.0, -1.5, 1e300))),
}
CONDITIONS = (
    *(
        "true",
        "id % 3 = 1",
        "id > 1000",
        "text IS NULL",
        "text LIKE '%a%'",
        "flag",
        "NOT flag",
        "amount > CAST(1.5 AS DECIMAL(12, 2))",
    ),
    *("wide IS NOT NULL AND id < 20", "array_length(texts) > 1", "`inner`.k = 2", "`outer`.`inner`.k < 2"),
    *(
        "at > timestamp '2020-01-01 00:00:00'",
        "there IS NULL",
        "data = x''",
        "word = 'a'",
        "number < 0",
        "vector IS NULL",
    ),
)
ASSIGNMENTS = (
    *(("text", "concat(text, '!')"), ("text", "NULL"), ("amount", "amount"), ("amount", "NULL"), ("wide", "`wide`")),
    *(("flag", "NOT flag"), ("texts", "NULL"), ("inner", "NULL"), ("outer", "`outer`"), ("vector", "NULL")),
    *(("at", "at + interval '1 day'"), ("there", "NULL"), ("data", "x'ff'"), ("four", "x'00010203'")),
    *(("word", "'longer than sixteen bytes'"), ("number", "number * 2"), ("number", "id"), ("text", "id / 0")),
)


def batches_of(draw: random.Random, schema: pa.Schema, ids: list[int]) -> list[pa.RecordBatch]:
    """The rows with these ids, in batches of any size, empty ones among them."""
    found = []
    while ids or not found or draw.random() < 0.3:
        part, ids = ids[: (size := draw.randrange(9))], ids[size:]
        dull = {name for name in schema.names if draw.random() < 0.1}
        columns = []
        for field in schema:
            if field.name == "id":
                columns.append(pa.array(part, pa.int64()))
                continue
            value = COLUMNS[field.name][1]
            values = [None if field.name in dull or draw.random() < 0.2 else value(draw) for _ in part]
            columns.append(array_of(values, field.type))
        found.append(pa.RecordBatch.from_arrays(columns, schema=schema))
    return found


def array_of(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(values, kind)


def sorted_rows(table: pa.Table) -> list[str]:
    return sorted(str(sorted(row.items())) for row in table.to_pylist())


class Beside:
    """One table twice: behind the server, and a dataset of pylance."""

    def __init__(self, draw: random.Random, http: httpx.Client, route: str, path: Path) -> None:
        names = draw.sample(sorted(COLUMNS), draw.randrange(6, len(COLUMNS) + 1))
        self.schema = pa.schema([("id", pa.int64()), *((name, COLUMNS[name][0]) for name in names)])
        self.draw, self.http, self.route, self.next_id = draw, http, route, 0
        data_format = draw.choice(("2.1", "2.2"))
        batches = self.new_batches(draw.randrange(20))
        options = json.dumps({"new_table_data_storage_version": data_format})
        self.send(f"create?{urlencode({'storage_options': options})}", batches).raise_for_status()
        self.theirs = lance.write_dataset(self.reader(batches), path, data_storage_version=data_format)

    def new_batches(self, count: int) -> list[pa.RecordBatch]:
        ids = list(range(self.next_id, self.next_id + count))
        self.next_id += count
        return batches_of(self.draw, self.schema, ids)

    def reader(self, batches: list[pa.RecordBatch]) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self.schema, batches)

    def send(self, operation: str, batches: list[pa.RecordBatch]) -> httpx.Response:
        sink = io.BytesIO()
        with pa.ipc.new_stream(
            sink, self.schema, options=pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
        ) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return self.http.post(f"{self.route}/{operation}", content=sink.getvalue(), headers=ARROW)

    def step(self) -> str:
        """Do one random thing to both; what was done."""
        draw, condition = self.draw, self.condition()
        match draw.randrange(6):
            case 0 | 1:
                batches = self.new_batches(draw.randrange(20))
                self.agree(
                    self.send("insert", batches),
                    lambda: lance.write_dataset(self.reader(batches), self.theirs, mode="append"),
                )
                return "insert"
            case 2:
                known = draw.sample(range(self.next_id), min(self.next_id, draw.randrange(9)))
                ids = known + list(range(self.next_id, self.next_id + draw.randrange(5)))
                self.next_id = max(self.next_id, max(ids, default=-1) + 1)
                batches = batches_of(draw, self.schema, ids)
                answer = self.send(
                    "merge_insert?on=id&when_matched_update_all=true&when_not_matched_insert_all=true", batches
                )
                merge = self.theirs.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
                self.agree(answer, lambda: merge.execute(self.reader(batches)))
                return f"merge {ids}"
            case 3 | 4:
                usable = [assignment for assignment in ASSIGNMENTS if assignment[0] in self.schema.names]
                column, expression = draw.choice(usable)
                body = {"updates": [[column, expression]], "predicate": condition}
                answer = self.http.post(f"{self.route}/update", json=body)
                self.agree(answer, lambda: self.theirs.update({column: expression}, where=condition))
                return f"update {body}"
            case _:
                answer = self.http.post(f"{self.route}/delete", json={"predicate": condition})
                self.agree(answer, lambda: self.theirs.delete(condition))
                return f"delete {condition}"

    def condition(self) -> str:
        named = [text for text in CONDITIONS if all(name not in text or name in self.schema.names for name in COLUMNS)]
        return self.draw.choice([text for text in named if text != "true" or self.draw.random() < 0.1] or ["false"])

    def agree(self, answer: httpx.Response, theirs: Callable[[], object]) -> None:
        """Both did it, or both refused it."""
        refusal = ""
        try:
            theirs()
        except REFUSALS as error:
            refusal = str(error)
        assert answer.status_code == (400 if refusal else 200), (answer.text, refusal)
        self.theirs = lance.dataset(self.theirs.uri)

    def compare(self) -> None:
        """A query of a part, and all rows."""
        for condition in (self.condition(), None):
            body = {} if condition is None else {"filter": condition}
            answer = self.http.post(f"{self.route}/query", json=body)
            assert answer.status_code == 200, answer.text
            found, expected = pa.ipc.open_file(answer.content).read_all(), self.theirs.to_table(filter=condition)
            assert found.schema.names == expected.schema.names
            assert sorted_rows(found) == sorted_rows(expected), condition


@pytest.mark.parametrize("seed", range(12))
def test_the_same_rows(http: httpx.Client, tmp_path: Path, seed: int) -> None:
    both = Beside(random.Random(seed), http, f"/v1/table/w$types{seed}", tmp_path / "t")
    done = []
    for _ in range(8):
        done.append(both.step())
        try:
            both.compare()
        except AssertionError as error:
            error.add_note(f"seed {seed}, columns {both.schema.names}, after {done}")
            raise
