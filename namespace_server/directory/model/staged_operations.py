"""The operations that a change of the rows of a table is committed with, as operations of the catalog.

They come from a worker, not over the wire. What a request had a part in is checked as in `requests`, with the same
errors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from namespace_server.directory.model import requests
from namespace_server.directory.model.operations import (
    AssertTableVersion,
    CommitTransaction,
    DeclareTable,
    SetTableProperties,
)
from namespace_server.directory.model.requests import RequestRules
from table_data.batch_operations import (
    PropertyChange,
    StagedOperation,
    TableDeclaration,
    TransactionCommit,
    VersionAssertion,
)

RowOperation = DeclareTable | CommitTransaction | AssertTableVersion | SetTableProperties


def row_operations(staged: Iterable[StagedOperation], rules: RequestRules) -> tuple[RowOperation, ...]:
    """The operations of a batch. Raises InvalidInputError (13)."""
    return tuple(_operation(operation, rules) for operation in staged)


def _operation(staged: StagedOperation, rules: RequestRules) -> RowOperation:
    match staged:
        case TableDeclaration(table_id, wanted, properties, is_implicit):
            if is_implicit:
                rules = replace(rules, implicit_namespaces=True)
            return requests.declared_table(table_id, wanted, properties, rules)
        case TransactionCommit(table_id, transaction, branch, stable_row_ids, data_format, place, manifest):
            requests.check_data_format(data_format)
            location = requests.location_key(place, rules)
            return CommitTransaction(table_id, branch, transaction, stable_row_ids, data_format, location, manifest)
        case VersionAssertion(table_id, version, branch, place, manifest):
            return AssertTableVersion(table_id, branch, version, requests.location_key(place, rules), manifest)
        case PropertyChange(table_id, changed, removals, replaces, place):
            requests.check_table_properties(changed, rules)
            location = requests.location_key(place, rules)
            whole, updates = (changed, {}) if replaces else (None, changed)
            return SetTableProperties(table_id, whole, updates, removals, location, rules.limits)
