from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.identity import Identity


T = TypeVar("T", bound="ReadTableChangesRequest")


@_attrs_define
class ReadTableChangesRequest:
    """Not part of the published namespace API. One of `since` and `cursor` is needed.

    Attributes:
        identity (Identity | Unset): Credentials as a client was given them. The server looks at the headers only.
        id (list[str] | Unset): A path of names, outermost first; empty is the root.
        branch (str | Unset): Absent is the main branch.
        since (int | Unset): Catalog version whose rows are known; 0: none.
        cursor (str | Unset): Name of the cursor that is at this catalog version. It is not moved.
        to (int | Unset): Last catalog version; absent: the newest.
        columns (list[str] | Unset): Columns of the table; absent: all.
    """

    identity: Identity | Unset = UNSET
    id: list[str] | Unset = UNSET
    branch: str | Unset = UNSET
    since: int | Unset = UNSET
    cursor: str | Unset = UNSET
    to: int | Unset = UNSET
    columns: list[str] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        identity: dict[str, Any] | Unset = UNSET
        if not isinstance(self.identity, Unset):
            identity = self.identity.to_dict()

        id: list[str] | Unset = UNSET
        if not isinstance(self.id, Unset):
            id = self.id

        branch = self.branch

        since = self.since

        cursor = self.cursor

        to = self.to

        columns: list[str] | Unset = UNSET
        if not isinstance(self.columns, Unset):
            columns = self.columns

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if identity is not UNSET:
            field_dict["identity"] = identity
        if id is not UNSET:
            field_dict["id"] = id
        if branch is not UNSET:
            field_dict["branch"] = branch
        if since is not UNSET:
            field_dict["since"] = since
        if cursor is not UNSET:
            field_dict["cursor"] = cursor
        if to is not UNSET:
            field_dict["to"] = to
        if columns is not UNSET:
            field_dict["columns"] = columns

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.identity import Identity

        d = dict(src_dict)
        _identity = d.pop("identity", UNSET)
        identity: Identity | Unset
        if isinstance(_identity, Unset):
            identity = UNSET
        else:
            identity = Identity.from_dict(_identity)

        id = cast(list[str], d.pop("id", UNSET))

        branch = d.pop("branch", UNSET)

        since = d.pop("since", UNSET)

        cursor = d.pop("cursor", UNSET)

        to = d.pop("to", UNSET)

        columns = cast(list[str], d.pop("columns", UNSET))

        read_table_changes_request = cls(
            identity=identity,
            id=id,
            branch=branch,
            since=since,
            cursor=cursor,
            to=to,
            columns=columns,
        )

        read_table_changes_request.additional_properties = d
        return read_table_changes_request

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
