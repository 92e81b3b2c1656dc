"""Lists of namespaces, and their pages."""

from __future__ import annotations

from namespace_tck.registry import CheckList, Promise
from namespace_tck.trial import Trial

checks = CheckList()

_COUNT = 7


def _seven(t: Trial) -> list[str]:
    names = [f"n{number}" for number in range(_COUNT)]
    for name in names:
        t.namespace(name)
    return names


@checks("list_namespaces", Promise.OBJECTS, "ListNamespacesResponse.namespaces")
def lists_the_children(t: Trial) -> None:
    """The names of the children are listed, relative to their parent."""
    names = _seven(t)
    t.equal(t.names("list_namespaces", t.space, "namespaces"), names, "namespaces")


@checks("list_namespaces", Promise.OBJECTS, "ListNamespacesResponse.namespaces")
def lists_nothing_in_an_empty_namespace(t: Trial) -> None:
    """In a namespace without children the list is empty."""
    t.equal(t.names("list_namespaces", t.space, "namespaces"), [], "namespaces")


@checks("list_namespaces", Promise.OBJECTS, "ListNamespacesResponse.namespaces")
def lists_children_and_no_grandchildren(t: Trial) -> None:
    """Only direct children are listed."""
    made = t.namespace()
    t.call("create_namespace", [*made, "grandchild"], {}).ok()
    t.equal(t.names("list_namespaces", t.space, "namespaces"), ["n"], "namespaces")


@checks("list_namespaces", Promise.OBJECTS, "ListNamespacesResponse.namespaces")
def lists_no_tables(t: Trial) -> None:
    """Tables are not listed among the namespaces."""
    t.declared()
    t.namespace()
    t.equal(t.names("list_namespaces", t.space, "namespaces"), ["n"], "namespaces")


@checks("list_namespaces", Promise.OBJECTS, "ListNamespaces")
def lists_the_root(t: Trial) -> None:
    """The children of the root are listed under the delimiter alone."""
    listed = t.listed("list_namespaces", [], "namespaces")
    t.expect(t.session.root[0] in listed, "the namespace of the kit is not among the children of the root")


@checks("list_namespaces", Promise.ERRORS, "ListNamespaces")
def refuses_to_list_a_missing_namespace(t: Trial) -> None:
    """In a namespace that does not exist nothing is listed: 404 and code 1 (NamespaceNotFound)."""
    t.call("list_namespaces", t.id("missing")).refused(1)


@checks("list_namespaces", Promise.PAGING, "ListNamespacesRequest.limit")
def limit_bounds_a_page(t: Trial) -> None:
    """A page holds at most as many names as its limit."""
    _seven(t)
    for limit in (1, 3, _COUNT):
        page = t.call("list_namespaces", t.space, limit=limit).ok()
        t.expect(len(page["namespaces"]) <= limit, f"expected at most {limit} names")


@checks("list_namespaces", Promise.PAGING, "ListNamespacesResponse.page_token")
def a_page_that_is_not_the_last_has_a_token(t: Trial) -> None:
    """A page with fewer names than there are holds a token."""
    _seven(t)
    page = t.call("list_namespaces", t.space, limit=3).ok()
    t.expect(bool(page.get("page_token")), "expected a page token")


@checks("list_namespaces", Promise.PAGING, "ListNamespacesResponse.page_token")
def the_last_page_has_no_token(t: Trial) -> None:
    """Where one page holds everything, it has no token, or an empty one."""
    _seven(t)
    page = t.call("list_namespaces", t.space, limit=100).ok()
    t.expect(not page.get("page_token"), "expected no page token")


def _every_name_once(size: int, t: Trial) -> None:
    names = _seven(t)
    listed = t.listed("list_namespaces", t.space, "namespaces", limit=size)
    t.equal(sorted(listed), names, f"the names of all pages of {size}")


_EVERY = f"Pages of {{}} among {_COUNT} namespaces hold every name once."
checks.define_pages("list_namespaces", "name", (1, 2, 3, 6, 7, 8), _EVERY, _every_name_once)


@checks("list_namespaces", Promise.PAGING, "ListNamespacesRequest.limit")
def limit_zero_lists_nothing(t: Trial) -> None:
    """A limit of 0 lists no name, or is refused with code 13."""
    _seven(t)
    answer = t.call("list_namespaces", t.space, limit=0)
    if answer.is_success:
        t.equal(answer.ok()["namespaces"], [], "namespaces")
    else:
        answer.refused(13)


@checks("list_namespaces", Promise.PAGING, "ListNamespacesRequest.limit")
def refuses_a_limit_that_is_no_number(t: Trial) -> None:
    """A limit that is not a number is refused with 400 and code 13."""
    t.call("list_namespaces", t.space, limit="many").refused(13)


@checks("list_namespaces", Promise.PAGING, "ListNamespacesRequest.page_token")
def a_token_outlives_the_removal_of_names(t: Trial) -> None:
    """When names of the first page are dropped before the second is read, no other name is missed or repeated."""
    names = _seven(t)
    first = t.call("list_namespaces", t.space, limit=3).ok()
    for name in first["namespaces"]:
        t.call("drop_namespace", t.id(name), {}).ok()
    rest = t.listed("list_namespaces", t.space, "namespaces", after=first, limit=3)
    t.equal(sorted([*first["namespaces"], *rest]), names, "the names of all pages")


@checks("list_namespaces", Promise.PAGING, "ListNamespacesRequest.page_token")
def a_token_outlives_the_creation_of_names(t: Trial) -> None:
    """Names that exist from the first page to the last are listed once, although others are created meanwhile."""
    names = _seven(t)
    first = t.call("list_namespaces", t.space, limit=2).ok()
    t.namespace("a_new")
    t.namespace("z_new")
    rest = t.listed("list_namespaces", t.space, "namespaces", after=first, limit=2)
    listed = [name for name in (*first["namespaces"], *rest) if name in names]
    t.equal(sorted(listed), names, "the names that existed all the time")
