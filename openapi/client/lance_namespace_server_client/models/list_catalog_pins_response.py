from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.catalog_pin import CatalogPin


T = TypeVar("T", bound="ListCatalogPinsResponse")


@_attrs_define
class ListCatalogPinsResponse:
    """
    Attributes:
        pins (list[CatalogPin]):
    """

    pins: list[CatalogPin]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        pins = []
        for pins_item_data in self.pins:
            pins_item = pins_item_data.to_dict()
            pins.append(pins_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "pins": pins,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.catalog_pin import CatalogPin

        d = dict(src_dict)
        pins = []
        _pins = d.pop("pins")
        for pins_item_data in _pins:
            pins_item = CatalogPin.from_dict(pins_item_data)

            pins.append(pins_item)

        list_catalog_pins_response = cls(
            pins=pins,
        )

        list_catalog_pins_response.additional_properties = d
        return list_catalog_pins_response

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
