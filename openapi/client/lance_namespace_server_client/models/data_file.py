from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="DataFile")


@_attrs_define
class DataFile:
    """
    Attributes:
        path (str): Below the location of the table, or of its base path if it has one.
        columns (list[str]): The columns that it has values of.
        size_bytes (int | Unset): Absent if the table does not state it.
        base_id (int | Unset): Number of its base path in the manifest.
    """

    path: str
    columns: list[str]
    size_bytes: int | Unset = UNSET
    base_id: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        path = self.path

        columns = self.columns

        size_bytes = self.size_bytes

        base_id = self.base_id

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "path": path,
                "columns": columns,
            }
        )
        if size_bytes is not UNSET:
            field_dict["size_bytes"] = size_bytes
        if base_id is not UNSET:
            field_dict["base_id"] = base_id

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        path = d.pop("path")

        columns = cast(list[str], d.pop("columns"))

        size_bytes = d.pop("size_bytes", UNSET)

        base_id = d.pop("base_id", UNSET)

        data_file = cls(
            path=path,
            columns=columns,
            size_bytes=size_bytes,
            base_id=base_id,
        )

        data_file.additional_properties = d
        return data_file

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
