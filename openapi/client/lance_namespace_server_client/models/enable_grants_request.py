from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.context import Context
    from ..models.grantee import Grantee
    from ..models.identity import Identity


T = TypeVar("T", bound="EnableGrantsRequest")


@_attrs_define
class EnableGrantsRequest:
    """Not part of the published namespace API.

    Attributes:
        administrators (list[Grantee]): Who owns the catalog from then on, at least one.
        identity (Identity | Unset): Credentials as a client was given them. The server looks at the headers only.
        context (Context | Unset): Free entries that accompany a request.
    """

    administrators: list[Grantee]
    identity: Identity | Unset = UNSET
    context: Context | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        administrators = []
        for administrators_item_data in self.administrators:
            administrators_item = administrators_item_data.to_dict()
            administrators.append(administrators_item)

        identity: dict[str, Any] | Unset = UNSET
        if not isinstance(self.identity, Unset):
            identity = self.identity.to_dict()

        context: dict[str, Any] | Unset = UNSET
        if not isinstance(self.context, Unset):
            context = self.context.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "administrators": administrators,
            }
        )
        if identity is not UNSET:
            field_dict["identity"] = identity
        if context is not UNSET:
            field_dict["context"] = context

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.context import Context
        from ..models.grantee import Grantee
        from ..models.identity import Identity

        d = dict(src_dict)
        administrators = []
        _administrators = d.pop("administrators")
        for administrators_item_data in _administrators:
            administrators_item = Grantee.from_dict(administrators_item_data)

            administrators.append(administrators_item)

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

        enable_grants_request = cls(
            administrators=administrators,
            identity=identity,
            context=context,
        )

        enable_grants_request.additional_properties = d
        return enable_grants_request

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
