from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="MaintenanceWork")


@_attrs_define
class MaintenanceWork:
    """What of a version of a table is worth work.

    Attributes:
        small_fragments (int): Fragments that are joined with neighbours.
        fragments_with_deletions (int): Fragments that are written again without their deleted rows.
        bytes_ (int): Bytes of the data files of both, as far as they are known.
        indices (list[str]): Names of the indices that are extended or merged.
        unindexed_rows (int): Rows that these do not cover.
    """

    small_fragments: int
    fragments_with_deletions: int
    bytes_: int
    indices: list[str]
    unindexed_rows: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        small_fragments = self.small_fragments

        fragments_with_deletions = self.fragments_with_deletions

        bytes_ = self.bytes_

        indices = self.indices

        unindexed_rows = self.unindexed_rows

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "small_fragments": small_fragments,
                "fragments_with_deletions": fragments_with_deletions,
                "bytes": bytes_,
                "indices": indices,
                "unindexed_rows": unindexed_rows,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        small_fragments = d.pop("small_fragments")

        fragments_with_deletions = d.pop("fragments_with_deletions")

        bytes_ = d.pop("bytes")

        indices = cast(list[str], d.pop("indices"))

        unindexed_rows = d.pop("unindexed_rows")

        maintenance_work = cls(
            small_fragments=small_fragments,
            fragments_with_deletions=fragments_with_deletions,
            bytes_=bytes_,
            indices=indices,
            unindexed_rows=unindexed_rows,
        )

        maintenance_work.additional_properties = d
        return maintenance_work

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
