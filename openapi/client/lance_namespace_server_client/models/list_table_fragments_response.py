from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.fragment import Fragment


T = TypeVar("T", bound="ListTableFragmentsResponse")


@_attrs_define
class ListTableFragmentsResponse:
    """
    Attributes:
        version (int): The version of the table.
        num_fragments (int): On all pages.
        fragments (list[Fragment]):
        page_token (str | Unset): Absent on the last page.
    """

    version: int
    num_fragments: int
    fragments: list[Fragment]
    page_token: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        version = self.version

        num_fragments = self.num_fragments

        fragments = []
        for fragments_item_data in self.fragments:
            fragments_item = fragments_item_data.to_dict()
            fragments.append(fragments_item)

        page_token = self.page_token

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "version": version,
                "num_fragments": num_fragments,
                "fragments": fragments,
            }
        )
        if page_token is not UNSET:
            field_dict["page_token"] = page_token

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.fragment import Fragment

        d = dict(src_dict)
        version = d.pop("version")

        num_fragments = d.pop("num_fragments")

        fragments = []
        _fragments = d.pop("fragments")
        for fragments_item_data in _fragments:
            fragments_item = Fragment.from_dict(fragments_item_data)

            fragments.append(fragments_item)

        page_token = d.pop("page_token", UNSET)

        list_table_fragments_response = cls(
            version=version,
            num_fragments=num_fragments,
            fragments=fragments,
            page_token=page_token,
        )

        list_table_fragments_response.additional_properties = d
        return list_table_fragments_response

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
