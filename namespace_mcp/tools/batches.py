"""A list of changes as the operations of a batch.

Rows are sent to the catalog first, which writes their files; nothing refers to those before the batch. A change that no
batch can hold is a request of its own, and has to be the only one of its list.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Final, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from namespace_client import Catalog
from namespace_client.errors import AccessRefused, InvalidCall
from namespace_client.names import Name
from namespace_client.row_pages import column_path
from namespace_client.table_overview import is_blob, table_schema
from namespace_mcp.tools.tool import Branch, NamespaceName, TableName, namespace_path, table_path
from table_data.batch_operations import Json, TableId
from table_data.values.json_columns import Literal as Written
from table_data.values.json_columns import ValueMisfit, check_keys, column_of
from table_data.values.misfits import TypeRefused
from table_data.values.type_texts import schema_of

MOST_ROWS: Final = 10_000
"""Rows of one change."""

RowList = Annotated[
    list[dict[str, Any]],
    Field(
        max_length=MOST_ROWS,
        description="Rows, values by the name of the column, read as the types of the columns: times are texts of ISO "
        "8601, bytes base64, durations seconds, decimals texts, or numbers of at most 15 digits.",
    ),
]
Properties = Annotated[dict[str, str] | None, Field(description="Properties that the catalog stores with it.")]
Condition = Annotated[str, Field(min_length=1, max_length=16 << 10, description="SQL condition.")]
Described = Annotated[str, Field(min_length=1, max_length=1024)]


@dataclass(slots=True)
class PreparedChange:
    """A change, ready to be sent.

    Attributes:
        operations: Operations of a batch; empty if it is a request of its own.
        alone: Operation and request of a change that no batch can hold.
        rows: Rows that it writes, None if it writes none.
    """

    operations: list[Json] = field(default_factory=list)
    alone: tuple[str, Json] | None = None
    rows: int | None = None


class RequestedChange(BaseModel):
    """A change of the list."""

    model_config = ConfigDict(extra="forbid")

    do: str

    def prepare(self, catalog: Catalog, /) -> PreparedChange:
        """What is sent for it. Rows are staged. Raises exceptions of the client."""
        raise NotImplementedError

    @property
    def about(self) -> str | None:
        """The table or namespace that it is about, None for pins."""
        return None


class OfTable(RequestedChange):
    """A change of a table."""

    table: TableName

    @property
    def path(self) -> TableId:
        """The path of the table."""
        return table_path(self.table)

    @property
    def about(self) -> str | None:
        """See `RequestedChange`."""
        return str(Name(self.path))


class CreateTable(OfTable):
    """Create a table, from a schema, from rows, or from both. Its namespace must exist."""

    do: Literal["create_table"]
    columns: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=64 << 10,
            description="Names and types: `id int64, name string, seen timestamp[us, tz=UTC]`, and `v float[768]` for "
            "vectors. Found in the rows if absent.",
        ),
    ] = None
    rows: RowList = Field(default_factory=list)
    properties: Properties = None

    def prepare(self, catalog: Catalog, /) -> PreparedChange:
        """See `RequestedChange`."""
        if self.columns is None and not self.rows:
            raise InvalidCall(f"{self.about}: create_table: expected columns or rows, found neither")
        try:
            schema = None if self.columns is None else schema_of(self.columns)
        except TypeRefused as error:
            raise InvalidCall(f"{self.about}: columns: {error}") from None
        given: Json = {"mode": "create"} | ({"properties": dict(self.properties)} if self.properties else {})
        return _staged(catalog, self.path, arrow_rows(self.rows, schema, str(self.about)), given)


class InsertRows(OfTable):
    """Add rows to a table. A column that no row names is null."""

    do: Literal["insert_rows"]
    rows: Annotated[RowList, Field(min_length=1)]
    branch: Branch = None

    def prepare(self, catalog: Catalog, /) -> PreparedChange:
        """See `RequestedChange`."""
        given: Json = {"mode": "append"} | ({} if self.branch is None else {"branch": self.branch})
        schema = _schema_of_table(catalog, self.path, self.branch)
        return _staged(catalog, self.path, arrow_rows(self.rows, schema, str(self.about)), given)


class UpdateRows(OfTable):
    """Set columns to the values of SQL expressions in the rows that match."""

    do: Literal["update_rows"]
    set: Annotated[dict[str, str], Field(min_length=1, description="SQL expressions by the name of the column.")]
    filter: Condition
    branch: Branch = None

    def prepare(self, catalog: Catalog, /) -> PreparedChange:
        """See `RequestedChange`."""
        request: Json = {"predicate": self.filter, "updates": [list(each) for each in self.set.items()]}
        staged = catalog.access.stage_change("stage_update", self.path, request | _of_branch(self.branch))
        return PreparedChange(list(staged["operations"]), rows=int(staged["updated_rows"]))


class DeleteRows(OfTable):
    """Delete the rows that match."""

    do: Literal["delete_rows"]
    filter: Condition
    branch: Branch = None

    def prepare(self, catalog: Catalog, /) -> PreparedChange:
        """See `RequestedChange`."""
        request = {"predicate": self.filter} | _of_branch(self.branch)
        staged = catalog.access.stage_change("stage_delete", self.path, request)
        return PreparedChange(list(staged["operations"]), rows=int(staged["num_deleted_rows"]))


class UpsertRows(OfTable):
    """Replace the rows with the same key by the given ones, and add those that match none."""

    do: Literal["upsert_rows"]
    rows: Annotated[RowList, Field(min_length=1)]
    on: Annotated[list[str], Field(min_length=1, max_length=64, description="The columns that are the key.")]
    branch: Branch = None

    def prepare(self, catalog: Catalog, /) -> PreparedChange:
        """See `RequestedChange`."""
        request: Json = {"on": [column_path(name) for name in self.on], "when_matched_update_all": True}
        schema = _schema_of_table(catalog, self.path, self.branch)
        stream = _stream(arrow_rows(self.rows, schema, str(self.about)))
        staged = catalog.access.stage_merge(self.path, stream, request | _of_branch(self.branch))
        changed = int(staged["num_updated_rows"]) + int(staged["num_inserted_rows"])
        return PreparedChange(list(staged["operations"]), rows=changed)


class SetProperties(OfTable):
    """Set and remove properties that the catalog stores with a table."""

    do: Literal["set_table_properties"]
    set: dict[str, str] = Field(default_factory=dict)
    remove: list[str] = Field(default_factory=list)

    def prepare(self, _catalog: Catalog, /) -> PreparedChange:
        """See `RequestedChange`."""
        change = {"id": list(self.path), "updates": self.set, "removals": sorted(self.remove)}
        return PreparedChange([{"set_table_properties": change}])


class UndropTable(OfTable):
    """Bring back a dropped table, the last one of that name."""

    do: Literal["undrop_table"]
    new_name: TableName | None = None

    def prepare(self, _catalog: Catalog, /) -> PreparedChange:
        """See `RequestedChange`."""
        new = self.path if self.new_name is None else table_path(self.new_name)
        return PreparedChange([{"undrop_table": {"id": list(self.path), "new_id": list(new)}}])


class PinVersion(RequestedChange):
    """Keep a catalog version under a name: the one that this batch makes, if there is no other."""

    do: Literal["pin_catalog_version"]
    name: Described
    version: Annotated[int | None, Field(ge=0)] = None
    seconds: Annotated[int | None, Field(ge=1, description="How long; until it is removed if absent.")] = None

    def prepare(self, _catalog: Catalog, /) -> PreparedChange:
        """See `RequestedChange`."""
        given = {"name": self.name, "version": self.version, "seconds": self.seconds}
        return PreparedChange([{"pin_catalog_version": {key: each for key, each in given.items() if each is not None}}])


class UnpinVersion(RequestedChange):
    """Remove a pin."""

    do: Literal["unpin_catalog_version"]
    name: Described

    def prepare(self, _catalog: Catalog, /) -> PreparedChange:
        """See `RequestedChange`."""
        return PreparedChange([{"unpin_catalog_version": {"name": self.name}}])


class DropTable(OfTable):
    """Drop a table. It can come back for a while, see `undrop_table`."""

    do: Literal["drop_table"]

    def prepare(self, _catalog: Catalog, /) -> PreparedChange:
        """See `RequestedChange`."""
        return PreparedChange([{"drop_table": {"id": list(self.path)}}])


class RenameTable(OfTable):
    """Give a table another name, maybe in another namespace. Its rows do not change in the same call."""

    do: Literal["rename_table"]
    new_name: TableName

    def prepare(self, _catalog: Catalog, /) -> PreparedChange:
        """See `RequestedChange`."""
        target = table_path(self.new_name)
        if len(target) == 1 and len(self.path) > 1:
            raise InvalidCall(f"{self.about}: a table in a namespace cannot be moved to the root")
        new = {"new_namespace_id": list(target[:-1]), "new_table_name": target[-1]}
        return PreparedChange([{"rename_table": {"id": list(self.path)} | new}])


class OfNamespace(RequestedChange):
    """A change of a namespace."""

    namespace: Annotated[NamespaceName, Field(min_length=1)]

    @property
    def about(self) -> str | None:
        """See `RequestedChange`."""
        return str(Name(namespace_path(self.namespace)))

    def request(self) -> Json:
        """The request with the namespace."""
        return {"id": list(namespace_path(self.namespace))}


class CreateNamespace(OfNamespace):
    """Create a namespace, whose parent must exist. Goes alone."""

    do: Literal["create_namespace"]
    properties: Properties = None

    def prepare(self, _catalog: Catalog, /) -> PreparedChange:
        """See `RequestedChange`."""
        given = {} if self.properties is None else {"properties": dict(self.properties)}
        return PreparedChange(alone=("create_namespace", self.request() | given))


class DropNamespace(OfNamespace):
    """Drop an empty namespace. Goes alone."""

    do: Literal["drop_namespace"]

    def prepare(self, _catalog: Catalog, /) -> PreparedChange:
        """See `RequestedChange`."""
        return PreparedChange(alone=("drop_namespace", self.request() | {"behavior": "Restrict"}))


class TagVersion(OfTable):
    """Give a version of a table a name, which keeps it. Goes alone."""

    do: Literal["create_tag", "move_tag"]
    tag: Described
    version: Annotated[int, Field(ge=1)]
    branch: Branch = None

    def prepare(self, _catalog: Catalog, /) -> PreparedChange:
        """See `RequestedChange`."""
        request = {"id": list(self.path), "tag": self.tag, "version": self.version} | _of_branch(self.branch)
        return PreparedChange(alone=(_TAG_ROUTES[self.do], request))


class DeleteTag(OfTable):
    """Remove a tag. Goes alone."""

    do: Literal["delete_tag"]
    tag: Described

    def prepare(self, _catalog: Catalog, /) -> PreparedChange:
        """See `RequestedChange`."""
        return PreparedChange(alone=("delete_table_tag", {"id": list(self.path), "tag": self.tag}))


class CreateBranch(OfTable):
    """Begin a branch of a table. Goes alone."""

    do: Literal["create_branch"]
    name: Described
    from_branch: Branch = None
    from_version: Annotated[int | None, Field(ge=1)] = None

    def prepare(self, _catalog: Catalog, /) -> PreparedChange:
        """See `RequestedChange`."""
        given = {"name": self.name, "from_branch": self.from_branch, "from_version": self.from_version}
        request = {"id": list(self.path)} | {key: each for key, each in given.items() if each is not None}
        return PreparedChange(alone=("create_table_branch", request))


_BLOBS: Final = pa.field("", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
"""How rows bring values of a column of blobs, of which answers have descriptions."""
_SAFE_DIGITS: Final = 15
"""Digits of a decimal that a double keeps, whatever they are."""
_ANY: Final = pa.null()
_TAG_ROUTES: Final = {"create_tag": "create_table_tag", "move_tag": "update_table_tag"}

AnyChange = Annotated[
    CreateTable
    | InsertRows
    | UpdateRows
    | DeleteRows
    | UpsertRows
    | SetProperties
    | UndropTable
    | PinVersion
    | UnpinVersion
    | DropTable
    | RenameTable
    | CreateNamespace
    | DropNamespace
    | TagVersion
    | DeleteTag
    | CreateBranch,
    Field(discriminator="do"),
]


def _of_branch(branch: str | None) -> Json:
    return {} if branch is None else {"branch": branch}


def _staged(catalog: Catalog, table: TableId, rows: pa.Table, request: Json) -> PreparedChange:
    staged = catalog.access.stage_rows(table, _stream(rows), request)
    return PreparedChange(list(staged["operations"]), rows=int(staged["num_rows"]))


def _stream(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue().to_pybytes())


def _schema_of_table(catalog: Catalog, table: TableId, branch: str | None) -> pa.Schema | None:
    """The types of the columns of a table; None if the caller may write rows, but not read them."""
    try:
        found = table_schema(catalog.access, table, None, _of_branch(branch))
    except AccessRefused:
        return None
    return pa.schema([_BLOBS.with_name(each.name) if is_blob(each) else each for each in found])


def arrow_rows(rows: Sequence[Mapping[str, Any]], schema: pa.Schema | None, about: str) -> pa.Table:
    """Rows of JSON as Arrow, in the types of a schema, or in those that their values have.

    Raises `InvalidCall` for a value that is none of its column, and for a column that the schema has not.
    """
    if schema is None:
        try:
            return pa.Table.from_pylist([dict(row) for row in rows])
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise InvalidCall(f"{about}: rows: expected values of one type in each column: {error}") from None
    places = range(len(rows))
    try:
        for place, row in enumerate(rows):
            check_keys(dict(row), schema.names, place)
        columns = [
            column_of(
                [_written(row.get(each.name), each.type, place, each.name) for place, row in enumerate(rows)],
                each.type,
                places,
                each.name,
            )
            for each in schema
        ]
    except ValueMisfit as misfit:
        raise InvalidCall(f"{about}: row {misfit.row}: {misfit}") from None
    return pa.Table.from_arrays(columns, schema=schema)


def _written(value: Any, kind: pa.DataType, row: int, path: str) -> Any:
    """A value with its numbers as they are written, of which each type reads its own exactly.

    Raises `ValueMisfit` for a decimal that was a number of JSON and may have had more digits than there are left.
    """
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return Written(value)
    if isinstance(value, float):
        if math.isfinite(value):
            if pa.types.is_decimal(kind) and len(Decimal(repr(value)).as_tuple().digits) > _SAFE_DIGITS:
                raise ValueMisfit(row, path, f"expected a decimal as a text, found a number of {value!r} or near it")
            return Written(repr(value))
        return Written("NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity")
    if isinstance(value, Mapping):
        fields = {each.name: each.type for each in kind} if pa.types.is_struct(kind) else {}
        return {name: _written(each, fields.get(name, _ANY), row, path) for name, each in value.items()}
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return [_written(each, kind.value_type if is_list else _ANY, row, path) for each in value]
