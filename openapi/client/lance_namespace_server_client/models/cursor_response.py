from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.cursor import Cursor


T = TypeVar("T", bound="CursorResponse")


@_attrs_define
class CursorResponse:
    """
    Attributes:
        transaction_id (str | Unset):
        cursor (Cursor | Unset):
    """

    transaction_id: str | Unset = UNSET
    cursor: Cursor | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        transaction_id = self.transaction_id

        cursor: dict[str, Any] | Unset = UNSET
        if not isinstance(self.cursor, Unset):
            cursor = self.cursor.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if transaction_id is not UNSET:
            field_dict["transaction_id"] = transaction_id
        if cursor is not UNSET:
            field_dict["cursor"] = cursor

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.cursor import Cursor

        d = dict(src_dict)
        transaction_id = d.pop("transaction_id", UNSET)

        _cursor = d.pop("cursor", UNSET)
        cursor: Cursor | Unset
        if isinstance(_cursor, Unset):
            cursor = UNSET
        else:
            cursor = Cursor.from_dict(_cursor)

        cursor_response = cls(
            transaction_id=transaction_id,
            cursor=cursor,
        )

        cursor_response.additional_properties = d
        return cursor_response

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
