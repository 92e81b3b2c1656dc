from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="GrantedObject")


@_attrs_define
class GrantedObject:
    """Exactly one of its fields.

    Attributes:
        catalog (bool | Unset): True.
        namespace (list[str] | Unset): A path of names, outermost first; empty is the root.
        table (list[str] | Unset): A path of names, outermost first; empty is the root.
    """

    catalog: bool | Unset = UNSET
    namespace: list[str] | Unset = UNSET
    table: list[str] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        catalog = self.catalog

        namespace: list[str] | Unset = UNSET
        if not isinstance(self.namespace, Unset):
            namespace = self.namespace

        table: list[str] | Unset = UNSET
        if not isinstance(self.table, Unset):
            table = self.table

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if catalog is not UNSET:
            field_dict["catalog"] = catalog
        if namespace is not UNSET:
            field_dict["namespace"] = namespace
        if table is not UNSET:
            field_dict["table"] = table

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        catalog = d.pop("catalog", UNSET)

        namespace = cast(list[str], d.pop("namespace", UNSET))

        table = cast(list[str], d.pop("table", UNSET))

        granted_object = cls(
            catalog=catalog,
            namespace=namespace,
            table=table,
        )

        granted_object.additional_properties = d
        return granted_object

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
