from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="DroppedTable")


@_attrs_define
class DroppedTable:
    """
    Attributes:
        id (list[str]): A path of names, outermost first; empty is the root.
        location (str): URI of the table.
        tombstone_id (str): What names this drop.
        timestamp_millis (int): When it was dropped, since the Unix epoch.
        catalog_version (int): The catalog version before the drop.
        version (int | Unset): The newest version of the table; absent if it was only declared.
        principal (str | Unset): Who dropped it.
    """

    id: list[str]
    location: str
    tombstone_id: str
    timestamp_millis: int
    catalog_version: int
    version: int | Unset = UNSET
    principal: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        location = self.location

        tombstone_id = self.tombstone_id

        timestamp_millis = self.timestamp_millis

        catalog_version = self.catalog_version

        version = self.version

        principal = self.principal

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "location": location,
                "tombstone_id": tombstone_id,
                "timestamp_millis": timestamp_millis,
                "catalog_version": catalog_version,
            }
        )
        if version is not UNSET:
            field_dict["version"] = version
        if principal is not UNSET:
            field_dict["principal"] = principal

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        id = cast(list[str], d.pop("id"))

        location = d.pop("location")

        tombstone_id = d.pop("tombstone_id")

        timestamp_millis = d.pop("timestamp_millis")

        catalog_version = d.pop("catalog_version")

        version = d.pop("version", UNSET)

        principal = d.pop("principal", UNSET)

        dropped_table = cls(
            id=id,
            location=location,
            tombstone_id=tombstone_id,
            timestamp_millis=timestamp_millis,
            catalog_version=catalog_version,
            version=version,
            principal=principal,
        )

        dropped_table.additional_properties = d
        return dropped_table

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
