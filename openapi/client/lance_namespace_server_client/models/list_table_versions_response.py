from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.table_version import TableVersion


T = TypeVar("T", bound="ListTableVersionsResponse")


@_attrs_define
class ListTableVersionsResponse:
    """
    Attributes:
        versions (list[TableVersion]):
        page_token (str | Unset): Absent on the last page.
        adopted_in (int | Unset): In the answer as of an earlier catalog version (`x-lance-catalog-version`) to
            `descending`: a newer catalog version in
            which the version that follows is one that was committed around the catalog and adopted. Absent if there is
            none.
            Not part of the published namespace API.
    """

    versions: list[TableVersion]
    page_token: str | Unset = UNSET
    adopted_in: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        versions = []
        for versions_item_data in self.versions:
            versions_item = versions_item_data.to_dict()
            versions.append(versions_item)

        page_token = self.page_token

        adopted_in = self.adopted_in

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "versions": versions,
            }
        )
        if page_token is not UNSET:
            field_dict["page_token"] = page_token
        if adopted_in is not UNSET:
            field_dict["adopted_in"] = adopted_in

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.table_version import TableVersion

        d = dict(src_dict)
        versions = []
        _versions = d.pop("versions")
        for versions_item_data in _versions:
            versions_item = TableVersion.from_dict(versions_item_data)

            versions.append(versions_item)

        page_token = d.pop("page_token", UNSET)

        adopted_in = d.pop("adopted_in", UNSET)

        list_table_versions_response = cls(
            versions=versions,
            page_token=page_token,
            adopted_in=adopted_in,
        )

        list_table_versions_response.additional_properties = d
        return list_table_versions_response

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
