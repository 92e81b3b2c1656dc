"""Lists of tables in one namespace and in all, and their pages."""

from __future__ import annotations

from typing import Any

from namespace_tck.registry import CheckList, Promise
from namespace_tck.trial import Trial

checks = CheckList()

_COUNT = 7


def _seven(t: Trial) -> list[str]:
    names = [f"t{number}" for number in range(_COUNT)]
    for name in names:
        t.declared(name)
    return names


@checks("list_tables", Promise.OBJECTS, "ListTablesResponse.tables")
def lists_the_tables(t: Trial) -> None:
    """The names of the tables of a namespace are listed."""
    names = _seven(t)
    t.equal(t.names("list_tables", t.space, "tables"), names, "tables")


@checks("list_tables", Promise.OBJECTS, "ListTables")
def lists_child_tables_by_name(t: Trial) -> None:
    """Tables of child namespaces are not listed among those of their parent."""
    made = t.namespace()
    t.call("declare_table", [*made, "deep"], {}).ok()
    t.declared()
    t.equal(t.names("list_tables", t.space, "tables"), ["t"], "tables")


@checks("list_tables", Promise.OBJECTS, "ListTablesResponse.tables")
def lists_no_namespaces(t: Trial) -> None:
    """Namespaces are not listed among the tables."""
    t.namespace()
    t.equal(t.names("list_tables", t.space, "tables"), [], "tables")


@checks("list_tables", Promise.ERRORS, "ListTables")
def refuses_to_list_tables_of_a_missing_namespace(t: Trial) -> None:
    """In a namespace that does not exist nothing is listed: 404 and code 1 (NamespaceNotFound)."""
    t.call("list_tables", t.id("missing")).refused(1)


@checks("list_tables", Promise.OBJECTS, "ListTablesRequest.include_declared")
def lists_declared_tables_by_default(t: Trial) -> None:
    """Tables that are only declared are listed, unless include_declared is false."""
    t.declared()
    t.equal(t.names("list_tables", t.space, "tables"), ["t"], "tables")
    t.equal(t.names("list_tables", t.space, "tables", include_declared=True), ["t"], "tables")


@checks("list_tables", Promise.OBJECTS, "ListTablesRequest.include_declared")
def leaves_out_declared_tables(t: Trial) -> None:
    """With include_declared false only tables with data are listed."""
    t.declared("only_declared")
    t.table("with_data")
    t.equal(t.names("list_tables", t.space, "tables", include_declared=False), ["with_data"], "tables")


@checks("list_tables", Promise.PAGING, "ListTablesRequest.include_declared")
def pages_of_tables_with_data_are_complete(t: Trial) -> None:
    """With include_declared false, pages of one table hold every table with data once."""
    for number in range(3):
        t.declared(f"a{number}")
    t.table("b")
    t.declared("c")
    t.table("d")
    listed = t.listed("list_tables", t.space, "tables", include_declared=False, limit=1)
    t.equal(sorted(listed), ["b", "d"], "the names of all pages")


@checks("list_tables", Promise.PAGING, "ListTablesRequest.limit")
def limit_bounds_a_page_of_tables(t: Trial) -> None:
    """A page holds at most as many names as its limit, and a token if there are more."""
    _seven(t)
    page = t.call("list_tables", t.space, limit=3).ok()
    t.equal(len(page["tables"]), 3, "number of names")
    t.expect(bool(page.get("page_token")), "expected a page token")


@checks("list_tables", Promise.PAGING, "ListTablesResponse.page_token")
def the_last_page_of_tables_has_no_token(t: Trial) -> None:
    """Where one page holds everything, it has no token, or an empty one."""
    _seven(t)
    t.expect(not t.call("list_tables", t.space, limit=100).ok().get("page_token"), "expected no page token")


def _every_name_once(size: int, t: Trial) -> None:
    names = _seven(t)
    listed = t.listed("list_tables", t.space, "tables", limit=size)
    t.equal(sorted(listed), names, f"the names of all pages of {size}")


_EVERY = f"Pages of {{}} among {_COUNT} tables hold every name once."
checks.define_pages("list_tables", "table", (1, 2, 3, 6, 7, 8), _EVERY, _every_name_once)


