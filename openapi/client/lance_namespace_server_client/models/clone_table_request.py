from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.context import Context
    from ..models.identity import Identity


T = TypeVar("T", bound="CloneTableRequest")


@_attrs_define
class CloneTableRequest:
    """Not part of the published namespace API.

    Attributes:
        source_location (str): The location of a table of this catalog that the caller may read, as it is described.
        identity (Identity | Unset): Credentials as a client was given them. The server looks at the headers only.
        context (Context | Unset): Free entries that accompany a request.
        id (list[str] | Unset): A path of names, outermost first; empty is the root.
        source_version (int | Unset): Which version of main; absent: the newest.
        source_tag (str | Unset): A tag in place of the version.
        is_shallow (bool | Unset): True, which is the default: files are not copied.
    """

    source_location: str
    identity: Identity | Unset = UNSET
    context: Context | Unset = UNSET
    id: list[str] | Unset = UNSET
    source_version: int | Unset = UNSET
    source_tag: str | Unset = UNSET
    is_shallow: bool | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        source_location = self.source_location

        identity: dict[str, Any] | Unset = UNSET
        if not isinstance(self.identity, Unset):
            identity = self.identity.to_dict()

        context: dict[str, Any] | Unset = UNSET
        if not isinstance(self.context, Unset):
            context = self.context.to_dict()

        id: list[str] | Unset = UNSET
        if not isinstance(self.id, Unset):
            id = self.id

        source_version = self.source_version

        source_tag = self.source_tag

        is_shallow = self.is_shallow

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "source_location": source_location,
            }
        )
        if identity is not UNSET:
            field_dict["identity"] = identity
        if context is not UNSET:
            field_dict["context"] = context
        if id is not UNSET:
            field_dict["id"] = id
        if source_version is not UNSET:
            field_dict["source_version"] = source_version
        if source_tag is not UNSET:
            field_dict["source_tag"] = source_tag
        if is_shallow is not UNSET:
            field_dict["is_shallow"] = is_shallow

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.context import Context
        from ..models.identity import Identity

        d = dict(src_dict)
        source_location = d.pop("source_location")

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

        source_version = d.pop("source_version", UNSET)

        source_tag = d.pop("source_tag", UNSET)

        is_shallow = d.pop("is_shallow", UNSET)

        clone_table_request = cls(
            source_location=source_location,
            identity=identity,
            context=context,
            id=id,
            source_version=source_version,
            source_tag=source_tag,
            is_shallow=is_shallow,
        )

        clone_table_request.additional_properties = d
        return clone_table_request

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
