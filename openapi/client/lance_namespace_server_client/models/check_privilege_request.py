from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.privilege import Privilege
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.context import Context
    from ..models.granted_object import GrantedObject
    from ..models.identity import Identity


T = TypeVar("T", bound="CheckPrivilegeRequest")


@_attrs_define
class CheckPrivilegeRequest:
    """Not part of the published namespace API.

    Attributes:
        privilege (Privilege): What may be done with an object and with everything below it: `see` that it is there, and
            its properties; `read`
            rows, schemas and versions; `write` rows; `alter` schemas and properties; `create` namespaces and tables in it;
            `drop` it; change tags and branches (`reference`); compact and index, and pin versions of the catalog
            (`maintain`); `grant` others the privileges that one has. `own` is all of them. Each implies `see`.
        on (GrantedObject): Exactly one of its fields.
        identity (Identity | Unset): Credentials as a client was given them. The server looks at the headers only.
        context (Context | Unset): Free entries that accompany a request.
        principal (str | Unset): The principal in question; without it and `roles` the caller.
        roles (list[str] | Unset): Roles that its token would name.
    """

    privilege: Privilege
    on: GrantedObject
    identity: Identity | Unset = UNSET
    context: Context | Unset = UNSET
    principal: str | Unset = UNSET
    roles: list[str] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        privilege = self.privilege.value

        on = self.on.to_dict()

        identity: dict[str, Any] | Unset = UNSET
        if not isinstance(self.identity, Unset):
            identity = self.identity.to_dict()

        context: dict[str, Any] | Unset = UNSET
        if not isinstance(self.context, Unset):
            context = self.context.to_dict()

        principal = self.principal

        roles: list[str] | Unset = UNSET
        if not isinstance(self.roles, Unset):
            roles = self.roles

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "privilege": privilege,
                "on": on,
            }
        )
        if identity is not UNSET:
            field_dict["identity"] = identity
        if context is not UNSET:
            field_dict["context"] = context
        if principal is not UNSET:
            field_dict["principal"] = principal
        if roles is not UNSET:
            field_dict["roles"] = roles

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.context import Context
        from ..models.granted_object import GrantedObject
        from ..models.identity import Identity

        d = dict(src_dict)
        privilege = Privilege(d.pop("privilege"))

        on = GrantedObject.from_dict(d.pop("on"))

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

        principal = d.pop("principal", UNSET)

        roles = cast(list[str], d.pop("roles", UNSET))

        check_privilege_request = cls(
            privilege=privilege,
            on=on,
            identity=identity,
            context=context,
            principal=principal,
            roles=roles,
        )

        check_privilege_request.additional_properties = d
        return check_privilege_request

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
