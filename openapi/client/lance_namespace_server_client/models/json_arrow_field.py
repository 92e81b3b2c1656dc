from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.json_arrow_data_type import JsonArrowDataType
    from ..models.json_arrow_field_metadata import JsonArrowFieldMetadata


T = TypeVar("T", bound="JsonArrowField")


@_attrs_define
class JsonArrowField:
    """
    Attributes:
        name (str):
        type_ (JsonArrowDataType):
        nullable (bool):
        metadata (JsonArrowFieldMetadata | Unset):
    """

    name: str
    type_: JsonArrowDataType
    nullable: bool
    metadata: JsonArrowFieldMetadata | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        type_ = self.type_.to_dict()

        nullable = self.nullable

        metadata: dict[str, Any] | Unset = UNSET
        if not isinstance(self.metadata, Unset):
            metadata = self.metadata.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "type": type_,
                "nullable": nullable,
            }
        )
        if metadata is not UNSET:
            field_dict["metadata"] = metadata

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.json_arrow_data_type import JsonArrowDataType
        from ..models.json_arrow_field_metadata import JsonArrowFieldMetadata

        d = dict(src_dict)
        name = d.pop("name")

        type_ = JsonArrowDataType.from_dict(d.pop("type"))

        nullable = d.pop("nullable")

        _metadata = d.pop("metadata", UNSET)
        metadata: JsonArrowFieldMetadata | Unset
        if isinstance(_metadata, Unset):
            metadata = UNSET
        else:
            metadata = JsonArrowFieldMetadata.from_dict(_metadata)

        json_arrow_field = cls(
            name=name,
            type_=type_,
            nullable=nullable,
            metadata=metadata,
        )

        json_arrow_field.additional_properties = d
        return json_arrow_field

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
