from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.add_columns_entry import AddColumnsEntry
    from ..models.context import Context
    from ..models.identity import Identity


T = TypeVar("T", bound="AlterTableAddColumnsRequest")


@_attrs_define
class AlterTableAddColumnsRequest:
    """
    Attributes:
        new_columns (list[AddColumnsEntry]):
        identity (Identity | Unset): Credentials as a client was given them. The server looks at the headers only.
        context (Context | Unset): Free entries that accompany a request.
        id (list[str] | Unset): A path of names, outermost first; empty is the root.
        branch (str | Unset):
        arrow_schema (str | Unset): Ours. An Arrow IPC stream whose fields become columns of nulls; without new_columns.
    """

    new_columns: list[AddColumnsEntry]
    identity: Identity | Unset = UNSET
    context: Context | Unset = UNSET
    id: list[str] | Unset = UNSET
    branch: str | Unset = UNSET
    arrow_schema: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        new_columns = []
        for new_columns_item_data in self.new_columns:
            new_columns_item = new_columns_item_data.to_dict()
            new_columns.append(new_columns_item)

        identity: dict[str, Any] | Unset = UNSET
        if not isinstance(self.identity, Unset):
            identity = self.identity.to_dict()

        context: dict[str, Any] | Unset = UNSET
        if not isinstance(self.context, Unset):
            context = self.context.to_dict()

        id: list[str] | Unset = UNSET
        if not isinstance(self.id, Unset):
            id = self.id

        branch = self.branch

        arrow_schema = self.arrow_schema

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "new_columns": new_columns,
            }
        )
        if identity is not UNSET:
            field_dict["identity"] = identity
        if context is not UNSET:
            field_dict["context"] = context
        if id is not UNSET:
            field_dict["id"] = id
        if branch is not UNSET:
            field_dict["branch"] = branch
        if arrow_schema is not UNSET:
            field_dict["arrow_schema"] = arrow_schema

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.add_columns_entry import AddColumnsEntry
        from ..models.context import Context
        from ..models.identity import Identity

        d = dict(src_dict)
        new_columns = []
        _new_columns = d.pop("new_columns")
        for new_columns_item_data in _new_columns:
            new_columns_item = AddColumnsEntry.from_dict(new_columns_item_data)

            new_columns.append(new_columns_item)

        _identity = d.pop("identity", UNSET)
        identity: Identity | Unset
        if isinstance(_identity, Unset):
            identity = UNSET
        else:
            identity = Identity.from_dict(_identity)

        _context = d.pop("context", UNSET)
        context: Context | Unset
        if isinstance(_context, Unset):
            context = UNSET
        else:
            context = Context.from_dict(_context)

        id = cast(list[str], d.pop("id", UNSET))

        branch = d.pop("branch", UNSET)

        arrow_schema = d.pop("arrow_schema", UNSET)

        alter_table_add_columns_request = cls(
            new_columns=new_columns,
            identity=identity,
            context=context,
            id=id,
            branch=branch,
            arrow_schema=arrow_schema,
        )

        alter_table_add_columns_request.additional_properties = d
        return alter_table_add_columns_request

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
