from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.table_version_metadata import TableVersionMetadata


T = TypeVar("T", bound="TableVersion")


@_attrs_define
class TableVersion:
    """
    Attributes:
        version (int):
        manifest_path (str): Path of the manifest in its object store, without scheme, bucket or leading slash.
        manifest_size (int | Unset): In bytes.
        manifest_sha256 (str | Unset): SHA-256 of the manifest, 64 lower-case hexadecimal digits. Absent if a stock
            writer recorded the version. Not part of the published namespace API.
        e_tag (str | Unset):
        timestamp_millis (int | Unset): When it was committed
        metadata (TableVersionMetadata | Unset):
    """

    version: int
    manifest_path: str
    manifest_size: int | Unset = UNSET
    manifest_sha256: str | Unset = UNSET
    e_tag: str | Unset = UNSET
    timestamp_millis: int | Unset = UNSET
    metadata: TableVersionMetadata | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        version = self.version

        manifest_path = self.manifest_path

        manifest_size = self.manifest_size

        manifest_sha256 = self.manifest_sha256

        e_tag = self.e_tag

        timestamp_millis = self.timestamp_millis

        metadata: dict[str, Any] | Unset = UNSET
        if not isinstance(self.metadata, Unset):
            metadata = self.metadata.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "version": version,
                "manifest_path": manifest_path,
            }
        )
        if manifest_size is not UNSET:
            field_dict["manifest_size"] = manifest_size
        if manifest_sha256 is not UNSET:
            field_dict["manifest_sha256"] = manifest_sha256
        if e_tag is not UNSET:
            field_dict["e_tag"] = e_tag
        if timestamp_millis is not UNSET:
            field_dict["timestamp_millis"] = timestamp_millis
        if metadata is not UNSET:
            field_dict["metadata"] = metadata

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.table_version_metadata import TableVersionMetadata

        d = dict(src_dict)
        version = d.pop("version")

        manifest_path = d.pop("manifest_path")

        manifest_size = d.pop("manifest_size", UNSET)

        manifest_sha256 = d.pop("manifest_sha256", UNSET)

        e_tag = d.pop("e_tag", UNSET)

        timestamp_millis = d.pop("timestamp_millis", UNSET)

        _metadata = d.pop("metadata", UNSET)
        metadata: TableVersionMetadata | Unset
        if isinstance(_metadata, Unset):
            metadata = UNSET
        else:
            metadata = TableVersionMetadata.from_dict(_metadata)

        table_version = cls(
            version=version,
            manifest_path=manifest_path,
            manifest_size=manifest_size,
            manifest_sha256=manifest_sha256,
            e_tag=e_tag,
            timestamp_millis=timestamp_millis,
            metadata=metadata,
        )

        table_version.additional_properties = d
        return table_version

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
