from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.privilege import Privilege
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.granted_object import GrantedObject
    from ..models.grantee import Grantee


T = TypeVar("T", bound="CatalogChange")


@_attrs_define
class CatalogChange:
    """One change of a batch.

    Attributes:
        operation (str | Unset): Name of the operation in a batch: `declare_table`, `commit_transaction`.
        id (list[str] | Unset): A path of names, outermost first; empty is the root.
        new_id (list[str] | Unset): A path of names, outermost first; empty is the root.
        branch (str | Unset): Absent is the main branch.
        tag (str | Unset):
        pin (str | Unset):
        cursor (str | Unset):
        on (GrantedObject | Unset): Exactly one of its fields.
        to (Grantee | Unset): Exactly one of its fields. The role `everyone` is that of every caller.
        privileges (list[Privilege] | Unset):
        role (str | Unset):
        administrators (list[Grantee] | Unset):
        version (int | Unset): The version of the table that it made or names.
        change (str | Unset): Name of the Lance operation that made the version: `Append`.
        rows (int | Unset): By how many rows the version is larger, negative if smaller; absent if that is not known.
    """

    operation: str | Unset = UNSET
    id: list[str] | Unset = UNSET
    new_id: list[str] | Unset = UNSET
    branch: str | Unset = UNSET
    tag: str | Unset = UNSET
    pin: str | Unset = UNSET
    cursor: str | Unset = UNSET
    on: GrantedObject | Unset = UNSET
    to: Grantee | Unset = UNSET
    privileges: list[Privilege] | Unset = UNSET
    role: str | Unset = UNSET
    administrators: list[Grantee] | Unset = UNSET
    version: int | Unset = UNSET
    change: str | Unset = UNSET
    rows: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        operation = self.operation

        id: list[str] | Unset = UNSET
        if not isinstance(self.id, Unset):
            id = self.id

        new_id: list[str] | Unset = UNSET
        if not isinstance(self.new_id, Unset):
            new_id = self.new_id

        branch = self.branch

        tag = self.tag

        pin = self.pin

        cursor = self.cursor

        on: dict[str, Any] | Unset = UNSET
        if not isinstance(self.on, Unset):
            on = self.on.to_dict()

        to: dict[str, Any] | Unset = UNSET
        if not isinstance(self.to, Unset):
            to = self.to.to_dict()

        privileges: list[str] | Unset = UNSET
        if not isinstance(self.privileges, Unset):
            privileges = []
            for privileges_item_data in self.privileges:
                privileges_item = privileges_item_data.value
                privileges.append(privileges_item)

        role = self.role

        administrators: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.administrators, Unset):
            administrators = []
            for administrators_item_data in self.administrators:
                administrators_item = administrators_item_data.to_dict()
                administrators.append(administrators_item)

        version = self.version

        change = self.change

        rows = self.rows

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if operation is not UNSET:
            field_dict["operation"] = operation
        if id is not UNSET:
            field_dict["id"] = id
        if new_id is not UNSET:
            field_dict["new_id"] = new_id
        if branch is not UNSET:
            field_dict["branch"] = branch
        if tag is not UNSET:
            field_dict["tag"] = tag
        if pin is not UNSET:
            field_dict["pin"] = pin
        if cursor is not UNSET:
            field_dict["cursor"] = cursor
        if on is not UNSET:
            field_dict["on"] = on
        if to is not UNSET:
            field_dict["to"] = to
        if privileges is not UNSET:
            field_dict["privileges"] = privileges
        if role is not UNSET:
            field_dict["role"] = role
        if administrators is not UNSET:
            field_dict["administrators"] = administrators
        if version is not UNSET:
            field_dict["version"] = version
        if change is not UNSET:
            field_dict["change"] = change
        if rows is not UNSET:
            field_dict["rows"] = rows

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.granted_object import GrantedObject
        from ..models.grantee import Grantee

        d = dict(src_dict)
        operation = d.pop("operation", UNSET)

        id = cast(list[str], d.pop("id", UNSET))

        new_id = cast(list[str], d.pop("new_id", UNSET))

        branch = d.pop("branch", UNSET)

        tag = d.pop("tag", UNSET)

        pin = d.pop("pin", UNSET)

        cursor = d.pop("cursor", UNSET)

        _on = d.pop("on", UNSET)
        on: GrantedObject | Unset
        if isinstance(_on, Unset):
            on = UNSET
        else:
            on = GrantedObject.from_dict(_on)

        _to = d.pop("to", UNSET)
        to: Grantee | Unset
        if isinstance(_to, Unset):
            to = UNSET
        else:
            to = Grantee.from_dict(_to)

        _privileges = d.pop("privileges", UNSET)
        privileges: list[Privilege] | Unset = UNSET
        if _privileges is not UNSET:
            privileges = []
            for privileges_item_data in _privileges:
                privileges_item = Privilege(privileges_item_data)

                privileges.append(privileges_item)

        role = d.pop("role", UNSET)

        _administrators = d.pop("administrators", UNSET)
        administrators: list[Grantee] | Unset = UNSET
        if _administrators is not UNSET:
            administrators = []
            for administrators_item_data in _administrators:
                administrators_item = Grantee.from_dict(administrators_item_data)

                administrators.append(administrators_item)

        version = d.pop("version", UNSET)

        change = d.pop("change", UNSET)

        rows = d.pop("rows", UNSET)

        catalog_change = cls(
            operation=operation,
            id=id,
            new_id=new_id,
            branch=branch,
            tag=tag,
            pin=pin,
            cursor=cursor,
            on=on,
            to=to,
            privileges=privileges,
            role=role,
            administrators=administrators,
            version=version,
            change=change,
            rows=rows,
        )

        catalog_change.additional_properties = d
        return catalog_change

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
