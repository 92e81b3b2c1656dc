from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.adopted_version import AdoptedVersion
    from ..models.audited_batch import AuditedBatch


T = TypeVar("T", bound="AuditedVersion")


@_attrs_define
class AuditedVersion:
    """
    Attributes:
        version (int):
        batches (list[AuditedBatch]): The batches that it committed. None: the server worked on its own rows, or see
            `unmanaged`.
        timestamp_millis (int | Unset):
        adopted (list[AdoptedVersion] | Unset): Versions of tables that another writer committed without the catalog,
            and that this version took in.
        unmanaged (bool | Unset): Whether another writer made this version without a catalog server.
    """

    version: int
    batches: list[AuditedBatch]
    timestamp_millis: int | Unset = UNSET
    adopted: list[AdoptedVersion] | Unset = UNSET
    unmanaged: bool | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        version = self.version

        batches = []
        for batches_item_data in self.batches:
            batches_item = batches_item_data.to_dict()
            batches.append(batches_item)

        timestamp_millis = self.timestamp_millis

        adopted: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.adopted, Unset):
            adopted = []
            for adopted_item_data in self.adopted:
                adopted_item = adopted_item_data.to_dict()
                adopted.append(adopted_item)

        unmanaged = self.unmanaged

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "version": version,
                "batches": batches,
            }
        )
        if timestamp_millis is not UNSET:
            field_dict["timestamp_millis"] = timestamp_millis
        if adopted is not UNSET:
            field_dict["adopted"] = adopted
        if unmanaged is not UNSET:
            field_dict["unmanaged"] = unmanaged

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.adopted_version import AdoptedVersion
        from ..models.audited_batch import AuditedBatch

        d = dict(src_dict)
        version = d.pop("version")

        batches = []
        _batches = d.pop("batches")
        for batches_item_data in _batches:
            batches_item = AuditedBatch.from_dict(batches_item_data)

            batches.append(batches_item)

        timestamp_millis = d.pop("timestamp_millis", UNSET)

        _adopted = d.pop("adopted", UNSET)
        adopted: list[AdoptedVersion] | Unset = UNSET
        if _adopted is not UNSET:
            adopted = []
            for adopted_item_data in _adopted:
                adopted_item = AdoptedVersion.from_dict(adopted_item_data)

                adopted.append(adopted_item)

        unmanaged = d.pop("unmanaged", UNSET)

        audited_version = cls(
            version=version,
            batches=batches,
            timestamp_millis=timestamp_millis,
            adopted=adopted,
            unmanaged=unmanaged,
        )

        audited_version.additional_properties = d
        return audited_version

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
