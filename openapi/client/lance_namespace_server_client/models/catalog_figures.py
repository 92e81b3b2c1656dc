from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.table_worth_maintenance import TableWorthMaintenance


T = TypeVar("T", bound="CatalogFigures")


@_attrs_define
class CatalogFigures:
    """Rows and all that follows them are sums over the tables that are known.

    Attributes:
        catalog_version (int): The catalog version that all of it is of.
        namespaces (int):
        tables (int):
        known_tables (int): Tables whose newest version of main is known, and those that have none.
        rows (int): Rows of these versions, without deleted ones.
        bytes_ (int): Bytes of the data files that these versions name, as far as they state them; also of those that a
            clone has from its source.
        files (int): These data files.
        versions (int): Versions of the tables, of all branches.
        versions_beyond_policy (int): Versions that `gc.tables.age` and `gc.tables.count` keep no longer; tags are not
            looked at.
        num_worth_maintenance (int): Tables whose fragments or indices are worth maintenance by their policy.
        worth_maintenance (list[TableWorthMaintenance]): Up to ten of them, those with the most fragments to be
            rewritten first.
    """

    catalog_version: int
    namespaces: int
    tables: int
    known_tables: int
    rows: int
    bytes_: int
    files: int
    versions: int
    versions_beyond_policy: int
    num_worth_maintenance: int
    worth_maintenance: list[TableWorthMaintenance]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        catalog_version = self.catalog_version

        namespaces = self.namespaces

        tables = self.tables

        known_tables = self.known_tables

        rows = self.rows

        bytes_ = self.bytes_

        files = self.files

        versions = self.versions

        versions_beyond_policy = self.versions_beyond_policy

        num_worth_maintenance = self.num_worth_maintenance

        worth_maintenance = []
        for worth_maintenance_item_data in self.worth_maintenance:
            worth_maintenance_item = worth_maintenance_item_data.to_dict()
            worth_maintenance.append(worth_maintenance_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "catalog_version": catalog_version,
                "namespaces": namespaces,
                "tables": tables,
                "known_tables": known_tables,
                "rows": rows,
                "bytes": bytes_,
                "files": files,
                "versions": versions,
                "versions_beyond_policy": versions_beyond_policy,
                "num_worth_maintenance": num_worth_maintenance,
                "worth_maintenance": worth_maintenance,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.table_worth_maintenance import TableWorthMaintenance

        d = dict(src_dict)
        catalog_version = d.pop("catalog_version")

        namespaces = d.pop("namespaces")

        tables = d.pop("tables")

        known_tables = d.pop("known_tables")

        rows = d.pop("rows")

        bytes_ = d.pop("bytes")

        files = d.pop("files")

        versions = d.pop("versions")

        versions_beyond_policy = d.pop("versions_beyond_policy")

        num_worth_maintenance = d.pop("num_worth_maintenance")

        worth_maintenance = []
        _worth_maintenance = d.pop("worth_maintenance")
        for worth_maintenance_item_data in _worth_maintenance:
            worth_maintenance_item = TableWorthMaintenance.from_dict(worth_maintenance_item_data)

            worth_maintenance.append(worth_maintenance_item)

        catalog_figures = cls(
            catalog_version=catalog_version,
            namespaces=namespaces,
            tables=tables,
            known_tables=known_tables,
            rows=rows,
            bytes_=bytes_,
            files=files,
            versions=versions,
            versions_beyond_policy=versions_beyond_policy,
            num_worth_maintenance=num_worth_maintenance,
            worth_maintenance=worth_maintenance,
        )

        catalog_figures.additional_properties = d
        return catalog_figures

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
