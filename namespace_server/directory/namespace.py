"""`DirectoryNamespace`: the catalog as a `lance_namespace.LanceNamespace`.

Its methods have the signatures of the base class. Each passes the JSON of its request to `JsonCatalog`, and makes of
the answer the response that the base class declares.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Final

import pyarrow as pa
from lance_namespace import LanceNamespace
from lance_namespace.errors import UnsupportedOperationError
from pydantic import TypeAdapter

from namespace_server.answer import Answer
from namespace_server.data.reads import ReadPoint
from namespace_server.data.request_checks import change_type, changes_type, checked, read_type
from namespace_server.data.uploads import STAGED_CHANGES
from namespace_server.directory.json_api import JsonCatalog
from namespace_server.directory.model.batch_requests import CALLS
from namespace_server.directory.reading.descriptions import READS
from namespace_server.directory.references.changes import CHANGES
from table_data.batch_operations import Json
from table_data.jobs.job import CHANGES_OF_ROWS
from table_data.requests.table_requests import CreateTable

_CREATE: Final = TypeAdapter(CreateTable)


class DirectoryNamespace(JsonCatalog, LanceNamespace):
    """The catalog of one directory or bucket.

    Properties (strings, as `lance_namespace.connect` passes them):

    * `root` (required): a path or URI; `storage.*`: options of its object store, by Lance's names;
    * `storage_concurrency`: how many requests to a bucket may be in flight at once (256 on S3, 32 on others);
    * `durability`: `fsync` (default) or `none`: whether a local commit survives a power loss;
    * `manifest_store`: URL of a database that decides which commit gets a version, for a store that cannot decide it:
      of the catalog and of every table. All processes on one root must name the same;
    * `sweep_interval_seconds` (2): how often unfinished promotions are looked for; 0 switches it off;
    * `commit_tries` (20), `group_limit` (64, in a bucket 256): see `CatalogOptions`;
    * `stage_max_age_seconds` (3 days), `record_retention_seconds` (1 day);
    * `allowed_locations`: absolute paths or URIs, separated by commas or as a JSON list. Symbolic links of registered
      tables and base paths of manifests may lead below these, and else below the root alone;
    * `blob_locations`: likewise, below which values of blob columns may be files that are read for callers;
    * `implicit_namespaces`, `verify_data_files`, `fenced` (`false`): see `CatalogOptions`;
    * `vended.*`: options of the object store that clients are handed; `vended_role_arn`, `vended_azure_sas`,
      `vended_google_token`, `vended_sts_endpoint`, `vended_permission`, `vended_seconds`: temporary ones for one table;
      see `VendingOptions`;
    * `max_operations` (10,000) of a batch.

    A `catalog`, opened or as a `CatalogSource`, takes the place of all these. Constructing reads and writes nothing,
    but asks the manifest store for its schema, and raises `StorageError` unless it is the one of this release. Every
    change is a batch: all or nothing. Raises the errors of `lance_namespace.errors`. Thread-safe.
    """

    def namespace_id(self) -> str:
        """A readable name of this namespace."""
        return f"DirectoryNamespace {{ root: '{self.catalog.store.uri}' }}"

    def blob_refusal(self, place: str) -> str | None:
        """Why the file at this path or URI, which is a value of a column of blobs, is not read; None if it is."""
        return self.catalog.blob_locations.refusal(place)

    def commit_batch(self, request: Json, *, idempotency_key: str | None = None) -> Json:
        """BatchCommitTables with our operations too; request and answer as on the wire."""
        return dict(self.write("batch_commit_tables", request, idempotency_key=idempotency_key).body)

    def read_rows(self, operation: str, request: Json, *, at: int | None = None) -> pa.RecordBatchReader:
        """Ours: a read whose answer is rows, which are read as they are taken.

        `read_table_changes`, or `query_table` at a catalog version, the newest if None.
        """
        if operation == CHANGES_OF_ROWS and at is None:  # their request names the catalog versions
            return self.row_reads.changes(checked(changes_type(), request))
        if operation == "query_table":
            return self.row_reads.stream(operation, checked(read_type(operation), request), ReadPoint(at))
        raise UnsupportedOperationError(f"{operation}: expected query_table, or {CHANGES_OF_ROWS} without `at`")

    def read_value(self, operation: str, request: Json, *, at: int | None = None) -> Any:
        """Ours: a read of a table whose answer is a value of JSON, at a catalog version, the newest if None."""
        return self.row_reads.value(operation, checked(read_type(operation), request), ReadPoint(at)).body

    def stage_rows(self, request: Json, request_data: bytes) -> Json:
        """Ours: write rows (an Arrow IPC stream or file) for a batch that commits them.

        `request` has an `id`, a `mode` (`create`, `append`, `overwrite`), and optionally `properties` and a `branch`.
        The answer has the `operations` for `commit_batch`, `num_rows` and the `location` of the table.
        """
        return dict(self.data.stage_rows(checked(_CREATE, request), request_data).body)

    def stage_change(self, operation: str, request: Json, request_data: bytes | None = None) -> Json:
        """Ours: write the files of an update (`stage_update`), deletion (`stage_delete`) or merge (`stage_merge`).

        A merge has rows (an Arrow IPC stream or file). The answer has the `operations` for `commit_batch`, and the
        numbers of rows.
        """
        wanted = checked(change_type(STAGED_CHANGES[operation]), request)
        return dict(self.data.stage_change(operation, wanted, request_data).body)

    def maintain(self, request: Json) -> Answer:
        """Ours: maintain the main branch of a table (`maintain_table`), or plan that; as on the wire.

        The work is done in this process, as often as it is asked for: what is done already is found, and left.
        """
        return self.tables().maintain(request, self.data.change)


def _read(catalog: JsonCatalog, operation: str, request: Json) -> Any:
    return catalog.read(operation, request).body


def _commit(catalog: JsonCatalog, operation: str, request: Json) -> Any:
    return catalog.write(operation, request).body


def _change(catalog: JsonCatalog, operation: str, request: Json) -> Any:
    return catalog.change(operation, request).body


def _change_table(catalog: JsonCatalog, operation: str, request: Json, *rows: bytes) -> Any:
    return catalog.data.change(operation, checked(change_type(operation), request), *rows).body


def _create_table(catalog: JsonCatalog, _operation: str, request: Json, rows: bytes) -> Any:
    create = checked(_CREATE, request)
    return catalog.with_storage_options(catalog.data.create_table(create, rows)).body


def _read_table(catalog: JsonCatalog, operation: str, request: Json) -> Any:
    return catalog.row_reads.value(operation, checked(read_type(operation), request)).body


def _query(catalog: JsonCatalog, operation: str, request: Json) -> Any:
    return {"data": catalog.row_reads.rows(operation, checked(read_type(operation), request))}


def _count(catalog: JsonCatalog, operation: str, request: Json) -> Any:
    return {"count": _read_table(catalog, operation, request)}


_METHODS: Final[Mapping[str, Callable[..., Any]]] = {
    **{name: _read for name in READS if hasattr(LanceNamespace, name)},
    **{name: _commit for name in CALLS if hasattr(LanceNamespace, name)},
    **{name: _change for name in CHANGES if hasattr(LanceNamespace, name)},
    "create_table": _create_table,
    "insert_into_table": _change_table,
    "merge_insert_into_table": _change_table,
    "update_table": _change_table,
    "delete_from_table": _change_table,
    "restore_table": _change_table,
    "update_table_schema_metadata": _change_table,
    "update_field_metadata": _change_table,
    "alter_table_add_columns": _change_table,
    "alter_table_alter_columns": _change_table,
    "alter_table_drop_columns": _change_table,
    "create_table_index": _change_table,
    "create_table_scalar_index": _change_table,
    "drop_table_index": _change_table,
    "describe_table_index_stats": _read_table,
    "list_table_indices": _read_table,
    "get_table_stats": _read_table,
    "query_table": _query,
    "count_table_rows": _count,
    "explain_table_query_plan": _read_table,
    "analyze_table_query_plan": _read_table,
}
"""How each method gets the body of its answer."""


def _method(operation: str, work: Callable[..., Any]) -> Callable[..., Any]:
    """The method of an operation. Pylance's native code passes requests as mappings."""
    declared = getattr(LanceNamespace, operation)
    response = inspect.signature(declared).return_annotation

    @wraps(declared)
    def method(self: DirectoryNamespace, request: Any, *rows: bytes, **named: bytes) -> Any:
        body = dict(request) if isinstance(request, Mapping) else request.to_dict()
        answer = work(self, operation, body, *rows, *named.values())
        return answer if response is str else response.from_dict(answer)

    return method


for _operation, _work in _METHODS.items():
    setattr(DirectoryNamespace, _operation, _method(_operation, _work))
