from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.alter_transaction_response_properties import AlterTransactionResponseProperties


T = TypeVar("T", bound="AlterTransactionResponse")


@_attrs_define
class AlterTransactionResponse:
    """
    Attributes:
        status (str): `Succeeded`; `Failed` for a commit around the catalog that was set aside.
        properties (AlterTransactionResponseProperties | Unset):
    """

    status: str
    properties: AlterTransactionResponseProperties | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        status = self.status

        properties: dict[str, Any] | Unset = UNSET
        if not isinstance(self.properties, Unset):
            properties = self.properties.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "status": status,
            }
        )
        if properties is not UNSET:
            field_dict["properties"] = properties

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.alter_transaction_response_properties import AlterTransactionResponseProperties

        d = dict(src_dict)
        status = d.pop("status")

        _properties = d.pop("properties", UNSET)
        properties: AlterTransactionResponseProperties | Unset
        if isinstance(_properties, Unset):
            properties = UNSET
        else:
            properties = AlterTransactionResponseProperties.from_dict(_properties)

        alter_transaction_response = cls(
            status=status,
            properties=properties,
        )

        alter_transaction_response.additional_properties = d
        return alter_transaction_response

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
