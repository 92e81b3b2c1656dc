from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.properties import Properties
    from ..models.vended_options import VendedOptions


T = TypeVar("T", bound="CreateTableResponse")


@_attrs_define
class CreateTableResponse:
    """
    Attributes:
        transaction_id (str | Unset): Absent if the table was there already.
        location (str | Unset): URI of the table.
        version (int | Unset):
        properties (Properties | Unset): Names and values that the catalog keeps.
        storage_options (VendedOptions | Unset): Options of the object store, by Lance's names, for the client to reach
            the table; if the server hands out any. Temporary credentials go with `expires_at_millis`, milliseconds since
            1970.
    """

    transaction_id: str | Unset = UNSET
    location: str | Unset = UNSET
    version: int | Unset = UNSET
    properties: Properties | Unset = UNSET
    storage_options: VendedOptions | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        transaction_id = self.transaction_id

        location = self.location

        version = self.version

        properties: dict[str, Any] | Unset = UNSET
        if not isinstance(self.properties, Unset):
            properties = self.properties.to_dict()

        storage_options: dict[str, Any] | Unset = UNSET
        if not isinstance(self.storage_options, Unset):
            storage_options = self.storage_options.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if transaction_id is not UNSET:
            field_dict["transaction_id"] = transaction_id
        if location is not UNSET:
            field_dict["location"] = location
        if version is not UNSET:
            field_dict["version"] = version
        if properties is not UNSET:
            field_dict["properties"] = properties
        if storage_options is not UNSET:
            field_dict["storage_options"] = storage_options

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.properties import Properties
        from ..models.vended_options import VendedOptions

        d = dict(src_dict)
        transaction_id = d.pop("transaction_id", UNSET)

        location = d.pop("location", UNSET)

        version = d.pop("version", UNSET)

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

        create_table_response = cls(
            transaction_id=transaction_id,
            location=location,
            version=version,
            properties=properties,
            storage_options=storage_options,
        )

        create_table_response.additional_properties = d
        return create_table_response

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
