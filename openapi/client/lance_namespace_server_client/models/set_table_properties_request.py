from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.properties import Properties


T = TypeVar("T", bound="SetTablePropertiesRequest")


@_attrs_define
class SetTablePropertiesRequest:
    """Change the properties that the catalog stores with a table. `properties` replaces all of them; none are left if
    `updates` and
    `removals` are missing too. `updates` sets some and `removals` removes some, and the others stay; not together with
    `properties`. Not part of the published namespace API.

        Attributes:
            id (list[str]): A path of names, outermost first; empty is the root.
            properties (Properties | Unset): Names and values that the catalog keeps.
            updates (Properties | Unset): Names and values that the catalog keeps.
            removals (list[str] | Unset): Names of properties to remove, if they are there.
            location (str | Unset): Where the table must be; another table of the same name is elsewhere.
    """

    id: list[str]
    properties: Properties | Unset = UNSET
    updates: Properties | Unset = UNSET
    removals: list[str] | Unset = UNSET
    location: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        properties: dict[str, Any] | Unset = UNSET
        if not isinstance(self.properties, Unset):
            properties = self.properties.to_dict()

        updates: dict[str, Any] | Unset = UNSET
        if not isinstance(self.updates, Unset):
            updates = self.updates.to_dict()

        removals: list[str] | Unset = UNSET
        if not isinstance(self.removals, Unset):
            removals = self.removals

        location = self.location

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
            }
        )
        if properties is not UNSET:
            field_dict["properties"] = properties
        if updates is not UNSET:
            field_dict["updates"] = updates
        if removals is not UNSET:
            field_dict["removals"] = removals
        if location is not UNSET:
            field_dict["location"] = location

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.properties import Properties

        d = dict(src_dict)
        id = cast(list[str], d.pop("id"))

        _properties = d.pop("properties", UNSET)
        properties: Properties | Unset
        if isinstance(_properties, Unset):
            properties = UNSET
        else:
            properties = Properties.from_dict(_properties)

        _updates = d.pop("updates", UNSET)
        updates: Properties | Unset
        if isinstance(_updates, Unset):
            updates = UNSET
        else:
            updates = Properties.from_dict(_updates)

        removals = cast(list[str], d.pop("removals", UNSET))

        location = d.pop("location", UNSET)

        set_table_properties_request = cls(
            id=id,
            properties=properties,
            updates=updates,
            removals=removals,
            location=location,
        )

        set_table_properties_request.additional_properties = d
        return set_table_properties_request

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
