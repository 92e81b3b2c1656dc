from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="DescribeCatalogResponse")


@_attrs_define
class DescribeCatalogResponse:
    """
    Attributes:
        root (str): URI of the catalog's directory or bucket.
        version (int): 0 if nothing was ever written.
        managed (bool): True if the catalog keeps the versions of its tables.
        timestamp_millis (int | Unset): When the version was committed
    """

    root: str
    version: int
    managed: bool
    timestamp_millis: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        root = self.root

        version = self.version

        managed = self.managed

        timestamp_millis = self.timestamp_millis

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "root": root,
                "version": version,
                "managed": managed,
            }
        )
        if timestamp_millis is not UNSET:
            field_dict["timestamp_millis"] = timestamp_millis

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        root = d.pop("root")

        version = d.pop("version")

        managed = d.pop("managed")

        timestamp_millis = d.pop("timestamp_millis", UNSET)

        describe_catalog_response = cls(
            root=root,
            version=version,
            managed=managed,
            timestamp_millis=timestamp_millis,
        )

        describe_catalog_response.additional_properties = d
        return describe_catalog_response

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
