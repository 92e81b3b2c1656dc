"""Lines about columns, versions, tags and branches."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from namespace_tck.lancedb.data import small
from namespace_tck.lancedb.lines import Asked, LineList, N, T, missing, post, refused
from namespace_tck.lancedb.matching import ANY, JSON_OBJECT, NOTHING, HasEntry, Keep, Rows, Where, either, kind, text
from namespace_tck.registry import Promise

lines = LineList("columns", Promise.COLUMNS)

_TWO: Final = small(100, 2)
_SCAN: Final[dict[str, Any]] = {"version": None, "prefilter": True, "k": 9223372036854775807, "vector": []}
_NULLS: Final = pa.schema(
    [
        pa.field("ts", pa.timestamp("ns", "America/New_York")),
        pa.field("price2", pa.decimal128(38, 10), metadata={"unit": "cents"}),
    ]
).empty_table()
_UNCHANGED: Final = post(T + "describe/", None, {"version": 1})


def _has(**fields: Any) -> Asked:
    """The table has fields of these names, that are like this."""
    return post(T + "describe/", {"version": None}, {"schema": {"fields": _all_of(fields)}})


def _all_of(fields: dict[str, Any]) -> Where:
    def hold(found: list[dict[str, Any]]) -> bool:
        known = {each["name"]: each for each in found}
        return all(
            name in known and all(known[name].get(key) == value for key, value in wanted.items())
            for name, wanted in fields.items()
        )

    return Where(f"fields like {fields}", hold)


_add_columns = lines.about("Table.add_columns")
_add_columns(
    "Columns are added by expressions.",
    post(
        T + "add_columns/",
        {"new_columns": [{"name": "b", "expression": "id + 1"}, {"name": "x", "expression": "cast(NULL as int)"}]},
        {"version": 2},
    ),
    post(T + "count_rows/", {"predicate": "b = id + 1 AND x IS NULL", "version": None}, 6),
)
_add_columns(
    "Columns of nulls are added by a stream that has no rows.",
    post(T + "add_columns/", _NULLS, {"version": 2}),
    _has(
        ts={"type": {"type": "timestamp:ns:America/New_York"}},
        price2={"type": {"type": "decimal:128:38:10"}, "metadata": {"unit": "cents"}},
    ),
)
_add_columns(
    "Columns of nulls are added to a branch.",
    post(T + "branches/create/", {"name": "dev"}),
    post(T + "add_columns/?branch=dev", _NULLS, {"version": 2}),
    _UNCHANGED,
)
_add_columns(
    "A column that is there is refused.",
    refused(T + "add_columns/", {"new_columns": [{"name": "id", "expression": "id"}]}, text("id")),
    _UNCHANGED,
)
_add_columns(
    "A column that is computed later is made, or refused by name.",
    post(
        T + "add_columns/",
        {"new_columns": [{"name": "doubled", "computed": "id * 2"}]},
        {"version": 2},
        refusal="computed",
    ),
)
_add_columns(
    "A column that a function fills is made, or refused by name.",
    post(
        T + "add_columns/",
        {"new_columns": [{"name": "filled", "function": {"name": "f"}}]},
        {"version": 2},
        refusal="function",
    ),
)
_alter_columns = lines.about("Table.alter_columns")
_alter_columns(
    "A column is renamed, and may be null.",
    post(
        T + "alter_columns/", {"alterations": [{"path": "text", "rename": "words", "nullable": True}]}, {"version": 2}
    ),
    _has(words={"nullable": True}),
)
_alter_columns(
    "A column gets another type.",
    post(
        T + "alter_columns/",
        {
            "alterations": [
                {"path": "price", "data_type": {"type": "float"}},
                {"path": "text", "data_type": {"type": "large_string"}},
            ]
        },
        {"version": kind(int)},
    ),
    _has(price={"type": {"type": "float"}}, text={"type": {"type": "large_string"}}),
)
_alter_columns(
    "A field of a column is renamed.",
    post(T + "alter_columns/", {"alterations": [{"path": "meta.userId", "rename": "user"}]}, {"version": 2}),
    post(T + "query/", {**_SCAN, "filter": "meta.user = 10"}, Rows(count=1)),
)
_alter_columns(
    "A column that is missing is refused.",
    refused(T + "alter_columns/", {"alterations": [{"path": "nope", "rename": "x"}]}, text("nope")),
    _UNCHANGED,
)
_drop_columns = lines.about("Table.drop_columns")
_drop_columns(
    "Columns are dropped.",
    post(T + "drop_columns/", {"columns": ["text", "price"]}, {"version": 2}),
    post(
        T + "describe/",
        None,
        {
            "schema": {
                "fields": Where(
                    "four fields", lambda found: [each["name"] for each in found] == ["id", "label", "meta", "vector"]
                )
            }
        },
    ),
)
_drop_columns(
    "A column that is missing is refused.",
    refused(T + "drop_columns/", {"columns": ["nope"]}, text("nope")),
    _UNCHANGED,
)
_drop_columns(
    "A table that is missing is told by 404.",
    missing(N + "drop_columns/", {"columns": ["a"]}),
    missing(N + "alter_columns/", {"alterations": [{"path": "a", "rename": "b"}]}),
    missing(N + "add_columns/", {"new_columns": [{"name": "a", "expression": "1"}]}),
)
lines(
    "Table.update_field_metadata",
    "Metadata of a field is set, and deleted by null.",
    post(
        T + "update_field_metadata/",
        {"updates": [{"path": "id", "metadata": {"unit": "label", "other": "x"}, "replace": False}]},
        {"version": 2},
    ),
    post(
        T + "update_field_metadata/",
        {"updates": [{"path": "id", "metadata": {"other": None}, "replace": False}]},
        {"version": 3},
    ),
    _has(id={"metadata": {"unit": "label"}}),
)

versions = LineList("versions", Promise.VERSIONS)
_list_versions = versions.about("Table.list_versions")
_list_versions(
    "Versions are listed with their times, by a request without a body.",
    post(T + "delete/", {"predicate": "id = 1"}),
    post(
        T + "version/list/",
        None,
        {
            "versions": Where(
                "two versions",
                lambda found: (
                    sorted(each["version"] for each in found) == [1, 2]
                    and all(each.get("timestamp") or each.get("timestamp_millis") for each in found)
                ),
            )
        },
    ),
)
_list_versions(
    "Versions of a branch are listed.",
    post(T + "branches/create/", {"name": "dev"}),
    post(T + "delete/", {"predicate": "id = 1", "branch": "dev"}),
    post(T + "version/list/?branch=dev", None, {"versions": HasEntry({"version": 2})}),
    post(T + "version/list/", None, {"versions": [{"version": 1}]}),
)
versions(
    "Table.checkout",
    "All reads take the version that is checked out.",
    post(T + "add_columns/", {"new_columns": [{"name": "n", "expression": "id"}]}),
    post(T + "describe/", {"version": 1}, {"version": 1}),
    post(T + "index/list/", {"version": 1}, {"indexes": []}),
    post(T + "count_rows/", {"version": 1}, 6),
    refused(T + "count_rows/", {"predicate": "n = 1", "version": 1}, text("n")),
)
_restore = versions.about("Table.restore")
_restore(
    "An older version is the newest one again.",
    post(T + "delete/", {"predicate": "id < 3"}),
    post(T + "restore/", {"version": 1}),
    post(T + "count_rows/", {"version": None}, 6),
    post(T + "describe/", None, {"version": 3}),
)
_restore(
    "A version that is missing is not restored.",
    refused(T + "restore/", {"version": 42}, statuses=(400, 404)),
    _UNCHANGED,
)
_list_versions(
    "A table that is missing is told by 404.", missing(N + "version/list/"), missing(N + "restore/", {"version": 1})
)

tags = LineList("tags", Promise.TAGS)
_V1: Final = {"tag": "v1", "version": 1}
_list = tags.about("Tags.list")
_list(
    "Tags are an object by their names.",
    post(T + "tags/create/", _V1),
    post(T + "tags/list/", None, {"v1": {"version": 1, "manifestSize": kind(int)}, "tags": NOTHING}),
)
_list(
    "A table without tags lists none.",
    post(T + "tags/list/", None, Where("an empty object", lambda found: found == {})),
)
_get_version = tags.about("Tags.get_version")
_get_version(
    "The version of a tag is answered.",
    post(T + "tags/create/", _V1),
    post(T + "tags/version/", {"tag": "v1"}, {"version": 1}),
)
tags(
    "Tags.update",
    "A tag is moved.",
    post(T + "tags/create/", _V1),
    post(T + "delete/", {"predicate": "id = 1"}),
    post(T + "tags/update/", {"tag": "v1", "version": 2}),
    post(T + "tags/version/", {"tag": "v1"}, {"version": 2}),
)
tags(
    "Tags.delete",
    "A tag is deleted.",
    post(T + "tags/create/", _V1),
    post(T + "tags/delete/", {"tag": "v1"}),
    post(T + "tags/list/", None, {"v1": NOTHING}),
)
_create = tags.about("Tags.create")
_create(
    "A tag that exists is refused, and stays.",
    post(T + "tags/create/", _V1),
    post(T + "delete/", {"predicate": "id = 1"}),
    refused(T + "tags/create/", {"tag": "v1", "version": 2}, text("exist")),
    post(T + "tags/version/", {"tag": "v1"}, {"version": 1}),
)
_get_version(
    "A tag that is missing is no missing table.",
    refused(T + "tags/version/", {"tag": "nope"}, text("nope")),
    refused(T + "tags/update/", {"tag": "nope", "version": 1}, text("nope")),
    refused(T + "tags/delete/", {"tag": "nope"}, text("nope")),
)
_create(
    "A version that is missing gets no tag.",
    refused(T + "tags/create/", {"tag": "v9", "version": 9}),
    post(T + "tags/list/", None, {"v9": NOTHING}),
)
_create(
    "A tag may be of a branch.",
    post(T + "branches/create/", {"name": "dev"}),
    post(T + "delete/", {"predicate": "id = 1", "branch": "dev"}),
    post(T + "tags/create/", {"tag": "b1", "version": 2, "branch": "dev"}),
    post(T + "tags/version/", {"tag": "b1"}, {"version": 2, "branch": "dev"}),
)
_list("A table that is missing is told by 404.", missing(N + "tags/list/"), missing(N + "tags/version/", {"tag": "a"}))

branches = LineList("branches", Promise.BRANCHES)
_DEV: Final = post(T + "branches/create/", {"name": "dev"}, JSON_OBJECT)
_branches_create = branches.about("Branches.create")
_branches_create(
    "A branch begins at the newest version.",
    post(T + "delete/", {"predicate": "id = 1"}),
    _DEV,
    post(T + "count_rows/", {"version": None, "branch": "dev"}, 5),
)
_branches_create(
    "A branch begins at a version.",
    post(T + "delete/", {"predicate": "id = 1"}),
    post(T + "branches/create/", {"name": "old", "from_version": 1}),
    post(T + "count_rows/", {"version": None, "branch": "old"}, 6),
)
_branches_create(
    "A branch begins at a version of another one.",
    _DEV,
    post(T + "delete/", {"predicate": "id = 1", "branch": "dev"}),
    post(T + "branches/create/", {"name": "exp", "from_branch": "dev", "from_version": 2}),
    post(T + "count_rows/", {"version": None, "branch": "exp"}, 5),
)
_branches_create(
    "A branch begins where a tag is.",
    post(T + "tags/create/", _V1),
    post(T + "delete/", {"predicate": "id = 1"}),
    post(T + "tags/version/", {"tag": "v1"}, {"version": 1, "branch": either(None, "main")}),
    post(T + "branches/create/", {"name": "exp", "from_version": 1}),
    post(T + "count_rows/", {"version": None, "branch": "exp"}, 6),
)
_branches_create(
    "A branch that exists is told by 409.", _DEV, post(T + "branches/create/", {"name": "dev"}, statuses=(409,))
)
_branches_create(
    "A name that leads elsewhere is refused.",
    refused(T + "branches/create/", {"name": "../evil"}, statuses=(400,)),
    refused(T + "branches/create/", {"name": ""}, statuses=(400,)),
)
_branches_create(
    "A source that is missing is refused.",
    refused(T + "branches/create/", {"name": "dev", "from_branch": "ghost"}, text("ghost"), statuses=(400, 404)),
)
_branches_list = branches.about("Branches.list")
_branches_list(
    "Branches are listed with where they began.",
    _DEV,
    post(
        T + "branches/list/",
        None,
        {
            "branches": {
                "dev": {"parentBranch": NOTHING, "parentVersion": 1, "createAt": kind(int), "manifestSize": kind(int)}
            }
        },
    ),
)
_branches_list(
    "A table without branches lists none.",
    post(T + "branches/list/", None, {"branches": Where("an empty object", lambda found: found == {})}),
)
_delete = branches.about("Branches.delete")
_delete(
    "A branch is deleted.",
    _DEV,
    post(T + "branches/delete/", {"name": "dev"}),
    post(T + "branches/list/", None, {"branches": {"dev": NOTHING}}),
)
_delete("A branch that is missing is told by 404.", missing(T + "branches/delete/", {"name": "ghost"}))
branches(
    "Branches.checkout",
    "A version of a branch is described.",
    _DEV,
    post(T + "delete/", {"predicate": "id = 1", "branch": "dev"}),
    post(T + "describe/", {"version": 2, "branch": "dev"}, {"version": 2}),
    post(T + "count_rows/", {"version": 1, "branch": "dev"}, 6),
    missing(T + "describe/", {"version": 9, "branch": "dev"}),
)
branches(
    "Table.search",
    "A branch is queried.",
    _DEV,
    post(T + "insert/?branch=dev", _TWO),
    post(T + "query/", {**_SCAN, "branch": "dev"}, Rows(count=8)),
    post(T + "query/", _SCAN, Rows(count=6)),
)
branches(
    "Table.create_index",
    "An index of a branch is made, listed and dropped there.",
    _DEV,
    post(T + "create_index/", {"column": "id", "index_type": "BTREE", "name": "own", "branch": "dev"}),
    post(T + "index/list/", {"version": None, "branch": "dev"}, {"indexes": HasEntry({"index_name": "own"})}),
    post(T + "index/list/", {"version": None}, {"indexes": []}),
    post(T + "index/own/drop/?branch=dev"),
    post(T + "index/list/", {"version": None, "branch": "dev"}, {"indexes": []}),
)
branches(
    "Table.add_columns",
    "Columns of a branch are added, altered and dropped there.",
    _DEV,
    post(T + "add_columns/", {"new_columns": [{"name": "n", "expression": "id"}], "branch": "dev"}),
    post(T + "alter_columns/", {"alterations": [{"path": "n", "rename": "m"}], "branch": "dev"}),
    post(T + "drop_columns/", {"columns": ["m"], "branch": "dev"}),
    _UNCHANGED,
)
branches(
    "Table.restore",
    "An older version of a branch is restored there.",
    _DEV,
    post(T + "delete/", {"predicate": "id = 1", "branch": "dev"}),
    post(T + "restore/", {"version": 1, "branch": "dev"}),
    post(T + "count_rows/", {"version": None, "branch": "dev"}, 6),
    _UNCHANGED,
)
branches(
    "Table.count_rows",
    "A branch that is missing is refused.",
    refused(T + "count_rows/", {"version": None, "branch": "ghost"}, text("ghost"), statuses=(400, 404)),
)

picks = LineList("picks", Promise.BRANCHES)
_DIFF: Final = {
    "fromBranch": "dev",
    "parentVersion": 1,
    "mainVersion": 1,
    "branchVersion": 2,
    "baseMoved": False,
    "rowCountMain": 6,
    "rowCountBranch": 6,
    "removedColumns": [],
    "addedIndexes": [],
    "removedIndexes": [],
    "rowSummary": dict.fromkeys(
        ("unchanged", "newOnBase", "newOnBranch", "staleRecompute", "inputsChanged"), kind(int)
    ),
    "addedColumns": HasEntry({"name": "n"}),
    "changedColumns": [],
    "errors": ANY,
}
_GROWN: Final = (
    _DEV,
    post(T + "add_columns/", {"new_columns": [{"name": "n", "expression": "id"}], "branch": "dev"}, {"version": 2}),
)
_diff = picks.about("Branches.diff")
_diff(
    "What a branch has more than its table is described.",
    *_GROWN,
    post(T + "branches/diff/", {"from_branch": "dev"}, _DIFF),
)
_diff("A branch that is missing is told by 404.", missing(T + "branches/diff/", {"from_branch": "ghost"}))
_cherry_pick = picks.about("Branches.cherry_pick")
_cherry_pick(
    "What would be taken over is told, and nothing is.",
    *_GROWN,
    post(
        T + "branches/cherry_pick/",
        {"from_branch": "dev", "dry_run": True},
        {"status": either("ready", "notImplemented"), "diff": _DIFF, "preview": ANY},
    ),
    _UNCHANGED,
)
_cherry_pick(
    "A column of a branch is taken over, or a result says why not.",
    *_GROWN,
    post(
        T + "branches/cherry_pick/",
        {"from_branch": "dev", "dry_run": False},
        {"status": either("cherryPicked", "failed", "notImplemented"), "diff": JSON_OBJECT, "preview": ANY},
        statuses=(200, 409),
    ),
)
_cherry_pick(
    "A conflict is a result with the status 409, and changes nothing.",
    *_GROWN,
    post(T + "add_columns/", {"new_columns": [{"name": "n", "expression": "id + 1"}]}, {"version": Keep("head")}),
    post(
        T + "branches/cherry_pick/",
        {"from_branch": "dev", "dry_run": False},
        {"status": "failed", "diff": JSON_OBJECT},
        statuses=(409,),
    ),
    post(T + "describe/", None, {"version": 2}),
)
_cherry_pick(
    "A branch that is missing is told by 404.",
    missing(T + "branches/cherry_pick/", {"from_branch": "ghost", "dry_run": False}),
)
