"""Namespaces: create, describe, exists, drop."""

from __future__ import annotations

from functools import partial

from namespace_tck.exchanges import ServerAnswer
from namespace_tck.registry import CheckList, Promise
from namespace_tck.trial import Trial

checks = CheckList()

WRITERS = 8


@checks("create_namespace", Promise.OBJECTS, "CreateNamespace")
def creates_a_namespace(t: Trial) -> None:
    """A namespace that was created can be described at once."""
    made = t.namespace()
    t.call("describe_namespace", made).ok()


@checks("create_namespace", Promise.OBJECTS, "CreateNamespace")
def creates_namespaces_in_namespaces(t: Trial) -> None:
    """A namespace can hold namespaces, four levels deep."""
    place = t.space
    for name in ("a", "b", "c", "d"):
        place = [*place, name]
        t.call("create_namespace", place, {}).ok()
    t.call("describe_namespace", place).ok()


@checks("create_namespace", Promise.ERRORS, "CreateNamespace")
def refuses_a_namespace_that_exists(t: Trial) -> None:
    """A namespace that exists is not created again: 409 and code 2 (NamespaceAlreadyExists)."""
    t.call("create_namespace", t.namespace(), {}).refused(2)


@checks("create_namespace", Promise.ERRORS, "CreateNamespace")
def refuses_a_missing_parent(t: Trial) -> None:
    """A namespace is not created below one that does not exist: 404 and code 1 (NamespaceNotFound)."""
    t.call("create_namespace", t.id("missing", "child"), {}).refused(1)


@checks("create_namespace", Promise.ERRORS, "CreateNamespace")
def refuses_the_root(t: Trial) -> None:
    """The root namespace exists and cannot be created."""
    t.call("create_namespace", [], {}).refused(2, 13)


@checks("create_namespace", Promise.MODES, "CreateNamespaceRequest.mode")
def mode_create_refuses_what_exists(t: Trial) -> None:
    """With mode Create a namespace that exists is refused with 409 and code 2."""
    t.call("create_namespace", t.namespace(), {"mode": "Create"}).refused(2)


@checks("create_namespace", Promise.MODES, "CreateNamespaceRequest.mode")
def mode_exist_ok_succeeds(t: Trial) -> None:
    """With mode ExistOk the creation of a namespace that exists succeeds."""
    t.call("create_namespace", t.namespace(), {"mode": "ExistOk"}).ok()


@checks("create_namespace", Promise.MODES, "CreateNamespaceRequest.mode")
def mode_exist_ok_creates_what_is_missing(t: Trial) -> None:
    """With mode ExistOk a namespace that does not exist is created."""
    t.call("create_namespace", t.id("n"), {"mode": "ExistOk"}).ok()
    t.call("describe_namespace", t.id("n")).ok()


@checks("create_namespace", Promise.MODES, "CreateNamespaceRequest.mode")
def mode_exist_ok_keeps_children(t: Trial) -> None:
    """With mode ExistOk the existing namespace is kept with all that it holds."""
    made = t.namespace()
    t.call("create_namespace", [*made, "child"], {}).ok()
    t.call("create_namespace", made, {"mode": "ExistOk"}).ok()
    t.equal(t.names("list_namespaces", made, "namespaces"), ["child"], "children")


@checks("create_namespace", Promise.MODES, "CreateNamespaceRequest.mode")
def mode_exist_ok_keeps_properties(t: Trial) -> None:
    """With mode ExistOk the properties of the existing namespace are kept."""
    t.need_namespace_properties()
    made = t.namespace(properties={"owner": "first"})
    t.call("create_namespace", made, {"mode": "ExistOk", "properties": {"owner": "second"}}).ok()
    t.holds(t.call("describe_namespace", made).ok().get("properties"), {"owner": "first"}, "properties")


@checks("create_namespace", Promise.MODES, "CreateNamespaceRequest.mode")
def modes_may_be_snake_case(t: Trial) -> None:
    """A mode may be given in snake case: exist_ok."""
    t.call("create_namespace", t.namespace(), {"mode": "exist_ok"}).ok()


@checks("create_namespace", Promise.MODES, "CreateNamespaceRequest.mode")
def modes_are_case_insensitive(t: Trial) -> None:
    """A mode may be given in any case."""
    made = t.namespace()
    t.call("create_namespace", made, {"mode": "EXISTOK"}).ok()
    t.call("create_namespace", made, {"mode": "CREATE"}).refused(2)


@checks("create_namespace", Promise.MODES, "CreateNamespaceRequest.mode")
def mode_overwrite_empties(t: Trial) -> None:
    """With mode Overwrite the existing namespace is dropped and an empty one is created."""
    t.need_namespace_properties()
    made = t.namespace(properties={"owner": "first"})
    t.call("create_namespace", made, {"mode": "Overwrite", "properties": {"stage": "second"}}).ok()
    found = t.call("describe_namespace", made).ok().get("properties") or {}
    t.holds(found, {"stage": "second"}, "properties")
    t.expect("owner" not in found, "the property of the dropped namespace is still there")


