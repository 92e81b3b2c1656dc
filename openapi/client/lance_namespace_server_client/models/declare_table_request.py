from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.context import Context
    from ..models.identity import Identity
    from ..models.properties import Properties


T = TypeVar("T", bound="DeclareTableRequest")


@_attrs_define
class DeclareTableRequest:
    """
    Attributes:
        identity (Identity | Unset): Credentials as a client was given them. The server looks at the headers only.
        context (Context | Unset): Free entries that accompany a request.
        id (list[str] | Unset): A path of names, outermost first; empty is the root.
        location (str | Unset): Only the location that the server would choose is accepted.
        vend_credentials (bool | Unset): Whether `storage_options` are wanted. Absent is true.
        properties (Properties | Unset): Names and values that the catalog keeps.
    """

    identity: Identity | Unset = UNSET
    context: Context | Unset = UNSET
    id: list[str] | Unset = UNSET
    location: str | Unset = UNSET
    vend_credentials: bool | Unset = UNSET
    properties: Properties | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        identity: dict[str, Any] | Unset = UNSET
        if not isinstance(self.identity, Unset):
            identity = self.identity.to_dict()

        context: dict[str, Any] | Unset = UNSET
        if not isinstance(self.context, Unset):
            context = self.context.to_dict()

        id: list[str] | Unset = UNSET
        if not isinstance(self.id, Unset):
            id = self.id

        location = self.location

        vend_credentials = self.vend_credentials

        properties: dict[str, Any] | Unset = UNSET
        if not isinstance(self.properties, Unset):
            properties = self.properties.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if identity is not UNSET:
            field_dict["identity"] = identity
        if context is not UNSET:
            field_dict["context"] = context
        if id is not UNSET:
            field_dict["id"] = id
        if location is not UNSET:
            field_dict["location"] = location
        if vend_credentials is not UNSET:
            field_dict["vend_credentials"] = vend_credentials
        if properties is not UNSET:
            field_dict["properties"] = properties

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.context import Context
        from ..models.identity import Identity
        from ..models.properties import Properties

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

        id = cast(list[str], d.pop("id", UNSET))

        location = d.pop("location", UNSET)

        vend_credentials = d.pop("vend_credentials", UNSET)

        _properties = d.pop("properties", UNSET)
        properties: Properties | Unset
        if isinstance(_properties, Unset):
            properties = UNSET
        else:
            properties = Properties.from_dict(_properties)

        declare_table_request = cls(
            identity=identity,
            context=context,
            id=id,
            location=location,
            vend_credentials=vend_credentials,
            properties=properties,
        )

        declare_table_request.additional_properties = d
        return declare_table_request

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
