"""Tables as objects: declare, describe, exists, rename, register, deregister, drop."""

from __future__ import annotations

from functools import partial

from namespace_tck.exchanges import ServerAnswer
from namespace_tck.registry import CheckList, Promise
from namespace_tck.rows import rows
from namespace_tck.trial import Trial

checks = CheckList()

WRITERS = 8


@checks("declare_table", Promise.OBJECTS, "DeclareTable")
def declares_a_table(t: Trial) -> None:
    """A declared table exists at once, with a location."""
    made = t.id("t")
    location = t.call("declare_table", made, {}).ok().get("location")
    t.expect(bool(location), "expected a location")
    t.call("table_exists", made).ok()


@checks("declare_table", Promise.OBJECTS, "DeclareTableResponse.location")
def describes_the_declared_location(t: Trial) -> None:
    """The location of a declared table is the one that describe_table answers."""
    made = t.id("t")
    location = t.call("declare_table", made, {}).ok().get("location")
    t.equal(t.call("describe_table", made).ok().get("location"), location, "location")


@checks("declare_table", Promise.OBJECTS, "DeclareTableResponse.location")
def declared_tables_have_locations_of_their_own(t: Trial) -> None:
    """Two declared tables have different locations."""
    first = t.call("declare_table", t.id("a"), {}).ok().get("location")
    second = t.call("declare_table", t.id("b"), {}).ok().get("location")
    t.expect(first != second, f"both tables are at {first}")


@checks("declare_table", Promise.ERRORS, "DeclareTable")
def refuses_a_declared_table(t: Trial) -> None:
    """A table that is declared already is refused with 409 and code 5 (TableAlreadyExists)."""
    t.call("declare_table", t.declared(), {}).refused(5)


@checks("declare_table", Promise.ERRORS, "DeclareTable")
def refuses_a_created_table(t: Trial) -> None:
    """A table that has data is refused with 409 and code 5 (TableAlreadyExists)."""
    t.call("declare_table", t.table(), {}).refused(5)


@checks("declare_table", Promise.PROPERTIES, "DeclareTableResponse.properties")
def declares_with_properties(t: Trial) -> None:
    """The properties that a table is declared with are answered, and described."""
    t.need_table_properties()
    made = t.id("t")
    answered = t.call("declare_table", made, {"properties": {"owner": "tck"}}).ok().get("properties")
    t.holds(answered, {"owner": "tck"}, "properties")
    t.holds(t.call("describe_table", made).ok().get("properties"), {"owner": "tck"}, "properties")


@checks("declare_table", Promise.ERRORS, "DeclareTableRequest.properties")
def refuses_properties_that_are_no_strings(t: Trial) -> None:
    """A property whose value is not a string is refused with 400 and code 13."""
    t.call("declare_table", t.id("t"), {"properties": {"count": 3}}).refused(13)


@checks("declare_table", Promise.ERRORS, "DeclareTable")
def refuses_the_root_as_a_table(t: Trial) -> None:
    """An id without a name is refused with 400 and code 13."""
    t.call("declare_table", [], {}).refused(13)


@checks("declare_table", Promise.CONCURRENCY, "DeclareTable")
def one_of_many_declarers_wins(t: Trial) -> None:
    """Of eight clients that declare the same table one succeeds, the others get code 5 or 14."""
    made = t.id("t")
    t.one_of(t.together([lambda: t.call("declare_table", made, {})] * WRITERS), 5, 14)


@checks("declare_table", Promise.CONCURRENCY, "DeclareTable")
def many_declarers_of_different_names_all_succeed(t: Trial) -> None:
    """Eight clients that declare different tables all succeed, and all names are listed."""
    names = [f"t{number}" for number in range(WRITERS)]
    space = t.space

    def declare(name: str) -> ServerAnswer:
        return t.call("declare_table", [*space, name], {})

    for answer in t.together([partial(declare, name) for name in names]):
        answer.ok()
    t.equal(t.names("list_tables", space, "tables"), names, "tables")


@checks("describe_table", Promise.OBJECTS, "DescribeTableResponse.location")
def describes_a_location(t: Trial) -> None:
    """The location of a table is always answered."""
    t.expect(bool(t.call("describe_table", t.table()).ok().get("location")), "expected a location")


