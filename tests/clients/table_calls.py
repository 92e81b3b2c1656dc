"""Calls of every method of lancedb's tables. A step is done on one table after another; its outcomes are compared."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
from lancedb._lancedb import LsmWriteSpec
from lancedb.index import FTS, BTree, IvfFlat
from lancedb.table import LanceTable

from tests.clients.databases import Subject, rows
from tests.clients.outcomes import Differs, Raised, Step

VECTOR = [float(n) for n in range(8)]
BLOBS = pa.table(
    {"id": [1, 2], "b": pa.array([b"one", b"second"], pa.large_binary())},
    schema=pa.schema(
        [pa.field("id", pa.int64()), pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})]
    ),
)


class Call:
    """The table of a test, `t`, and what is around it."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.t: Any = subject.create()

    def rows(self) -> list[dict[str, Any]]:
        """All rows, by id, as a client that opens the table now reads them."""
        return sorted(self.subject.open().to_lance().to_table().to_pylist(), key=lambda row: row.get("id") or 0)

    def blobs(self) -> Any:
        """A table with a column of blobs."""
        return self.subject.create("_blobs", BLOBS)


def ids(query: Any) -> list[int]:
    """The ids that a query finds, in its order."""
    return [row["id"] for row in query.to_list()]


def _merge(c: Call) -> Any:
    merge = c.t.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    return merge.execute(rows(60, 70))


def _merge_of(c: Call, kind: str) -> Any:
    return getattr(c.t.merge_insert("id"), kind)().execute(rows(60, 70))


def _indexed(c: Call) -> None:
    c.t.create_index("id", config=BTree())


def _words(c: Call) -> None:
    c.t.create_index("s", config=FTS())


def _branched(c: Call) -> Any:
    branch = c.t.branches.create("dev")
    branch.add(rows(64, 66))
    return branch


