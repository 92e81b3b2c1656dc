from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.grantee import Grantee


T = TypeVar("T", bound="GrantRoleRequest")


@_attrs_define
class GrantRoleRequest:
    """Give a role to a principal or to another role. It needs `own` on the catalog. Not part of the published namespace
    API.

        Attributes:
            role (str):
            to (Grantee): Exactly one of its fields. The role `everyone` is that of every caller.
    """

    role: str
    to: Grantee
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        role = self.role

        to = self.to.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "role": role,
                "to": to,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.grantee import Grantee

        d = dict(src_dict)
        role = d.pop("role")

        to = Grantee.from_dict(d.pop("to"))

        grant_role_request = cls(
            role=role,
            to=to,
        )

        grant_role_request.additional_properties = d
        return grant_role_request

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
