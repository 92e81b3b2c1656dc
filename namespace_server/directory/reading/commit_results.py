"""Responses of committed calls, made from their plans, with the exact wire names."""

from __future__ import annotations

from typing import Any

from namespace_server.directory.catalog import Catalog
from namespace_server.directory.model.operations import (
    AssertTableVersion,
    CommitTransaction,
    CreateTableVersion,
    DeclareTable,
    DeleteTableVersions,
    DeregisterTable,
    DropTable,
    Operation,
    SetTableProperties,
)
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.plan_builder import Plan, Result
from namespace_server.directory.reading.table_versions import version_body

Body = dict[str, Any]

_FIELDS: dict[type, str] = {
    DeclareTable: "declare_table",
    CreateTableVersion: "create_table_version",
    DeleteTableVersions: "delete_table_versions",
    DeregisterTable: "deregister_table",
    CommitTransaction: "commit_transaction",
    AssertTableVersion: "assert_table_version",
    SetTableProperties: "set_table_properties",
}


def answer_call(catalog: Catalog, operation: str, plan: Plan, snapshot: CatalogSnapshot) -> Body:
    """The body that answers `operation`, whose batch is committed as `plan` in `snapshot`."""
    results = [
        _result(catalog, asked, result, snapshot)
        for asked, result in zip(plan.batch.operations, plan.results, strict=True)
    ]
    if operation == "batch_commit_tables":
        named = [{_FIELDS[type(asked)]: result} for asked, result in zip(plan.batch.operations, results, strict=True)]
        return {"transaction_id": plan.transaction_id, "results": named}
    if operation == "batch_create_table_versions":
        return {"transaction_id": plan.transaction_id, "versions": [result["version"] for result in results]}
    transaction: object = [plan.transaction_id] if operation == "drop_namespace" else plan.transaction_id
    return {**results[0], "transaction_id": transaction}


def _result(catalog: Catalog, operation: Operation, result: Result, snapshot: CatalogSnapshot) -> Result:
    if isinstance(operation, DeclareTable | DeregisterTable | DropTable):
        return {**result, "location": catalog.store.object_uri(result["location"])}
    if not isinstance(operation, CreateTableVersion | CommitTransaction):
        return result
    version = result["version"]
    entry = snapshot.version_entry(operation.id, operation.branch, version["version"])
    if entry is None:  # removed since, by a later batch: answer as of the commit
        version = {**version, "manifest_path": catalog.store.object_path(version["manifest_path"])}
        if not catalog.store.content_e_tags:
            version.pop("e_tag", None)
        return {**result, "version": version}
    path = entry.canonical_path
    if not catalog.promoter.is_promoted(entry, snapshot):
        catalog.promoter.promote([entry], snapshot)
        path = catalog.promoter.known_path(entry, snapshot)
    return {**result, "version": version_body(catalog.store, entry, path)}
