from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="TableWorthMaintenance")


@_attrs_define
class TableWorthMaintenance:
    """
    Attributes:
        id (list[str]): A path of names, outermost first; empty is the root.
        num_fragments (int): Fragments that a compaction would rewrite.
        num_indices (int): Indices that would be extended, or whose segments would be merged.
    """

    id: list[str]
    num_fragments: int
    num_indices: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        num_fragments = self.num_fragments

        num_indices = self.num_indices

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "num_fragments": num_fragments,
                "num_indices": num_indices,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        id = cast(list[str], d.pop("id"))

        num_fragments = d.pop("num_fragments")

        num_indices = d.pop("num_indices")

        table_worth_maintenance = cls(
            id=id,
            num_fragments=num_fragments,
            num_indices=num_indices,
        )

        table_worth_maintenance.additional_properties = d
        return table_worth_maintenance

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
