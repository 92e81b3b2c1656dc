from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="Cursor")


@_attrs_define
class Cursor:
    """
    Attributes:
        name (str):
        version (int): Catalog version up to which the consumer is done.
        timestamp_millis (int): When it was put there, since the Unix epoch.
        principal (str | Unset): Who put it there.
        lag (int | Unset): Catalog versions above it; in lists.
        expired (bool | Unset): Whether some of these are not kept any more; in lists.
    """

    name: str
    version: int
    timestamp_millis: int
    principal: str | Unset = UNSET
    lag: int | Unset = UNSET
    expired: bool | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        version = self.version

        timestamp_millis = self.timestamp_millis

        principal = self.principal

        lag = self.lag

        expired = self.expired

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "version": version,
                "timestamp_millis": timestamp_millis,
            }
        )
        if principal is not UNSET:
            field_dict["principal"] = principal
        if lag is not UNSET:
            field_dict["lag"] = lag
        if expired is not UNSET:
            field_dict["expired"] = expired

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        name = d.pop("name")

        version = d.pop("version")

        timestamp_millis = d.pop("timestamp_millis")

        principal = d.pop("principal", UNSET)

        lag = d.pop("lag", UNSET)

        expired = d.pop("expired", UNSET)

        cursor = cls(
            name=name,
            version=version,
            timestamp_millis=timestamp_millis,
            principal=principal,
            lag=lag,
            expired=expired,
        )

        cursor.additional_properties = d
        return cursor

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
