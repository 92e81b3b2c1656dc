from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.context import Context
    from ..models.grant_privileges_request import GrantPrivilegesRequest
    from ..models.grant_role_request import GrantRoleRequest
    from ..models.identity import Identity
    from ..models.revoke_privileges_request import RevokePrivilegesRequest
    from ..models.revoke_role_request import RevokeRoleRequest


T = TypeVar("T", bound="ChangeGrantsRequest")


@_attrs_define
class ChangeGrantsRequest:
    """At least one change. Not part of the published namespace API.

    Attributes:
        identity (Identity | Unset): Credentials as a client was given them. The server looks at the headers only.
        context (Context | Unset): Free entries that accompany a request.
        grants (list[GrantPrivilegesRequest] | Unset):
        revokes (list[RevokePrivilegesRequest] | Unset):
        role_grants (list[GrantRoleRequest] | Unset):
        role_revokes (list[RevokeRoleRequest] | Unset):
    """

    identity: Identity | Unset = UNSET
    context: Context | Unset = UNSET
    grants: list[GrantPrivilegesRequest] | Unset = UNSET
    revokes: list[RevokePrivilegesRequest] | Unset = UNSET
    role_grants: list[GrantRoleRequest] | Unset = UNSET
    role_revokes: list[RevokeRoleRequest] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        identity: dict[str, Any] | Unset = UNSET
        if not isinstance(self.identity, Unset):
            identity = self.identity.to_dict()

        context: dict[str, Any] | Unset = UNSET
        if not isinstance(self.context, Unset):
            context = self.context.to_dict()

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
        if identity is not UNSET:
            field_dict["identity"] = identity
        if context is not UNSET:
            field_dict["context"] = context
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
        from ..models.context import Context
        from ..models.grant_privileges_request import GrantPrivilegesRequest
        from ..models.grant_role_request import GrantRoleRequest
        from ..models.identity import Identity
        from ..models.revoke_privileges_request import RevokePrivilegesRequest
        from ..models.revoke_role_request import RevokeRoleRequest

        d = dict(src_dict)
        _identity = d.pop("identity", UNSET)
        identity: Identity | Unset
        if isinstance(_identity, Unset):
            identity = UNSET
        else:
            identity = Identity.from_dict(_identity)

        _context = d.pop("context", UNSET)
        context: Context | Unset
        if isinstance(_context, Unset):
            context = UNSET
        else:
            context = Context.from_dict(_context)

        _grants = d.pop("grants", UNSET)
        grants: list[GrantPrivilegesRequest] | Unset = UNSET
        if _grants is not UNSET:
            grants = []
            for grants_item_data in _grants:
                grants_item = GrantPrivilegesRequest.from_dict(grants_item_data)

                grants.append(grants_item)

        _revokes = d.pop("revokes", UNSET)
        revokes: list[RevokePrivilegesRequest] | Unset = UNSET
        if _revokes is not UNSET:
            revokes = []
            for revokes_item_data in _revokes:
                revokes_item = RevokePrivilegesRequest.from_dict(revokes_item_data)

                revokes.append(revokes_item)

        _role_grants = d.pop("role_grants", UNSET)
        role_grants: list[GrantRoleRequest] | Unset = UNSET
        if _role_grants is not UNSET:
            role_grants = []
            for role_grants_item_data in _role_grants:
                role_grants_item = GrantRoleRequest.from_dict(role_grants_item_data)

                role_grants.append(role_grants_item)

        _role_revokes = d.pop("role_revokes", UNSET)
        role_revokes: list[RevokeRoleRequest] | Unset = UNSET
        if _role_revokes is not UNSET:
            role_revokes = []
            for role_revokes_item_data in _role_revokes:
                role_revokes_item = RevokeRoleRequest.from_dict(role_revokes_item_data)

                role_revokes.append(role_revokes_item)

        change_grants_request = cls(
            identity=identity,
            context=context,
            grants=grants,
            revokes=revokes,
            role_grants=role_grants,
            role_revokes=role_revokes,
        )

        change_grants_request.additional_properties = d
        return change_grants_request

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
