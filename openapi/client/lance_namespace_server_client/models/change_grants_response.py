from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.grant_change import GrantChange


T = TypeVar("T", bound="ChangeGrantsResponse")


@_attrs_define
class ChangeGrantsResponse:
    """The result of each change, in the lists and the order of the request.

    Attributes:
        transaction_id (str | Unset):
        grants (list[GrantChange] | Unset):
        revokes (list[GrantChange] | Unset):
        role_grants (list[GrantChange] | Unset):
        role_revokes (list[GrantChange] | Unset):
    """

    transaction_id: str | Unset = UNSET
    grants: list[GrantChange] | Unset = UNSET
    revokes: list[GrantChange] | Unset = UNSET
    role_grants: list[GrantChange] | Unset = UNSET
    role_revokes: list[GrantChange] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        transaction_id = self.transaction_id

        grants: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.grants, Unset):
            grants = []
            for grants_item_data in self.grants:
                grants_item = grants_item_data.to_dict()
                grants.append(grants_item)

        revokes: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.revokes, Unset):
            revokes = []
            for revokes_item_data in self.revokes:
                revokes_item = revokes_item_data.to_dict()
                revokes.append(revokes_item)

        role_grants: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.role_grants, Unset):
            role_grants = []
            for role_grants_item_data in self.role_grants:
                role_grants_item = role_grants_item_data.to_dict()
                role_grants.append(role_grants_item)

        role_revokes: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.role_revokes, Unset):
            role_revokes = []
            for role_revokes_item_data in self.role_revokes:
                role_revokes_item = role_revokes_item_data.to_dict()
                role_revokes.append(role_revokes_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if transaction_id is not UNSET:
            field_dict["transaction_id"] = transaction_id
        if grants is not UNSET:
            field_dict["grants"] = grants
        if revokes is not UNSET:
            field_dict["revokes"] = revokes
        if role_grants is not UNSET:
            field_dict["role_grants"] = role_grants
        if role_revokes is not UNSET:
            field_dict["role_revokes"] = role_revokes

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.grant_change import GrantChange

        d = dict(src_dict)
        transaction_id = d.pop("transaction_id", UNSET)

        _grants = d.pop("grants", UNSET)
        grants: list[GrantChange] | Unset = UNSET
        if _grants is not UNSET:
            grants = []
            for grants_item_data in _grants:
                grants_item = GrantChange.from_dict(grants_item_data)

                grants.append(grants_item)

        _revokes = d.pop("revokes", UNSET)
        revokes: list[GrantChange] | Unset = UNSET
        if _revokes is not UNSET:
            revokes = []
            for revokes_item_data in _revokes:
                revokes_item = GrantChange.from_dict(revokes_item_data)

                revokes.append(revokes_item)

        _role_grants = d.pop("role_grants", UNSET)
        role_grants: list[GrantChange] | Unset = UNSET
        if _role_grants is not UNSET:
            role_grants = []
            for role_grants_item_data in _role_grants:
                role_grants_item = GrantChange.from_dict(role_grants_item_data)

                role_grants.append(role_grants_item)

        _role_revokes = d.pop("role_revokes", UNSET)
        role_revokes: list[GrantChange] | Unset = UNSET
        if _role_revokes is not UNSET:
            role_revokes = []
            for role_revokes_item_data in _role_revokes:
                role_revokes_item = GrantChange.from_dict(role_revokes_item_data)

                role_revokes.append(role_revokes_item)

        change_grants_response = cls(
            transaction_id=transaction_id,
            grants=grants,
            revokes=revokes,
            role_grants=role_grants,
            role_revokes=role_revokes,
        )

        change_grants_response.additional_properties = d
        return change_grants_response

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