@checks("describe_table", Promise.OBJECTS, "DescribeTableResponse.table_uri")
def describes_a_uri_on_request(t: Trial) -> None:
    """With with_table_uri a complete URI is answered."""
    found = t.call("describe_table", t.table(), with_table_uri=True).ok().get("table_uri")
    t.expect(isinstance(found, str) and "://" in found, f"expected a URI, found {found!r}")


@checks("describe_table", Promise.OBJECTS, "DescribeTableResponse.table_uri")
def describes_no_uri_unless_asked(t: Trial) -> None:
    """Without with_table_uri no URI is answered."""
    found = t.call("describe_table", t.table(), with_table_uri=False).ok().get("table_uri")
    t.equal(found, None, "table_uri")


@checks("describe_table", Promise.OBJECTS, "DescribeTableResponse.table")
def describes_name_and_namespace_in_detail(t: Trial) -> None:
    """With load_detailed_metadata the name of the table and the path of its namespace are answered."""
    made = t.table()
    found = t.call("describe_table", made, load_detailed_metadata=True).ok()
    t.equal((found.get("table"), found.get("namespace")), (made[-1], made[:-1]), "table and namespace")


@checks("describe_table", Promise.VERSIONS, "DescribeTableResponse.version")
def describes_the_newest_version_in_detail(t: Trial) -> None:
    """With load_detailed_metadata the number of the newest version is answered."""
    made = t.table(versions=3)
    found = t.call("describe_table", made, load_detailed_metadata=True).ok()
    t.equal(found.get("version"), t.head(made), "version")


@checks("describe_table", Promise.COLUMNS, "DescribeTableResponse.schema")
def describes_the_schema_in_detail(t: Trial) -> None:
    """With load_detailed_metadata the schema is answered, with the names of all fields in order."""
    found = t.call("describe_table", t.table(), load_detailed_metadata=True).ok().get("schema") or {}
    names = [field["name"] for field in found.get("fields", [])]
    t.equal(names, ["id", "name", "score", "vector"], "fields")


@checks("describe_table", Promise.OBJECTS, "DescribeTableResponse.stats")
def describes_statistics_in_detail(t: Trial) -> None:
    """With load_detailed_metadata the response must include stats."""
    found = t.call("describe_table", t.table(versions=2), load_detailed_metadata=True).ok().get("stats") or {}
    t.expect((found.get("num_fragments") or 0) > 0, "expected the number of fragments")
    t.equal(found.get("num_deleted_rows"), 0, "deleted rows")


@checks("describe_table", Promise.OBJECTS, "DescribeTableResponse.is_only_declared")
def tells_that_a_table_is_only_declared(t: Trial) -> None:
    """With check_declared a table without data is answered as only declared."""
    found = t.call("describe_table", t.declared(), check_declared=True).ok()
    t.equal(found.get("is_only_declared"), True, "is_only_declared")


@checks("describe_table", Promise.OBJECTS, "DescribeTableResponse.is_only_declared")
def tells_that_a_table_has_data(t: Trial) -> None:
    """With check_declared a table with data is answered as not only declared."""
    found = t.call("describe_table", t.table(), check_declared=True).ok()
    t.equal(found.get("is_only_declared"), False, "is_only_declared")


@checks("describe_table", Promise.OBJECTS, "DescribeTableRequest.check_declared")
def does_not_tell_unless_asked(t: Trial) -> None:
    """Without check_declared the field is_only_declared is null or absent."""
    found = t.call("describe_table", t.declared(), check_declared=False, load_detailed_metadata=False).ok()
    t.equal(found.get("is_only_declared"), None, "is_only_declared")


@checks("describe_table", Promise.VERSIONS, "DescribeTableRequest.version")
def describes_an_older_version(t: Trial) -> None:
    """With a version the table is described as of that version."""
    made = t.table(versions=3)
    found = t.call("describe_table", made, {"version": 2}, load_detailed_metadata=True).ok()
    t.equal(found.get("version"), 2, "version")


@checks("describe_table", Promise.ERRORS, "DescribeTableRequest.version")
def refuses_a_missing_version(t: Trial) -> None:
    """A version that does not exist is refused with 404 and code 11 (TableVersionNotFound)."""
    t.call("describe_table", t.table(), {"version": 99}, load_detailed_metadata=True).refused(11)


