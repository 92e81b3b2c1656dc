from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.properties import Properties
    from ..models.vended_options import VendedOptions


T = TypeVar("T", bound="DeclareTableResponse")


@_attrs_define
class DeclareTableResponse:
    """
    Attributes:
        transaction_id (str | Unset):
        location (str | Unset): URI of the table.
        properties (Properties | Unset): Names and values that the catalog keeps.
        storage_options (VendedOptions | Unset): Options of the object store, by Lance's names, for the client to reach
            the table; if the server hands out any. Temporary credentials go with `expires_at_millis`, milliseconds since
            1970.
        managed_versioning (bool | Unset): True if versions are committed through this server.
    """

    transaction_id: str | Unset = UNSET
    location: str | Unset = UNSET
    properties: Properties | Unset = UNSET
    storage_options: VendedOptions | Unset = UNSET
    managed_versioning: bool | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        transaction_id = self.transaction_id

        location = self.location

        properties: dict[str, Any] | Unset = UNSET
        if not isinstance(self.properties, Unset):
            properties = self.properties.to_dict()

        storage_options: dict[str, Any] | Unset = UNSET
        if not isinstance(self.storage_options, Unset):
            storage_options = self.storage_options.to_dict()

        managed_versioning = self.managed_versioning

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if transaction_id is not UNSET:
            field_dict["transaction_id"] = transaction_id
        if location is not UNSET:
            field_dict["location"] = location
        if properties is not UNSET:
            field_dict["properties"] = properties
        if storage_options is not UNSET:
            field_dict["storage_options"] = storage_options
        if managed_versioning is not UNSET:
            field_dict["managed_versioning"] = managed_versioning

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.properties import Properties
        from ..models.vended_options import VendedOptions

        d = dict(src_dict)
        transaction_id = d.pop("transaction_id", UNSET)

        location = d.pop("location", UNSET)

        _properties = d.pop("properties", UNSET)
        properties: Properties | Unset
        if isinstance(_properties, Unset):
            properties = UNSET
        else:
            properties = Properties.from_dict(_properties)

        _storage_options = d.pop("storage_options", UNSET)
        storage_options: VendedOptions | Unset
        if isinstance(_storage_options, Unset):
            storage_options = UNSET
        else:
            storage_options = VendedOptions.from_dict(_storage_options)

        managed_versioning = d.pop("managed_versioning", UNSET)

        declare_table_response = cls(
            transaction_id=transaction_id,
            location=location,
            properties=properties,
            storage_options=storage_options,
            managed_versioning=managed_versioning,
        )

        declare_table_response.additional_properties = d
        return declare_table_response

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
