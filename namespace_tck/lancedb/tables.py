"""Lines about tables as wholes: creation, description, names, copies."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from namespace_tck.lancedb.data import small
from namespace_tck.lancedb.lines import LineList, N, R, T, missing, post, refused
from namespace_tck.lancedb.matching import ANY, JSON_OBJECT, NOTHING, Keep, Where, kind, text
from namespace_tck.registry import Promise

lines = LineList("tables", Promise.OBJECTS)

_COUNT: Final = {"version": None}
_ONE: Final = small(count=1)
_TYPES: Final = {
    "null": (pa.null(), {"type": "null"}),
    "bool": (pa.bool_(), {"type": "bool"}),
    "int8": (pa.int8(), {"type": "int8"}),
    "int32": (pa.int32(), {"type": "int32"}),
    "uint64": (pa.uint64(), {"type": "uint64"}),
    "float16": (pa.float16(), {"type": "halffloat"}),
    "float32": (pa.float32(), {"type": "float"}),
    "float64": (pa.float64(), {"type": "double"}),
    "utf8": (pa.string(), {"type": "string"}),
    "large_utf8": (pa.large_string(), {"type": "large_string"}),
    "binary": (pa.binary(), {"type": "binary"}),
    "large_binary": (pa.large_binary(), {"type": "large_binary"}),
    "fixed_size_binary": (pa.binary(4), {"type": "fixed_size_binary", "length": 4}),
    "date32": (pa.date32(), {"type": "date32:day"}),
    "date64": (pa.date64(), {"type": "date64:ms"}),
    "time32": (pa.time32("s"), {"type": "time32:s"}),
    "time64": (pa.time64("ns"), {"type": "time64:ns"}),
    "timestamp": (pa.timestamp("us"), {"type": "timestamp:us:-"}),
    "timestamp_with_zone": (pa.timestamp("ns", "UTC"), {"type": "timestamp:ns:UTC"}),
    "duration": (pa.duration("ms"), {"type": "duration:ms"}),
    "decimal": (pa.decimal128(10, 2), {"type": "decimal:128:10:2"}),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), {"type": "dict:string:int32:false"}),
    "list": (pa.list_(pa.string()), {"type": "list", "fields": [{"type": {"type": "string"}}]}),
    "large_list": (pa.large_list(pa.int64()), {"type": "large_list", "fields": [{"type": {"type": "int64"}}]}),
    "vector": (
        pa.list_(pa.float32(), 3),
        {"type": "fixed_size_list", "length": 3, "fields": [{"type": {"type": "float"}}]},
    ),
    "struct": (
        pa.struct([("a", pa.int8()), ("b", pa.string())]),
        {"type": "struct", "fields": [{"name": "a"}, {"name": "b"}]},
    ),
}
"""Arrow types, and what a description calls them."""

_schema = lines.about("Table.schema")
for _name, (_type, _described) in _TYPES.items():
    _schema(
        f"A column of the type {_name} is described in the words of the client.",
        post(N + "create/?mode=create", pa.table({"c": pa.array([], _type)})),
        post(
            N + "describe/",
            {"version": None},
            {"schema": {"fields": [{"name": "c", "nullable": True, "type": _described}]}},
        ),
    )
_schema(
    "Nullability, and metadata of fields and of the schema are described.",
    post(
        N + "create/?mode=create",
        pa.table([pa.array([1])], pa.schema([pa.field("a", pa.int64(), False, {"unit": "m"})], {"key": "value"})),
    ),
    post(
        N + "describe/",
        None,
        {
            "schema": {
                "fields": [{"name": "a", "nullable": False, "metadata": {"unit": "m"}}],
                "metadata": {"key": "value"},
            }
        },
    ),
)

_create_table = lines.about("Connection.create_table")
_create_table(
    "A stream of rows is a new table.", post(N + "create/?mode=create", small()), post(N + "count_rows/", _COUNT, 6)
)
_create_table(
    "A stream without rows is an empty table.",
    post(N + "create/?mode=create", small(count=0)),
    post(N + "count_rows/", _COUNT, 0),
)
_create_table(
    "A table that exists is refused by a text, with the status 400.",
    post(T + "create/?mode=create", _ONE, text("already exists"), statuses=(400,)),
    post(T + "count_rows/", _COUNT, 6),
)
_create_table(
    "A table that exists and may exist is left as it is.",
    post(T + "create/?mode=exist_ok", _ONE, statuses=(200, 400)),
    post(T + "count_rows/", _COUNT, 6),
)
_create_table(
    "A table that may exist and does not is created.",
    post(N + "create/?mode=exist_ok", _ONE),
    post(N + "count_rows/", _COUNT, 1),
)
_create_table(
    "A table is overwritten if that is asked for.",
    post(T + "create/?mode=overwrite", _ONE),
    post(T + "count_rows/", _COUNT, 1),
)
_create_table(
    "A table is overwritten by one of another schema.",
    post(T + "create/?mode=overwrite", pa.table({"other": ["a"]})),
    post(T + "describe/", None, {"schema": {"fields": [{"name": "other"}]}}),
)
_create_table(
    "The answer to a creation announces a version of the protocol.",
    post(N + "create/?mode=create", _ONE, answered={"phalanx-version": kind(str)}),
)
_create_table(
    "A table in a namespace that is missing is refused.",
    refused("/v1/table/{m}$t/create/?mode=create", _ONE, statuses=(400, 404)),
)
_create_table(
    "A stream that is torn creates nothing.",
    refused(N + "create/?mode=create", small().schema.serialize().to_pybytes()[:40], statuses=(400,)),
    missing(N + "describe/"),
)

_open_table = lines.about("Connection.open_table")
_open_table(
    "A request without a body is answered by version, schema and features.",
    post(
        R + "describe/",
        None,
        {"version": kind(int), "schema": {"fields": ANY}},
        answered={"phalanx-version": kind(str)},
    ),
)
_open_table("A table that is missing is told by 404.", missing(N + "describe/"))
_open_table(
    "A version and a branch of a table are opened.",
    post(T + "branches/create/", {"name": "dev"}),
    post(T + "describe/", {"version": 1, "branch": "dev"}, {"version": 1}),
    post(T + "describe/", {"version": 1}, {"version": 1}),
)
lines(
    "Table.version",
    "The newest version is described where none is named.",
    post(T + "delete/", {"predicate": "id = 0"}),
    post(T + "describe/", {"version": None}, {"version": 2}, answered={"x-lancedb-version": "2"}),
)
_checkout = lines.about("Table.checkout")
_checkout(
    "A version that is named is described.",
    post(T + "delete/", {"predicate": "id = 0"}),
    post(T + "describe/", {"version": 1}, {"version": 1}),
)
_checkout("A version that is missing is told by 404.", missing(T + "describe/", {"version": 43}))
lines(
    "Table.uri",
    "A description has the location of the table.",
    post(R + "describe/", {"version": None}, {"location": Where("a location", lambda found: len(found) > 1)}),
)

_drop_table = lines.about("Connection.drop_table")
_drop_table(
    "A table is dropped by a request without a body.",
    post(N + "create/?mode=create", _ONE),
    post(N + "drop/"),
    missing(N + "describe/"),
)
_drop_table("A table that is missing is dropped, or told by 404.", post(N + "drop/", statuses=(200, 404)))
_rename_table = lines.about("Connection.rename_table")
_rename_table(
    "A table gets a new name.",
    post(T + "rename/", {"new_table_name": "{n}"}),
    post(N + "count_rows/", _COUNT, 6),
    missing(T + "describe/"),
)
_rename_table(
    "A table moves into a namespace.",
    post("/v1/namespace/{m}/create", {}, statuses=(200, 204)),
    post(T + "rename/", {"new_table_name": "{n}", "new_namespace": ["{m}"]}),
    post("/v1/table/{m}${n}/count_rows/", _COUNT, 6),
    missing(N + "describe/"),
)
_rename_table(
    "A name that a table has is refused.",
    post(N + "create/?mode=create", _ONE),
    refused(T + "rename/", {"new_table_name": "{n}"}, statuses=(400, 409)),
    post(T + "count_rows/", _COUNT, 6),
    post(N + "count_rows/", _COUNT, 1),
)
_rename_table("A table that is missing is told by 404.", missing(N + "rename/", {"new_table_name": "{m}"}))

_stats = lines.about("Table.stats")
_stats(
    "Statistics count rows, bytes, indices and fragments.",
    post(
        T + "stats/",
        None,
        {
            "total_bytes": kind(int),
            "num_rows": 6,
            "num_indices": 0,
            "fragment_stats": {
                "num_fragments": 1,
                "num_small_fragments": 1,
                "lengths": dict.fromkeys(("min", "max", "mean", "p25", "p50", "p75", "p99"), 6),
            },
        },
    ),
)
_stats(
    "Statistics of a branch are those of the branch.",
    post(T + "branches/create/", {"name": "dev"}),
    post(T + "insert/?branch=dev", _ONE),
    post(T + "stats/", {"branch": "dev"}, {"num_rows": 7}),
    post(T + "stats/", None, {"num_rows": 6}),
)
_stats("Statistics of a table that is missing are told by 404.", missing(N + "stats/"))

copies = LineList("clones", Promise.OBJECTS)
_SOURCE: Final = post(T + "describe/", None, {"location": Keep("source")})
_CLONE: Final = {"source_location": "{source}", "is_shallow": True}

_clone_table = copies.about("Connection.clone_table")
_clone_table(
    "A table is cloned by its location.",
    _SOURCE,
    post(N + "clone", _CLONE),
    post(N + "count_rows/", _COUNT, 6),
    post(N + "insert/", _ONE),
    post(T + "count_rows/", _COUNT, 6),
)
_clone_table(
    "A version of a table is cloned.",
    _SOURCE,
    post(T + "delete/", {"predicate": "id = 0"}),
    post(N + "clone", {**_CLONE, "source_version": 1}),
    post(N + "count_rows/", _COUNT, 6),
)
_clone_table(
    "A tag of a table is cloned.",
    _SOURCE,
    post(T + "tags/create/", {"tag": "v1", "version": 1}),
    post(T + "delete/", {"predicate": "id = 0"}),
    post(N + "clone", {**_CLONE, "source_tag": "v1"}),
    post(N + "count_rows/", _COUNT, 6),
)
_clone_table(
    "A table is cloned into a namespace.",
    _SOURCE,
    post("/v1/namespace/{m}/create", {}, statuses=(200, 204)),
    post("/v1/table/{m}${n}/clone", _CLONE),
    post("/v1/table/{m}${n}/count_rows/", _COUNT, 6),
)
_clone_table(
    "A location that is no table of the catalog is refused, and nothing is created.",
    refused(N + "clone", {"source_location": "file:///nowhere/at/all", "is_shallow": True}, statuses=(400, 403, 404)),
    missing(N + "describe/"),
)
_clone_table(
    "A clone of the files is made or refused.",
    _SOURCE,
    post(N + "clone", {**_CLONE, "is_shallow": False}, refusal="is_shallow"),
    post(N + "count_rows/", _COUNT, 6),
)

reading = LineList("jobs", Promise.AVAILABILITY)
reading(
    "Connection.list_jobs", "Jobs are listed.", post("/v1/jobs/list", {}, {"jobs": kind(list), "page_token": NOTHING})
)
reading(
    "Connection.open_job", "A job that is missing is told by 404.", missing("/v1/jobs/describe", {"job_id": "nope"})
)
reading("Job.cancel", "A job that is missing is not cancelled.", missing("/v1/jobs/cancel", {"job_id": "nope"}))
reading("Job.pause", "A job is paused.", post("/v1/jobs/pause", {"job_id": "job"}, JSON_OBJECT))
reading("Job.resume", "A job is resumed.", post("/v1/jobs/resume", {"job_id": "job"}, JSON_OBJECT))
reading(
    "Job.events",
    "Events of a job are rows.",
    post("/v1/jobs/query_events", {"job_id": "job", "limit": 10, "filter": "state = 'x'"}),
)
