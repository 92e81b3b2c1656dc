from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.catalog_table import CatalogTable


T = TypeVar("T", bound="DescribeCatalogVersionResponse")


@_attrs_define
class DescribeCatalogVersionResponse:
    """
    Attributes:
        version (int):
        tables (list[CatalogTable]):
        timestamp_millis (int | Unset):
    """

    version: int
    tables: list[CatalogTable]
    timestamp_millis: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        version = self.version

        tables = []
        for tables_item_data in self.tables:
            tables_item = tables_item_data.to_dict()
            tables.append(tables_item)

        timestamp_millis = self.timestamp_millis

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "version": version,
                "tables": tables,
            }
        )
        if timestamp_millis is not UNSET:
            field_dict["timestamp_millis"] = timestamp_millis

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.catalog_table import CatalogTable

        d = dict(src_dict)
        version = d.pop("version")

        tables = []
        _tables = d.pop("tables")
        for tables_item_data in _tables:
            tables_item = CatalogTable.from_dict(tables_item_data)

            tables.append(tables_item)

        timestamp_millis = d.pop("timestamp_millis", UNSET)

        describe_catalog_version_response = cls(
            version=version,
            tables=tables,
            timestamp_millis=timestamp_millis,
        )

        describe_catalog_version_response.additional_properties = d
        return describe_catalog_version_response

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
