from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="MergeInsertIntoTableResponse")


@_attrs_define
class MergeInsertIntoTableResponse:
    """
    Attributes:
        transaction_id (str | Unset):
        num_updated_rows (int | Unset):
        num_inserted_rows (int | Unset):
        num_deleted_rows (int | Unset):
        version (int | Unset):
    """

    transaction_id: str | Unset = UNSET
    num_updated_rows: int | Unset = UNSET
    num_inserted_rows: int | Unset = UNSET
    num_deleted_rows: int | Unset = UNSET
    version: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        transaction_id = self.transaction_id

        num_updated_rows = self.num_updated_rows

        num_inserted_rows = self.num_inserted_rows

        num_deleted_rows = self.num_deleted_rows

        version = self.version

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if transaction_id is not UNSET:
            field_dict["transaction_id"] = transaction_id
        if num_updated_rows is not UNSET:
            field_dict["num_updated_rows"] = num_updated_rows
        if num_inserted_rows is not UNSET:
            field_dict["num_inserted_rows"] = num_inserted_rows
        if num_deleted_rows is not UNSET:
            field_dict["num_deleted_rows"] = num_deleted_rows
        if version is not UNSET:
            field_dict["version"] = version

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        transaction_id = d.pop("transaction_id", UNSET)

        num_updated_rows = d.pop("num_updated_rows", UNSET)

        num_inserted_rows = d.pop("num_inserted_rows", UNSET)

        num_deleted_rows = d.pop("num_deleted_rows", UNSET)

        version = d.pop("version", UNSET)

        merge_insert_into_table_response = cls(
            transaction_id=transaction_id,
            num_updated_rows=num_updated_rows,
            num_inserted_rows=num_inserted_rows,
            num_deleted_rows=num_deleted_rows,
            version=version,
        )

        merge_insert_into_table_response.additional_properties = d
        return merge_insert_into_table_response

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
