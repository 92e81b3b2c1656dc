from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="CheckPrivilegeResponse")


@_attrs_define
class CheckPrivilegeResponse:
    """
    Attributes:
        allowed (bool):
        reason (str): The grant that allows it, in words, or that there is none.
        in_force (bool): Whether grants are in force.
    """

    allowed: bool
    reason: str
    in_force: bool
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        allowed = self.allowed

        reason = self.reason

        in_force = self.in_force

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "allowed": allowed,
                "reason": reason,
                "in_force": in_force,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        allowed = d.pop("allowed")

        reason = d.pop("reason")

        in_force = d.pop("in_force")

        check_privilege_response = cls(
            allowed=allowed,
            reason=reason,
            in_force=in_force,
        )

        check_privilege_response.additional_properties = d
        return check_privilege_response

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
