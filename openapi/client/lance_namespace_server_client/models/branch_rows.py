from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="BranchRows")


@_attrs_define
class BranchRows:
    """
    Attributes:
        unchanged (int): Rows that both have from the version at which the branch began.
        new_on_base (int): Rows that main got since.
        new_on_branch (int): Rows that the branch got since.
        stale_recompute (int): 0: there are no computed columns.
        inputs_changed (int): 0: there are no computed columns.
        delta_available (bool): Whether these numbers are known.
    """

    unchanged: int
    new_on_base: int
    new_on_branch: int
    stale_recompute: int
    inputs_changed: int
    delta_available: bool
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        unchanged = self.unchanged

        new_on_base = self.new_on_base

        new_on_branch = self.new_on_branch

        stale_recompute = self.stale_recompute

        inputs_changed = self.inputs_changed

        delta_available = self.delta_available

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "unchanged": unchanged,
                "new_on_base": new_on_base,
                "new_on_branch": new_on_branch,
                "stale_recompute": stale_recompute,
                "inputs_changed": inputs_changed,
                "delta_available": delta_available,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        unchanged = d.pop("unchanged")

        new_on_base = d.pop("new_on_base")

        new_on_branch = d.pop("new_on_branch")

        stale_recompute = d.pop("stale_recompute")

        inputs_changed = d.pop("inputs_changed")

        delta_available = d.pop("delta_available")

        branch_rows = cls(
            unchanged=unchanged,
            new_on_base=new_on_base,
            new_on_branch=new_on_branch,
            stale_recompute=stale_recompute,
            inputs_changed=inputs_changed,
            delta_available=delta_available,
        )

        branch_rows.additional_properties = d
        return branch_rows

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
