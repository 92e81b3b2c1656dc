"""Tools for namespaces, tables and their versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from pydantic import BaseModel, Field

from lance_core.amounts import counted, size
from namespace_client import Catalog
from namespace_client.display import when
from namespace_client.errors import AccessRefused
from namespace_client.history import moment
from namespace_client.names import Name
from namespace_mcp.tools.fields import (
    At,
    Branch,
    Limit,
    NamespaceName,
    Page,
    TableName,
    Tag,
    Version,
    chosen_version,
    namespace_path,
    read_version,
    table_path,
)
from namespace_mcp.tools.tool import Arguments, Tool, ToolAnswer
from namespace_mcp.tools.values import visible
from table_data.batch_operations import DELIMITER

_SHOWN: Final = 20
"""References, indices and versions of one description."""


class AboutCatalog(ToolAnswer):
    """The catalog, and the caller as it knows them."""

    committed_at: datetime | None = Field(description="When this version was committed.")
    principal: str | None = Field(description="Whom the catalog takes the caller for; null if it knows no callers.")
    roles: list[str] = Field(description="What the caller's token says of its roles.")

    def text(self) -> str:
        """See `ToolAnswer`."""
        caller = "it knows no callers" if self.principal is None else f"the caller is {visible(self.principal)}"
        return f"catalog version {self.catalog_version} of {when(self.committed_at)}; {caller}"


class NoArguments(Arguments):
    """Nothing."""


def describe_catalog(catalog: Catalog, _arguments: NoArguments) -> AboutCatalog:
    """The newest version, and who the caller is."""
    caller = catalog.whoami()
    answer = catalog.access.read("describe_catalog", {})
    made = answer.get("timestamp_millis")
    return AboutCatalog(
        catalog_version=int(answer["version"]),
        committed_at=moment(made) if made else None,
        principal=caller.principal,
        roles=sorted(caller.roles),
    )


class ListNames(Arguments):
    """A namespace, and the bounds of the list."""

    namespace: NamespaceName = ""
    limit: Limit = 100
    page: Page = None
    at: At = None


class ListTables(ListNames):
    """A namespace, whether those below it are meant, too, and the bounds of the list."""

    recursive: bool = Field(False, description="Also the tables of the namespaces below it.")


class NameList(ToolAnswer):
    """Names, in their order."""

    names: list[str]
    next_page: str | None = Field(
        description="Give it as `page` for the names after these; null if these are the last."
    )

    def text(self) -> str:
        """See `ToolAnswer`."""
        more = "" if self.next_page is None else f"\nmore: call again with page={self.next_page!r}"
        names = "\n".join(map(visible, self.names)) or "(none)"
        return f"catalog version {self.catalog_version}\n{names}{more}"


def list_namespaces(catalog: Catalog, arguments: ListNames) -> NameList:
    """The namespaces in a namespace."""
    return _names(catalog, "list_namespaces", "namespaces", arguments)


def list_tables(catalog: Catalog, arguments: ListTables) -> NameList:
    """The tables in a namespace, or below it."""
    if not arguments.recursive:
        return _names(catalog, "list_tables", "tables", arguments)
    at = read_version(catalog, arguments.at)
    above = namespace_path(arguments.namespace)
    if above:  # one that is not there is an error, not an empty list
        catalog.access.read("list_tables", {"id": list(above), "limit": 0}, at=at)
    found: list[str] = []
    token = arguments.page or (DELIMITER.join(above) if above else None)
    while len(found) < arguments.limit:
        asked = {"limit": arguments.limit - len(found)} | ({} if token is None else {"page_token": token})
        answer = catalog.access.read("list_all_tables", asked, at=at)
        names = [tuple(each.split(DELIMITER)) for each in answer.get("tables") or ()]
        inside = [name for name in names if name[: len(above)] == above]
        found += [str(Name(name)) for name in inside]
        token = answer.get("page_token")
        if token is None or len(inside) < len(names):
            token = token if inside and len(inside) == len(names) else None
            break
    return NameList(catalog_version=at, names=found, next_page=token)


def _names(catalog: Catalog, operation: str, field: str, arguments: ListNames) -> NameList:
    at = read_version(catalog, arguments.at)
    above = namespace_path(arguments.namespace)
    asked: dict[str, Any] = {"id": list(above), "limit": arguments.limit}
    answer = catalog.access.read(operation, asked | _token(arguments.page), at=at)
    names = [str(Name((*above, name))) for name in answer.get(field) or ()]
    return NameList(catalog_version=at, names=names, next_page=answer.get("page_token"))


def _token(page: str | None) -> dict[str, str]:
    return {} if page is None else {"page_token": page}


class DescribeTable(Arguments):
    """A table, at a version."""

    table: TableName
    branch: Branch = None
    tag: Tag = None
    version: Version = None
    at: At = None


class ColumnOfTable(BaseModel):
    """A column of a table."""

    name: str
    type: str
    nullable: bool
    metadata: dict[str, str] = Field(default_factory=dict)


class IndexOfTable(BaseModel):
    """An index of a table."""

    name: str
    columns: list[str]
    kind: str | None = None
    indexed_rows: int | None = None
    unindexed_rows: int | None = Field(
        default=None, description="Rows that a search has to look through without the index."
    )


class VersionOfTable(BaseModel):
    """A version of a table."""

    version: int
    committed_at: datetime | None = None


class TagOfTable(BaseModel):
    """A name for a version."""

    name: str
    version: int
    branch: str | None = None


class BranchOfTable(BaseModel):
    """A branch, and where it began."""

    name: str
    parent_version: int | None = None
    parent_branch: str | None = None


class TableDetails(ToolAnswer):
    """A table at one version."""

    table: str
    version: int | None = Field(description="Version of the table; null if it was only declared: it has no rows then.")
    branch: str | None = None
    columns: list[ColumnOfTable] = Field(default_factory=list)
    rows: int | None = None
    bytes: int | None = None
    fragments: int | None = None
    indices: list[IndexOfTable] = Field(default_factory=list)
    versions: list[VersionOfTable] = Field(default_factory=list, description="The newest versions, newest first.")
    tags: list[TagOfTable] = Field(default_factory=list)
    branches: list[BranchOfTable] = Field(default_factory=list)
    properties: dict[str, str] = Field(default_factory=dict)
    left_out: list[str] = Field(
        default_factory=list, description=f"Lists that are cut after {_SHOWN} entries: `versions`, `tags`, and so on."
    )

    def text(self) -> str:
        """See `ToolAnswer`."""
        lines = [f"catalog version {self.catalog_version}", self._title()]
        lines += [f"  {visible(each.name)}  {each.type}{'' if each.nullable else ' not null'}" for each in self.columns]
        told: dict[str, list[str]] = {
            "indices": [
                f"{each.name} ({each.kind or 'index'} over {', '.join(each.columns)}"
                + ("" if not each.unindexed_rows else f", {counted(each.unindexed_rows, 'row')} not indexed")
                + ")"
                for each in self.indices
            ],
            "versions": [str(each.version) for each in self.versions],
            "tags": [f"{each.name} ({each.branch + ' ' if each.branch else ''}{each.version})" for each in self.tags],
            "branches": [f"{each.name} (from {each.parent_version})" for each in self.branches],
            "properties": [f"{name}={value}" for name, value in self.properties.items()],
        }
        for label, texts in told.items():
            if texts:
                cut = ", and more" if label in self.left_out else ""
                lines.append(f"{label}: {visible(', '.join(texts))}{cut}")
        return "\n".join(lines)

    def _title(self) -> str:
        place = "" if self.branch is None else f" (branch {visible(self.branch)})"
        if self.version is None:
            return f"{visible(self.table)}{place}: declared, without a version"
        parts = [] if self.rows is None else [counted(self.rows, "row")]
        if self.bytes is not None and self.fragments is not None:
            parts.append(f"{size(self.bytes)} in {counted(self.fragments, 'fragment')}")
        return ", ".join([f"{visible(self.table)}{place}: version {self.version}", *parts])


def describe_table(catalog: Catalog, arguments: DescribeTable) -> TableDetails:
    """A table: its schema, size, indices, versions, tags, branches and properties."""
    access, table = catalog.access, table_path(arguments.table)
    at = read_version(catalog, arguments.at)
    chosen = chosen_version(catalog, table, arguments.branch, arguments.tag, arguments.version)
    asked = {"id": list(table), "load_detailed_metadata": True, "vend_credentials": False} | chosen
    about = access.read("describe_table", asked, at=at)
    branch = chosen.get("branch")
    details = TableDetails(
        catalog_version=at,
        table=str(Name(table)),
        version=about.get("version"),
        branch=branch if isinstance(branch, str) else None,
        properties=dict(about.get("properties") or {}),
    )
    if details.version is None:
        return details
    schema = about.get("schema") or {}
    details.columns = [_column(each) for each in schema.get("fields") or ()]
    stats = access.table_value("get_table_stats", table, chosen, at=at)
    details.rows, details.bytes = stats.get("num_rows"), stats.get("total_bytes")
    details.fragments = (stats.get("fragment_stats") or {}).get("num_fragments")
    listed = access.table_value("list_table_indices", table, chosen | {"limit": _SHOWN}, at=at)
    details.indices = [_index(catalog, table, chosen, each, at) for each in listed.get("indexes") or ()]
    of_branch = {} if branch is None else {"branch": branch}
    newest = {"id": list(table), "descending": True, "limit": _SHOWN} | of_branch
    versions = access.read("list_table_versions", newest, at=at)
    details.versions = [_version(each) for each in versions.get("versions") or ()]
    tags = access.read("list_table_tags", {"id": list(table), "limit": _SHOWN})
    details.tags = [
        TagOfTable(name=name, version=int(tag["version"]), branch=tag.get("branch"))
        for name, tag in (tags.get("tags") or {}).items()
    ]
    branches = access.read("list_table_branches", {"id": list(table), "limit": _SHOWN})
    details.branches = [
        BranchOfTable(name=name, parent_version=each.get("parentVersion"), parent_branch=each.get("parentBranch"))
        for name, each in (branches.get("branches") or {}).items()
    ]
    pages = {"indices": listed, "versions": versions, "tags": tags, "branches": branches}
    details.left_out = [label for label, page in pages.items() if page.get("page_token")]
    return details


def _column(field: Mapping[str, Any]) -> ColumnOfTable:
    return ColumnOfTable(
        name=field["name"],
        type=_type_text(field["type"]),
        nullable=bool(field.get("nullable", True)),
        metadata=dict(field.get("metadata") or {}),
    )


def _type_text(described: Mapping[str, Any]) -> str:
    """A type of the API's schemas as a text: `struct<id: int64, at: timestamp>`."""
    name, inner = str(described.get("type")), described.get("fields") or ()
    if name == "struct":
        fields = ", ".join(f"{each['name']}: {_type_text(each['type'])}" for each in inner)
        return f"struct<{fields}>"
    if inner:
        items = ", ".join(_type_text(each["type"]) for each in inner)
        length = described.get("length")
        return f"{name}<{items}>" + ("" if length is None else f"[{length}]")
    length = described.get("length")
    if length is not None and name.startswith("decimal"):
        precision, scale = divmod(int(length), 1000)
        return f"{name}({precision}, {scale})"
    return name if length is None else f"{name}[{length}]"


