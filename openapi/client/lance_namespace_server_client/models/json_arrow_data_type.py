from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.json_arrow_field import JsonArrowField


T = TypeVar("T", bound="JsonArrowDataType")


@_attrs_define
class JsonArrowDataType:
    """
    Attributes:
        type_ (str):
        fields (list[JsonArrowField] | Unset):
        length (int | Unset):
    """

    type_: str
    fields: list[JsonArrowField] | Unset = UNSET
    length: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        type_ = self.type_

        fields: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.fields, Unset):
            fields = []
            for fields_item_data in self.fields:
                fields_item = fields_item_data.to_dict()
                fields.append(fields_item)

        length = self.length

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "type": type_,
            }
        )
        if fields is not UNSET:
            field_dict["fields"] = fields
        if length is not UNSET:
            field_dict["length"] = length

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.json_arrow_field import JsonArrowField

        d = dict(src_dict)
        type_ = d.pop("type")

        _fields = d.pop("fields", UNSET)
        fields: list[JsonArrowField] | Unset = UNSET
        if _fields is not UNSET:
            fields = []
            for fields_item_data in _fields:
                fields_item = JsonArrowField.from_dict(fields_item_data)

                fields.append(fields_item)

        length = d.pop("length", UNSET)

        json_arrow_data_type = cls(
            type_=type_,
            fields=fields,
            length=length,
        )

        json_arrow_data_type.additional_properties = d
        return json_arrow_data_type

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