@checks("describe_table", Promise.TAGS, "DescribeTableRequest.tag")
def describes_a_tag(t: Trial) -> None:
    """With a tag the table is described as of the version that the tag names."""
    made = t.table(versions=3)
    t.call("create_table_tag", made, {"tag": "second", "version": 2}).ok()
    found = t.call("describe_table", made, {"tag": "second"}, load_detailed_metadata=True).ok()
    t.equal(found.get("version"), 2, "version")


@checks("describe_table", Promise.ERRORS, "DescribeTableRequest.tag")
def refuses_a_missing_tag(t: Trial) -> None:
    """A tag that does not exist is refused with 404 and code 8 (TableTagNotFound)."""
    t.call("describe_table", t.table(), {"tag": "missing"}, load_detailed_metadata=True).refused(8)


@checks("describe_table", Promise.ERRORS, "DescribeTableRequest.tag")
def refuses_a_tag_beside_a_version(t: Trial) -> None:
    """A tag together with a version is refused with 400 and code 13."""
    body = {"tag": "first", "version": 1}
    t.call("describe_table", t.table(), body, load_detailed_metadata=True).refused(13)


@checks("describe_table", Promise.ERRORS, "DescribeTableRequest.branch")
def refuses_a_missing_branch(t: Trial) -> None:
    """A branch that does not exist is refused with 404 and code 22 (TableBranchNotFound)."""
    t.call("describe_table", t.table(), {"branch": "missing"}, load_detailed_metadata=True).refused(22)


@checks("describe_table", Promise.ERRORS, "DescribeTableRequest.version")
def refuses_a_version_that_is_no_integer(t: Trial) -> None:
    """A version that is not an integer is refused with 400 and code 13."""
    t.call("describe_table", t.declared(), {"version": "two"}).refused(13)


@checks("describe_table", Promise.ERRORS, "DescribeTable")
def does_not_take_a_namespace_for_a_table(t: Trial) -> None:
    """The id of a namespace is not that of a table: 404 and code 4."""
    t.call("describe_table", t.namespace()).refused(4)


@checks("describe_table", Promise.PROPERTIES, "DescribeTableResponse.properties")
def describes_no_properties_as_an_empty_object(t: Trial) -> None:
    """Where properties are supported and none are set, the answer holds an object and not null."""
    t.need_table_properties()
    found = t.call("describe_table", t.declared()).ok().get("properties")
    t.expect(isinstance(found, dict), f"expected properties to be an object, found {found!r}")


@checks("table_exists", Promise.OBJECTS, "TableExists")
def answers_200_without_a_body(t: Trial) -> None:
    """For a table that exists the status is 200 and there is no body."""
    answer = t.call("table_exists", t.declared())
    answer.ok()
    t.expect(not answer.content, "expected no body", answer)


@checks("table_exists", Promise.ERRORS, "TableExists")
def answers_404_for_a_namespace(t: Trial) -> None:
    """For the id of a namespace the status is 404, as for describe_table."""
    t.call("table_exists", t.namespace()).refused(4)


@checks("table_exists", Promise.VERSIONS, "TableExistsRequest.version")
def tells_whether_a_version_exists(t: Trial) -> None:
    """With a version the answer says whether the table has that version."""
    made = t.table(versions=2)
    t.call("table_exists", made, {"version": 2}).ok()
    t.call("table_exists", made, {"version": 99}).refused(11)


@checks("rename_table", Promise.OBJECTS, "RenameTableRequest.new_table_name")
def renames_within_the_namespace(t: Trial) -> None:
    """A renamed table exists under its new name alone."""
    made = t.declared()
    t.call("rename_table", made, {"new_table_name": "u"}).ok()
    t.call("describe_table", made).refused(4)
    t.call("describe_table", t.id("u")).ok()
    t.equal(t.names("list_tables", t.space, "tables"), ["u"], "tables")


@checks("rename_table", Promise.ROWS, "RenameTable")
def a_renamed_table_keeps_its_rows(t: Trial) -> None:
    """A renamed table has the rows and versions that it had."""
    made = t.table(versions=2)
    before = t.ids(made)
    t.call("rename_table", made, {"new_table_name": "u"}).ok()
    t.equal(t.ids(t.id("u")), before, "ids")
    t.equal(t.versions(t.id("u")), [1, 2], "versions")