@checks("create_namespace", Promise.MODES, "CreateNamespaceRequest.mode")
def mode_overwrite_creates_what_is_missing(t: Trial) -> None:
    """With mode Overwrite a namespace that does not exist is created."""
    t.call("create_namespace", t.id("n"), {"mode": "Overwrite"}).ok()
    t.call("describe_namespace", t.id("n")).ok()


@checks("create_namespace", Promise.MODES, "CreateNamespaceRequest.mode")
def refuses_an_unknown_mode(t: Trial) -> None:
    """A mode that is not published is refused with 400 and code 13, and nothing is created."""
    t.call("create_namespace", t.id("n"), {"mode": "Invented"}).refused(13)
    t.call("describe_namespace", t.id("n")).refused(1)


@checks("create_namespace", Promise.PROPERTIES, "CreateNamespaceResponse.properties")
def answers_the_properties(t: Trial) -> None:
    """The answer holds the properties of the new namespace."""
    t.need_namespace_properties()
    found = t.call("create_namespace", t.id("n"), {"properties": {"owner": "tck", "empty": ""}}).ok()
    t.holds(found.get("properties"), {"owner": "tck", "empty": ""}, "properties")


@checks("create_namespace", Promise.PROPERTIES, "CreateNamespaceResponse.properties")
def answers_an_empty_object_without_properties(t: Trial) -> None:
    """Where properties are supported and none are set, the answer holds an object and not null."""
    t.need_namespace_properties()
    found = t.call("create_namespace", t.id("n"), {}).ok()
    t.expect(isinstance(found.get("properties"), dict), "expected properties to be an object")


@checks("create_namespace", Promise.PROPERTIES, "CreateNamespaceRequest.properties")
def keeps_properties_of_all_characters(t: Trial) -> None:
    """Properties come back as they were given, whatever characters they hold."""
    t.need_namespace_properties()
    given = {"ключ": "värde", "quote'\"": "a\\b\n\tc", "long": "x" * 4000, "emoji": "\U0001f600"}
    made = t.namespace(properties=given)
    t.holds(t.call("describe_namespace", made).ok().get("properties"), given, "properties")


@checks("create_namespace", Promise.ERRORS, "CreateNamespaceRequest.properties")
def refuses_properties_that_are_no_strings(t: Trial) -> None:
    """A property whose value is not a string is refused with 400 and code 13."""
    t.call("create_namespace", t.id("n"), {"properties": {"count": 3}}).refused(13)


@checks("create_namespace", Promise.CONCURRENCY, "CreateNamespace")
def one_of_many_creators_wins(t: Trial) -> None:
    """Of eight clients that create the same namespace one succeeds, the others get code 2."""
    made = t.id("n")
    answers = t.together([lambda: t.call("create_namespace", made, {})] * WRITERS)
    t.one_of(answers, 2)


@checks("create_namespace", Promise.CONCURRENCY, "CreateNamespaceRequest.mode")
def many_creators_with_exist_ok_all_succeed(t: Trial) -> None:
    """Of eight clients that create the same namespace with mode ExistOk all succeed."""
    made = t.id("n")
    for answer in t.together([lambda: t.call("create_namespace", made, {"mode": "ExistOk"})] * WRITERS):
        answer.ok()


@checks("create_namespace", Promise.CONCURRENCY, "CreateNamespace")
def many_creators_of_different_names_all_succeed(t: Trial) -> None:
    """Eight clients that create different namespaces all succeed, and all names are listed."""
    names = [f"n{number}" for number in range(WRITERS)]
    space = t.space

    def create(name: str) -> ServerAnswer:
        return t.call("create_namespace", [*space, name], {})

    for answer in t.together([partial(create, name) for name in names]):
        answer.ok()
    t.equal(t.names("list_namespaces", space, "namespaces"), names, "namespaces")


@checks("describe_namespace", Promise.PROPERTIES, "DescribeNamespaceResponse.properties")
def describes_the_properties(t: Trial) -> None:
    """The answer holds the properties that the namespace was created with."""
    t.need_namespace_properties()
    made = t.namespace(properties={"owner": "tck"})
    t.holds(t.call("describe_namespace", made).ok().get("properties"), {"owner": "tck"}, "properties")


@checks("describe_namespace", Promise.PROPERTIES, "DescribeNamespaceResponse.properties")
def describes_no_properties_as_an_empty_object(t: Trial) -> None:
    """Where properties are supported and none are set, the answer holds an object and not null."""
    t.need_namespace_properties()
    found = t.call("describe_namespace", t.namespace()).ok()
    t.expect(isinstance(found.get("properties"), dict), "expected properties to be an object")


