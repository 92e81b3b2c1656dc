from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.grantee import Grantee


T = TypeVar("T", bound="RoleMembership")


@_attrs_define
class RoleMembership:
    """
    Attributes:
        role (str):
        to (Grantee): Exactly one of its fields. The role `everyone` is that of every caller.
        timestamp_millis (int):
        principal (str | Unset): Who gave it; absent: the operator.
    """

    role: str
    to: Grantee
    timestamp_millis: int
    principal: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        role = self.role

        to = self.to.to_dict()

        timestamp_millis = self.timestamp_millis

        principal = self.principal

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "role": role,
                "to": to,
                "timestamp_millis": timestamp_millis,
            }
        )
        if principal is not UNSET:
            field_dict["principal"] = principal

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.grantee import Grantee

        d = dict(src_dict)
        role = d.pop("role")

        to = Grantee.from_dict(d.pop("to"))

        timestamp_millis = d.pop("timestamp_millis")

        principal = d.pop("principal", UNSET)

        role_membership = cls(
            role=role,
            to=to,
            timestamp_millis=timestamp_millis,
            principal=principal,
        )

        role_membership.additional_properties = d
        return role_membership

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
