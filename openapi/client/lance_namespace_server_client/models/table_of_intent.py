from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="TableOfIntent")


@_attrs_define
class TableOfIntent:
    """
    Attributes:
        id (list[str]): A path of names, outermost first; empty is the root.
        branch (str | Unset): Absent: main.
        location (str | Unset): URI of the table, or the path below the root. Absent: where the table is. Needed for one
            that is not there yet.
        read_version (int | Unset): The lowest version that the job reads. It has to be there.
    """

    id: list[str]
    branch: str | Unset = UNSET
    location: str | Unset = UNSET
    read_version: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        branch = self.branch

        location = self.location

        read_version = self.read_version

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
            }
        )
        if branch is not UNSET:
            field_dict["branch"] = branch
        if location is not UNSET:
            field_dict["location"] = location
        if read_version is not UNSET:
            field_dict["read_version"] = read_version

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        id = cast(list[str], d.pop("id"))

        branch = d.pop("branch", UNSET)

        location = d.pop("location", UNSET)

        read_version = d.pop("read_version", UNSET)

        table_of_intent = cls(
            id=id,
            branch=branch,
            location=location,
            read_version=read_version,
        )

        table_of_intent.additional_properties = d
        return table_of_intent

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