@checks("describe_namespace", Promise.ERRORS, "DescribeNamespace")
def refuses_a_missing_namespace(t: Trial) -> None:
    """A namespace that does not exist is refused with 404 and code 1 (NamespaceNotFound)."""
    t.call("describe_namespace", t.id("missing")).refused(1)


@checks("describe_namespace", Promise.ERRORS, "DescribeNamespace")
def does_not_take_a_table_for_a_namespace(t: Trial) -> None:
    """The id of a table is not that of a namespace: 404 and code 1."""
    t.call("describe_namespace", t.declared()).refused(1)


@checks("namespace_exists", Promise.OBJECTS, "NamespaceExists")
def answers_200_without_a_body(t: Trial) -> None:
    """For a namespace that exists the status is 200 and there is no body."""
    answer = t.call("namespace_exists", t.namespace())
    answer.ok()
    t.expect(not answer.content, "expected no body", answer)


@checks("namespace_exists", Promise.ERRORS, "NamespaceExists")
def answers_404_for_a_missing_namespace(t: Trial) -> None:
    """For a namespace that does not exist the status is 404 and the code 1."""
    t.call("namespace_exists", t.id("missing")).refused(1)


@checks("namespace_exists", Promise.ERRORS, "NamespaceExists")
def answers_404_for_a_table(t: Trial) -> None:
    """For the id of a table the status is 404, as for describe_namespace."""
    t.call("namespace_exists", t.declared()).refused(1)


@checks("namespace_exists", Promise.OBJECTS, "NamespaceExists")
def answers_200_for_the_root(t: Trial) -> None:
    """The root namespace always exists."""
    t.call("namespace_exists", []).ok()


@checks("drop_namespace", Promise.OBJECTS, "DropNamespace")
def drops_an_empty_namespace(t: Trial) -> None:
    """A namespace that was dropped does not exist any more."""
    made = t.namespace()
    t.call("drop_namespace", made).ok()
    t.call("describe_namespace", made).refused(1)
    t.equal(t.names("list_namespaces", t.space, "namespaces"), [], "namespaces")


@checks("drop_namespace", Promise.MODES, "DropNamespaceRequest.mode")
def mode_fail_refuses_a_missing_namespace(t: Trial) -> None:
    """With mode Fail, the default, a namespace that does not exist is refused with code 1."""
    t.call("drop_namespace", t.id("missing"), {}).refused(1, statuses=(400, 404))
    t.call("drop_namespace", t.id("missing"), {"mode": "Fail"}).refused(1, statuses=(400, 404))


@checks("drop_namespace", Promise.MODES, "DropNamespaceRequest.mode")
def mode_skip_succeeds_for_a_missing_namespace(t: Trial) -> None:
    """With mode Skip the drop of a namespace that does not exist succeeds."""
    t.call("drop_namespace", t.id("missing"), {"mode": "Skip"}).done()


@checks("drop_namespace", Promise.MODES, "DropNamespaceRequest.mode")
def drop_modes_are_case_insensitive(t: Trial) -> None:
    """Mode and behavior may be given in any case."""
    t.call("drop_namespace", t.id("missing"), {"mode": "SKIP"}).done()
    t.call("drop_namespace", t.namespace(), {"behavior": "CASCADE"}).done()


@checks("drop_namespace", Promise.MODES, "DropNamespaceRequest.mode")
def refuses_an_unknown_drop_mode(t: Trial) -> None:
    """A mode that is not published is refused with 400 and code 13, and nothing is dropped."""
    made = t.namespace()
    t.call("drop_namespace", made, {"mode": "Invented"}).refused(13)
    t.call("describe_namespace", made).ok()


@checks("drop_namespace", Promise.MODES, "DropNamespaceRequest.behavior")
def refuses_an_unknown_behavior(t: Trial) -> None:
    """A behavior that is not published is refused with 400 and code 13, and nothing is dropped."""
    made = t.namespace()
    t.call("drop_namespace", made, {"behavior": "Invented"}).refused(13)
    t.call("describe_namespace", made).ok()


@checks("drop_namespace", Promise.MODES, "DropNamespaceRequest.behavior")
def restrict_refuses_a_namespace_with_a_table(t: Trial) -> None:
    """With behavior Restrict, the default, a namespace that holds a table is refused with 409 and code 3."""
    made = t.namespace()
    t.call("declare_table", [*made, "t"], {}).ok()
    t.call("drop_namespace", made, {}).refused(3)
    t.call("drop_namespace", made, {"behavior": "Restrict"}).refused(3)


