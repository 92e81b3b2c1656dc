"""Lines about databases, their namespaces, and lists."""

from __future__ import annotations

from typing import Final

from namespace_tck.lancedb.data import small
from namespace_tck.lancedb.lines import DATABASE, LineList, N, T, get, missing, post, refused
from namespace_tck.lancedb.matching import ANY, JSON_OBJECT, NOTHING, Keep, Where, either, kind
from namespace_tck.registry import Promise

lines = LineList("databases", Promise.OBJECTS)

_NS: Final = "/v1/namespace/{n}"
_IN_NS: Final = "/v1/table/{n}$"
_CATALOG: Final = {DATABASE: None}
"""Requests of `connect_catalog`, which are in no database."""
_LAST: Final = either(None, "")
_MADE: Final = (200, 204)


def _named(*names: str) -> Where:
    return Where(f"{', '.join(names)} in order", lambda found: [name for name in found if name in names] == [*names])


_table_names = lines.about("Connection.table_names")
_table_names(
    "Tables are listed by name, and the answer announces a version of the protocol.",
    post("/v1/table/{n}a/create/?mode=create", small()),
    post("/v1/table/{n}b/create/?mode=create", small()),
    get(
        "/v1/table/",
        {"tables": Where("a sorted list", lambda found: found == sorted(found) and len(found) >= 2)},
        answered={"phalanx-version": Where("a version X.Y.Z", lambda found: len(found.split(".")) == 3)},
    ),
)
_table_names(
    "A database that nothing is in lists no tables.", get("/v1/table/", {"tables": []}, headers={DATABASE: "{db}none"})
)
_table_names(
    "A page begins after the name that is its token.",
    post("/v1/table/zz{n}a/create/?mode=create", small()),
    post("/v1/table/zz{n}b/create/?mode=create", small()),
    post("/v1/table/zz{n}c/create/?mode=create", small()),
    get(
        "/v1/table/?limit=1&page_token=zz{n}a",
        {"tables": Where("one name", lambda found: len(found) == 1 and found[0].endswith("b"))},
    ),
    get(
        "/v1/table/?limit=2&page_token=zz{n}a",
        {"tables": Where("two names", lambda found: [name[-1] for name in found] == ["b", "c"])},
    ),
    get("/v1/table/?limit=2&page_token=zzz", {"tables": []}),
)
_table_names(
    "Tables of a namespace are listed in it, and not in the database.",
    post(f"{_NS}/create", {}, statuses=_MADE),
    post(f"{_IN_NS}only_here/create/?mode=create", small()),
    get(f"{_NS}/table/list", {"tables": ["only_here"], "page_token": _LAST}),
    get("/v1/table/", {"tables": Where("no such name", lambda found: not any("only_here" in name for name in found))}),
)
_table_names(
    "Tables of a nested namespace are listed in it.",
    post(f"{_NS}/create", {}, statuses=_MADE),
    post(f"{_NS}$inner/create", {}, statuses=_MADE),
    post(f"{_IN_NS}inner$deep/create/?mode=create", small()),
    get(f"{_NS}$inner/table/list", {"tables": ["deep"]}),
    get(f"{_NS}/table/list", {"tables": []}),
)
_list_tables = lines.about("Connection.list_tables")
_list_tables(
    "The token of a page of tables leads to the next one.",
    post(f"{_NS}/create", {}, statuses=_MADE),
    post(f"{_IN_NS}a/create/?mode=create", small()),
    post(f"{_IN_NS}b/create/?mode=create", small()),
    get(f"{_NS}/table/list?limit=1", {"tables": ["a"], "page_token": Keep("token")}),
    get(f"{_NS}/table/list?limit=1&page_token={{token}}", {"tables": ["b"]}),
)
_list_tables(
    "The root namespace of a request is the database.",
    post(N + "create/?mode=create", small()),
    get("/v1/namespace/$/table/list", {"tables": Where("some names", lambda found: len(found) >= 1)}),
)
_create_namespace = lines.about("Connection.create_namespace")
_create_namespace(
    "A namespace is created without options.",
    post(f"{_NS}/create", {}, statuses=_MADE),
    get("/v1/namespace/$/list", {"namespaces": ANY}),
)
_create_namespace(
    "Properties of a namespace are kept.",
    post(f"{_NS}/create", {"mode": "Create", "properties": {"owner": "ada"}}, statuses=_MADE),
    post(f"{_NS}/describe", {}, {"properties": {"owner": "ada"}}),
)
_create_namespace(
    "A namespace that exists is created again only if that is asked for.",
    post(f"{_NS}/create", {}, statuses=_MADE),
    post(f"{_NS}/create", {"mode": "Create"}, statuses=(400, 409)),
    post(f"{_NS}/create", {"mode": "ExistOk"}, statuses=_MADE),
)
_create_namespace(
    "A blank in the name of a namespace is encoded.",
    post("/v1/namespace/{n}%20b/create", {}, statuses=_MADE),
    post("/v1/table/{n}%20b$t/create/?mode=create", small()),
    post("/v1/table/{n}%20b$t/count_rows/", {"version": None}, 6),
)
lines(
    "Connection.list_namespaces",
    "The token of a page of namespaces leads to the next one.",
    post(f"{_NS}/create", {}, statuses=_MADE),
    post(f"{_NS}$a/create", {}, statuses=_MADE),
    post(f"{_NS}$b/create", {}, statuses=_MADE),
    get(f"{_NS}/list?limit=1", {"namespaces": ["a"], "page_token": Keep("token")}),
    get(f"{_NS}/list?limit=1&page_token={{token}}", {"namespaces": ["b"]}),
)
lines("Connection.describe_namespace", "A namespace that is missing is told by 404.", missing(f"{_NS}/describe", {}))
_drop_namespace = lines.about("Connection.drop_namespace")
_drop_namespace(
    "An empty namespace is dropped.",
    post(f"{_NS}/create", {}, statuses=_MADE),
    post(f"{_NS}/drop", {"mode": "Fail", "behavior": "Restrict"}, statuses=_MADE),
    missing(f"{_NS}/describe", {}),
)
_drop_namespace(
    "A namespace that holds a table is dropped with it only if that is asked for.",
    post(f"{_NS}/create", {}, statuses=_MADE),
    post(f"{_IN_NS}t/create/?mode=create", small()),
    post(f"{_NS}/drop", {"behavior": "Restrict"}, statuses=(400, 409)),
    post(f"{_IN_NS}t/count_rows/", {"version": None}, 6),
    post(f"{_NS}/drop", {"behavior": "Cascade"}, statuses=_MADE),
    missing(f"{_IN_NS}t/describe/"),
)
_drop_namespace(
    "A missing namespace is dropped only if that may be.",
    post(f"{_NS}/drop", {"mode": "Skip"}, statuses=_MADE),
    post(f"{_NS}/drop", {"mode": "Fail"}, statuses=(400, 404)),
)
_create_database = lines.about("Catalog.create_database")
_create_database(
    "A database is created, found, listed and dropped.",
    post("/v1/namespace/{db}x/create", {"mode": "Create"}, headers=_CATALOG, statuses=_MADE),
    post("/v1/namespace/{db}x/describe", {}, JSON_OBJECT, headers=_CATALOG),
    get(
        "/v1/namespace/$/list?limit=1000",
        {"namespaces": Where("names", lambda found: any(n.endswith("x") for n in found))},
        headers=_CATALOG,
    ),
    post("/v1/namespace/{db}x/drop", {"mode": "Fail", "behavior": "Restrict"}, headers=_CATALOG, statuses=_MADE),
    missing("/v1/namespace/{db}x/describe", {}, headers=_CATALOG),
)
_create_database(
    "A database that exists is told by 409, unless it may exist.",
    post("/v1/namespace/{db}y/create", {"mode": "Create"}, headers=_CATALOG, statuses=_MADE),
    post("/v1/namespace/{db}y/create", {"mode": "Create"}, headers=_CATALOG, statuses=(409,)),
    post("/v1/namespace/{db}y/create", {"mode": "ExistOk"}, headers=_CATALOG, statuses=_MADE),
    post("/v1/namespace/{db}y/drop", {"mode": "Fail", "behavior": "Restrict"}, headers=_CATALOG, statuses=_MADE),
)
lines(
    "Catalog.connect_database",
    "A database that is missing is told by 404.",
    missing("/v1/namespace/{db}none/describe", {}, headers=_CATALOG),
)
_drop_database = lines.about("Catalog.drop_database")
_drop_database(
    "A database that holds a table is not dropped.",
    post(N + "create/?mode=create", small(), headers={DATABASE: "{db}z"}),
    post("/v1/namespace/{db}z/drop", {"mode": "Fail", "behavior": "Restrict"}, headers=_CATALOG, statuses=(400, 409)),
    post(N + "drop/", headers={DATABASE: "{db}z"}),
    post("/v1/namespace/{db}z/drop", {"mode": "Fail", "behavior": "Restrict"}, headers=_CATALOG, statuses=_MADE),
)
_drop_database(
    "A missing database is dropped only if that may be.",
    post("/v1/namespace/{db}none/drop", {"mode": "Skip", "behavior": "Restrict"}, headers=_CATALOG, statuses=_MADE),
    post(
        "/v1/namespace/{db}none/drop", {"mode": "Fail", "behavior": "Restrict"}, headers=_CATALOG, statuses=(400, 404)
    ),
)
_connect = lines.about("connect")
_connect(
    "Two databases have tables of one name, and neither sees that of the other.",
    post(T + "count_rows/", {"version": None}, 6),
    missing(T + "describe/", headers={DATABASE: "{db}o"}),
    post(T + "create/?mode=create", small(count=1), headers={DATABASE: "{db}o"}),
    post(T + "count_rows/", {"version": None}, 1, headers={DATABASE: "{db}o"}),
    post(T + "drop/", headers={DATABASE: "{db}o"}),
    post(T + "count_rows/", {"version": None}, 6),
    post("/v1/namespace/{db}o/drop", {"mode": "Skip", "behavior": "Restrict"}, headers=_CATALOG, statuses=_MADE),
)
_connect(
    "A prefix is a namespace below the database.",
    post(N + "create/?mode=create", small(), headers={"x-lancedb-database-prefix": "{m}"}),
    post("/v1/table/{m}${n}/count_rows/", {"version": None}, 6),
    missing(N + "describe/"),
)
_connect(
    "Headers that the protocol does not have change nothing.",
    post(
        T + "count_rows/",
        {"version": None},
        6,
        headers={"foo": "bar", "x-lancedb-user-id": "ada", "x-azure-storage-account-name": "a"},
    ),
)
lines(
    "Connection.namespace_client",
    "Requests of the namespace API are answered below the database.",
    post(
        "/v1/table/{t}/describe?delimiter=$", {"id": ["{t}"]}, {"location": kind(str)}, headers={"user-agent": "none"}
    ),
    get(
        "/v1/namespace/$/table/list?delimiter=$", {"tables": ANY, "page_token": NOTHING}, headers={"user-agent": "none"}
    ),
)
_connect(
    "The separator of names cannot lead out of a database.",
    refused("/v1/table/{t}/rename/", {"new_table_name": "a", "new_namespace": ["..", "{db}"]}, statuses=(400, 404)),
    post(T + "count_rows/", {"version": None}, 6),
)
