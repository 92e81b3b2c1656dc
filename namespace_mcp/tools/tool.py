"""What a tool is, the catalog of one call, and what arguments have in common: names, versions, bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final, get_type_hints

from pydantic import BaseModel, ConfigDict, Field

from namespace_client import Catalog
from namespace_client.error_codes import ErrorCode
from namespace_client.errors import InvalidCall, NotFound
from namespace_client.names import Name, absolute
from table_data.batch_operations import TableId


class Arguments(BaseModel):
    """The arguments of a tool. One that it does not have is refused: if it were ignored, what it asks for were lost."""

    model_config = ConfigDict(extra="forbid")


class ToolAnswer(BaseModel):
    """The answer of a tool."""

    catalog_version: int = Field(description="The catalog version that this answer is of.")

    def text(self) -> str:
        """The answer for people, and for models that read texts."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool.

    Attributes:
        name: Its name.
        title: Its name for people.
        description: What it does, and when to use it.
        run: Makes the answer from arguments, whose types are those of its annotations. Blocking; raises exceptions of
            `namespace_client`.
        changes: Whether it changes the catalog. Other tools only read.
        destructive: Whether a change may remove what was there.
    """

    name: str
    title: str
    description: str
    run: Callable[[Catalog, Any], ToolAnswer]
    changes: bool = False
    destructive: bool = False

    @property
    def types(self) -> tuple[type[Arguments], type[ToolAnswer]]:
        """The types of its arguments and of its answer."""
        _, arguments, answer = get_type_hints(self.run).values()
        return arguments, answer


MOST_NAMES: Final = 1000
"""Names, versions and batches of one answer."""

TableName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=8192,
        description="Name of a table, with dots between the names of its namespaces and its own: `shop.orders`. A name "
        "that has a dot in it stands in backticks: `shop.`2026.q1``. Answers of the tools write names so.",
    ),
]
NamespaceName = Annotated[
    str, Field(max_length=8192, description="Name of a namespace, written as names of tables are; empty: the root.")
]
At = Annotated[
    int | None,
    Field(
        ge=0,
        description="Read the catalog as it was at this version. Answers say theirs as `catalog_version`: give it to "
        "have several answers of one moment. The newest if absent.",
    ),
]
Branch = Annotated[str | None, Field(min_length=1, description="A branch of the table; the main branch if absent.")]
Version = Annotated[
    int | None, Field(ge=1, description="A version of the table (not of the catalog); the newest if absent.")
]
Tag = Annotated[
    str | None, Field(min_length=1, description="A tag of the table, for the version that it names; without `version`.")
]
Limit = Annotated[int, Field(ge=1, le=MOST_NAMES, description=f"At most so many; {MOST_NAMES:,} are the most.")]
Page = Annotated[str | None, Field(min_length=1, description="`next_page` of the answer before, to go on from there.")]


def table_path(name: str) -> TableId:
    """The path that a name of a table stands for. Raises `InvalidCall`."""
    return absolute(name)


def namespace_path(name: str) -> TableId:
    """The path that a name of a namespace stands for. Raises `InvalidCall`."""
    return absolute(name, what="namespace") if name else ()


def read_version(catalog: Catalog, at: int | None) -> int:
    """The catalog version that an answer is of: all its parts are read at this one."""
    return catalog.access.state().version if at is None else at


def chosen_version(
    catalog: Catalog, table: TableId, branch: str | None, tag: str | None, version: int | None
) -> tuple[str | None, int | None]:
    """The branch and version of a table that arguments name. Raises `NotFound`."""
    if tag is None:
        return branch, version
    if branch is not None or version is not None:
        raise InvalidCall(f"{Name(table)}: a tag goes without version and branch")
    found = catalog.access.tags(table).get(tag)
    if found is None:
        raise NotFound(f"{Name(table)} has no tag {tag!r}", code=ErrorCode.TABLE_TAG_NOT_FOUND)
    return found.get("branch"), int(found["version"])


def chosen_fields(
    catalog: Catalog, table: TableId, branch: str | None, tag: str | None, version: int | None
) -> dict[str, Any]:
    """As `chosen_version`, as fields of a request."""
    found = zip(("branch", "version"), chosen_version(catalog, table, branch, tag, version), strict=True)
    return {name: value for name, value in found if value is not None}


@dataclass(frozen=True, slots=True)
class OpenedCatalog:
    """A catalog for one call.

    Attributes:
        catalog: The catalog, in the name of the caller.
        close: Closes it after the call. By another thread, during the call, it gives up what is under way.
    """

    catalog: Catalog
    close: Callable[[], None]


Opener = Callable[[Any], OpenedCatalog]
"""Opens the catalog for a call. Its argument is the HTTP request of the call, None on standard input."""