@checks("drop_namespace", Promise.MODES, "DropNamespaceRequest.behavior")
def restrict_refuses_a_namespace_with_a_child(t: Trial) -> None:
    """With behavior Restrict a namespace that holds a namespace is refused with 409 and code 3."""
    made = t.namespace()
    t.call("create_namespace", [*made, "child"], {}).ok()
    t.call("drop_namespace", made, {}).refused(3)


@checks("drop_namespace", Promise.ATOMICITY, "DropNamespaceRequest.behavior")
def a_refused_drop_changes_nothing(t: Trial) -> None:
    """After a drop that was refused, the namespace and all that it holds are still there."""
    made = t.namespace()
    t.call("create_namespace", [*made, "child"], {}).ok()
    t.call("declare_table", [*made, "t"], {}).ok()
    t.call("drop_namespace", made, {}).refused(3)
    t.equal(t.names("list_namespaces", made, "namespaces"), ["child"], "children")
    t.equal(t.names("list_tables", made, "tables"), ["t"], "tables")


@checks("drop_namespace", Promise.MODES, "DropNamespaceRequest.behavior")
def cascade_drops_all_that_it_holds(t: Trial) -> None:
    """With behavior Cascade all tables and namespaces below are dropped with the namespace."""
    made = t.namespace()
    t.call("create_namespace", [*made, "child"], {}).ok()
    t.call("declare_table", [*made, "t"], {}).ok()
    t.call("declare_table", [*made, "child", "u"], {}).ok()
    t.call("drop_namespace", made, {"behavior": "Cascade"}).done()
    t.call("describe_namespace", made).refused(1)
    t.call("describe_table", [*made, "t"]).refused(1, 4)
    t.call("describe_table", [*made, "child", "u"]).refused(1, 4)
    t.call("describe_namespace", [*made, "child"]).refused(1)


@checks("drop_namespace", Promise.MODES, "DropNamespaceRequest.behavior")
def cascade_spares_neighbours(t: Trial) -> None:
    """Behavior Cascade spares a namespace whose name only begins with the same letters."""
    made = t.namespace("ab")
    neighbour = t.namespace("abc")
    t.call("declare_table", [*neighbour, "t"], {}).ok()
    t.call("drop_namespace", made, {"behavior": "Cascade"}).done()
    t.call("describe_table", [*neighbour, "t"]).ok()


@checks("drop_namespace", Promise.ERRORS, "DropNamespace")
def refuses_to_drop_the_root(t: Trial) -> None:
    """The root namespace cannot be dropped."""
    t.call("drop_namespace", [], {}).refused(0, 3, 13)


@checks("drop_namespace", Promise.PROPERTIES, "DropNamespaceResponse.properties")
def answers_the_properties_of_the_dropped(t: Trial) -> None:
    """Where properties are supported, the answer holds those of the dropped namespace."""
    t.need_namespace_properties()
    made = t.namespace(properties={"owner": "tck"})
    t.holds(t.call("drop_namespace", made).ok().get("properties"), {"owner": "tck"}, "properties")


@checks("drop_namespace", Promise.OBJECTS, "DropNamespace")
def a_dropped_name_begins_anew(t: Trial) -> None:
    """A namespace that is created under a dropped name has neither tables nor properties of the old one."""
    made = t.namespace(properties={"owner": "first"})
    t.call("drop_namespace", made).ok()
    t.call("create_namespace", made, {}).ok()
    found = t.call("describe_namespace", made).ok().get("properties") or {}
    t.expect("owner" not in found, "the property of the dropped namespace is still there")


@checks("drop_namespace", Promise.CONCURRENCY, "DropNamespace")
def one_of_many_droppers_wins(t: Trial) -> None:
    """Of eight clients that drop the same namespace one succeeds, the others get code 1."""
    made = t.namespace()
    answers = t.together([lambda: t.call("drop_namespace", made, {})] * WRITERS)
    won = [answer for answer in answers if answer.is_success]
    for answer in answers:
        if not answer.is_success:
            answer.refused(1, statuses=(400, 404))
    t.expect(len(won) == 1, f"expected one success among {WRITERS}, found {len(won)}", answers[0])


@checks("drop_namespace", Promise.CONCURRENCY, "DropNamespace")
def no_child_outlives_its_namespace(t: Trial) -> None:
    """When a namespace is dropped while tables are declared in it, no table exists without its namespace."""
    for number in range(6):
        made = t.namespace(f"n{number}")
        table = [*made, "t"]
        t.together(
            [
                partial(t.call, "declare_table", table, {}),
                partial(t.call, "drop_namespace", made, {}),
            ]
        )
        has_table = t.call("describe_table", table).is_success
        has_namespace = t.call("describe_namespace", made).is_success
        t.expect(has_namespace or not has_table, "the table exists, its namespace does not")
