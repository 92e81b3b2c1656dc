from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.grant import Grant
    from ..models.role_membership import RoleMembership


T = TypeVar("T", bound="ListGrantsResponse")


@_attrs_define
class ListGrantsResponse:
    """
    Attributes:
        in_force (bool): Whether grants are in force. If not, every caller may do everything.
        grants (list[Grant]):
        roles (list[RoleMembership]): Who has which role, on the first page. Roles that tokens name are not kept in the
            catalog.
        page_token (str | Unset): Absent on the last page.
    """

    in_force: bool
    grants: list[Grant]
    roles: list[RoleMembership]
    page_token: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        in_force = self.in_force

        grants = []
        for grants_item_data in self.grants:
            grants_item = grants_item_data.to_dict()
            grants.append(grants_item)

        roles = []
        for roles_item_data in self.roles:
            roles_item = roles_item_data.to_dict()
            roles.append(roles_item)

        page_token = self.page_token

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "in_force": in_force,
                "grants": grants,
                "roles": roles,
            }
        )
        if page_token is not UNSET:
            field_dict["page_token"] = page_token

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.grant import Grant
        from ..models.role_membership import RoleMembership

        d = dict(src_dict)
        in_force = d.pop("in_force")

        grants = []
        _grants = d.pop("grants")
        for grants_item_data in _grants:
            grants_item = Grant.from_dict(grants_item_data)

            grants.append(grants_item)

        roles = []
        _roles = d.pop("roles")
        for roles_item_data in _roles:
            roles_item = RoleMembership.from_dict(roles_item_data)

            roles.append(roles_item)

        page_token = d.pop("page_token", UNSET)

        list_grants_response = cls(
            in_force=in_force,
            grants=grants,
            roles=roles,
            page_token=page_token,
        )

        list_grants_response.additional_properties = d
        return list_grants_response

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
