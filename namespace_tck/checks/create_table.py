"""CreateTable: a table from an Arrow stream."""

from __future__ import annotations

import json
from functools import partial

import pyarrow as pa

from namespace_tck.registry import CheckList, Promise
from namespace_tck.rows import decode, rows, schema, stream
from namespace_tck.trial import Trial

checks = CheckList()

CREATORS = 8


@checks("create_table", Promise.ROWS, "CreateTable")
def creates_a_table_with_rows(t: Trial) -> None:
    """The rows of the stream are the rows of the table."""
    made = t.id("t")
    t.call("create_table", made, rows([1, 2, 3])).ok()
    t.equal(t.ids(made), [1, 2, 3], "ids")


@checks("create_table", Promise.ROWS, "CreateTable")
def creates_an_empty_table(t: Trial) -> None:
    """A stream without rows creates an empty table with its schema."""
    made = t.id("t")
    t.call("create_table", made, schema().empty_table()).ok()
    t.equal(t.read(made).num_rows, 0, "rows")
    t.equal(t.read(made).column_names, ["id", "name", "score", "vector"], "columns")


@checks("create_table", Promise.COLUMNS, "CreateTable")
def keeps_the_types_of_the_stream(t: Trial) -> None:
    """The schema of the stream is the schema of the table."""
    data = pa.table(
        {
            "i8": pa.array([1], pa.int8()),
            "u32": pa.array([2], pa.uint32()),
            "f32": pa.array([0.5], pa.float32()),
            "flag": pa.array([True]),
            "bytes": pa.array([b"\x00\xff"], pa.binary()),
            "day": pa.array([1], pa.date32()),
            "time": pa.array([1], pa.timestamp("us", "UTC")),
            "list": pa.array([["a", "b"]], pa.list_(pa.string())),
            "nested": pa.array([{"x": 1, "y": "z"}], pa.struct([("x", pa.int64()), ("y", pa.string())])),
        }
    )
    made = t.id("t")
    t.call("create_table", made, data).ok()
    found = t.read(made)
    t.equal([str(field.type) for field in found.schema], [str(field.type) for field in data.schema], "types")
    t.equal(found.to_pylist(), data.to_pylist(), "rows")


@checks("create_table", Promise.COLUMNS, "CreateTable")
def keeps_nulls_and_nullability(t: Trial) -> None:
    """A null stays null, and a field that is not nullable stays so."""
    fields = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())])
    made = t.id("t")
    t.call("create_table", made, pa.table({"id": [1, 2], "name": [None, "b"]}, schema=fields)).ok()
    found = t.call("describe_table", made, load_detailed_metadata=True).ok()["schema"]["fields"]
    t.equal([field["nullable"] for field in found], [False, True], "nullable")
    t.equal(sorted(t.read(made)["name"].to_pylist(), key=str), [None, "b"], "names")


@checks("create_table", Promise.OBJECTS, "CreateTableResponse.location")
def answers_where_the_table_is(t: Trial) -> None:
    """The answer holds the location that describe_table answers, and version 1."""
    made = t.id("t")
    found = t.call("create_table", made, rows([1])).ok()
    t.equal(found.get("version"), 1, "version")
    t.equal(t.call("describe_table", made).ok().get("location"), found.get("location"), "location")


@checks("create_table", Promise.PROPERTIES, "CreateTableRequest.properties")
def creates_with_properties(t: Trial) -> None:
    """The properties of the query, JSON in one parameter, are the properties of the table."""
    t.need_table_properties()
    made = t.id("t")
    t.call("create_table", made, rows([1]), properties=json.dumps({"owner": "tck"})).ok()
    t.holds(t.call("describe_table", made).ok().get("properties"), {"owner": "tck"}, "properties")


@checks("create_table", Promise.ERRORS, "CreateTableRequest.properties")
def refuses_properties_that_are_not_json(t: Trial) -> None:
    """Properties that are not a JSON object are refused with 400 and code 13, and nothing is created."""
    t.call("create_table", t.id("t"), rows([1]), properties="owner=tck").refused(13)
    t.call("table_exists", t.id("t")).refused(4)


@checks("create_table", Promise.MODES, "CreateTableRequest.mode")
def refuses_a_table_that_exists(t: Trial) -> None:
    """Without a mode, and with mode Create, a table that exists is refused with 409 and code 5."""
    made = t.table()
    t.call("create_table", made, rows([9])).refused(5)
    t.call("create_table", made, rows([9]), mode="Create").refused(5)
    t.equal(t.ids(made), [1, 2, 3], "ids")


@checks("create_table", Promise.MODES, "CreateTableRequest.mode")
def mode_exist_ok_keeps_the_table(t: Trial) -> None:
    """With mode ExistOk the existing table is kept, with its rows and version."""
    made = t.table()
    t.call("create_table", made, rows([9]), mode="ExistOk").ok()
    t.equal(t.ids(made), [1, 2, 3], "ids")
    t.equal(t.versions(made), [1], "versions")


@checks("create_table", Promise.MODES, "CreateTableRequest.mode")
def mode_exist_ok_creates_a_missing_table(t: Trial) -> None:
    """With mode ExistOk a table that does not exist is created."""
    made = t.id("t")
    t.call("create_table", made, rows([1]), mode="exist_ok").ok()
    t.equal(t.ids(made), [1], "ids")


@checks("create_table", Promise.MODES, "CreateTableRequest.mode")
def mode_overwrite_replaces_rows(t: Trial) -> None:
    """With mode Overwrite the table has the new rows alone."""
    made = t.table()
    t.call("create_table", made, rows([8, 9]), mode="Overwrite").ok()
    t.equal(t.ids(made), [8, 9], "ids")


