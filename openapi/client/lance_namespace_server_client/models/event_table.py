from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="EventTable")


@_attrs_define
class EventTable:
    """A table or branch that got versions, or a table that was dropped.

    Attributes:
        id (list[str]): A path of names, outermost first; empty is the root.
        branch (str | Unset): Absent is the main branch.
        before (int | Unset): Version before; absent if there was none.
        after (int | Unset): Version after; absent for a table that was dropped.
        rows (int | Unset): By how many rows it is larger, negative if smaller; absent if that is not known.
        dropped (bool | Unset): Whether the table was dropped.
    """

    id: list[str]
    branch: str | Unset = UNSET
    before: int | Unset = UNSET
    after: int | Unset = UNSET
    rows: int | Unset = UNSET
    dropped: bool | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        branch = self.branch

        before = self.before

        after = self.after

        rows = self.rows

        dropped = self.dropped

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
            }
        )
        if branch is not UNSET:
            field_dict["branch"] = branch
        if before is not UNSET:
            field_dict["before"] = before
        if after is not UNSET:
            field_dict["after"] = after
        if rows is not UNSET:
            field_dict["rows"] = rows
        if dropped is not UNSET:
            field_dict["dropped"] = dropped

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        id = cast(list[str], d.pop("id"))

        branch = d.pop("branch", UNSET)

        before = d.pop("before", UNSET)

        after = d.pop("after", UNSET)

        rows = d.pop("rows", UNSET)

        dropped = d.pop("dropped", UNSET)

        event_table = cls(
            id=id,
            branch=branch,
            before=before,
            after=after,
            rows=rows,
            dropped=dropped,
        )

        event_table.additional_properties = d
        return event_table

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