@checks("rename_table", Promise.OBJECTS, "RenameTableRequest.new_namespace_id")
def renames_into_another_namespace(t: Trial) -> None:
    """A table can be moved to another namespace."""
    made, other = t.declared(), t.namespace()
    t.call("rename_table", made, {"new_table_name": "u", "new_namespace_id": other}).ok()
    t.call("describe_table", [*other, "u"]).ok()
    t.call("describe_table", made).refused(4)


@checks("rename_table", Promise.ERRORS, "RenameTable")
def refuses_a_name_that_is_taken(t: Trial) -> None:
    """A new name that a table has is refused with 409 and code 5, and nothing is renamed."""
    made = t.declared()
    t.declared("u")
    t.call("rename_table", made, {"new_table_name": "u"}).refused(5)
    t.equal(t.names("list_tables", t.space, "tables"), ["t", "u"], "tables")


@checks("rename_table", Promise.ERRORS, "RenameTableRequest.new_namespace_id")
def refuses_to_move_to_a_missing_namespace(t: Trial) -> None:
    """A new namespace that does not exist is refused with 404 and code 1, and nothing is renamed."""
    made = t.declared()
    t.call("rename_table", made, {"new_table_name": "u", "new_namespace_id": t.id("missing")}).refused(1)
    t.call("describe_table", made).ok()


@checks("rename_table", Promise.ERRORS, "RenameTableRequest.new_table_name")
def refuses_a_rename_without_a_name(t: Trial) -> None:
    """A request without new_table_name is refused with 400 and code 13."""
    t.call("rename_table", t.declared(), {}).refused(13)


@checks("rename_table", Promise.CONCURRENCY, "RenameTable")
def one_of_many_renamers_wins(t: Trial) -> None:
    """Of six clients that give a table six new names one succeeds, and one table is there."""
    made = t.declared()
    jobs = [partial(t.call, "rename_table", made, {"new_table_name": f"u{number}"}) for number in range(6)]
    t.one_of(t.together(jobs), 4, 14)
    t.equal(len(t.names("list_tables", t.space, "tables")), 1, "number of tables")


@checks("deregister_table", Promise.OBJECTS, "DeregisterTable")
def a_deregistered_table_does_not_exist(t: Trial) -> None:
    """A deregistered table is neither described nor listed."""
    made = t.declared()
    t.call("deregister_table", made, {}).ok()
    t.call("describe_table", made).refused(4)
    t.equal(t.names("list_tables", t.space, "tables"), [], "tables")


@checks("deregister_table", Promise.OBJECTS, "DeregisterTableResponse.location")
def answers_the_location_of_the_deregistered(t: Trial) -> None:
    """The answer holds the location, where the content remains."""
    made = t.table()
    location = t.call("describe_table", made).ok().get("location")
    t.equal(t.call("deregister_table", made, {}).ok().get("location"), location, "location")


@checks("deregister_table", Promise.OBJECTS, "DeregisterTable")
def a_deregistered_name_is_free(t: Trial) -> None:
    """A name that was deregistered can be declared again."""
    made = t.declared()
    t.call("deregister_table", made, {}).ok()
    t.call("declare_table", made, {}).ok()


@checks("deregister_table", Promise.CONCURRENCY, "DeregisterTable")
def one_of_many_deregisterers_wins(t: Trial) -> None:
    """Of eight clients that deregister the same table one succeeds, the others get code 4."""
    made = t.declared()
    t.one_of(t.together([lambda: t.call("deregister_table", made, {})] * WRITERS), 4, 14)


@checks("drop_table", Promise.OBJECTS, "DropTable")
def drops_a_table_with_data(t: Trial) -> None:
    """A dropped table is neither described nor listed."""
    made = t.table()
    t.call("drop_table", made).ok()
    t.call("describe_table", made).refused(4)
    t.equal(t.names("list_tables", t.space, "tables"), [], "tables")


@checks("drop_table", Promise.OBJECTS, "DropTable")
def drops_a_declared_table(t: Trial) -> None:
    """A table that is only declared can be dropped."""
    made = t.declared()
    t.call("drop_table", made).ok()
    t.call("describe_table", made).refused(4)


