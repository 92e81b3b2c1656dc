from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.branch_column import BranchColumn


T = TypeVar("T", bound="BranchColumnChange")


@_attrs_define
class BranchColumnChange:
    """
    Attributes:
        name (str):
        main (BranchColumn):
        branch (BranchColumn):
    """

    name: str
    main: BranchColumn
    branch: BranchColumn
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        main = self.main.to_dict()

        branch = self.branch.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "main": main,
                "branch": branch,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.branch_column import BranchColumn

        d = dict(src_dict)
        name = d.pop("name")

        main = BranchColumn.from_dict(d.pop("main"))

        branch = BranchColumn.from_dict(d.pop("branch"))

        branch_column_change = cls(
            name=name,
            main=main,
            branch=branch,
        )

        branch_column_change.additional_properties = d
        return branch_column_change

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
