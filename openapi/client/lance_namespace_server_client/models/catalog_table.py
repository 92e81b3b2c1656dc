from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.catalog_table_branches import CatalogTableBranches


T = TypeVar("T", bound="CatalogTable")


@_attrs_define
class CatalogTable:
    """
    Attributes:
        id (list[str]): A path of names, outermost first; empty is the root.
        location (str): URI of the table.
        version (int | Unset): Absent if the table was only declared.
        manifest_sha256 (str | Unset): SHA-256 of the manifest of this version; absent if it is not known.
        timestamp_millis (int | Unset): When this version was committed, since the Unix epoch.
        branches (CatalogTableBranches | Unset): The newest version of each branch.
    """

    id: list[str]
    location: str
    version: int | Unset = UNSET
    manifest_sha256: str | Unset = UNSET
    timestamp_millis: int | Unset = UNSET
    branches: CatalogTableBranches | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        location = self.location

        version = self.version

        manifest_sha256 = self.manifest_sha256

        timestamp_millis = self.timestamp_millis

        branches: dict[str, Any] | Unset = UNSET
        if not isinstance(self.branches, Unset):
            branches = self.branches.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "location": location,
            }
        )
        if version is not UNSET:
            field_dict["version"] = version
        if manifest_sha256 is not UNSET:
            field_dict["manifest_sha256"] = manifest_sha256
        if timestamp_millis is not UNSET:
            field_dict["timestamp_millis"] = timestamp_millis
        if branches is not UNSET:
            field_dict["branches"] = branches

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.catalog_table_branches import CatalogTableBranches

        d = dict(src_dict)
        id = cast(list[str], d.pop("id"))

        location = d.pop("location")

        version = d.pop("version", UNSET)

        manifest_sha256 = d.pop("manifest_sha256", UNSET)

        timestamp_millis = d.pop("timestamp_millis", UNSET)

        _branches = d.pop("branches", UNSET)
        branches: CatalogTableBranches | Unset
        if isinstance(_branches, Unset):
            branches = UNSET
        else:
            branches = CatalogTableBranches.from_dict(_branches)

        catalog_table = cls(
            id=id,
            location=location,
            version=version,
            manifest_sha256=manifest_sha256,
            timestamp_millis=timestamp_millis,
            branches=branches,
        )

        catalog_table.additional_properties = d
        return catalog_table

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
