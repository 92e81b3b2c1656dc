"""Lines about parallel writes, blobs, and what many servers do not have: logs, views, functions, secrets."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from namespace_tck.lancedb.data import small
from namespace_tck.lancedb.lines import LineList, N, R, T, get, missing, post, refused
from namespace_tck.lancedb.matching import ANY, JSON_OBJECT, Keep, Rows, Where, kind
from namespace_tck.registry import Promise

_COUNT: Final = {"version": None}

parallel = LineList("parallel writes", Promise.ATOMICITY, since="0.4.0")
_BEGIN: Final = post(T + "multipart_write/create", None, {"upload_id": Keep("upload")})
_PART: Final = "insert/?upload_id={upload}&upload_part_id="
_COMPLETE: Final = T + "multipart_write/complete?upload_id={upload}"
_ABORT: Final = T + "multipart_write/abort?upload_id={upload}"
_SIX: Final = post(T + "count_rows/", _COUNT, 6)
_add = parallel.about("Table.add")
_add(
    "Parts are one version, and nothing before that.",
    _BEGIN,
    post(T + _PART + "a", small(100, 2)),
    post(T + _PART + "b", small(200, 3)),
    _SIX,
    post(_COMPLETE, None, {"version": 2}),
    post(T + "count_rows/", _COUNT, 11),
)
_add(
    "Parts of a write that is given up are never rows.",
    _BEGIN,
    post(T + _PART + "a", small(100, 2)),
    post(_ABORT),
    _SIX,
    refused(_COMPLETE, statuses=(400, 404, 409, 410)),
    _SIX,
)
_add(
    "A part that comes after its write was given up is refused.",
    _BEGIN,
    post(_ABORT),
    refused(T + _PART + "a", small(100, 2), statuses=(400, 404, 410)),
    _SIX,
)
_add(
    "A completion that comes again under its request id is made once.",
    _BEGIN,
    post(T + _PART + "a", small(100, 2)),
    post(_COMPLETE, None, {"version": 2}, headers={"x-request-id": "c-{t}"}),
    post(_COMPLETE, None, {"version": 2}, headers={"x-request-id": "c-{t}"}),
    post(T + "count_rows/", _COUNT, 8),
)
_add(
    "Parts that replace all rows replace them once.",
    _BEGIN,
    post(T + _PART + "a&mode=overwrite", small(100, 2)),
    post(T + _PART + "b&mode=overwrite", small(200, 3)),
    _SIX,
    post(_COMPLETE, None, {"version": 2}),
    post(T + "count_rows/", _COUNT, 5),
)
_add(
    "Parts are added to a branch.",
    post(T + "branches/create/", {"name": "dev"}),
    post(T + "multipart_write/create?branch=dev", None, {"upload_id": Keep("upload")}),
    post(T + _PART + "a&branch=dev", small(100, 2)),
    post(_COMPLETE + "&branch=dev", None, {"version": kind(int)}),
    post(T + "count_rows/", {**_COUNT, "branch": "dev"}, 8),
    _SIX,
)
_add(
    "A part of a write that was never begun is refused.",
    refused(T + "insert/?upload_id=none&upload_part_id=a", small(100, 2), statuses=(400, 404)),
    _SIX,
)
_add(
    "A part of another table is refused.",
    _BEGIN,
    post(N + "create/?mode=create", small()),
    refused(N + _PART + "a", small(100, 2), statuses=(400, 403, 404)),
    post(N + "count_rows/", _COUNT, 6),
)
_add("A write to a table that is missing is told by 404.", missing(N + "multipart_write/create"))

blobs = LineList("blobs", Promise.ROWS, since="0.5.0")
_VALUES: Final = (b"alpha", None, b"gamma", b"")
_STORAGE: Final = pa.struct([pa.field("data", pa.large_binary()), pa.field("uri", pa.string())])
_BLOB: Final = pa.field("b", _STORAGE, metadata={"ARROW:extension:name": "lance.blob.v2"})
_WITH_BLOBS: Final = pa.table(
    [
        pa.array(range(4)),
        pa.array([None if each is None else {"data": each, "uri": None} for each in _VALUES], _STORAGE),
    ],
    pa.schema([pa.field("id", pa.int64()), _BLOB]),
)
_MADE: Final = post(N + "create/?mode=create", _WITH_BLOBS)
_FETCH: Final = N + "fetch_blobs/"


def _ask(*row_ids: int, **given: object) -> dict[str, object]:
    return {"version": None, "column": "b", "row_ids": [*row_ids], **given}


def _ranged(row: int, wanted: str, answer: Any, status: int, **headers: Any) -> Any:
    return get(f"{N}blob/b/{row}/bytes", answer, headers={"range": wanted}, statuses=(status,), answered=headers)


blobs(
    "Table.blob_columns",
    "A column of blobs is told by the metadata of its field.",
    _MADE,
    post(
        N + "describe/",
        None,
        {
            "schema": {
                "fields": Where("blobs", lambda found: any("blob" in str(each.get("metadata")) for each in found))
            }
        },
    ),
)
_fetch_blobs = blobs.about("Table.fetch_blobs")
_fetch_blobs(
    "Blobs are a column in the order of the row ids, nulls kept.",
    _MADE,
    post(_FETCH, _ask(2, 1, 0, 2), Rows(columns=["b"], values={"b": [b"gamma", None, b"alpha", b"gamma"]})),
)
_fetch_blobs(
    "Blobs of a version are answered.",
    _MADE,
    post(N + "delete/", {"predicate": "id = 0"}),
    post(_FETCH, _ask(0, version=1), Rows(values={"b": [b"alpha"]})),
)
_fetch_blobs(
    "Blobs of a branch are answered.",
    _MADE,
    post(N + "branches/create/", {"name": "dev"}),
    post(_FETCH, _ask(0, branch="dev"), Rows(values={"b": [b"alpha"]})),
)
_fetch_blobs(
    "A column that is missing or has no blobs is refused.",
    _MADE,
    refused(_FETCH, _ask(0, column="nope")),
    refused(_FETCH, _ask(0, column="id")),
)
_fetch_blobs(
    "More row ids than one request may have are refused by a text that clients know.",
    _MADE,
    refused(
        _FETCH,
        _ask(*[0] * 2000),
        Where("a text", lambda found: "fetch_blobs accepts at most" in str(found)),
        statuses=(400,),
    ),
)
_fetch_blob_files = blobs.about("Table.fetch_blob_files")
_fetch_blob_files(
    "A byte of a blob comes with its size and version.",
    _MADE,
    _ranged(0, "bytes=0-0", b"a", 206, **{"content-range": "bytes 0-0/5", "x-lancedb-version": "1"}),
)
_fetch_blob_files(
    "The rest of a blob is read from a place on.",
    _MADE,
    _ranged(2, "bytes=1-", b"amma", 206, **{"content-range": "bytes 1-4/5"}),
)
_fetch_blob_files("A null is told by 204.", _MADE, _ranged(1, "bytes=0-0", ANY, 204))
_fetch_blob_files(
    "An empty blob is told by 416, and by its size.",
    _MADE,
    _ranged(3, "bytes=0-0", ANY, 416, **{"content-range": "bytes */0"}),
)
_fetch_blobs("A table that is missing is told by 404.", missing(N + "fetch_blobs/", _ask(0)))

logs = LineList("logs", Promise.AVAILABILITY)
_SPEC: Final = {"maintained_indexes": ["id_idx"], "writer_config_defaults": {"max_memtable_rows": "1000"}}
logs(
    "Table.get_lsm_write_spec",
    "A table without a log has no specification of one.",
    post(R + "get_lsm_write_spec/", None, {"lsm_write_spec": Where("null", lambda found: found is None)}),
)
logs(
    "Table.get_lsm_stats",
    "A table without a log has no statistics of one.",
    post(
        R + "get_lsm_stats/",
        {"include_generation_rows": False},
        {"lsm_stats": Where("null", lambda found: found is None)},
    ),
)
for _mode in (
    {"mode": "unsharded"},
    {"mode": "bucket", "column": "id", "num_buckets": 16},
    {"mode": "identity", "column": "id"},
):
    logs(
        "Table.set_lsm_write_spec",
        f"A log is made, {_mode['mode']}.",
        post(T + "set_lsm_write_spec/", {"sharding": _mode, **_SPEC}),
    )
logs("Table.unset_lsm_write_spec", "A log is ended.", post(T + "unset_lsm_write_spec/"))
logs("Table.flush_lsm", "A log is flushed.", post(T + "flush_lsm/", None, statuses=(202,)))
logs("Table.compact_lsm", "A log is compacted.", post(T + "compact_lsm/", None, statuses=(202,)))

kinds = LineList("catalog objects", Promise.AVAILABILITY)
for _what, _key in (
    ("view", "views"),
    ("materialized_view", "views"),
    ("secret", "secrets"),
    ("function", "functions"),
):
    _given = "?include_definition=true" if _what == "function" else ""
    kinds(
        f"Connection.list_{_what}s",
        f"Objects of the kind {_what} are listed.",
        get(f"/v1/namespace/$/{_what}/list{_given}", {_key: kind(list)}),
    )
kinds(
    "Connection.create_view",
    "A view is created, described and dropped.",
    post("/v1/view/{n}/create", {"query": "SELECT id FROM t"}, {"name": "{n}"}),
    post("/v1/view/{n}/describe"),
    post("/v1/view/{n}/drop", statuses=(200, 202)),
)
kinds(
    "Connection.create_materialized_view",
    "A materialized view is created.",
    post(
        "/v1/materialized_view/{n}/create",
        {"query": "SELECT id FROM t", "with_no_data": False},
        {"job_id": kind(str)},
        statuses=(202,),
    ),
)
kinds(
    "Connection.describe_materialized_view",
    "A materialized view is described.",
    post("/v1/materialized_view/{n}/describe", None, JSON_OBJECT),
)
kinds(
    "MaterializedView.refresh",
    "A materialized view is refreshed.",
    post("/v1/materialized_view/{n}/refresh", {}, statuses=(202,)),
)
kinds(
    "Connection.drop_materialized_view",
    "A materialized view is dropped.",
    post("/v1/materialized_view/{n}/drop", statuses=(200, 202)),
)
kinds(
    "Connection.create_function",
    "A function is created.",
    post("/v1/function/{n}/create", {"version": "1"}, {"job_id": kind(str)}, statuses=(202,)),
)
kinds(
    "Connection.get_function",
    "A version of a function is described.",
    post("/v1/function/{n}/describe", {"version": "1"}, JSON_OBJECT),
)
kinds(
    "Connection.drop_function",
    "A function is dropped.",
    post("/v1/function/{n}/drop", {"version": "1"}, statuses=(200, 202)),
)
kinds(
    "Connection.create_secret",
    "A secret is created and altered.",
    post("/v1/secret/{n}/create", {"value": "s"}),
    post("/v1/secret/{n}/alter", {"value": "t"}),
)
kinds(
    "Connection.describe_secret",
    "A secret is described without its value.",
    post("/v1/secret/{n}/describe", None, {"name": "{n}"}),
)
kinds("Connection.drop_secret", "A secret is dropped.", post("/v1/secret/{n}/drop"))
kinds(
    "Table.refresh_column",
    "A computed column is filled by a job.",
    post(T + "backfill_column", {"column": "text"}, {"job_id": kind(str)}, statuses=(200, 202)),
)
kinds("Table.function_errors", "Errors of functions are listed.", post(T + "errors", {}, {"records": kind(list)}))

hostile = LineList("hostile requests", Promise.HOSTILE)
_JSON: Final = {"content-type": "application/json"}
_any = hostile.about("any")
for _name, _body in (
    ("no JSON", b"{"),
    ("a list", b"[]"),
    ("a number", b"1"),
    ("no UTF-8", b'{"predicate":"\xff"}'),
    ("a nest of a thousand lists", b'{"predicate":' + b"[" * 1000 + b"]" * 1000 + b"}"),
):
    _any(
        f"A body that is {_name} is refused once, and changes nothing.",
        *(
            refused(T + verb, _body, statuses=(400, 413, 415, 422), headers=_JSON)
            for verb in ("count_rows/", "update/", "delete/", "query/", "create_index/", "tags/create/")
        ),
        _SIX,
    )
_any(
    "A field that the protocol does not have is refused by its name.",
    refused(T + "count_rows/", {"nonsense": 1}, Where("its name", lambda found: "nonsense" in str(found))),
    refused(T + "delete/", {"predicate": "true", "nonsense": 1}),
    _SIX,
)
_any(
    "A route that the protocol does not have is no missing table.",
    refused(T + "nothing_like_this/", {}, statuses=(400, 405, 406, 501)),
)
_any(
    "A field of the wrong type is refused, and changes nothing.",
    refused(T + "delete/", {"predicate": 1}),
    refused(T + "update/", {"predicate": "true", "updates": "x"}),
    refused(T + "restore/", {"version": "x"}),
    refused(T + "tags/create/", {"tag": 1, "version": -1}),
    _SIX,
)
