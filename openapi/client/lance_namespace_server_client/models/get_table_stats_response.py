from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.fragment_stats import FragmentStats


T = TypeVar("T", bound="GetTableStatsResponse")


@_attrs_define
class GetTableStatsResponse:
    """
    Attributes:
        total_bytes (int): Bytes of the columns in the data files.
        num_rows (int):
        num_indices (int):
        fragment_stats (FragmentStats):
    """

    total_bytes: int
    num_rows: int
    num_indices: int
    fragment_stats: FragmentStats
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        total_bytes = self.total_bytes

        num_rows = self.num_rows

        num_indices = self.num_indices

        fragment_stats = self.fragment_stats.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "total_bytes": total_bytes,
                "num_rows": num_rows,
                "num_indices": num_indices,
                "fragment_stats": fragment_stats,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.fragment_stats import FragmentStats

        d = dict(src_dict)
        total_bytes = d.pop("total_bytes")

        num_rows = d.pop("num_rows")

        num_indices = d.pop("num_indices")

        fragment_stats = FragmentStats.from_dict(d.pop("fragment_stats"))

        get_table_stats_response = cls(
            total_bytes=total_bytes,
            num_rows=num_rows,
            num_indices=num_indices,
            fragment_stats=fragment_stats,
        )

        get_table_stats_response.additional_properties = d
        return get_table_stats_response

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
