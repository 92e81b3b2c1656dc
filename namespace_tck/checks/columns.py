"""AlterTableAddColumns, AlterTableAlterColumns, AlterTableDropColumns."""

from __future__ import annotations

import pyarrow as pa

from namespace_tck.registry import CheckList, Promise
from namespace_tck.rows import rows
from namespace_tck.trial import Trial

checks = CheckList()


def _fields(t: Trial, table: list[str]) -> list[str]:
    schema = t.call("describe_table", table, load_detailed_metadata=True).ok()["schema"]
    return [field["name"] for field in schema["fields"]]


def _add(name: str, expression: str) -> dict[str, list[dict[str, str]]]:
    return {"new_columns": [{"name": name, "expression": expression}]}


@checks("alter_table_add_columns", Promise.COLUMNS, "AddColumnsEntry.expression")
def adds_a_column_by_expression(t: Trial) -> None:
    """A new column holds the value of its expression for every row that is there."""
    made = t.table()
    t.call("alter_table_add_columns", made, _add("double", "id * 2")).ok()
    found = t.read(made)
    pairs = sorted(zip(found["id"].to_pylist(), found["double"].to_pylist(), strict=True))
    t.equal(pairs, [(1, 2), (2, 4), (3, 6)], "ids and values")


@checks("alter_table_add_columns", Promise.COLUMNS, "AddColumnsEntry.expression")
def rows_appended_later_are_null(t: Trial) -> None:
    """Rows that are appended later have null in a column that was added by expression."""
    made = t.table()
    t.call("alter_table_add_columns", made, _add("double", "id * 2")).ok()
    later = rows([4]).append_column("double", pa.array([None], pa.int64()))
    t.call("insert_into_table", made, later).ok()
    found = t.read(made)
    t.equal(dict(zip(found["id"].to_pylist(), found["double"].to_pylist(), strict=True))[4], None, "value")


@checks("alter_table_add_columns", Promise.ATOMICITY, "AlterTableAddColumnsRequest.new_columns")
def adds_several_columns_in_one_version(t: Trial) -> None:
    """Several columns are added in one version."""
    made = t.table()
    request = {"new_columns": [{"name": "a", "expression": "id"}, {"name": "b", "expression": "score"}]}
    found = t.call("alter_table_add_columns", made, request).ok()
    t.equal(found["version"], 2, "version")
    t.equal(_fields(t, made), ["id", "name", "score", "vector", "a", "b"], "fields")


@checks("alter_table_add_columns", Promise.ATOMICITY, "AlterTableAddColumnsRequest.new_columns")
def adds_no_column_if_one_is_wrong(t: Trial) -> None:
    """If one of several columns is refused, none is added."""
    made = t.table()
    request = {"new_columns": [{"name": "a", "expression": "id"}, {"name": "b", "expression": "invented + 1"}]}
    t.call("alter_table_add_columns", made, request).refused(12, 13, 20)
    t.equal(_fields(t, made), ["id", "name", "score", "vector"], "fields")
    t.equal(t.versions(made), [1], "versions")


@checks("alter_table_add_columns", Promise.ERRORS, "AddColumnsEntry.name")
def refuses_a_column_that_exists(t: Trial) -> None:
    """A column that exists is not added again: refused with code 13 or 20."""
    t.call("alter_table_add_columns", t.table(), _add("name", "id")).refused(13, 20)


@checks("alter_table_add_columns", Promise.ERRORS, "AddColumnsEntry.expression")
def refuses_an_expression_that_is_not_sql(t: Trial) -> None:
    """An expression that is not SQL is refused with 400, and nothing is added."""
    made = t.table()
    t.call("alter_table_add_columns", made, _add("a", "(((")).refused(13, 20)
    t.equal(t.versions(made), [1], "versions")


@checks("alter_table_add_columns", Promise.ERRORS, "AlterTableAddColumnsRequest.new_columns")
def refuses_to_add_nothing_named(t: Trial) -> None:
    """A request without new_columns is refused with 400 and code 13."""
    t.call("alter_table_add_columns", t.table(), {}).refused(13)


@checks("alter_table_add_columns", Promise.VERSIONS, "AlterTableAddColumnsResponse.version")
def older_versions_keep_their_columns(t: Trial) -> None:
    """A version from before the column does not have it."""
    made = t.table()
    t.call("alter_table_add_columns", made, _add("double", "id * 2")).ok()
    t.equal("double" in t.read(made, version=1).column_names, False, "column in version 1")


@checks("alter_table_alter_columns", Promise.COLUMNS, "AlterColumnsEntry.rename")
def renames_a_column(t: Trial) -> None:
    """A renamed column has its values under the new name alone."""
    made = t.table()
    t.call("alter_table_alter_columns", made, {"alterations": [{"path": "name", "rename": "title"}]}).ok()
    t.equal(_fields(t, made), ["id", "title", "score", "vector"], "fields")
    t.equal(sorted(t.read(made)["title"].to_pylist()), ["row 1", "row 2", "row 3"], "values")


