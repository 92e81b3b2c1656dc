from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="UpdateTableResponse")


@_attrs_define
class UpdateTableResponse:
    """
    Attributes:
        updated_rows (int):
        version (int):
        transaction_id (str | Unset):
    """

    updated_rows: int
    version: int
    transaction_id: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        updated_rows = self.updated_rows

        version = self.version

        transaction_id = self.transaction_id

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "updated_rows": updated_rows,
                "version": version,
            }
        )
        if transaction_id is not UNSET:
            field_dict["transaction_id"] = transaction_id

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        updated_rows = d.pop("updated_rows")

        version = d.pop("version")

        transaction_id = d.pop("transaction_id", UNSET)

        update_table_response = cls(
            updated_rows=updated_rows,
            version=version,
            transaction_id=transaction_id,
        )

        update_table_response.additional_properties = d
        return update_table_response

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