SHARED: dict[str, list[Step]] = {
    "add": [
        lambda c: c.t.add(rows(64, 70)),
        lambda c: c.t.add([{"id": 1, "x": 0.5, "s": "y", "vector": VECTOR}]),
        lambda c: c.t.add(pa.table({"other": [1]})),
        lambda c: c.t.add([{"id": 1, "vector": [1.0]}]),
        Call.rows,
        lambda c: c.t.add(rows(0, 2), mode="overwrite"),
        Call.rows,
    ],
    "add_columns": [
        lambda c: c.t.add_columns({"twice": "x * 2"}),
        lambda c: c.t.add_columns(pa.field("empty", pa.string())),
        lambda c: c.t.add_columns({"x": "1"}),
        lambda c: c.t.add_columns({"y": "nope + 1"}),
        Call.rows,
    ],
    "alter_columns": [
        lambda c: c.t.alter_columns({"path": "x", "rename": "z"}),
        lambda c: c.t.alter_columns({"path": "nope", "rename": "y"}),
        Call.rows,
    ],
    "blob_columns": [lambda c: c.t.blob_columns(), lambda c: c.blobs().blob_columns()],
    "branches": [
        lambda c: c.t.branches.list(),
        lambda c: _branched(c).count_rows(),
        lambda c: c.t.branches.create("dev"),
        lambda c: sorted(c.t.branches.list()),
        lambda c: c.t.branches.checkout("dev").count_rows(),
        lambda c: c.t.branches.checkout("none"),
        lambda c: c.t.count_rows(),
        lambda c: c.t.branches.diff("dev"),
        lambda c: c.t.branches.cherry_pick("dev", dry_run=True),
        lambda c: c.t.branches.delete("dev"),
        lambda c: c.t.branches.delete("dev"),
        lambda c: c.t.branches.list(),
    ],
    "checkout": [
        lambda c: c.t.add(rows(64, 66)),
        lambda c: c.t.checkout(1),
        lambda c: c.t.count_rows(),
        lambda c: c.t.add(rows(66, 67)),
        lambda c: c.t.checkout(99),
        lambda c: c.t.checkout("no tag"),
    ],
    "checkout_latest": [
        lambda c: c.t.add(rows(64, 66)),
        lambda c: c.t.checkout(1),
        lambda c: c.t.checkout_latest(),
        lambda c: c.t.count_rows(),
    ],
    "checkpoint_lsm": [lambda c: c.t.checkpoint_lsm()],
    "close_lsm_writers": [lambda c: c.t.close_lsm_writers()],
    "compact_lsm": [lambda c: c.t.compact_lsm()],
    "flush_lsm": [lambda c: c.t.flush_lsm()],
    "get_lsm_stats": [lambda c: c.t.get_lsm_stats()],
    "get_lsm_write_spec": [lambda c: c.t.get_lsm_write_spec()],
    "set_lsm_write_spec": [
        lambda c: c.t.set_lsm_write_spec(LsmWriteSpec.unsharded()),
        lambda c: c.t.set_unenforced_primary_key("id"),
        lambda c: c.t.get_lsm_write_spec(),
        Call.rows,
    ],
    "unset_lsm_write_spec": [lambda c: c.t.unset_lsm_write_spec()],
    "count_rows": [
        lambda c: c.t.count_rows(),
        lambda c: c.t.count_rows("id > 10"),
        lambda c: c.t.count_rows("nope > 10"),
    ],
    "create_index": [
        lambda c: c.t.create_index("vector", config=IvfFlat(num_partitions=1)),
        _words,
        _indexed,
        lambda c: c.t.create_index("nope", config=BTree()),
        lambda c: sorted((index.name, index.index_type, *index.columns) for index in c.t.list_indices()),
        lambda c: ids(c.t.search(VECTOR).limit(5)),
    ],
    "create_index_async": [
        lambda c: c.t.create_index_async("id", config=BTree()).wait(),
        lambda c: [index.name for index in c.subject.open().list_indices()],
    ],
    "current_branch": [lambda c: c.t.current_branch(), lambda c: _branched(c).current_branch()],
    "delete": [lambda c: c.t.delete("id < 10"), lambda c: c.t.delete("nope = 1"), Call.rows],
    "drop_columns": [
        lambda c: c.t.drop_columns(["x", "s"]),
        lambda c: c.t.drop_columns(["nope"]),
        Call.rows,
    ],
    "drop_index": [
        _indexed,
        lambda c: c.t.drop_index("id_idx"),
        lambda c: c.t.drop_index("id_idx"),
        lambda c: c.t.list_indices(),
    ],
    "fetch_blob_files": [
        lambda c: [file is not None for file in c.blobs().fetch_blob_files("b", [0, 1])],
        lambda c: c.t.fetch_blob_files("x", [0]),
    ],
    "fetch_blob_ranges": [
        lambda c: c.blobs().fetch_blob_ranges("b", [(0, 1, 2)]),
        lambda c: c.t.fetch_blob_ranges("x", [(0, 0, 1)]),
    ],
    "fetch_blobs": [lambda c: c.blobs().fetch_blobs("b", [1, 0]), lambda c: c.t.fetch_blobs("x", [0])],
    "function_errors": [lambda c: c.t.function_errors()],
    "head": [lambda c: c.t.head(), lambda c: c.t.head(100)],
    "index_stats": [
        _indexed,
        lambda c: c.t.add(rows(64, 70)),
        lambda c: c.t.index_stats("id_idx"),
        lambda c: c.t.index_stats("none"),
    ],
    "initial_storage_options": [lambda c: c.t.initial_storage_options()],
    "latest_storage_options": [lambda c: c.t.latest_storage_options()],
    "list_indices": [
        lambda c: c.t.list_indices(),
        _indexed,
        lambda c: [(index.name, index.index_type, index.columns) for index in c.t.list_indices()],
    ],
    "list_versions": [
        lambda c: c.t.add(rows(64, 70)),
        lambda c: c.t.delete("id < 5"),
        lambda c: [version["version"] for version in c.t.list_versions()],
    ],
    "merge_insert": [
        _merge,
        Call.rows,
        lambda c: _merge_of(c, "when_matched_update_all"),
        lambda c: _merge_of(c, "when_not_matched_insert_all"),
        lambda c: _merge_of(c, "when_not_matched_by_source_delete"),
        Call.rows,
        lambda c: c.t.merge_insert("nope").when_matched_update_all().execute(rows(0, 1)),
    ],
    "name": [lambda c: c.t.name == c.subject.name],
    "optimize": [
        _indexed,
        lambda c: c.t.add(rows(64, 70)),
        lambda c: c.t.optimize(),
        lambda c: c.t.index_stats("id_idx").num_unindexed_rows,
        lambda c: c.t.optimize(cleanup_older_than=timedelta(0)),
        Call.rows,
    ],
    "prewarm_data": [lambda c: c.t.prewarm_data()],
    "prewarm_index": [_indexed, lambda c: c.t.prewarm_index("id_idx"), lambda c: c.t.prewarm_index("none")],
    "refresh_column": [lambda c: c.t.refresh_column("x")],
    "refresh_column_async": [lambda c: c.t.refresh_column_async("x")],
    "replace_field_metadata": [
        lambda c: c.t.replace_field_metadata("x", {"unit": "m"}),
        lambda c: c.subject.open().to_lance().schema.field("x").metadata,
        lambda c: c.t.replace_field_metadata("nope", {"a": "b"}),
    ],
    "restore": [
        lambda c: c.t.delete("id < 60"),
        lambda c: c.t.restore(1),
        Call.rows,
        lambda c: c.t.restore(99),
        lambda c: c.subject.open().to_lance().version,
    ],
    "search": [
        lambda c: ids(c.t.search(VECTOR).limit(5)),
        lambda c: ids(c.t.search(VECTOR).limit(5).offset(2).where("id > 20")),
        lambda c: ids(c.t.search(VECTOR).distance_type("cosine").limit(5)),
        lambda c: c.t.search(VECTOR).select(["id", "s"]).limit(3).to_arrow(),
        lambda c: c.t.search(VECTOR).limit(3).to_pandas(),
        lambda c: c.t.search([1.0]).limit(3).to_list(),
        lambda c: c.t.search(VECTOR).where("nope = 1").to_list(),
        _words,
        lambda c: sorted(ids(c.t.search("grape", query_type="fts").limit(100))),
        lambda c: sorted(ids(c.t.search("nothing", query_type="fts").limit(100))),
    ],
    "set_unenforced_primary_key": [
        lambda c: c.t.set_unenforced_primary_key("id"),
        lambda c: c.t.set_unenforced_primary_key("nope"),
        Call.rows,
    ],
    "stats": [
        _indexed,
        lambda c: (c.t.stats().num_rows, c.t.stats().num_indices, c.t.stats().fragment_stats.num_fragments),
    ],
    "tags": [
        lambda c: c.t.tags.list(),
        lambda c: c.t.tags.create("one", 1),
        lambda c: c.t.tags.create("one", 1),
        lambda c: c.t.tags.create("two", 99),
        lambda c: c.t.add(rows(64, 66)),
        lambda c: {name: tag["version"] for name, tag in c.t.tags.list().items()},
        lambda c: c.t.tags.get_version("one"),
        lambda c: c.t.tags.get_version("none"),
        lambda c: c.t.tags.update("one", 2),
        lambda c: c.t.tags.get_version("one"),
        lambda c: c.t.checkout("one"),
        lambda c: c.t.count_rows(),
        lambda c: c.t.tags.delete("one"),
        lambda c: c.t.tags.delete("one"),
        lambda c: c.t.tags.list(),
    ],
    "take_offsets": [
        lambda c: c.t.take_offsets([0, 5, 63]).to_arrow(),
        lambda c: c.t.take_offsets([0, 5]).select(["id"]).to_list(),
        lambda c: c.t.take_offsets([1000]).to_list(),
    ],
    "take_row_ids": [
        lambda c: c.t.take_row_ids([0, 5, 63]).to_arrow(),
        lambda c: c.t.take_row_ids([5]).select(["id"]).to_list(),
    ],
    "to_arrow": [lambda c: c.t.to_arrow().slice(0, 10), lambda c: c.t.to_arrow().num_rows],
    "to_lance": [lambda c: c.t.to_lance(), lambda c: c.t.to_lance().count_rows("id < 3")],
    "to_pandas": [lambda c: c.t.to_pandas()[:10], lambda c: len(c.t.to_pandas())],
    "tokenize": [
        _words,
        lambda c: [token.text for token in c.t.tokenize("Apples and figs", column="s")],
        lambda c: c.t.tokenize("x", index_name="none"),
    ],
    "update_field_metadata": [
        lambda c: c.t.update_field_metadata({"path": "x", "metadata": {"unit": "m"}}),
        lambda c: c.subject.open().to_lance().schema.field("x").metadata,
    ],
    "uses_v2_manifest_paths": [lambda c: c.t.uses_v2_manifest_paths()],
    "wait_for_index": [
        _indexed,
        lambda c: c.t.wait_for_index(["id_idx"], timedelta(seconds=10)),
        lambda c: c.t.wait_for_index(["none"], timedelta(milliseconds=10)),
    ],
}

