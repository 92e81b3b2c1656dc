"""UpdateTableSchemaMetadata and UpdateFieldMetadata."""

from __future__ import annotations

from namespace_tck.registry import CheckList, Promise
from namespace_tck.trial import Trial

checks = CheckList()


def _field(t: Trial, table: list[str], name: str) -> dict[str, str]:
    schema = t.call("describe_table", table, load_detailed_metadata=True).ok()["schema"]
    found = next(field for field in schema["fields"] if field["name"] == name)
    return found.get("metadata") or {}


@checks("update_table_schema_metadata", Promise.PROPERTIES, "UpdateTableSchemaMetadata")
def answers_the_new_schema_metadata(t: Trial) -> None:
    """The answer is an object with the metadata that was given."""
    found = t.call("update_table_schema_metadata", t.table(), {"owner": "tck", "stage": "one"}).ok()
    t.holds(found, {"owner": "tck", "stage": "one"}, "metadata")


@checks("update_table_schema_metadata", Promise.PROPERTIES, "UpdateTableSchemaMetadata")
def replaces_the_schema_metadata(t: Trial) -> None:
    """The metadata of the request replaces what was there."""
    made = t.table()
    t.call("update_table_schema_metadata", made, {"old": "1"}).ok()
    t.equal(t.call("update_table_schema_metadata", made, {"new": "2"}).ok(), {"new": "2"}, "metadata")


@checks("update_table_schema_metadata", Promise.PROPERTIES, "JsonArrowSchema.metadata")
def describes_the_schema_metadata(t: Trial) -> None:
    """The metadata is in the schema that describe_table answers."""
    made = t.table()
    t.call("update_table_schema_metadata", made, {"owner": "tck"}).ok()
    schema = t.call("describe_table", made, load_detailed_metadata=True).ok()["schema"]
    t.holds(schema.get("metadata"), {"owner": "tck"}, "metadata")


@checks("update_table_schema_metadata", Promise.VERSIONS, "UpdateTableSchemaMetadata")
def new_schema_metadata_is_a_new_version(t: Trial) -> None:
    """New metadata is a version of its own, with the same rows."""
    made = t.table()
    t.call("update_table_schema_metadata", made, {"owner": "tck"}).ok()
    t.equal(t.versions(made), [1, 2], "versions")
    t.equal(t.ids(made), [1, 2, 3], "ids")


@checks("update_table_schema_metadata", Promise.ERRORS, "UpdateTableSchemaMetadata")
def refuses_metadata_that_is_no_string(t: Trial) -> None:
    """A value that is not a string is refused with 400 and code 13, and nothing changes."""
    made = t.table()
    t.call("update_table_schema_metadata", made, {"count": 3}).refused(13)
    t.equal(t.versions(made), [1], "versions")


@checks("update_table_schema_metadata", Promise.ERRORS, "UpdateTableSchemaMetadataRequest.branch")
def refuses_metadata_of_a_missing_branch(t: Trial) -> None:
    """A branch that does not exist is refused with 404 and code 22 (TableBranchNotFound)."""
    t.call("update_table_schema_metadata", t.table(), {"a": "b"}, branch="missing").refused(22)


@checks("update_field_metadata", Promise.PROPERTIES, "UpdateFieldMetadataEntry.metadata")
def sets_field_metadata(t: Trial) -> None:
    """The metadata of a field is answered, and described with the schema."""
    made = t.table()
    request = {"updates": [{"path": "name", "metadata": {"unit": "text"}}]}
    found = t.call("update_field_metadata", made, request).ok()
    t.holds((found.get("fields") or {"name": {"unit": "text"}}).get("name"), {"unit": "text"}, "answered metadata")
    t.holds(_field(t, made, "name"), {"unit": "text"}, "described metadata")


@checks("update_field_metadata", Promise.PROPERTIES, "UpdateFieldMetadataEntry.metadata")
def merges_field_metadata(t: Trial) -> None:
    """Without replace, the keys of the request are added to those that are there."""
    made = t.table()
    for key in ("a", "b"):
        t.call("update_field_metadata", made, {"updates": [{"path": "name", "metadata": {key: key}}]}).ok()
    t.holds(_field(t, made, "name"), {"a": "a", "b": "b"}, "metadata")


@checks("update_field_metadata", Promise.PROPERTIES, "UpdateFieldMetadataEntry.replace")
def replaces_field_metadata(t: Trial) -> None:
    """With replace, the keys of the request are the only ones."""
    made = t.table()
    t.call("update_field_metadata", made, {"updates": [{"path": "name", "metadata": {"a": "a"}}]}).ok()
    request = {"updates": [{"path": "name", "metadata": {"b": "b"}, "replace": True}]}
    t.call("update_field_metadata", made, request).ok()
    found = _field(t, made, "name")
    t.holds(found, {"b": "b"}, "metadata")
    t.expect("a" not in found, "the replaced key is still there")


@checks("update_field_metadata", Promise.PROPERTIES, "UpdateFieldMetadataEntry.metadata")
def removes_a_key_with_null(t: Trial) -> None:
    """A key whose value is null is removed."""
    made = t.table()
    t.call("update_field_metadata", made, {"updates": [{"path": "name", "metadata": {"a": "a", "b": "b"}}]}).ok()
    t.call("update_field_metadata", made, {"updates": [{"path": "name", "metadata": {"a": None}}]}).ok()
    found = _field(t, made, "name")
    t.holds(found, {"b": "b"}, "metadata")
    t.expect("a" not in found, "the removed key is still there")


@checks("update_field_metadata", Promise.ERRORS, "UpdateFieldMetadataEntry.path")
def refuses_metadata_of_an_unknown_field(t: Trial) -> None:
    """A path that names no field is refused with code 12 or 13."""
    request = {"updates": [{"path": "invented", "metadata": {"a": "b"}}]}
    t.call("update_field_metadata", t.table(), request).refused(12, 13)


@checks("update_field_metadata", Promise.ATOMICITY, "UpdateFieldMetadataRequest.updates")
def sets_no_metadata_if_one_path_is_wrong(t: Trial) -> None:
    """If one of several paths names no field, no metadata is set."""
    made = t.table()
    updates = [{"path": "name", "metadata": {"a": "b"}}, {"path": "invented", "metadata": {"a": "b"}}]
    t.call("update_field_metadata", made, {"updates": updates}).refused(12, 13)
    t.equal(_field(t, made, "name"), {}, "metadata")


@checks("update_field_metadata", Promise.VERSIONS, "UpdateFieldMetadataResponse.version")
def new_field_metadata_is_a_new_version(t: Trial) -> None:
    """The answer holds the version of the new metadata."""
    made = t.table()
    request = {"updates": [{"path": "name", "metadata": {"a": "b"}}]}
    t.equal(t.call("update_field_metadata", made, request).ok()["version"], 2, "version")
