from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.update_field_metadata_response_fields import UpdateFieldMetadataResponseFields


T = TypeVar("T", bound="UpdateFieldMetadataResponse")


@_attrs_define
class UpdateFieldMetadataResponse:
    """
    Attributes:
        version (int):
        fields (UpdateFieldMetadataResponseFields | Unset): All metadata of the fields that were named, by canonical
            path.
    """

    version: int
    fields: UpdateFieldMetadataResponseFields | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        version = self.version

        fields: dict[str, Any] | Unset = UNSET
        if not isinstance(self.fields, Unset):
            fields = self.fields.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "version": version,
            }
        )
        if fields is not UNSET:
            field_dict["fields"] = fields

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.update_field_metadata_response_fields import UpdateFieldMetadataResponseFields

        d = dict(src_dict)
        version = d.pop("version")

        _fields = d.pop("fields", UNSET)
        fields: UpdateFieldMetadataResponseFields | Unset
        if isinstance(_fields, Unset):
            fields = UNSET
        else:
            fields = UpdateFieldMetadataResponseFields.from_dict(_fields)

        update_field_metadata_response = cls(
            version=version,
            fields=fields,
        )

        update_field_metadata_response.additional_properties = d
        return update_field_metadata_response

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