@checks("list_tables", Promise.PAGING, "ListTablesRequest.limit")
def limit_zero_lists_no_table(t: Trial) -> None:
    """A limit of 0 lists no name, or is refused with code 13."""
    _seven(t)
    answer = t.call("list_tables", t.space, limit=0)
    if answer.is_success:
        t.equal(answer.ok()["tables"], [], "tables")
    else:
        answer.refused(13)


@checks("list_tables", Promise.PAGING, "ListTablesRequest.limit")
def refuses_a_table_limit_that_is_no_number(t: Trial) -> None:
    """A limit that is not a number is refused with 400 and code 13."""
    t.call("list_tables", t.space, limit="many").refused(13)


@checks("list_tables", Promise.PAGING, "ListTablesRequest.page_token")
def a_token_outlives_the_removal_of_tables(t: Trial) -> None:
    """When tables of the first page are deregistered before the second is read, no other is missed or repeated."""
    names = _seven(t)
    first = t.call("list_tables", t.space, limit=3).ok()
    for name in first["tables"]:
        t.call("deregister_table", t.id(name), {}).ok()
    rest = t.listed("list_tables", t.space, "tables", after=first, limit=3)
    t.equal(sorted([*first["tables"], *rest]), names, "the names of all pages")


@checks("list_tables", Promise.CONCURRENCY, "ListTables")
def lists_are_complete_beside_changes(t: Trial) -> None:
    """While other tables come and go, a list holds every table that was there all the time."""
    names = _seven(t)
    space = t.space

    def change() -> list[list[str]]:
        for number in range(8):
            t.call("declare_table", [*space, f"u{number}"], {})
            t.call("deregister_table", [*space, f"u{number}"], {})
        return []

    def look() -> list[list[str]]:
        return [t.names("list_tables", space, "tables") for _ in range(12)]

    for listed in t.together([change, change, look, look]):
        for found in listed:
            t.equal([name for name in found if name in names], names, "the tables that were there all the time")


@checks("list_all_tables", Promise.OBJECTS, "ListAllTables")
def lists_tables_of_all_namespaces(t: Trial) -> None:
    """Every table of every namespace is listed, by its full identifier."""
    t.declared()
    deep = t.namespace()
    t.call("declare_table", [*deep, "u"], {}).ok()
    listed = _own(t, limit=1000)
    t.equal(listed, sorted(["$".join(t.id("n", "u")), "$".join(t.id("t"))]), "tables of the kit")


@checks("list_all_tables", Promise.PAGING, "ListTablesRequest.page_token")
def pages_of_all_tables_hold_every_table_once(t: Trial) -> None:
    """Pages of two hold every table of every namespace once."""
    names = _seven(t)
    t.equal(_own(t, limit=2), ["$".join(t.id(name)) for name in names], "tables of the kit")


@checks("list_all_tables", Promise.OBJECTS, "ListAllTables")
def lists_identifiers_with_the_given_delimiter(t: Trial) -> None:
    """With the parameter delimiter the full identifiers are joined with it."""
    made = t.declared()
    listed = t.listed("list_all_tables", [], "tables", delimiter="::")
    t.expect("::".join(made) in listed, f"expected {'::'.join(made)} among the tables")


@checks("list_all_tables", Promise.OBJECTS, "ListTablesRequest.include_declared")
def leaves_out_declared_tables_of_all(t: Trial) -> None:
    """With include_declared false, tables that are only declared are not among all tables."""
    t.declared("only_declared")
    t.table("with_data")
    t.equal(_own(t, include_declared=False), ["$".join(t.id("with_data"))], "tables of the kit")


@checks("list_all_tables", Promise.OBJECTS, "ListAllTables")
def removed_tables_are_not_among_all(t: Trial) -> None:
    """A table that was deregistered or dropped is not among all tables."""
    made, other = t.declared(), t.declared("u")
    t.call("deregister_table", made, {}).ok()
    t.call("drop_table", other).ok()
    t.equal(_own(t, limit=1000), [], "tables of the kit")


def _own(t: Trial, **query: Any) -> list[str]:
    """The tables of this check among all tables, sorted."""
    prefix = "$".join(t.space) + "$"
    return sorted(name for name in t.listed("list_all_tables", [], "tables", **query) if name.startswith(prefix))
