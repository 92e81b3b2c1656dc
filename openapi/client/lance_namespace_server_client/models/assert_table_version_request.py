from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="AssertTableVersionRequest")


@_attrs_define
class AssertTableVersionRequest:
    """Reject the batch unless `version` is the newest of the table when the batch is committed. Not part of the published
    namespace API.

        Attributes:
            id (list[str]): A path of names, outermost first; empty is the root.
            version (int):
            branch (str | Unset):
            location (str | Unset): Where the table must be; another table of the same name is elsewhere.
            manifest_sha256 (str | Unset): SHA-256 of the manifest of `version`, 64 lower-case hexadecimal digits. Another
                version of that number is a conflict (code 14).
    """

    id: list[str]
    version: int
    branch: str | Unset = UNSET
    location: str | Unset = UNSET
    manifest_sha256: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        version = self.version

        branch = self.branch

        location = self.location

        manifest_sha256 = self.manifest_sha256

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "version": version,
            }
        )
        if branch is not UNSET:
            field_dict["branch"] = branch
        if location is not UNSET:
            field_dict["location"] = location
        if manifest_sha256 is not UNSET:
            field_dict["manifest_sha256"] = manifest_sha256

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        id = cast(list[str], d.pop("id"))

        version = d.pop("version")

        branch = d.pop("branch", UNSET)

        location = d.pop("location", UNSET)

        manifest_sha256 = d.pop("manifest_sha256", UNSET)

        assert_table_version_request = cls(
            id=id,
            version=version,
            branch=branch,
            location=location,
            manifest_sha256=manifest_sha256,
        )

        assert_table_version_request.additional_properties = d
        return assert_table_version_request

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
