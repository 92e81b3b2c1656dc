from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="DescribeTableIndexStatsResponse")


@_attrs_define
class DescribeTableIndexStatsResponse:
    """
    Attributes:
        distance_type (str | Unset): For vectors.
        index_type (str | Unset):
        num_indexed_rows (int | Unset):
        num_unindexed_rows (int | Unset):
        num_indices (int | Unset): Segments of the index.
    """

    distance_type: str | Unset = UNSET
    index_type: str | Unset = UNSET
    num_indexed_rows: int | Unset = UNSET
    num_unindexed_rows: int | Unset = UNSET
    num_indices: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        distance_type = self.distance_type

        index_type = self.index_type

        num_indexed_rows = self.num_indexed_rows

        num_unindexed_rows = self.num_unindexed_rows

        num_indices = self.num_indices

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if distance_type is not UNSET:
            field_dict["distance_type"] = distance_type
        if index_type is not UNSET:
            field_dict["index_type"] = index_type
        if num_indexed_rows is not UNSET:
            field_dict["num_indexed_rows"] = num_indexed_rows
        if num_unindexed_rows is not UNSET:
            field_dict["num_unindexed_rows"] = num_unindexed_rows
        if num_indices is not UNSET:
            field_dict["num_indices"] = num_indices

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        distance_type = d.pop("distance_type", UNSET)

        index_type = d.pop("index_type", UNSET)

        num_indexed_rows = d.pop("num_indexed_rows", UNSET)

        num_unindexed_rows = d.pop("num_unindexed_rows", UNSET)

        num_indices = d.pop("num_indices", UNSET)

        describe_table_index_stats_response = cls(
            distance_type=distance_type,
            index_type=index_type,
            num_indexed_rows=num_indexed_rows,
            num_unindexed_rows=num_unindexed_rows,
            num_indices=num_indices,
        )

        describe_table_index_stats_response.additional_properties = d
        return describe_table_index_stats_response

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