@checks("drop_table", Promise.OBJECTS, "DropTableResponse.location")
def answers_the_location_of_the_dropped(t: Trial) -> None:
    """The answer holds the location of the dropped table, or a transaction that tracks the deletion."""
    found = t.call("drop_table", t.table()).ok()
    t.expect(bool(found.get("location") or found.get("transaction_id")), "expected a location or a transaction id")


@checks("drop_table", Promise.OBJECTS, "DropTable")
def a_dropped_name_begins_anew(t: Trial) -> None:
    """A table that is made under a dropped name has none of the rows and versions of the old one."""
    made = t.table(versions=3)
    t.call("drop_table", made).ok()
    t.table(data=rows([7]))
    t.equal(t.ids(made), [7], "ids")
    t.equal(t.versions(made), [1], "versions")


@checks("drop_table", Promise.CONCURRENCY, "DropTable")
def one_of_many_droppers_wins(t: Trial) -> None:
    """Of eight clients that drop the same table one succeeds, the others get code 4."""
    made = t.table()
    t.one_of(t.together([lambda: t.call("drop_table", made)] * WRITERS), 4, 14)


@checks("register_table", Promise.OBJECTS, "RegisterTable")
def registers_what_was_deregistered(t: Trial) -> None:
    """A table that was deregistered can be registered under another name, with its rows."""
    made = t.table()
    before = t.ids(made)
    place = _relative(t, made)
    t.call("deregister_table", made, {}).ok()
    t.call("register_table", t.id("again"), {"location": place}).ok()
    t.equal(t.ids(t.id("again")), before, "ids")


@checks("register_table", Promise.OBJECTS, "RegisterTableResponse.location")
def answers_the_registered_location(t: Trial) -> None:
    """The answer holds a location."""
    made = t.table()
    place = _relative(t, made)
    t.call("deregister_table", made, {}).ok()
    t.expect(bool(t.call("register_table", made, {"location": place}).ok().get("location")), "expected a location")


@checks("register_table", Promise.MODES, "RegisterTableRequest.mode")
def register_refuses_a_name_that_is_taken(t: Trial) -> None:
    """With mode Create, the default, a name that a table has is refused with 409 and code 5."""
    made, other = t.table(), t.declared("u")
    place = _relative(t, made)
    t.call("deregister_table", made, {}).ok()
    t.call("register_table", other, {"location": place}).refused(5)
    t.call("register_table", other, {"location": place, "mode": "create"}).refused(5)


@checks("register_table", Promise.MODES, "RegisterTableRequest.mode")
def register_overwrite_replaces_a_registration(t: Trial) -> None:
    """With mode Overwrite the existing registration is replaced by the new one."""
    made, other = t.table(), t.declared("u")
    before = t.ids(made)
    place = _relative(t, made)
    t.call("deregister_table", made, {}).ok()
    t.call("register_table", other, {"location": place, "mode": "Overwrite"}).ok()
    t.equal(t.ids(other), before, "ids")


@checks("register_table", Promise.PROPERTIES, "RegisterTableRequest.properties")
def registers_with_properties(t: Trial) -> None:
    """The properties that a table is registered with are described."""
    t.need_table_properties()
    made = t.table()
    place = _relative(t, made)
    t.call("deregister_table", made, {}).ok()
    t.call("register_table", made, {"location": place, "properties": {"owner": "tck"}}).ok()
    t.holds(t.call("describe_table", made).ok().get("properties"), {"owner": "tck"}, "properties")


@checks("register_table", Promise.ERRORS, "RegisterTableRequest.location")
def refuses_a_registration_without_a_location(t: Trial) -> None:
    """A request without a location is refused with 400 and code 13."""
    t.call("register_table", t.id("t"), {}).refused(13)


@checks("register_table", Promise.HOSTILE, "RegisterTableRequest.location")
def refuses_a_location_above_the_root(t: Trial) -> None:
    """A location that climbs out of the root of the server is refused with 400 and code 13."""
    t.call("register_table", t.id("t"), {"location": "../../../etc"}).refused(13)
    t.call("register_table", t.id("t"), {"location": "a/../../b"}).refused(13)


def _relative(t: Trial, table: list[str]) -> str:
    """The location of a table as a server takes it for registration: the last part of its path."""
    location: str = t.call("describe_table", table).ok()["location"]
    return location.rstrip("/").rpartition("/")[2]
