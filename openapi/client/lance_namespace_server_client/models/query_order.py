from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="QueryOrder")


@_attrs_define
class QueryOrder:
    """Ours. A column by which rows are ordered.

    Attributes:
        column_name (str): Its path.
        ascending (bool | Unset):  Default: True.
        nulls_first (bool | Unset):  Default: False.
    """

    column_name: str
    ascending: bool | Unset = True
    nulls_first: bool | Unset = False
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        column_name = self.column_name

        ascending = self.ascending

        nulls_first = self.nulls_first

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "column_name": column_name,
            }
        )
        if ascending is not UNSET:
            field_dict["ascending"] = ascending
        if nulls_first is not UNSET:
            field_dict["nulls_first"] = nulls_first

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        column_name = d.pop("column_name")

        ascending = d.pop("ascending", UNSET)

        nulls_first = d.pop("nulls_first", UNSET)

        query_order = cls(
            column_name=column_name,
            ascending=ascending,
            nulls_first=nulls_first,
        )

        query_order.additional_properties = d
        return query_order

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
