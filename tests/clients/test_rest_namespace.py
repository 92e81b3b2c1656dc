"""Every method of pylance's `RestNamespace` on this server, beside the same calls on pylance's own catalog.

A method is a list of steps on a table of its own. Each step has an outcome: a value without times, places and random
identifiers, or the type of an error. `Differs` is a step whose outcome is another here, with the reason.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import lance
import lance_namespace as m
import pyarrow as pa
import pytest
from lance.namespace import DirectoryNamespace as StockNamespace
from lance.namespace import RestNamespace

from namespace_server.app import create_app
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.rest.identity import Authenticator
from namespace_server.serving import Server, ServingOptions
from tests.clients.outcomes import Differs, Raised, Step, differences, outcome
from tests.data.arrow import stream

_numbers = count()
ROWS = pa.table(
    {
        "id": pa.array(range(12), pa.int64()),
        "x": [n / 4 for n in range(12)],
        "s": [f"word{n % 3} text" for n in range(12)],
        "v": pa.array([[n, n % 5, 1.0, 0.0] for n in range(12)], pa.list_(pa.float32(), 4)),
    }
)
MORE = ROWS.slice(0, 3).set_column(0, "id", pa.array([10, 11, 12], pa.int64()))


@dataclass(frozen=True)
class Subject:
    """A namespace client, the id of a table of this test in the namespace `w`, and what it takes to open the table."""

    ns: Any
    id: list[str]
    storage_options: Mapping[str, str] | None = None

    @property
    def missing(self) -> list[str]:
        return [*self.id[:-1], "missing"]

    def other(self, suffix: str) -> list[str]:
        return [*self.id[:-1], f"{self.id[-1]}_{suffix}"]

    def create(self, table_id: list[str] | None = None, rows: pa.Table = ROWS, **given: Any) -> Any:
        return self.ns.create_table(m.CreateTableRequest(id=table_id or self.id, **given), stream(rows))

    def query(self, **given: Any) -> pa.Table:
        answer = self.ns.query_table(m.QueryTableRequest(id=self.id, **{"vector": {}, "k": 100} | given))
        return pa.ipc.open_file(io.BytesIO(answer.data)).read_all()

    def rows(self) -> list[dict[str, Any]]:
        return sorted(self.query(columns={"column_names": ["id", "x", "s"]}).to_pylist(), key=lambda row: row["id"])

    def open(self) -> lance.LanceDataset:
        location = self.ns.describe_table(m.DescribeTableRequest(id=self.id)).location
        return lance.dataset(location, storage_options=self.storage_options)


def has(call: Callable[[Subject], Any], *fields: str) -> Step:
    """These fields of an answer alone; without any, that it is answered."""

    def step(t: Subject) -> dict[str, Any]:
        answer = call(t)
        return {name: getattr(answer, name) for name in fields}

    return step


def _index(t: Subject, **given: Any) -> m.CreateTableIndexRequest:
    return m.CreateTableIndexRequest(id=t.id, **given)


def _vector_query(**given: Any) -> m.QueryTableRequest:
    vector = m.QueryTableRequestVector(single_vector=[1.0, 1.0, 1.0, 0.0])
    return m.QueryTableRequest(**{"vector": vector, "vector_column": "v", "k": 3} | given)


def _fts_query(text: str) -> dict[str, Any]:
    return {"full_text_query": {"string_query": {"query": text, "columns": ["s"]}}}


def _indexed(t: Subject) -> None:
    t.ns.create_table_scalar_index(_index(t, column="id", index_type="BTREE", name="by_id"))


def _tagged(t: Subject) -> None:
    t.ns.create_table_tag(m.CreateTableTagRequest(id=t.id, tag="one", version=1))


def _branched(t: Subject) -> None:
    t.ns.create_table_branch(m.CreateTableBranchRequest(id=t.id, name="dev"))


def _appended(t: Subject) -> None:
    t.ns.insert_into_table(m.InsertIntoTableRequest(id=t.id, mode="append"), stream(MORE))


def _registered_again(t: Subject) -> Any:
    removed = t.ns.deregister_table(m.DeregisterTableRequest(id=t.id))
    location = removed.location.rstrip("/").rpartition("/")[2]
    return t.ns.register_table(m.RegisterTableRequest(id=t.id, location=location))


JOBS = "a job of a service that runs functions of clients: unsupported (0), which pylance reports as not implemented"
EMPTY = "a table and a namespace without properties have none, as the specification has it; null is no support"
MISSING = "a namespace that does not exist is an error, as the specification has it"
PARENT = "a table needs its namespace, as the specification has it"

CASES: dict[str, list[Step]] = {
    "namespace_id": [lambda t: isinstance(t.ns.namespace_id(), str)],
    "create_namespace": [
        lambda t: t.ns.create_namespace(m.CreateNamespaceRequest(id=t.other("n"), properties={"a": "b"})).properties,
        lambda t: t.ns.create_namespace(m.CreateNamespaceRequest(id=t.other("n"))),
        lambda t: t.ns.create_namespace(m.CreateNamespaceRequest(id=["absent", "n"])),
        Differs(
            lambda t: t.ns.create_namespace(m.CreateNamespaceRequest(id=t.other("n"), mode="exist_ok")).properties,
            {"a": "b"},
            "the mode is done as the specification has it",
        ),
    ],
    "list_namespaces": [
        has(lambda t: t.ns.create_namespace(m.CreateNamespaceRequest(id=t.other("parent")))),
        lambda t: t.ns.list_namespaces(m.ListNamespacesRequest(id=t.other("parent"))),
        has(lambda t: t.ns.create_namespace(m.CreateNamespaceRequest(id=[*t.other("parent"), "b"]))),
        has(lambda t: t.ns.create_namespace(m.CreateNamespaceRequest(id=[*t.other("parent"), "a"]))),
        lambda t: t.ns.list_namespaces(m.ListNamespacesRequest(id=t.other("parent"))),
        lambda t: t.ns.list_namespaces(m.ListNamespacesRequest(id=t.other("parent"), limit=1)),
        lambda t: t.ns.list_namespaces(m.ListNamespacesRequest(id=t.other("parent"), page_token="a")),
        Differs(
            lambda t: t.ns.list_namespaces(m.ListNamespacesRequest(id=t.missing)),
            Raised("NamespaceNotFoundError"),
            MISSING,
        ),
    ],
    "describe_namespace": [
        lambda t: t.ns.create_namespace(m.CreateNamespaceRequest(id=t.other("n"), properties={"a": "b"})),
        lambda t: t.ns.describe_namespace(m.DescribeNamespaceRequest(id=t.other("n"))),
        lambda t: t.ns.describe_namespace(m.DescribeNamespaceRequest(id=t.missing)),
        Differs(lambda t: t.ns.describe_namespace(m.DescribeNamespaceRequest(id=["w"])).properties, {}, EMPTY),
    ],
    "drop_namespace": [
        has(lambda t: t.ns.create_namespace(m.CreateNamespaceRequest(id=t.other("n")))),
        lambda t: t.ns.drop_namespace(m.DropNamespaceRequest(id=["w"])),
        has(lambda t: t.ns.drop_namespace(m.DropNamespaceRequest(id=t.other("n")))),
        lambda t: t.ns.drop_namespace(m.DropNamespaceRequest(id=t.other("n"))),
        lambda t: t.ns.drop_namespace(m.DropNamespaceRequest(id=[])),
    ],
    "namespace_exists": [
        lambda t: t.ns.namespace_exists(m.NamespaceExistsRequest(id=["w"])) is None,
        lambda t: t.ns.namespace_exists(m.NamespaceExistsRequest(id=t.missing)),
    ],
    "list_tables": [
        lambda t: t.id[-1] in t.ns.list_tables(m.ListTablesRequest(id=["w"])).tables,
        lambda t: len(t.ns.list_tables(m.ListTablesRequest(id=["w"], limit=1)).tables),
        lambda t: t.ns.list_tables(m.ListTablesRequest(id=["w"], page_token="zzzz")),
        Differs(
            lambda t: t.ns.list_tables(m.ListTablesRequest(id=t.missing)), Raised("NamespaceNotFoundError"), MISSING
        ),
    ],
    "list_all_tables": [
        Differs(
            lambda t: "$".join(t.id) in t.ns.list_all_tables(m.ListTablesRequest()).tables,
            ours=True,
            reason="pylance's catalog lists directories of the root only",
        ),
    ],
    "describe_table": [
        has(lambda t: t.ns.describe_table(m.DescribeTableRequest(id=t.id)), "table", "namespace"),
        Differs(lambda t: t.ns.describe_table(m.DescribeTableRequest(id=t.id)).properties, {}, EMPTY),
        lambda t: t.ns.describe_table(m.DescribeTableRequest(id=t.id, load_detailed_metadata=True)).version,
        lambda t: [
            field.name
            for field in t.ns.describe_table(
                m.DescribeTableRequest(id=t.id, load_detailed_metadata=True)
            ).var_schema.fields
        ],
        has(lambda t: t.ns.describe_table(m.DescribeTableRequest(id=t.id, check_declared=True)), "is_only_declared"),
        lambda t: t.ns.describe_table(m.DescribeTableRequest(id=t.id, vend_credentials=True)).storage_options,
        lambda t: t.ns.describe_table(m.DescribeTableRequest(id=t.missing)),
    ],
    "register_table": [
        lambda t: t.ns.register_table(m.RegisterTableRequest(id=t.id, location="elsewhere")),
        lambda t: t.ns.register_table(m.RegisterTableRequest(id=t.other("r"), location="/absolute")),
        lambda t: t.ns.register_table(m.RegisterTableRequest(id=t.other("r"), location="../up")),
        lambda t: t.ns.register_table(m.RegisterTableRequest(id=t.other("r"), location="s3://bucket/t")),
        Differs(
            lambda t: t.ns.register_table(m.RegisterTableRequest(id=t.other("r"), location="nothing")),
            Raised("InvalidInputError"),
            "a location without a dataset is refused",
        ),
        has(_registered_again),
        Subject.rows,
    ],
    "table_exists": [
        lambda t: t.ns.table_exists(m.TableExistsRequest(id=t.id)) is None,
        lambda t: t.ns.table_exists(m.TableExistsRequest(id=t.missing)),
    ],
    "drop_table": [
        has(lambda t: t.ns.drop_table(m.DropTableRequest(id=t.id)), "id"),
        lambda t: t.ns.table_exists(m.TableExistsRequest(id=t.id)),
        lambda t: t.ns.drop_table(m.DropTableRequest(id=t.id)),
    ],
    "deregister_table": [
        has(lambda t: t.ns.deregister_table(m.DeregisterTableRequest(id=t.id)), "id"),
        lambda t: t.ns.deregister_table(m.DeregisterTableRequest(id=t.id)),
    ],
    "create_table": [
        has(lambda t: t.create(t.other("c"), properties={"a": "b"}), "version", "properties"),
        lambda t: t.create(t.other("c")),
        has(lambda t: t.create(t.other("c"), mode="overwrite", rows=MORE), "version"),
        lambda t: t.ns.count_table_rows(m.CountTableRowsRequest(id=t.other("c"))),
        lambda t: t.create(t.other("c"), mode="exist_ok").location is not None,
        lambda t: t.create(t.other("d"), mode="unknown"),
        lambda t: t.ns.create_table(m.CreateTableRequest(id=t.other("d")), b""),
        Differs(
            lambda t: t.ns.create_table(m.CreateTableRequest(id=t.other("d")), b"no arrow"),
            Raised("InvalidInputError"),
            "the body of the client is wrong, not the server",
        ),
        Differs(lambda t: t.create(["absent", "t"]), Raised("NamespaceNotFoundError"), PARENT),
    ],
    "declare_table": [
        has(lambda t: t.ns.declare_table(m.DeclareTableRequest(id=t.other("d"), properties={"a": "b"})), "properties"),
        lambda t: t.ns.declare_table(m.DeclareTableRequest(id=t.other("d"))),
        lambda t: t.ns.declare_table(m.DeclareTableRequest(id=t.id)),
        has(
            lambda t: t.ns.describe_table(m.DescribeTableRequest(id=t.other("d"), check_declared=True)),
            "is_only_declared",
        ),
        Differs(
            lambda t: t.ns.declare_table(m.DeclareTableRequest(id=["absent", "t"])),
            Raised("NamespaceNotFoundError"),
            PARENT,
        ),
    ],
    "rename_table": [
        Differs(
            lambda t: t.ns.rename_table(m.RenameTableRequest(id=t.id, new_table_name=f"{t.id[-1]}_new")) is not None,
            ours=True,
            reason="pylance's catalog cannot rename",
        ),
    ],
    "list_table_versions": [
        _appended,
        lambda t: [v.version for v in t.ns.list_table_versions(m.ListTableVersionsRequest(id=t.id)).versions],
        lambda t: [
            v.version for v in t.ns.list_table_versions(m.ListTableVersionsRequest(id=t.id, descending=True)).versions
        ],
        lambda t: [
            v.version
            for v in t.ns.list_table_versions(m.ListTableVersionsRequest(id=t.id, descending=True, limit=1)).versions
        ],
        lambda t: t.ns.list_table_versions(m.ListTableVersionsRequest(id=t.missing)),
    ],
    "create_table_version": [
        lambda t: t.ns.create_table_version({"id": t.missing, "version": 1, "manifest_path": "x"}),
        lambda t: t.ns.create_table_version({"id": t.id, "version": 2, "manifest_path": "absent"}),
    ],
    "describe_table_version": [
        _appended,
        lambda t: t.ns.describe_table_version({"id": t.id})["version"]["version"],
        lambda t: t.ns.describe_table_version({"id": t.id, "version": 1})["version"]["version"],
        lambda t: t.ns.describe_table_version({"id": t.id, "version": 9}),
        lambda t: t.ns.describe_table_version({"id": t.missing}),
    ],
    "batch_delete_table_versions": [
        _appended,
        _appended,
        lambda t: t.ns.batch_delete_table_versions(
            {"id": t.id, "ranges": [{"start_version": 1, "end_version": 2}]}
        ).get("deleted_count"),
        lambda t: [v.version for v in t.ns.list_table_versions(m.ListTableVersionsRequest(id=t.id)).versions],
        lambda t: t.ns.batch_delete_table_versions(
            {"id": t.missing, "ranges": [{"start_version": 1, "end_version": 2}]}
        ),
    ],
    "count_table_rows": [
        lambda t: t.ns.count_table_rows(m.CountTableRowsRequest(id=t.id)),
        lambda t: t.ns.count_table_rows(m.CountTableRowsRequest(id=t.id, predicate="id > 4")),
        lambda t: t.ns.count_table_rows(m.CountTableRowsRequest(id=t.missing)),
    ],
    "insert_into_table": [
        has(
            lambda t: t.ns.insert_into_table(m.InsertIntoTableRequest(id=t.id, mode="append"), stream(MORE)),
            "version",
            "num_inserted_rows",
        ),
        Subject.rows,
        has(
            lambda t: t.ns.insert_into_table(m.InsertIntoTableRequest(id=t.id, mode="overwrite"), stream(MORE)),
            "version",
        ),
        Subject.rows,
        lambda t: t.ns.insert_into_table(m.InsertIntoTableRequest(id=t.missing), stream(MORE)),
    ],
    "merge_insert_into_table": [
        has(
            lambda t: t.ns.merge_insert_into_table(
                m.MergeInsertIntoTableRequest(
                    id=t.id, on=["id"], when_matched_update_all=True, when_not_matched_insert_all=True
                ),
                stream(MORE),
            ),
            "version",
            "num_updated_rows",
            "num_inserted_rows",
            "num_deleted_rows",
        ),
        Subject.rows,
        lambda t: t.ns.merge_insert_into_table(m.MergeInsertIntoTableRequest(id=t.missing, on=["id"]), stream(MORE)),
    ],
    "update_table": [
        has(
            lambda t: t.ns.update_table(m.UpdateTableRequest(id=t.id, predicate="id < 3", updates=[["x", "x + 1"]])),
            "version",
            "updated_rows",
        ),
        Subject.rows,
        lambda t: t.ns.update_table(m.UpdateTableRequest(id=t.missing, updates=[["x", "1"]])),
    ],
    "delete_from_table": [
        has(lambda t: t.ns.delete_from_table(m.DeleteFromTableRequest(id=t.id, predicate="id < 3")), "version"),
        Subject.rows,
        lambda t: t.ns.delete_from_table(m.DeleteFromTableRequest(id=t.missing, predicate="true")),
    ],
    "query_table": [
        Subject.rows,
        lambda t: t.query(filter="id > 8", columns={"column_names": ["id"]}),
        lambda t: t.query(k=3, offset=2, columns={"column_names": ["id", "s"]}),
        lambda t: t.query(vector={"single_vector": [1.0, 1.0, 1.0, 0.0]}, vector_column="v", k=3),
        lambda t: t.ns.create_table_index(_index(t, column="s", index_type="FTS")) and None,
        lambda t: sorted(t.query(**_fts_query("word1")).column("id").to_pylist()),
        lambda t: t.ns.query_table(m.QueryTableRequest(id=t.missing, k=1, vector={})),
    ],
    "create_table_index": [
        lambda t: t.ns.create_table_index(_index(t, column="v", index_type="IVF_FLAT", num_partitions=1)) and None,
        lambda t: t.ns.create_table_index(_index(t, column="s", index_type="INVERTED", name="words")) and None,
        lambda t: [
            (index.index_name, index.columns, index.num_indexed_rows)
            for index in t.ns.list_table_indices(m.ListTableIndicesRequest(id=t.id)).indexes
        ],
        lambda t: t.ns.create_table_index(m.CreateTableIndexRequest(id=t.missing, column="v", index_type="IVF_FLAT")),
    ],
    "create_table_scalar_index": [
        lambda t: t.ns.create_table_scalar_index(_index(t, column="id", index_type="BTREE")) and None,
        lambda t: t.ns.create_table_scalar_index(_index(t, column="s", index_type="BITMAP", name="b")) and None,
        lambda t: sorted(
            (index.index_name, *index.columns)
            for index in t.ns.list_table_indices(m.ListTableIndicesRequest(id=t.id)).indexes
        ),
    ],
    "list_table_indices": [
        lambda t: t.ns.list_table_indices(m.ListTableIndicesRequest(id=t.id)),
        _indexed,
        lambda t: [
            (index.index_name, index.columns, index.status, index.index_type, index.num_unindexed_rows)
            for index in t.ns.list_table_indices(m.ListTableIndicesRequest(id=t.id)).indexes
        ],
        lambda t: t.ns.list_table_indices(m.ListTableIndicesRequest(id=t.missing)),
    ],
    "describe_table_index_stats": [
        _indexed,
        _appended,
        has(
            lambda t: t.ns.describe_table_index_stats(m.DescribeTableIndexStatsRequest(id=t.id, index_name="by_id")),
            "index_type",
            "num_indexed_rows",
            "num_unindexed_rows",
            "num_indices",
        ),
        lambda t: t.ns.describe_table_index_stats(m.DescribeTableIndexStatsRequest(id=t.id, index_name="none")),
    ],
    "drop_table_index": [
        _indexed,
        has(lambda t: t.ns.drop_table_index(m.DropTableIndexRequest(id=t.id, index_name="by_id"))),
        lambda t: t.ns.list_table_indices(m.ListTableIndicesRequest(id=t.id)),
        lambda t: t.ns.drop_table_index(m.DropTableIndexRequest(id=t.id, index_name="by_id")),
    ],
    "describe_transaction": [
        lambda t: t.ns.describe_transaction(m.DescribeTransactionRequest(id=[*t.id, "1"])).status.lower(),
        lambda t: t.ns.describe_transaction(m.DescribeTransactionRequest(id=[*t.id, "9"])),
    ],
    "alter_transaction": [
        lambda t: t.ns.alter_transaction(
            m.AlterTransactionRequest(
                id=[*t.id, "1"], actions=[m.AlterTransactionAction(setPropertyAction={"key": "a", "value": "b"})]
            )
        ),
    ],
    "restore_table": [
        _appended,
        has(lambda t: t.ns.restore_table(m.RestoreTableRequest(id=t.id, version=1))),
        Subject.rows,
        lambda t: t.open().version,
        Differs(
            lambda t: t.ns.restore_table(m.RestoreTableRequest(id=t.id, version=99)),
            Raised("TableVersionNotFoundError"),
            "pylance's catalog raises no error of the namespace API",
        ),
    ],
    "update_table_schema_metadata": [
        lambda t: (
            t.ns.update_table_schema_metadata(m.UpdateTableSchemaMetadataRequest(id=t.id, metadata={"a": "b"})).metadata
        ),
        lambda t: t.open().schema.metadata,
        lambda t: t.ns.update_table_schema_metadata(m.UpdateTableSchemaMetadataRequest(id=t.missing, metadata={})),
    ],
    "get_table_stats": [
        has(lambda t: t.ns.get_table_stats(m.GetTableStatsRequest(id=t.id)), "num_rows", "num_indices"),
        lambda t: t.ns.get_table_stats(m.GetTableStatsRequest(id=t.id)).fragment_stats.num_fragments,
        lambda t: t.ns.get_table_stats(m.GetTableStatsRequest(id=t.missing)),
    ],
    "explain_table_query_plan": [
        lambda t: (
            "KNN"
            in t.ns.explain_table_query_plan(
                m.ExplainTableQueryPlanRequest(id=t.id, query=_vector_query(bypass_vector_index=True))
            )
        ),
        lambda t: t.ns.explain_table_query_plan(m.ExplainTableQueryPlanRequest(id=t.missing, query=_vector_query())),
    ],
    "analyze_table_query_plan": [
        lambda t: (
            "KNN"
            in t.ns.analyze_table_query_plan(
                m.AnalyzeTableQueryPlanRequest(id=t.id, **_vector_query().model_dump(exclude_none=True))
            )
        ),
        lambda t: t.ns.analyze_table_query_plan(
            m.AnalyzeTableQueryPlanRequest(id=t.missing, **_vector_query().model_dump(exclude_none=True))
        ),
    ],
    "alter_table_add_columns": [
        has(
            lambda t: t.ns.alter_table_add_columns(
                m.AlterTableAddColumnsRequest(id=t.id, new_columns=[{"name": "y", "expression": "x * 2"}])
            ),
            "version",
        ),
        lambda t: t.query(columns={"column_names": ["id", "y"]}),
        lambda t: t.ns.alter_table_add_columns(
            m.AlterTableAddColumnsRequest(id=t.missing, new_columns=[{"name": "y", "expression": "1"}])
        ),
    ],
    "alter_table_alter_columns": [
        has(
            lambda t: t.ns.alter_table_alter_columns(
                m.AlterTableAlterColumnsRequest(id=t.id, alterations=[{"path": "x", "rename": "z"}])
            ),
            "version",
        ),
        lambda t: t.query(columns={"column_names": ["id", "z"]}),
    ],
    "alter_table_drop_columns": [
        has(
            lambda t: t.ns.alter_table_drop_columns(m.AlterTableDropColumnsRequest(id=t.id, columns=["s", "x"])),
            "version",
        ),
        lambda t: t.query().column_names,
    ],
    "alter_table_backfill_columns": [
        Differs(
            lambda t: t.ns.alter_table_backfill_columns(m.AlterTableBackfillColumnsRequest(id=t.id, column="x")),
            Raised("UnsupportedOperationError"),
            JOBS,
        ),
    ],
    "refresh_materialized_view": [
        Differs(
            lambda t: t.ns.refresh_materialized_view(m.RefreshMaterializedViewRequest(id=t.id)),
            Raised("UnsupportedOperationError"),
            JOBS,
        ),
    ],
    "create_materialized_view": [
        Differs(
            lambda t: t.ns.create_materialized_view(
                m.CreateMaterializedViewRequest(id=t.other("view"), kind="query", source_query="x", output_schema="x")
            ),
            Raised("UnsupportedOperationError"),
            JOBS,
        ),
    ],
    "list_table_tags": [
        lambda t: t.ns.list_table_tags(m.ListTableTagsRequest(id=t.id)),
        _tagged,
        lambda t: t.ns.list_table_tags(m.ListTableTagsRequest(id=t.id)).tags["one"].version,
        lambda t: t.ns.list_table_tags(m.ListTableTagsRequest(id=t.missing)),
    ],
    "get_table_tag_version": [
        _tagged,
        lambda t: t.ns.get_table_tag_version(m.GetTableTagVersionRequest(id=t.id, tag="one")).version,
        lambda t: t.ns.get_table_tag_version(m.GetTableTagVersionRequest(id=t.id, tag="none")),
    ],
    "create_table_tag": [
        has(lambda t: t.ns.create_table_tag(m.CreateTableTagRequest(id=t.id, tag="one", version=1))),
        lambda t: t.ns.create_table_tag(m.CreateTableTagRequest(id=t.id, tag="one", version=1)),
        lambda t: t.ns.create_table_tag(m.CreateTableTagRequest(id=t.id, tag="two", version=9)),
    ],
    "delete_table_tag": [
        _tagged,
        has(lambda t: t.ns.delete_table_tag(m.DeleteTableTagRequest(id=t.id, tag="one"))),
        lambda t: t.ns.delete_table_tag(m.DeleteTableTagRequest(id=t.id, tag="one")),
    ],
    "update_table_tag": [
        _tagged,
        _appended,
        has(lambda t: t.ns.update_table_tag(m.UpdateTableTagRequest(id=t.id, tag="one", version=2))),
        lambda t: t.ns.get_table_tag_version(m.GetTableTagVersionRequest(id=t.id, tag="one")).version,
        lambda t: t.ns.update_table_tag(m.UpdateTableTagRequest(id=t.id, tag="none", version=1)),
    ],
    "create_table_branch": [
        has(lambda t: t.ns.create_table_branch(m.CreateTableBranchRequest(id=t.id, name="dev"))),
        lambda t: t.ns.create_table_branch(m.CreateTableBranchRequest(id=t.id, name="dev")),
        lambda t: t.ns.create_table_branch(m.CreateTableBranchRequest(id=t.missing, name="dev")),
    ],
    "list_table_branches": [
        lambda t: t.ns.list_table_branches(m.ListTableBranchesRequest(id=t.id)),
        _branched,
        lambda t: {
            name: branch.parent_version
            for name, branch in t.ns.list_table_branches(m.ListTableBranchesRequest(id=t.id)).branches.items()
        },
    ],
    "delete_table_branch": [
        _branched,
        has(lambda t: t.ns.delete_table_branch(m.DeleteTableBranchRequest(id=t.id, name="dev"))),
        lambda t: t.ns.delete_table_branch(m.DeleteTableBranchRequest(id=t.id, name="dev")),
    ],
    "retrieve_ops_metrics": [lambda t: isinstance(t.ns.retrieve_ops_metrics(), dict)],
    "reset_ops_metrics": [lambda t: t.ns.reset_ops_metrics()],
}


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RestNamespace, StockNamespace]]:
    """pylance's client of this server, and pylance's own catalog."""
    namespace = DirectoryNamespace(root=str(tmp_path_factory.mktemp("root")), durability="none")
    server = Server(create_app(namespace, Authenticator({})), ServingOptions(port=0))
    started = threading.Event()
    thread = threading.Thread(target=server.run, args=(started.set,))
    thread.start()
    assert started.wait(30)
    made = RestNamespace(uri=server.url), StockNamespace(root=str(tmp_path_factory.mktemp("stock")))
    for client in made:
        client.create_namespace(m.CreateNamespaceRequest(id=["w"]))
    yield made
    server.stop()
    thread.join()


def test_every_method_has_a_case() -> None:
    assert {name for name in dir(RestNamespace) if not name.startswith("_")} == _methods() | _INHERITED
    assert CASES.keys() == _methods()


def _methods() -> set[str]:
    return {name for name in vars(RestNamespace) if not name.startswith("_")}


_INHERITED = {
    "batch_commit_tables",
    "batch_create_table_versions",
    "create_empty_table",
    "update_field_metadata",
}
"""Methods that pylance's client does not have: those of its base class say so."""


@pytest.mark.filterwarnings("ignore:create_empty_table:DeprecationWarning")
@pytest.mark.parametrize("name", sorted(_INHERITED))
def test_what_the_client_does_not_send(clients: tuple[RestNamespace, StockNamespace], name: str) -> None:
    ours, stock = (outcome(lambda client=client: getattr(client, name)(object())) for client in clients)
    assert ours == stock == Raised("UnsupportedOperationError")


@pytest.mark.parametrize("name", CASES)
def test_a_method_does_what_it_does_on_a_local_catalog(
    clients: tuple[RestNamespace, StockNamespace], name: str
) -> None:
    table_id = ["w", f"t{next(_numbers)}"]
    ours, stock = (Subject(client, table_id) for client in clients)
    for subject in (ours, stock):
        subject.create()
    assert differences(CASES[name], ours, stock) == []
