from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="BranchPreview")


@_attrs_define
class BranchPreview:
    """
    Attributes:
        promoted_columns (list[str]): New columns of main.
        num_new_rows (int | Unset):
        num_deleted_rows (int | Unset): Deleted rows of main, and those that have other values now.
    """

    promoted_columns: list[str]
    num_new_rows: int | Unset = UNSET
    num_deleted_rows: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        promoted_columns = self.promoted_columns

        num_new_rows = self.num_new_rows

        num_deleted_rows = self.num_deleted_rows

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "promoted_columns": promoted_columns,
            }
        )
        if num_new_rows is not UNSET:
            field_dict["num_new_rows"] = num_new_rows
        if num_deleted_rows is not UNSET:
            field_dict["num_deleted_rows"] = num_deleted_rows

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        promoted_columns = cast(list[str], d.pop("promoted_columns"))

        num_new_rows = d.pop("num_new_rows", UNSET)

        num_deleted_rows = d.pop("num_deleted_rows", UNSET)

        branch_preview = cls(
            promoted_columns=promoted_columns,
            num_new_rows=num_new_rows,
            num_deleted_rows=num_deleted_rows,
        )

        branch_preview.additional_properties = d
        return branch_preview

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