DIRECT = "lancedb: this class method takes a connection to a directory only; connections have create_table, open_table"
UNBOUNDED = "lancedb: a query without a limit is pushed down as one with k = 10"
ONE_TYPE = "lancedb: an error of a query that was pushed down is a RuntimeError"

SYNC: dict[str, list[Step]] = SHARED | {
    "cleanup_old_versions": [
        lambda c: c.t.add(rows(64, 66)),
        lambda c: c.t.cleanup_old_versions(timedelta(0)),
        lambda c: [version["version"] for version in c.subject.open().list_versions()],
        Call.rows,
    ],
    "compact_files": [
        lambda c: c.t.add(rows(64, 66)),
        lambda c: c.t.compact_files(),
        Call.rows,
    ],
    "create": [
        Differs(
            lambda c: LanceTable.create(c.subject.db, f"{c.subject.name}_c", rows(), **c.subject.place).count_rows(),
            Raised("AttributeError"),
            DIRECT,
        ),
    ],
    "create_fts_index": [
        lambda c: c.t.create_fts_index("s"),
        lambda c: c.t.create_fts_index("s"),
        lambda c: c.t.create_fts_index("s", replace=True),
        lambda c: c.t.create_fts_index("id"),
        lambda c: sorted(ids(c.t.search("lemon", query_type="fts").limit(100))),
    ],
    "create_scalar_index": [
        lambda c: c.t.create_scalar_index("id"),
        lambda c: c.t.create_scalar_index("s", index_type="BITMAP"),
        lambda c: c.t.create_scalar_index("nope"),
        lambda c: sorted((index.name, index.index_type) for index in c.t.list_indices()),
    ],
    "embedding_functions": [lambda c: c.t.embedding_functions],
    "latest_storage_options": [
        Differs(
            lambda c: c.t.latest_storage_options(), {}, "lancedb: a namespace provides options, of which there are none"
        ),
    ],
    "from_inner": [lambda c: callable(c.t.from_inner)],
    "id": [lambda c: c.t.id == "$".join([*c.subject.namespace, c.subject.name])],
    "infer_tokenizer_configs": [lambda c: c.t.infer_tokenizer_configs("en_stem")],
    "merge": [
        lambda c: c.t.merge(pa.table({"id": pa.array([1, 2], pa.int64()), "extra": ["a", "b"]}), "id"),
        Call.rows,
        lambda c: c.t.merge(pa.table({"id": pa.array([1], pa.int64()), "x": [1.0]}), "id"),
    ],
    "migrate_v2_manifest_paths": [lambda c: c.t.migrate_v2_manifest_paths()],
    "namespace": [lambda c: tuple(c.t.namespace) == c.subject.namespace],
    "open": [
        Differs(
            lambda c: LanceTable.open(c.subject.db, c.subject.name, **c.subject.place).count_rows(),
            Raised("AttributeError"),
            DIRECT,
        ),
        Differs(
            lambda c: LanceTable.open(c.subject.db, "missing", **c.subject.place), Raised("AttributeError"), DIRECT
        ),
    ],
    "schema": [lambda c: c.t.schema],
    "to_polars": [lambda c: c.t.to_polars()],
    "update": [
        lambda c: c.t.update(where="id < 3", values={"s": "new"}),
        lambda c: c.t.update(where="id < 5", values_sql={"x": "x + 1"}),
        lambda c: c.t.update(where="id < 5", values_sql={"nope": "1"}),
        lambda c: c.t.update(where="nope = 1", values={"s": "new"}),
        Call.rows,
    ],
    "uri": [lambda c: c.subject.name in c.t.uri],
    "version": [lambda c: c.t.version, lambda c: c.t.add(rows(64, 66)), lambda c: c.t.version],
}