@checks("create_table", Promise.MODES, "CreateTableRequest.mode")
def mode_overwrite_replaces_the_schema(t: Trial) -> None:
    """With mode Overwrite the table has the schema of the new stream."""
    made = t.table()
    t.call("create_table", made, pa.table({"other": ["x"]}), mode="overwrite").ok()
    t.equal(t.read(made).column_names, ["other"], "columns")


@checks("create_table", Promise.MODES, "CreateTableRequest.mode")
def mode_overwrite_creates_a_missing_table(t: Trial) -> None:
    """With mode Overwrite a table that does not exist is created."""
    t.call("create_table", t.id("t"), rows([1]), mode="Overwrite").ok()
    t.equal(t.ids(t.id("t")), [1], "ids")


@checks("create_table", Promise.MODES, "CreateTableRequest.mode")
def create_modes_are_case_insensitive(t: Trial) -> None:
    """A mode may be given in any case."""
    made = t.table()
    t.call("create_table", made, rows([9]), mode="EXIST_OK").ok()
    t.call("create_table", made, rows([9]), mode="CREATE").refused(5)


@checks("create_table", Promise.MODES, "CreateTableRequest.mode")
def refuses_an_unknown_create_mode(t: Trial) -> None:
    """A mode that is not published is refused with 400 and code 13, and nothing is created."""
    t.call("create_table", t.id("t"), rows([1]), mode="invented").refused(13)
    t.call("table_exists", t.id("t")).refused(4)


@checks("create_table", Promise.ERRORS, "CreateTable")
def refuses_a_body_that_is_not_arrow(t: Trial) -> None:
    """A body that is not an Arrow stream is refused with 400 and code 13, and nothing is created."""
    t.call("create_table", t.id("t"), b"this is not Arrow, but long enough to be a stream").refused(13, 20)
    t.call("table_exists", t.id("t")).refused(4)


@checks("create_table", Promise.ERRORS, "CreateTable")
def refuses_a_stream_that_ends_too_early(t: Trial) -> None:
    """A stream that ends in the middle of a batch is refused, and nothing is created."""
    whole = stream(rows(range(1000)))
    t.call("create_table", t.id("t"), whole[: len(whole) // 2]).refused(13, 20)
    t.call("table_exists", t.id("t")).refused(4)


@checks("create_table", Promise.ERRORS, "CreateTable")
def a_refused_creation_leaves_no_name(t: Trial) -> None:
    """After a creation that was refused, the name can be used."""
    made = t.id("t")
    t.call("create_table", made, b"not Arrow").refused(13, 20)
    t.call("create_table", made, rows([1])).ok()
    t.equal(t.ids(made), [1], "ids")


@checks("create_table", Promise.ROWS, "CreateTable")
def creates_a_declared_table(t: Trial) -> None:
    """With mode Overwrite a declared table gets its first rows."""
    made = t.declared()
    t.call("create_table", made, rows([1, 2]), mode="Overwrite").ok()
    t.equal(t.ids(made), [1, 2], "ids")


@checks("create_table", Promise.CONCURRENCY, "CreateTable")
def one_of_many_creators_wins(t: Trial) -> None:
    """Of eight clients that create the same table exactly one succeeds, and its rows are the rows of the table."""
    made = t.id("t")
    jobs = [partial(t.call, "create_table", made, rows([number])) for number in range(CREATORS)]
    answers = t.together(jobs)
    won = t.one_of(answers, 5, 14)
    t.equal(t.ids(made), [answers.index(won)], "ids")


@checks("create_table", Promise.CONCURRENCY, "CreateTable")
def many_creators_of_different_tables_all_succeed(t: Trial) -> None:
    """Eight clients that create different tables all succeed."""
    space = t.space
    jobs = [partial(t.call, "create_table", [*space, f"t{number}"], rows([number])) for number in range(CREATORS)]
    for answer in t.together(jobs):
        answer.ok()
    for number in range(CREATORS):
        t.equal(t.ids([*space, f"t{number}"]), [number], "ids")


@checks("create_table", Promise.ROWS, "CreateTable")
def creates_from_many_batches(t: Trial) -> None:
    """A stream of many record batches becomes one table, in one version."""
    made = t.id("t")
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema()) as writer:
        for start in range(0, 5000, 100):
            writer.write_table(rows(range(start, start + 100)))
    t.call("create_table", made, bytes(sink.getvalue())).ok()
    t.equal(t.call("count_table_rows", made, {}).ok(), 5000, "rows")
    t.equal(t.versions(made), [1], "versions")


@checks("create_table", Promise.ROWS, "CreateTable")
def creates_a_large_table(t: Trial) -> None:
    """A stream of several megabytes becomes a table with all its rows, or is refused with 4xx and leaves nothing."""
    made = t.id("t")
    answer = t.call("create_table", made, rows(range(50_000)))
    if answer.status // 100 == 4:
        t.call("table_exists", made).refused(4)
        return
    answer.ok()
    t.equal(t.call("count_table_rows", made, {}).ok(), 50_000, "rows")


@checks("create_table", Promise.ROWS, "CreateTable")
def streams_and_files_are_told_apart(t: Trial) -> None:
    """What query_table answers for a created table can be read as Arrow and holds the rows."""
    made = t.table()
    found = decode(t.call("query_table", made, {"k": 10, "vector": {}}).ok())
    t.equal(sorted(found["name"].to_pylist()), ["row 1", "row 2", "row 3"], "names")
