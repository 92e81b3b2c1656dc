"""What holds for every operation: it is served or refused by name, and wrong requests are told apart."""

from __future__ import annotations

from functools import partial

from namespace_tck.operations import OPERATIONS, Body, Operation, Target
from namespace_tck.registry import CheckList, Promise
from namespace_tck.rows import rows
from namespace_tck.trial import Trial

checks = CheckList()


def _served(operation: Operation, t: Trial) -> None:
    refusal = t.session.absent.get(operation.name)
    if refusal is not None and refusal.code != 0:
        raise refusal.fail("expected code 0 (Unsupported) for an operation that is not served")


def _missing_table(operation: Operation, t: Trial) -> None:
    body = rows([1]) if operation.body is Body.ARROW else None
    t.call(operation.name, t.id("missing"), body).refused(4)


def _missing_namespace(operation: Operation, t: Trial) -> None:
    body = rows([1]) if operation.body is Body.ARROW else None
    t.call(operation.name, t.id("missing", "t"), body).refused(1)


def _other_id(operation: Operation, t: Trial) -> None:
    body = {**operation.request, "id": t.id("other")}
    t.call(operation.name, t.id("named"), body).refused(13)


def _not_json(operation: Operation, t: Trial) -> None:
    of = None if operation.target is Target.NOTHING else t.id("named")
    t.call(operation.name, of, b'{"id": [').refused(13)


def _not_an_object(operation: Operation, t: Trial) -> None:
    of = None if operation.target is Target.NOTHING else t.id("named")
    t.call(operation.name, of, ["a", "list"]).refused(13)


for _operation in OPERATIONS:
    _title = _operation.title
    checks.define(
        _operation.name,
        "is_served_or_unsupported",
        Promise.AVAILABILITY,
        "ErrorResponse.code",
        "The operation is served, or refused with code 0 (Unsupported).",
        partial(_served, _operation),
    )
    if _operation.target is Target.TABLE:
        checks.define(
            _operation.name,
            "refuses_a_missing_table",
            Promise.ERRORS,
            _title,
            "On a table that does not exist the operation is refused with 404 and code 4 (TableNotFound).",
            partial(_missing_table, _operation),
        )
    if _operation.target is Target.NEW_TABLE:
        checks.define(
            _operation.name,
            "refuses_a_missing_namespace",
            Promise.ERRORS,
            _title,
            "A table is not made in a namespace that does not exist: 404 and code 1 (NamespaceNotFound).",
            partial(_missing_namespace, _operation),
        )
    if _operation.body is Body.JSON:
        checks.define(
            _operation.name,
            "refuses_a_body_that_is_not_json",
            Promise.ERRORS,
            _title,
            "A body that ends in the middle of its JSON is refused with 400 and code 13 (InvalidInput).",
            partial(_not_json, _operation),
        )
        checks.define(
            _operation.name,
            "refuses_a_body_that_is_a_list",
            Promise.ERRORS,
            _title,
            "A body that is a JSON list and not an object is refused with 400 and code 13 (InvalidInput).",
            partial(_not_an_object, _operation),
        )
        if _operation.target is not Target.NOTHING and _operation.name != "update_table_schema_metadata":
            checks.define(
                _operation.name,
                "refuses_an_id_that_contradicts_the_route",
                Promise.ERRORS,
                f"{_title.replace('Scalar', '')}Request.id",  # both kinds of index have one request
                "A body whose id names another object than the route is refused with 400 and code 13.",
                partial(_other_id, _operation),
            )


@checks("describe_table", Promise.OBJECTS, "DescribeTableRequest.id")
def accepts_the_id_of_the_route_in_the_body(t: Trial) -> None:
    """A body may repeat the id of the route."""
    table = t.declared()
    t.call("describe_table", table, {"id": table}).ok()


@checks("describe_namespace", Promise.OBJECTS, "DescribeNamespaceRequest.id")
def takes_the_id_from_the_route(t: Trial) -> None:
    """A body without an id is about the object of the route."""
    t.call("describe_namespace", t.space, {}).ok()


@checks("describe_table", Promise.OBJECTS, "DescribeTable")
def splits_the_id_at_the_given_delimiter(t: Trial) -> None:
    """With the parameter delimiter the id of the route is split at it, and not at the default."""
    table = t.declared()
    t.call("describe_table", table, delimiter="::").ok()


@checks("describe_namespace", Promise.OBJECTS, "DescribeNamespace")
def takes_the_delimiter_alone_for_the_root(t: Trial) -> None:
    """An id that is the delimiter is the root namespace."""
    t.call("describe_namespace", []).ok()
    t.call("describe_namespace", [], delimiter="::").ok()


@checks("describe_table", Promise.OBJECTS, "DescribeTableRequest")
def takes_or_refuses_unknown_fields(t: Trial) -> None:
    """A field that the specification does not know is ignored, or refused as a mistake of the client (13)."""
    found = t.call("describe_table", t.declared(), {"invented": {"by": "the kit"}})
    if found.is_success:
        found.ok()
    else:
        found.refused(13)


@checks("describe_table", Promise.OBJECTS, "DescribeTableRequest.version")
def takes_null_for_absent(t: Trial) -> None:
    """An optional field that is null is an absent one."""
    t.call("describe_table", t.declared(), {"version": None, "branch": None, "tag": None}).ok()


@checks("describe_table", Promise.OBJECTS, "DescribeTableRequest.context")
def accepts_a_context(t: Trial) -> None:
    """A request may carry a context of strings."""
    t.call("describe_table", t.declared(), {"context": {"trace": "tck"}}).ok()


@checks("server", Promise.ERRORS, "ErrorResponse")
def does_not_serve_unknown_routes(t: Trial) -> None:
    """A route that is not published is refused with a status of 4xx."""
    for method, path in (("POST", "/v1/table/a/invented"), ("GET", "/v1/invented"), ("POST", "/v1/namespace/a")):
        found = t.client.raw(method, path, b"{}")
        t.expect(found.status // 100 == 4, f"expected a status of 4xx, found {found.status}")


@checks("server", Promise.ERRORS, "ErrorResponse")
def does_not_serve_other_methods(t: Trial) -> None:
    """A published route is not served under another method."""
    for method, path in (("DELETE", "/v1/table/a/describe"), ("PUT", "/v1/namespace/a/create")):
        found = t.client.raw(method, path, b"{}")
        t.expect(found.status // 100 == 4, f"expected a status of 4xx, found {found.status}")