def _index(
    catalog: Catalog, table: Sequence[str], chosen: Mapping[str, object], listed: Mapping[str, Any], at: int
) -> IndexOfTable:
    name = str(listed["index_name"])
    found = IndexOfTable(name=name, columns=list(listed.get("columns") or ()), kind=listed.get("index_type"))
    try:
        stats = catalog.access.table_value(
            "describe_table_index_stats", tuple(table), dict(chosen) | {"index_name": name}, at=at
        )
    except AccessRefused:
        return found
    found.kind = stats.get("index_type") or found.kind
    found.indexed_rows, found.unindexed_rows = stats.get("num_indexed_rows"), stats.get("num_unindexed_rows")
    return found


def _version(row: Mapping[str, Any]) -> VersionOfTable:
    made = row.get("timestamp_millis")
    return VersionOfTable(version=int(row["version"]), committed_at=moment(made) if made else None)


class ListVersions(Arguments):
    """A table, and the bounds of the list."""

    table: TableName
    branch: Branch = None
    limit: Limit = 50
    page: Page = None
    at: At = None


class VersionList(ToolAnswer):
    """Versions of a table, newest first."""

    table: str
    versions: list[VersionOfTable]
    next_page: str | None = Field(description="Give it as `page` for older ones; null if these are all.")

    def text(self) -> str:
        """See `ToolAnswer`."""
        lines = [f"{each.version}  {when(each.committed_at)}" for each in self.versions] or ["(none)"]
        more = [] if self.next_page is None else [f"more: call again with page={self.next_page!r}"]
        return "\n".join([f"catalog version {self.catalog_version}", visible(self.table), *lines, *more])


