"""A valid request of each route of lancedb's dialect, and the wrong ones that are made of it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

T: Final = "/v1/table/{t}/"
FULL_TEXT: Final = {"match": {"terms": "puppy", "column": "text", "boost": 1.0, "fuzziness": 0, "operator": "Or"}}
SCAN: Final[dict[str, Any]] = {
    "version": 1,
    "prefilter": True,
    "k": 10,
    "vector": [1.0] * 8,
    "vector_column": "vector",
    "ef": 10,
    "nprobes": 2,
    "minimum_nprobes": 1,
    "maximum_nprobes": 2,
    "refine_factor": 1,
    "lower_bound": 0.5,
    "upper_bound": 1e6,
    "distance_type": "l2",
    "bypass_vector_index": True,
    "fast_search": False,
    "with_row_id": True,
    "offset": 1,
    "filter": "id > 0",
    "columns": ["id"],
    "order_by": [{"column_name": "id", "ascending": False, "nulls_first": True}],
}
WORDS: Final[dict[str, Any]] = {"version": 1, "prefilter": True, "k": 10, "vector": []}


@dataclass(frozen=True, slots=True)
class ValidRequest:
    """A request of one operation that succeeds on a table `{t}`.

    It has three rows, an index `words`, a tag `first`, a branch `side` and an upload `{upload}`; `{t}blobs` has blobs.

    Attributes:
        path: With `{t}`, and `{n}` for a new name.
        body: JSON, rows, or None for no body.
        needed: Fields without which the request is refused.
        any_of: Places of the body that take values of other types, too.
        query: Parameters, each with a value that it may have.
        status: Of its answer.
        of_table: Whether it is about a table that must be there.
    """

    path: str
    body: Any = None
    needed: tuple[str, ...] = ()
    any_of: frozenset[str] = field(default_factory=frozenset)
    query: tuple[tuple[str, str], ...] = ()
    status: int = 200
    of_table: bool = True

    @property
    def has_rows(self) -> bool:
        """Whether the body is a stream of rows."""
        return isinstance(self.body, pa.Table)


def _read(verb: str, **body: Any) -> ValidRequest:
    return ValidRequest(T + verb, {"version": 1, **body})


def _change(verb: str, body: dict[str, Any], *needed: str, **given: Any) -> ValidRequest:
    return ValidRequest(T + verb, body, needed, **given)


def _unserved(path: str) -> ValidRequest:
    return ValidRequest(path, {}, status=406, of_table=False)


def _list(kind: str) -> ValidRequest:
    return ValidRequest(f"/v1/namespace/$/{kind}/list", of_table=False)


ROWS: Final = pa.table({"id": [7], "text": ["x"]})
_MERGE: Final = (("on", "id"), ("when_matched_update_all", "true"), ("when_not_matched_insert_all", "true"))
REQUESTS: Final[dict[str, ValidRequest]] = {
    "describe_table": _read("describe/"),
    "list_tables": _list("table"),
    "list_all_tables": ValidRequest("/v1/table/", of_table=False),
    "rename_table": _change("rename/", {"new_table_name": "{n}", "new_namespace": ["inner"]}, "new_table_name"),
    "drop_table": ValidRequest(T + "drop/"),
    "list_table_versions": ValidRequest(T + "version/list/"),
    "insert_into_table": ValidRequest(T + "insert/", ROWS, query=(("mode", "append"),)),
    "merge_insert_into_table": ValidRequest(T + "merge_insert/", ROWS, query=_MERGE),
    "update_table": _change("update/", {"predicate": "id = 1", "updates": [["text", "'new'"]]}, "updates"),
    "delete_from_table": _change("delete/", {"predicate": "id = 1"}, "predicate"),
    "create_table": ValidRequest("/v1/table/{n}/create/", ROWS, query=(("mode", "create"),), of_table=False),
    "query_table": ValidRequest(T + "query/", SCAN, (), frozenset({"vector", "columns", "distance_type"})),
    "count_table_rows": _read("count_rows/", predicate="id > 0"),
    "get_table_stats": ValidRequest(T + "stats/", {}),
    "explain_table_query_plan": _change(
        "explain_plan/",
        {"verbose": True, "query": {**WORDS, "full_text_query": {"query": FULL_TEXT}}},
        "query",
        any_of=frozenset({"query.vector", "query.full_text_query.query"}),
    ),
    "analyze_table_query_plan": ValidRequest(
        T + "analyze_plan/", {**WORDS, "filter": "id > 0"}, (), frozenset({"vector"})
    ),
    "create_table_index": _change(
        "create_index/", {"column": "id", "index_type": "BTREE", "name": "own", "replace": True}, "column", "index_type"
    ),
    "create_table_scalar_index": _change(
        "create_scalar_index/", {"column": "id", "index_type": "BITMAP"}, "column", "index_type"
    ),
    "list_table_indices": _read("index/list/"),
    "describe_table_index_stats": ValidRequest(T + "index/words/stats/", {"version": 2}),
    "drop_table_index": ValidRequest(T + "index/words/drop/"),
    "update_field_metadata": _change(
        "update_field_metadata/", {"updates": [{"path": "id", "metadata": {"unit": "m"}, "replace": False}]}, "updates"
    ),
    "restore_table": _change("restore/", {"version": 1}, "version"),
    "alter_table_add_columns": _change(
        "add_columns/", {"new_columns": [{"name": "n", "expression": "id + 1"}]}, "new_columns"
    ),
    "alter_table_alter_columns": _change(
        "alter_columns/", {"alterations": [{"path": "text", "rename": "words", "nullable": True}]}, "alterations"
    ),
    "alter_table_drop_columns": _change("drop_columns/", {"columns": ["text"]}, "columns"),
    "create_namespace": ValidRequest(
        "/v1/namespace/{n}/create", {"mode": "Create", "properties": {"a": "b"}}, of_table=False
    ),
    "describe_namespace": ValidRequest("/v1/namespace/inner/describe", {}, of_table=False),
    "list_namespaces": ValidRequest("/v1/namespace/$/list", of_table=False),
    "drop_namespace": ValidRequest("/v1/namespace/none/drop", {"mode": "Skip", "behavior": "Restrict"}, of_table=False),
    "list_table_tags": ValidRequest(T + "tags/list/"),
    "get_table_tag_version": _change("tags/version/", {"tag": "first"}, "tag"),
    "create_table_tag": _change("tags/create/", {"tag": "second", "version": 1}, "tag", "version"),
    "update_table_tag": _change("tags/update/", {"tag": "first", "version": 1}, "tag", "version"),
    "delete_table_tag": _change("tags/delete/", {"tag": "first"}, "tag"),
    "list_table_branches": ValidRequest(T + "branches/list/"),
    "create_table_branch": _change("branches/create/", {"name": "dev", "from_version": 1}, "name"),
    "delete_table_branch": _change("branches/delete/", {"name": "side"}, "name"),
    "clone_table": ValidRequest(
        "/v1/table/{n}/clone",
        {"source_location": "{location}", "source_version": 1, "is_shallow": True},
        ("source_location",),
        of_table=False,
    ),
    "create_multipart_write": ValidRequest(T + "multipart_write/create"),
    "complete_multipart_write": ValidRequest(T + "multipart_write/complete", query=(("upload_id", "{upload}"),)),
    "abort_multipart_write": ValidRequest(T + "multipart_write/abort", query=(("upload_id", "{upload}"),)),
    "fetch_table_blobs": ValidRequest(
        "/v1/table/{t}blobs/fetch_blobs/", {"version": 1, "column": "b", "row_ids": [0]}, ("column", "row_ids")
    ),
    "read_table_blob": ValidRequest("/v1/table/{t}blobs/blob/b/0/bytes"),
    "diff_table_branch": _change("branches/diff/", {"from_branch": "side"}, "from_branch"),
    "cherry_pick_table_branch": ValidRequest(
        T + "branches/cherry_pick/", {"from_branch": "side", "dry_run": True}, ("from_branch",), status=409
    ),
    "get_lsm_write_spec": ValidRequest(T + "get_lsm_write_spec/"),
    "get_lsm_stats": ValidRequest(T + "get_lsm_stats/", {"include_generation_rows": False}),
    "prewarm_table_index": ValidRequest(T + "index/words/prewarm/"),
    "prewarm_table_pages": ValidRequest(T + "page_cache/prewarm/", {"columns": ["id"]}),
    **{f"list_{kind}s": _list(kind) for kind in ("view", "materialized_view", "function", "secret")},
    "list_jobs": ValidRequest("/v1/jobs/list", {}, of_table=False),
    **{
        f"{verb}_jobs": ValidRequest(f"/v1/jobs/{verb}", {"job_id": "x"}, status=404, of_table=False)
        for verb in ("describe", "cancel")
    },
    **{f"{verb}_jobs": _unserved(f"/v1/jobs/{verb}") for verb in ("pause", "resume", "query_events")},
    **{
        verb: _unserved(f"{T}{verb}/")
        for verb in ("set_lsm_write_spec", "unset_lsm_write_spec", "flush_lsm", "compact_lsm")
    },
    "alter_table_backfill_columns": _unserved(T + "backfill_column"),
    "list_table_errors": _unserved(T + "errors"),
    **{
        f"{verb}_{kind}": _unserved(f"/v1/{kind}/x/{verb}")
        for kind, verbs in (
            ("view", ("create", "describe", "drop")),
            ("materialized_view", ("create", "describe", "drop", "refresh")),
            ("function", ("create", "describe", "drop")),
            ("secret", ("create", "alter", "describe", "drop")),
        )
        for verb in verbs
    },
}
"""By the names of operations."""

_WRONG: Final[tuple[tuple[type, tuple[Any, ...]], ...]] = (
    (bool, ("x", 1, [], {})),
    (int, ("x", 1.5, True, [], {}, -1, 2**63)),
    (float, ("x", True, [], {})),
    (str, (1, 1.5, True, [], {}, ["x"])),
    (list, ("x", 1, True, {})),
    (dict, ("x", 1, True, [])),
)
"""Values that are wrong in the place of one of each type."""
TOLERATED: Final = {
    f"k = {2**63}": 200,  # so many are all rows
    f"nprobes = {2**63}": 200,  # the two bounds beside it count
    "version = -1": 404,  # no version is missing more
    f"version = {2**63}": 404,
}
"""What may be answered to some bodies beside a refusal."""
RAW: Final = (
    *(b"{", b"[]", b"1", b'"x"', b"null null", b"\xff\xfe", b'{"a":"\xff"}', b'{"version":NaN}', b'{"version":1e999}'),
    *(b'{"version":' + b"[" * 1000 + b"]" * 1000 + b"}", b"[" * 100_000, b'{"nonsense":1}', b"\x1f\x8b\x08\x00"),
)
"""Bodies that are no request of any route."""


def mutations(request: ValidRequest) -> Iterator[tuple[str, Any]]:
    """Bodies with one wrong value, each with its place, and bodies without a needed field."""
    for place, steps, value in _places(request.body, "", ()):
        for wrong in next(values for kind, values in _WRONG if isinstance(value, kind)):
            if place in request.any_of:
                continue
            body = copy.deepcopy(request.body)
            holder = body
            for step in steps[:-1]:
                holder = holder[step]
            holder[steps[-1]] = wrong
            yield f"{place} = {wrong!r}", body
    for name in request.needed:
        yield f"without {name}", {key: value for key, value in request.body.items() if key != name}


def _places(value: Any, place: str, steps: tuple[Any, ...]) -> Iterator[tuple[str, tuple[Any, ...], Any]]:
    if steps:
        yield place, steps, value
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _places(each, f"{place}.{key}" if place else key, (*steps, key))
    elif isinstance(value, list) and value:
        yield from _places(value[0], f"{place}[0]", (*steps, 0))
