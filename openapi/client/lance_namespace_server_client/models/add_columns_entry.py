from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.add_columns_entry_virtual_column import AddColumnsEntryVirtualColumn


T = TypeVar("T", bound="AddColumnsEntry")


@_attrs_define
class AddColumnsEntry:
    """
    Attributes:
        name (str):
        expression (str | Unset): SQL over the other columns; evaluated once for the rows that there are.
        computed (str | Unset): Refused with code 0.
        virtual_column (AddColumnsEntryVirtualColumn | Unset): Refused with code 0.
    """

    name: str
    expression: str | Unset = UNSET
    computed: str | Unset = UNSET
    virtual_column: AddColumnsEntryVirtualColumn | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        expression = self.expression

        computed = self.computed

        virtual_column: dict[str, Any] | Unset = UNSET
        if not isinstance(self.virtual_column, Unset):
            virtual_column = self.virtual_column.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
            }
        )
        if expression is not UNSET:
            field_dict["expression"] = expression
        if computed is not UNSET:
            field_dict["computed"] = computed
        if virtual_column is not UNSET:
            field_dict["virtual_column"] = virtual_column

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.add_columns_entry_virtual_column import AddColumnsEntryVirtualColumn

        d = dict(src_dict)
        name = d.pop("name")

        expression = d.pop("expression", UNSET)

        computed = d.pop("computed", UNSET)

        _virtual_column = d.pop("virtual_column", UNSET)
        virtual_column: AddColumnsEntryVirtualColumn | Unset
        if isinstance(_virtual_column, Unset):
            virtual_column = UNSET
        else:
            virtual_column = AddColumnsEntryVirtualColumn.from_dict(_virtual_column)

        add_columns_entry = cls(
            name=name,
            expression=expression,
            computed=computed,
            virtual_column=virtual_column,
        )

        add_columns_entry.additional_properties = d
        return add_columns_entry

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