def list_versions(catalog: Catalog, arguments: ListVersions) -> VersionList:
    """The versions of a table, newest first."""
    table, at = table_path(arguments.table), read_version(catalog, arguments.at)
    asked: dict[str, Any] = {"id": list(table), "descending": True, "limit": arguments.limit}
    asked |= {} if arguments.branch is None else {"branch": arguments.branch}
    answer = catalog.access.read("list_table_versions", asked | _token(arguments.page), at=at)
    return VersionList(
        catalog_version=at,
        table=str(Name(table)),
        versions=[_version(each) for each in answer.get("versions") or ()],
        next_page=answer.get("page_token"),
    )


TABLE_TOOLS: Final = (
    Tool(
        "describe_catalog",
        "Describe the catalog",
        "The newest version of the catalog, and whom it takes the caller for.",
        NoArguments,
        AboutCatalog,
        describe_catalog,
    ),
    Tool(
        "list_namespaces",
        "List namespaces",
        "Names of the namespaces in a namespace, page after page. Those that the caller may not see are not told.",
        ListNames,
        NameList,
        list_namespaces,
    ),
    Tool(
        "list_tables",
        "List tables",
        "Names of the tables in a namespace, or also of those below it, page after page. Those that the caller may not "
        "see are not told.",
        ListTables,
        NameList,
        list_tables,
    ),
    Tool(
        "describe_table",
        "Describe a table",
        "Schema, size, indices and the rows that they lack, newest versions, tags, branches, properties of a table.",
        DescribeTable,
        TableDetails,
        describe_table,
    ),
    Tool(
        "list_table_versions",
        "List versions of a table",
        "The versions of a table or of one of its branches, newest first, page after page.",
        ListVersions,
        VersionList,
        list_versions,
    ),
)
