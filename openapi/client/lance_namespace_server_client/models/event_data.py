from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.event_data_kind import EventDataKind
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.adopted_version import AdoptedVersion
    from ..models.catalog_batch import CatalogBatch
    from ..models.event_table import EventTable


T = TypeVar("T", bound="EventData")


@_attrs_define
class EventData:
    """
    Attributes:
        catalog_version (int):
        kind (EventDataKind): What made the version: batches; the adoption of table versions that were committed around
            the catalog; a stock client without a catalog server; a server that worked on its own rows; moves of cursors
            alone.
        batches (list[CatalogBatch]):
        tables (list[EventTable]): Of a batch with more than 200 operations those of the first 200.
        adopted (list[AdoptedVersion] | Unset):
    """

    catalog_version: int
    kind: EventDataKind
    batches: list[CatalogBatch]
    tables: list[EventTable]
    adopted: list[AdoptedVersion] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        catalog_version = self.catalog_version

        kind = self.kind.value

        batches = []
        for batches_item_data in self.batches:
            batches_item = batches_item_data.to_dict()
            batches.append(batches_item)

        tables = []
        for tables_item_data in self.tables:
            tables_item = tables_item_data.to_dict()
            tables.append(tables_item)

        adopted: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.adopted, Unset):
            adopted = []
            for adopted_item_data in self.adopted:
                adopted_item = adopted_item_data.to_dict()
                adopted.append(adopted_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "catalog_version": catalog_version,
                "kind": kind,
                "batches": batches,
                "tables": tables,
            }
        )
        if adopted is not UNSET:
            field_dict["adopted"] = adopted

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.adopted_version import AdoptedVersion
        from ..models.catalog_batch import CatalogBatch
        from ..models.event_table import EventTable

        d = dict(src_dict)
        catalog_version = d.pop("catalog_version")

        kind = EventDataKind(d.pop("kind"))

        batches = []
        _batches = d.pop("batches")
        for batches_item_data in _batches:
            batches_item = CatalogBatch.from_dict(batches_item_data)

            batches.append(batches_item)

        tables = []
        _tables = d.pop("tables")
        for tables_item_data in _tables:
            tables_item = EventTable.from_dict(tables_item_data)

            tables.append(tables_item)

        _adopted = d.pop("adopted", UNSET)
        adopted: list[AdoptedVersion] | Unset = UNSET
        if _adopted is not UNSET:
            adopted = []
            for adopted_item_data in _adopted:
                adopted_item = AdoptedVersion.from_dict(adopted_item_data)

                adopted.append(adopted_item)

        event_data = cls(
            catalog_version=catalog_version,
            kind=kind,
            batches=batches,
            tables=tables,
            adopted=adopted,
        )

        event_data.additional_properties = d
        return event_data

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
