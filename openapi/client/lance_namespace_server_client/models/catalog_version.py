from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.catalog_batch import CatalogBatch


T = TypeVar("T", bound="CatalogVersion")


@_attrs_define
class CatalogVersion:
    """
    Attributes:
        version (int):
        batches (list[CatalogBatch]):
        timestamp_millis (int | Unset):
    """

    version: int
    batches: list[CatalogBatch]
    timestamp_millis: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        version = self.version

        batches = []
        for batches_item_data in self.batches:
            batches_item = batches_item_data.to_dict()
            batches.append(batches_item)

        timestamp_millis = self.timestamp_millis

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "version": version,
                "batches": batches,
            }
        )
        if timestamp_millis is not UNSET:
            field_dict["timestamp_millis"] = timestamp_millis

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.catalog_batch import CatalogBatch

        d = dict(src_dict)
        version = d.pop("version")

        batches = []
        _batches = d.pop("batches")
        for batches_item_data in _batches:
            batches_item = CatalogBatch.from_dict(batches_item_data)

            batches.append(batches_item)

        timestamp_millis = d.pop("timestamp_millis", UNSET)

        catalog_version = cls(
            version=version,
            batches=batches,
            timestamp_millis=timestamp_millis,
        )

        catalog_version.additional_properties = d
        return catalog_version

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
