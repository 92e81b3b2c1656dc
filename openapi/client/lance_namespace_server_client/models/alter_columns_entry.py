from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.alter_columns_entry_virtual_column import AlterColumnsEntryVirtualColumn
    from ..models.json_arrow_data_type import JsonArrowDataType


T = TypeVar("T", bound="AlterColumnsEntry")


@_attrs_define
class AlterColumnsEntry:
    """
    Attributes:
        path (str): Names from the outermost field inward, with dots between them. A name with a dot or a backtick is in
            backticks, which are doubled in it.
        data_type (JsonArrowDataType | str | Unset): An Arrow type of the family of the present one. The name alone is
            enough where the type has no length and no fields.
        rename (str | Unset):
        nullable (bool | Unset):
        virtual_column (AlterColumnsEntryVirtualColumn | Unset): Refused with code 0.
    """

    path: str
    data_type: JsonArrowDataType | str | Unset = UNSET
    rename: str | Unset = UNSET
    nullable: bool | Unset = UNSET
    virtual_column: AlterColumnsEntryVirtualColumn | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.json_arrow_data_type import JsonArrowDataType

        path = self.path

        data_type: dict[str, Any] | str | Unset
        if isinstance(self.data_type, Unset):
            data_type = UNSET
        elif isinstance(self.data_type, JsonArrowDataType):
            data_type = self.data_type.to_dict()
        else:
            data_type = self.data_type

        rename = self.rename

        nullable = self.nullable

        virtual_column: dict[str, Any] | Unset = UNSET
        if not isinstance(self.virtual_column, Unset):
            virtual_column = self.virtual_column.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "path": path,
            }
        )
        if data_type is not UNSET:
            field_dict["data_type"] = data_type
        if rename is not UNSET:
            field_dict["rename"] = rename
        if nullable is not UNSET:
            field_dict["nullable"] = nullable
        if virtual_column is not UNSET:
            field_dict["virtual_column"] = virtual_column

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.alter_columns_entry_virtual_column import AlterColumnsEntryVirtualColumn
        from ..models.json_arrow_data_type import JsonArrowDataType

        d = dict(src_dict)
        path = d.pop("path")

        def _parse_data_type(data: object) -> JsonArrowDataType | str | Unset:
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                data_type_type_0 = JsonArrowDataType.from_dict(data)

                return data_type_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(JsonArrowDataType | str | Unset, data)

        data_type = _parse_data_type(d.pop("data_type", UNSET))

        rename = d.pop("rename", UNSET)

        nullable = d.pop("nullable", UNSET)

        _virtual_column = d.pop("virtual_column", UNSET)
        virtual_column: AlterColumnsEntryVirtualColumn | Unset
        if isinstance(_virtual_column, Unset):
            virtual_column = UNSET
        else:
            virtual_column = AlterColumnsEntryVirtualColumn.from_dict(_virtual_column)

        alter_columns_entry = cls(
            path=path,
            data_type=data_type,
            rename=rename,
            nullable=nullable,
            virtual_column=virtual_column,
        )

        alter_columns_entry.additional_properties = d
        return alter_columns_entry

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
