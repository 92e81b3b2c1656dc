from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="CompleteMultipartWriteRequest")


@_attrs_define
class CompleteMultipartWriteRequest:
    """
    Attributes:
        id (list[str] | Unset): A path of names, outermost first; empty is the root.
        branch (str | Unset):
        parts (list[str] | Unset): The ids of all parts of the upload, each once, in the order of their rows.
    """

    id: list[str] | Unset = UNSET
    branch: str | Unset = UNSET
    parts: list[str] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id: list[str] | Unset = UNSET
        if not isinstance(self.id, Unset):
            id = self.id

        branch = self.branch

        parts: list[str] | Unset = UNSET
        if not isinstance(self.parts, Unset):
            parts = self.parts

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if id is not UNSET:
            field_dict["id"] = id
        if branch is not UNSET:
            field_dict["branch"] = branch
        if parts is not UNSET:
            field_dict["parts"] = parts

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        id = cast(list[str], d.pop("id", UNSET))

        branch = d.pop("branch", UNSET)

        parts = cast(list[str], d.pop("parts", UNSET))

        complete_multipart_write_request = cls(
            id=id,
            branch=branch,
            parts=parts,
        )

        complete_multipart_write_request.additional_properties = d
        return complete_multipart_write_request

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
