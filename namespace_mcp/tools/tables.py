"""Tools for namespaces, tables and their versions."""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from typing import Annotated, Any, Final

from pydantic import BaseModel, Field

from lance_core.amounts import counted, size
from namespace_client import Catalog
from namespace_client.display import visible, when_utc
from namespace_client.history import moment
from namespace_client.names import Name
from namespace_client.table_overview import VersionOverview, table_overview
from namespace_mcp.tools.tool import (
    Arguments,
    At,
    Branch,
    Limit,
    NamespaceName,
    Page,
    TableName,
    Tag,
    Tool,
    ToolAnswer,
    Version,
    chosen_version,
    namespace_path,
    read_version,
    table_path,
)
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
        return f"catalog version {self.catalog_version} of {when_utc(self.committed_at)}; {caller}"


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


class FindTables(Arguments):
    """Words of names."""

    text: Annotated[
        str, Field(min_length=1, max_length=1024, description="Words, or parts of them, that the whole name has.")
    ]
    limit: Limit = 20
    at: At = None


class FoundNames(ToolAnswer):
    """Names of tables, the best first."""

    names: list[str]
    more: bool = Field(description="Whether there are more: give further words, or a larger limit.")

    def text(self) -> str:
        """See `ToolAnswer`."""
        names = "\n".join(map(visible, self.names)) or "(none)"
        return f"catalog version {self.catalog_version}\n{names}" + ("\n... and more" if self.more else "")


def find_tables(catalog: Catalog, arguments: FindTables) -> FoundNames:
    """The tables whose names have words."""
    at = read_version(catalog, arguments.at)
    found = catalog.access.find_tables(arguments.text, arguments.limit, at=at)
    return FoundNames(catalog_version=at, names=[str(name) for name in found], more=found.more)


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
    type: str = Field(description="As Arrow writes it; `blob` for long values that are read one by one.")
    nullable: bool
    metadata: dict[str, str]


class IndexOfTable(BaseModel):
    """An index of a table."""

    name: str
    columns: list[str]
    kind: str
    indexed_rows: int
    unindexed_rows: int = Field(description="Rows that a search has to look at one by one.")


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
    readable: bool = Field(description="Whether the caller may read it. If not, all that follows from rows is absent.")
    version: int | None = Field(description="Version of the table; null if it was only declared: it has no rows then.")
    branch: str | None
    columns: list[ColumnOfTable]
    rows: int | None
    deleted_rows: int | None = Field(description="Rows that are deleted and still have their place.")
    bytes: int | None
    fragments: int | None
    small_fragments: int | None = Field(description="Fragments that a compaction would join.")
    indices: list[IndexOfTable]
    versions: list[VersionOfTable] = Field(description="The newest versions, newest first.")
    tags: list[TagOfTable] = Field(description="Those of now; none where an earlier moment is read.")
    branches: list[BranchOfTable] = Field(description="As `tags`.")
    properties: dict[str, str]
    left_out: list[str] = Field(
        description=f"Lists that are cut after {_SHOWN} entries: `versions`, `tags`, and so on."
    )

    def text(self) -> str:
        """See `ToolAnswer`."""
        lines = [f"catalog version {self.catalog_version}", self._title()]
        lines += [f"  {visible(each.name)}  {each.type}{'' if each.nullable else ' not null'}" for each in self.columns]
        told: dict[str, list[str]] = {
            "indices": [
                f"{each.name} ({each.kind} over {', '.join(each.columns)}, {each.unindexed_rows:,} rows not)"
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
        place = visible(self.table) + ("" if self.branch is None else f" (branch {visible(self.branch)})")
        if self.version is None:
            return f"{place}: {'declared, without a version' if self.readable else 'the caller may not read it'}"
        parts = counted(self.rows, "row"), f"{size(self.bytes)} in {counted(self.fragments, 'fragment')}"
        return f"{place}: version {self.version}, {', '.join(parts)}"


def describe_table(catalog: Catalog, arguments: DescribeTable) -> TableDetails:
    """A table: its schema, size, indices, versions, tags, branches and properties."""
    table, at = table_path(arguments.table), read_version(catalog, arguments.at)
    branch, version = chosen_version(catalog, table, arguments.branch, arguments.tag, arguments.version)
    told = table_overview(catalog.access, table, at, at=arguments.at, branch=branch, version=version)
    tags, branches, properties = dict(told.tags or {}), dict(told.branches or {}), dict(told.properties)
    lists = {"indices": told.indices, "tags": tags, "branches": branches, "properties": properties}
    left_out = [label for label, entries in lists.items() if len(entries) > _SHOWN]
    return TableDetails(
        catalog_version=at,
        table=str(told.name),
        readable=told.readable,
        version=told.version,
        branch=told.branch,
        columns=[
            ColumnOfTable(name=each.name, type=each.type, nullable=each.nullable, metadata=dict(each.metadata))
            for each in told.columns
        ],
        rows=told.rows,
        deleted_rows=told.deleted_rows,
        bytes=told.bytes,
        fragments=None if told.fragments is None else told.fragments.count,
        small_fragments=None if told.fragments is None else told.fragments.small,
        indices=[
            IndexOfTable(
                name=each.name,
                columns=list(each.columns),
                kind=each.kind,
                indexed_rows=each.rows,
                unindexed_rows=each.unindexed_rows,
            )
            for each in told.indices[:_SHOWN]
        ],
        versions=[VersionOfTable(version=each.version, committed_at=each.committed_at) for each in told.versions],
        tags=[
            TagOfTable(name=name, version=each.version, branch=each.branch)
            for name, each in islice(tags.items(), _SHOWN)
        ],
        branches=[
            BranchOfTable(name=name, parent_version=each.parent_version, parent_branch=each.parent_branch)
            for name, each in islice(branches.items(), _SHOWN)
        ],
        properties=dict(islice(properties.items(), _SHOWN)),
        left_out=left_out + (["versions"] if told.has_more_versions else []),
    )


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
        lines = [f"{each.version}  {when_utc(each.committed_at)}" for each in self.versions] or ["(none)"]
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
        versions=[
            VersionOfTable(version=each.version, committed_at=each.committed_at)
            for each in map(VersionOverview.of, answer["versions"])
        ],
        next_page=answer.get("page_token"),
    )


TABLE_TOOLS: Final = (
    Tool(
        "describe_catalog",
        "Describe the catalog",
        "The newest version of the catalog, and whom it takes the caller for.",
        describe_catalog,
    ),
    Tool(
        "list_namespaces",
        "List namespaces",
        "Names of the namespaces in a namespace, page after page. Those that the caller may not see are not told.",
        list_namespaces,
    ),
    Tool(
        "list_tables",
        "List tables",
        "Names of the tables in a namespace, or also of those below it, page after page. Those that the caller may not "
        "see are not told.",
        list_tables,
    ),
    Tool(
        "find_tables",
        "Find tables",
        "Tables whose names have all words of a text, in any case and order, in all namespaces: the best first.",
        find_tables,
    ),
    Tool(
        "describe_table",
        "Describe a table",
        "Schema, size, indices and the rows that they lack, newest versions, tags, branches, properties of a table.",
        describe_table,
    ),
    Tool(
        "list_table_versions",
        "List versions of a table",
        "The versions of a table or of one of its branches, newest first, page after page.",
        list_versions,
    ),
)
