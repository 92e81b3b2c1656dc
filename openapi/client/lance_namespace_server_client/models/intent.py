from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.intended_table import IntendedTable


T = TypeVar("T", bound="Intent")


@_attrs_define
class Intent:
    """
    Attributes:
        intent_id (str):
        since_millis (int): Files of its tables that the store dates then or later stay fresh, since the Unix epoch.
        until_millis (int): When a garbage collection may end it, since the Unix epoch.
        timestamp_millis (int): When it was registered, since the Unix epoch.
        reason (str | Unset):
        principal (str | Unset): Who registered it.
        tables (list[IntendedTable] | Unset): In lists only.
    """

    intent_id: str
    since_millis: int
    until_millis: int
    timestamp_millis: int
    reason: str | Unset = UNSET
    principal: str | Unset = UNSET
    tables: list[IntendedTable] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        intent_id = self.intent_id

        since_millis = self.since_millis

        until_millis = self.until_millis

        timestamp_millis = self.timestamp_millis

        reason = self.reason

        principal = self.principal

        tables: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.tables, Unset):
            tables = []
            for tables_item_data in self.tables:
                tables_item = tables_item_data.to_dict()
                tables.append(tables_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "intent_id": intent_id,
                "since_millis": since_millis,
                "until_millis": until_millis,
                "timestamp_millis": timestamp_millis,
            }
        )
        if reason is not UNSET:
            field_dict["reason"] = reason
        if principal is not UNSET:
            field_dict["principal"] = principal
        if tables is not UNSET:
            field_dict["tables"] = tables

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.intended_table import IntendedTable

        d = dict(src_dict)
        intent_id = d.pop("intent_id")

        since_millis = d.pop("since_millis")

        until_millis = d.pop("until_millis")

        timestamp_millis = d.pop("timestamp_millis")

        reason = d.pop("reason", UNSET)

        principal = d.pop("principal", UNSET)

        _tables = d.pop("tables", UNSET)
        tables: list[IntendedTable] | Unset = UNSET
        if _tables is not UNSET:
            tables = []
            for tables_item_data in _tables:
                tables_item = IntendedTable.from_dict(tables_item_data)

                tables.append(tables_item)

        intent = cls(
            intent_id=intent_id,
            since_millis=since_millis,
            until_millis=until_millis,
            timestamp_millis=timestamp_millis,
            reason=reason,
            principal=principal,
            tables=tables,
        )

        intent.additional_properties = d
        return intent

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
