from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="CatalogPin")


@_attrs_define
class CatalogPin:
    """
    Attributes:
        name (str):
        version (int): The catalog version that is kept.
        timestamp_millis (int): When it was pinned, since the Unix epoch.
        until_millis (int | Unset): When the pin may end, since the Unix epoch; absent: it stays until it is removed.
        reason (str | Unset):
        principal (str | Unset): Who pinned it.
    """

    name: str
    version: int
    timestamp_millis: int
    until_millis: int | Unset = UNSET
    reason: str | Unset = UNSET
    principal: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        version = self.version

        timestamp_millis = self.timestamp_millis

        until_millis = self.until_millis

        reason = self.reason

        principal = self.principal

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "version": version,
                "timestamp_millis": timestamp_millis,
            }
        )
        if until_millis is not UNSET:
            field_dict["until_millis"] = until_millis
        if reason is not UNSET:
            field_dict["reason"] = reason
        if principal is not UNSET:
            field_dict["principal"] = principal

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        name = d.pop("name")

        version = d.pop("version")

        timestamp_millis = d.pop("timestamp_millis")

        until_millis = d.pop("until_millis", UNSET)

        reason = d.pop("reason", UNSET)

        principal = d.pop("principal", UNSET)

        catalog_pin = cls(
            name=name,
            version=version,
            timestamp_millis=timestamp_millis,
            until_millis=until_millis,
            reason=reason,
            principal=principal,
        )

        catalog_pin.additional_properties = d
        return catalog_pin

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
