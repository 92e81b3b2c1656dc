from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.privilege import Privilege
from ..types import UNSET, Unset

T = TypeVar("T", bound="GrantChange")


@_attrs_define
class GrantChange:
    """
    Attributes:
        changed (bool): Whether anything was changed. A revocation that took nothing says so.
        privileges (list[Privilege] | Unset): What the grantee has on the object itself by now; of changes of
            privileges.
    """

    changed: bool
    privileges: list[Privilege] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        changed = self.changed

        privileges: list[str] | Unset = UNSET
        if not isinstance(self.privileges, Unset):
            privileges = []
            for privileges_item_data in self.privileges:
                privileges_item = privileges_item_data.value
                privileges.append(privileges_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "changed": changed,
            }
        )
        if privileges is not UNSET:
            field_dict["privileges"] = privileges

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        changed = d.pop("changed")

        _privileges = d.pop("privileges", UNSET)
        privileges: list[Privilege] | Unset = UNSET
        if _privileges is not UNSET:
            privileges = []
            for privileges_item_data in _privileges:
                privileges_item = Privilege(privileges_item_data)

                privileges.append(privileges_item)

        grant_change = cls(
            changed=changed,
            privileges=privileges,
        )

        grant_change.additional_properties = d
        return grant_change

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
