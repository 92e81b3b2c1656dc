from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="IntendedTable")


@_attrs_define
class IntendedTable:
    """
    Attributes:
        location (str): URI of the table.
        since_millis (int): From when on its files stay fresh, since the Unix epoch.
        id (list[str] | Unset): A path of names, outermost first; empty is the root.
        branch (str | Unset):
        read_version (int | Unset): The lowest version that is kept for the job.
    """

    location: str
    since_millis: int
    id: list[str] | Unset = UNSET
    branch: str | Unset = UNSET
    read_version: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        location = self.location

        since_millis = self.since_millis

        id: list[str] | Unset = UNSET
        if not isinstance(self.id, Unset):
            id = self.id

        branch = self.branch

        read_version = self.read_version

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "location": location,
                "since_millis": since_millis,
            }
        )
        if id is not UNSET:
            field_dict["id"] = id
        if branch is not UNSET:
            field_dict["branch"] = branch
        if read_version is not UNSET:
            field_dict["read_version"] = read_version

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        location = d.pop("location")

        since_millis = d.pop("since_millis")

        id = cast(list[str], d.pop("id", UNSET))

        branch = d.pop("branch", UNSET)

        read_version = d.pop("read_version", UNSET)

        intended_table = cls(
            location=location,
            since_millis=since_millis,
            id=id,
            branch=branch,
            read_version=read_version,
        )

        intended_table.additional_properties = d
        return intended_table

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
