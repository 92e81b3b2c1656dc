from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.index_content import IndexContent


T = TypeVar("T", bound="ListTableIndicesResponse")


@_attrs_define
class ListTableIndicesResponse:
    """
    Attributes:
        indexes (list[IndexContent]):
        page_token (str | Unset):
    """

    indexes: list[IndexContent]
    page_token: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        indexes = []
        for indexes_item_data in self.indexes:
            indexes_item = indexes_item_data.to_dict()
            indexes.append(indexes_item)

        page_token = self.page_token

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "indexes": indexes,
            }
        )
        if page_token is not UNSET:
            field_dict["page_token"] = page_token

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.index_content import IndexContent

        d = dict(src_dict)
        indexes = []
        _indexes = d.pop("indexes")
        for indexes_item_data in _indexes:
            indexes_item = IndexContent.from_dict(indexes_item_data)

            indexes.append(indexes_item)

        page_token = d.pop("page_token", UNSET)

        list_table_indices_response = cls(
            indexes=indexes,
            page_token=page_token,
        )

        list_table_indices_response.additional_properties = d
        return list_table_indices_response

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