ASYNC: dict[str, list[Step]] = SHARED | {
    "close": [lambda c: c.t.close(), lambda c: c.t.is_open(), lambda c: c.t.count_rows()],
    "embedding_functions": [lambda c: c.t.embedding_functions()],
    "is_open": [lambda c: c.t.is_open()],
    "migrate_manifest_paths_v2": [lambda c: c.t.migrate_manifest_paths_v2()],
    "query": [
        lambda c: sorted(ids(c.t.query().where("id > 50"))),
        lambda c: c.t.query().select(["id"]).limit(3).offset(2).to_arrow(),
        lambda c: c.t.query().nearest_to(VECTOR).limit(4).to_arrow(),
        lambda c: c.t.query().where("nope = 1").to_list(),
    ],
    "schema": [lambda c: c.t.schema()],
    "update": [
        lambda c: c.t.update({"s": "new"}, where="id < 3"),
        lambda c: c.t.update(updates_sql={"x": "x + 1"}, where="id < 5"),
        lambda c: c.t.update({"nope": 1}, where="id < 5"),
        Call.rows,
    ],
    "uri": [lambda c: c.subject.name in c.t.uri()],
    "vector_search": [lambda c: ids(c.t.vector_search(VECTOR).limit(4))],
    "version": [lambda c: c.t.version(), lambda c: c.t.add(rows(64, 66)), lambda c: c.t.version()],
}

PUSHED_DOWN: dict[str, dict[int, tuple[Any, str]]] = {
    "query": {0: (list(range(51, 61)), UNBOUNDED), 3: (Raised("RuntimeError"), ONE_TYPE)},
    "to_arrow": {1: (10, UNBOUNDED)},
    "to_pandas": {1: (10, UNBOUNDED)},
    "create_fts_index": {4: (Raised("RuntimeError"), ONE_TYPE)},
}
"""Steps whose outcomes are others where queries are pushed down: by method and number, the outcome and the reason."""


def steps_of(cases: dict[str, list[Step]], name: str, pushed: tuple[str, ...]) -> list[Step]:
    """The steps of a method, where these operations are pushed down."""
    steps = list(cases[name])
    if pushed:
        for number, (ours, reason) in PUSHED_DOWN.get(name, {}).items():
            step = steps[number]
            assert not isinstance(step, Differs)
            steps[number] = Differs(step, ours, reason)
    return steps