@checks("alter_table_alter_columns", Promise.COLUMNS, "AlterColumnsEntry.data_type")
def changes_the_type_of_a_column(t: Trial) -> None:
    """A column that gets a wider type keeps its values."""
    made = t.table(data=pa.table({"id": pa.array([1, 2], pa.int32())}))
    request = {"alterations": [{"path": "id", "data_type": {"type": "int64"}}]}
    t.call("alter_table_alter_columns", made, request).ok()
    found = t.read(made)
    t.equal((str(found.schema.field("id").type), sorted(found["id"].to_pylist())), ("int64", [1, 2]), "column")


@checks("alter_table_alter_columns", Promise.COLUMNS, "AlterColumnsEntry.nullable")
def makes_a_column_nullable(t: Trial) -> None:
    """A column that was not nullable can be made so."""
    fields = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    made = t.table(data=pa.table({"id": [1]}, schema=fields))
    t.call("alter_table_alter_columns", made, {"alterations": [{"path": "id", "nullable": True}]}).ok()
    found = t.call("describe_table", made, load_detailed_metadata=True).ok()["schema"]["fields"][0]
    t.equal(found["nullable"], True, "nullable")


@checks("alter_table_alter_columns", Promise.ERRORS, "AlterColumnsEntry.path")
def refuses_to_alter_an_unknown_column(t: Trial) -> None:
    """A path that names no column is refused with code 12 or 13, and nothing changes."""
    made = t.table()
    request = {"alterations": [{"path": "invented", "rename": "title"}]}
    t.call("alter_table_alter_columns", made, request).refused(12, 13)
    t.equal(t.versions(made), [1], "versions")


@checks("alter_table_alter_columns", Promise.ATOMICITY, "AlterTableAlterColumnsRequest.alterations")
def alters_no_column_if_one_is_wrong(t: Trial) -> None:
    """If one of several alterations is refused, none is made."""
    made = t.table()
    request = {"alterations": [{"path": "name", "rename": "title"}, {"path": "invented", "rename": "x"}]}
    t.call("alter_table_alter_columns", made, request).refused(12, 13, 20)
    t.equal(_fields(t, made), ["id", "name", "score", "vector"], "fields")


@checks("alter_table_alter_columns", Promise.ERRORS, "AlterColumnsEntry.rename")
def refuses_a_rename_to_a_taken_name(t: Trial) -> None:
    """A new name that a column has is refused, and nothing changes."""
    made = t.table()
    t.call("alter_table_alter_columns", made, {"alterations": [{"path": "name", "rename": "id"}]}).refused(13, 20)
    t.equal(_fields(t, made), ["id", "name", "score", "vector"], "fields")


@checks("alter_table_drop_columns", Promise.COLUMNS, "AlterTableDropColumnsRequest.columns")
def drops_columns(t: Trial) -> None:
    """Dropped columns are gone, the rows and the other columns are there."""
    made = t.table()
    found = t.call("alter_table_drop_columns", made, {"columns": ["name", "score"]}).ok()
    t.equal(found["version"], 2, "version")
    t.equal(_fields(t, made), ["id", "vector"], "fields")
    t.equal(t.ids(made), [1, 2, 3], "ids")


@checks("alter_table_drop_columns", Promise.ERRORS, "AlterTableDropColumnsRequest.columns")
def refuses_to_drop_an_unknown_column(t: Trial) -> None:
    """A path that names no column is refused with code 12 or 13."""
    t.call("alter_table_drop_columns", t.table(), {"columns": ["invented"]}).refused(12, 13)


@checks("alter_table_drop_columns", Promise.ATOMICITY, "AlterTableDropColumnsRequest.columns")
def drops_no_column_if_one_is_wrong(t: Trial) -> None:
    """If one of several columns does not exist, none is dropped."""
    made = t.table()
    t.call("alter_table_drop_columns", made, {"columns": ["name", "invented"]}).refused(12, 13)
    t.equal(_fields(t, made), ["id", "name", "score", "vector"], "fields")


@checks("alter_table_drop_columns", Promise.VERSIONS, "AlterTableDropColumns")
def a_dropped_column_is_in_older_versions(t: Trial) -> None:
    """A version from before the drop still has the column with its values."""
    made = t.table()
    t.call("alter_table_drop_columns", made, {"columns": ["name"]}).ok()
    t.equal(sorted(t.read(made, version=1)["name"].to_pylist()), ["row 1", "row 2", "row 3"], "names in version 1")


@checks("alter_table_drop_columns", Promise.COLUMNS, "AlterTableDropColumnsRequest.columns")
def drops_a_nested_field(t: Trial) -> None:
    """A path with a dot names a nested field."""
    nested = pa.array([{"x": 1, "y": 2}], pa.struct([("x", pa.int64()), ("y", pa.int64())]))
    made = t.table(data=pa.table({"id": pa.array([1]), "point": nested}))
    t.call("alter_table_drop_columns", made, {"columns": ["point.y"]}).ok()
    t.equal(t.read(made)["point"].to_pylist(), [{"x": 1}], "values")
