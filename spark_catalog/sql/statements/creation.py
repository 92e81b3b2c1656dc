"""CREATE TABLE, and CREATE and REPLACE with rows: one batch makes the table, its properties and its rows."""

from __future__ import annotations

from collections.abc import Mapping

from spark_catalog.sql.errors import NoSuchTable, TableExists, Unsupported
from spark_catalog.sql.schemas import parse_schema, stored_schema
from spark_catalog.sql.sessions import Statement
from spark_catalog.sql.tables import PROVIDER, STABLE_ROW_IDS, checked_properties, only_declared
from spark_catalog.sql.transactions import SqlTransaction
from table_data.batch_operations import DELIMITER, Json, TableId
from table_data.descriptions import overwrite_operation
from table_data.table_changes import TableChanges


def create_table(statement: Statement, table: TableId, *, schema: Json, properties: Mapping[str, str]) -> None:
    """Create a table without rows.

    Raises:
        TableExists: The name is taken.
        Unsupported: A column or a property cannot be stored.
    """
    name = ".".join(table)
    kept, stable = checked_properties(name, properties)
    stored = stored_schema(parse_schema(schema), name)
    changes = statement.transaction.add_table(table, kept, stable_row_ids=stable)
    call = f"statement {statement.number}: CREATE TABLE"
    statement.transaction.take(changes, overwrite_operation(stored, []), call=call)


def plan_table(table: TableId, *, schema: Json, properties: Mapping[str, str]) -> Json:
    """A table that is not made yet. Raises `Unsupported` for a column or a property that cannot be stored."""
    name = ".".join(table)
    kept, stable = checked_properties(name, properties)
    stored_schema(parse_schema(schema), name)
    ref = {"table": list(table), "uri": None, "branch": None, "version": None, "steps": 0, "at": 0}
    return _described(ref, schema, kept, stable)


def stage_table(
    statement: Statement, table: TableId, mode: str, *, schema: Json, properties: Mapping[str, str]
) -> Json:
    """Make a table that has no version yet, or replace one; `mode` is create, replace or create_or_replace.

    An empty version is staged at once, since Spark writes nothing for a query without columns, and for REPLACE TABLE
    without a query. The rows replace it.

    Raises:
        TableExists: The name is taken, and `mode` is create.
        NoSuchTable: There is no such table, and `mode` is replace.
        Unsupported: A column or a property cannot be stored.
    """
    name = ".".join(table)
    transaction = statement.transaction
    kept, stable = checked_properties(name, properties)
    stored = stored_schema(parse_schema(schema), name)
    existing = transaction.find(table)
    if existing is not None and mode == "create":
        raise TableExists(f"{DELIMITER.join(table)} exists")
    if existing is None and mode == "replace":
        raise NoSuchTable(f"{DELIMITER.join(table)}: no such table to replace")
    changes = _target(transaction, table, existing, kept, stable)
    call = f"statement {statement.number}: {mode.replace('_', ' ').upper()} TABLE"
    transaction.take(changes, overwrite_operation(stored, []), call=call)
    ref = {
        "table": list(table),
        "uri": changes.state.uri,
        "branch": None,
        "version": None,
        "steps": 0,
        "at": transaction.catalog_version,
        "schema": schema,
        "replaces": existing is not None,
    }
    return _described(ref, schema, kept, stable)


def _described(ref: Json, schema: Json, properties: Mapping[str, str], stable: bool) -> Json:
    """A table without a version, as Java gets it."""
    return {
        "ref": ref,
        "schema": schema,
        "exact": [],
        "properties": {**properties, "provider": PROVIDER},
        "catalog_version": ref["at"],
        "stable_row_ids": stable,
        "fixed": False,
        "read_only": False,
        "all_rows": True,
        "limited": False,
        "row_count": 0,
    }


def _target(
    transaction: SqlTransaction,
    table: TableId,
    existing: TableChanges | None,
    properties: Mapping[str, str],
    stable: bool,
) -> TableChanges:
    if existing is None:
        return transaction.add_table(table, properties, stable_row_ids=stable)
    if not existing.has_version:
        raise only_declared(existing.name)
    if STABLE_ROW_IDS in properties and stable != existing.dataset().has_stable_row_ids:
        raise Unsupported(f"{existing.name}: {STABLE_ROW_IDS} cannot be changed; drop the table and create it anew")
    transaction.replace_properties(existing, properties)
    return existing
