from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.privilege import Privilege
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.granted_object import GrantedObject
    from ..models.grantee import Grantee


T = TypeVar("T", bound="Grant")


@_attrs_define
class Grant:
    """
    Attributes:
        on (GrantedObject): Exactly one of its fields.
        to (Grantee): Exactly one of its fields. The role `everyone` is that of every caller.
        privileges (list[Privilege]):
        since_version (int): Catalog version from which on the name is that of this object and grant.
        timestamp_millis (int): When it was changed last, since the Unix epoch.
        principal (str | Unset): Who changed it last; absent: the operator.
    """

    on: GrantedObject
    to: Grantee
    privileges: list[Privilege]
    since_version: int
    timestamp_millis: int
    principal: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        on = self.on.to_dict()

        to = self.to.to_dict()

        privileges = []
        for privileges_item_data in self.privileges:
            privileges_item = privileges_item_data.value
            privileges.append(privileges_item)

        since_version = self.since_version

        timestamp_millis = self.timestamp_millis

        principal = self.principal

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "on": on,
                "to": to,
                "privileges": privileges,
                "since_version": since_version,
                "timestamp_millis": timestamp_millis,
            }
        )
        if principal is not UNSET:
            field_dict["principal"] = principal

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.granted_object import GrantedObject
        from ..models.grantee import Grantee

        d = dict(src_dict)
        on = GrantedObject.from_dict(d.pop("on"))

        to = Grantee.from_dict(d.pop("to"))

        privileges = []
        _privileges = d.pop("privileges")
        for privileges_item_data in _privileges:
            privileges_item = Privilege(privileges_item_data)

            privileges.append(privileges_item)

        since_version = d.pop("since_version")

        timestamp_millis = d.pop("timestamp_millis")

        principal = d.pop("principal", UNSET)

        grant = cls(
            on=on,
            to=to,
            privileges=privileges,
            since_version=since_version,
            timestamp_millis=timestamp_millis,
            principal=principal,
        )

        grant.additional_properties = d
        return grant

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
