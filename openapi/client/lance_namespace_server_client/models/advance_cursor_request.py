from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.context import Context
    from ..models.identity import Identity


T = TypeVar("T", bound="AdvanceCursorRequest")


@_attrs_define
class AdvanceCursorRequest:
    """Not part of the published namespace API.

    Attributes:
        name (str): 1 to 128 letters, digits, `.`, `_` or `-`.
        identity (Identity | Unset): Credentials as a client was given them. The server looks at the headers only.
        context (Context | Unset): Free entries that accompany a request.
        version (int | Unset): The catalog version; absent: the one that this change makes.
        expected (int | Unset): Where the cursor has to be now; absent: anywhere. Elsewhere the change is refused with
            code 14.
        backwards (bool | Unset): Whether it may go back. Otherwise that is refused with code 14.
    """

    name: str
    identity: Identity | Unset = UNSET
    context: Context | Unset = UNSET
    version: int | Unset = UNSET
    expected: int | Unset = UNSET
    backwards: bool | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        identity: dict[str, Any] | Unset = UNSET
        if not isinstance(self.identity, Unset):
            identity = self.identity.to_dict()

        context: dict[str, Any] | Unset = UNSET
        if not isinstance(self.context, Unset):
            context = self.context.to_dict()

        version = self.version

        expected = self.expected

        backwards = self.backwards

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
            }
        )
        if identity is not UNSET:
            field_dict["identity"] = identity
        if context is not UNSET:
            field_dict["context"] = context
        if version is not UNSET:
            field_dict["version"] = version
        if expected is not UNSET:
            field_dict["expected"] = expected
        if backwards is not UNSET:
            field_dict["backwards"] = backwards

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.context import Context
        from ..models.identity import Identity

        d = dict(src_dict)
        name = d.pop("name")

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

        version = d.pop("version", UNSET)

        expected = d.pop("expected", UNSET)

        backwards = d.pop("backwards", UNSET)

        advance_cursor_request = cls(
            name=name,
            identity=identity,
            context=context,
            version=version,
            expected=expected,
            backwards=backwards,
        )

        advance_cursor_request.additional_properties = d
        return advance_cursor_request

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
