from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.who_am_i_response_means import WhoAmIResponseMeans
from ..types import UNSET, Unset

T = TypeVar("T", bound="WhoAmIResponse")


@_attrs_define
class WhoAmIResponse:
    """
    Attributes:
        means (WhoAmIResponseMeans): What the caller has shown.
        roles (list[str]): What the token says of the caller's roles, in order.
        principal (str | Unset): The name of the caller; absent if the server knows no principals.
        issuer (str | Unset): The issuer of the token.
        expires_at (int | Unset): When the token expires, in seconds since the Unix epoch.
    """

    means: WhoAmIResponseMeans
    roles: list[str]
    principal: str | Unset = UNSET
    issuer: str | Unset = UNSET
    expires_at: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        means = self.means.value

        roles = self.roles

        principal = self.principal

        issuer = self.issuer

        expires_at = self.expires_at

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "means": means,
                "roles": roles,
            }
        )
        if principal is not UNSET:
            field_dict["principal"] = principal
        if issuer is not UNSET:
            field_dict["issuer"] = issuer
        if expires_at is not UNSET:
            field_dict["expires_at"] = expires_at

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        means = WhoAmIResponseMeans(d.pop("means"))

        roles = cast(list[str], d.pop("roles"))

        principal = d.pop("principal", UNSET)

        issuer = d.pop("issuer", UNSET)

        expires_at = d.pop("expires_at", UNSET)

        who_am_i_response = cls(
            means=means,
            roles=roles,
            principal=principal,
            issuer=issuer,
            expires_at=expires_at,
        )

        who_am_i_response.additional_properties = d
        return who_am_i_response

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
