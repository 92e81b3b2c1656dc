from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Literal, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="IndexContent")


@_attrs_define
class IndexContent:
    """
    Attributes:
        index_name (str):
        index_uuid (str): Of the oldest segment.
        columns (list[str]):
        status (Literal['SUCCEEDED']):
        index_type (str | Unset):
        type_url (str | Unset):
        num_indexed_rows (int | Unset):
        num_unindexed_rows (int | Unset):
        size_bytes (int | Unset):
        num_segments (int | Unset):
        created_at (datetime.datetime | Unset): Of the oldest segment.
        index_version (int | Unset):
        index_details (str | Unset): JSON whose content depends on the type.
    """

    index_name: str
    index_uuid: str
    columns: list[str]
    status: Literal["SUCCEEDED"]
    index_type: str | Unset = UNSET
    type_url: str | Unset = UNSET
    num_indexed_rows: int | Unset = UNSET
    num_unindexed_rows: int | Unset = UNSET
    size_bytes: int | Unset = UNSET
    num_segments: int | Unset = UNSET
    created_at: datetime.datetime | Unset = UNSET
    index_version: int | Unset = UNSET
    index_details: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        index_name = self.index_name

        index_uuid = self.index_uuid

        columns = self.columns

        status = self.status

        index_type = self.index_type

        type_url = self.type_url

        num_indexed_rows = self.num_indexed_rows

        num_unindexed_rows = self.num_unindexed_rows

        size_bytes = self.size_bytes

        num_segments = self.num_segments

        created_at: str | Unset = UNSET
        if not isinstance(self.created_at, Unset):
            created_at = self.created_at.isoformat()

        index_version = self.index_version

        index_details = self.index_details

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "index_name": index_name,
                "index_uuid": index_uuid,
                "columns": columns,
                "status": status,
            }
        )
        if index_type is not UNSET:
            field_dict["index_type"] = index_type
        if type_url is not UNSET:
            field_dict["type_url"] = type_url
        if num_indexed_rows is not UNSET:
            field_dict["num_indexed_rows"] = num_indexed_rows
        if num_unindexed_rows is not UNSET:
            field_dict["num_unindexed_rows"] = num_unindexed_rows
        if size_bytes is not UNSET:
            field_dict["size_bytes"] = size_bytes
        if num_segments is not UNSET:
            field_dict["num_segments"] = num_segments
        if created_at is not UNSET:
            field_dict["created_at"] = created_at
        if index_version is not UNSET:
            field_dict["index_version"] = index_version
        if index_details is not UNSET:
            field_dict["index_details"] = index_details

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        index_name = d.pop("index_name")

        index_uuid = d.pop("index_uuid")

        columns = cast(list[str], d.pop("columns"))

        status = cast(Literal["SUCCEEDED"], d.pop("status"))
        if status != "SUCCEEDED":
            raise ValueError(f"status must match const 'SUCCEEDED', got '{status}'")

        index_type = d.pop("index_type", UNSET)

        type_url = d.pop("type_url", UNSET)

        num_indexed_rows = d.pop("num_indexed_rows", UNSET)

        num_unindexed_rows = d.pop("num_unindexed_rows", UNSET)

        size_bytes = d.pop("size_bytes", UNSET)

        num_segments = d.pop("num_segments", UNSET)

        _created_at = d.pop("created_at", UNSET)
        created_at: datetime.datetime | Unset
        if isinstance(_created_at, Unset):
            created_at = UNSET
        else:
            created_at = datetime.datetime.fromisoformat(_created_at)

        index_version = d.pop("index_version", UNSET)

        index_details = d.pop("index_details", UNSET)

        index_content = cls(
            index_name=index_name,
            index_uuid=index_uuid,
            columns=columns,
            status=status,
            index_type=index_type,
            type_url=type_url,
            num_indexed_rows=num_indexed_rows,
            num_unindexed_rows=num_unindexed_rows,
            size_bytes=size_bytes,
            num_segments=num_segments,
            created_at=created_at,
            index_version=index_version,
            index_details=index_details,
        )

        index_content.additional_properties = d
        return index_content

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
