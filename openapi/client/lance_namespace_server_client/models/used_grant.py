from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.used_grant_kind import UsedGrantKind
from ..types import UNSET, Unset

T = TypeVar("T", bound="UsedGrant")


@_attrs_define
class UsedGrant:
    """
    Attributes:
        privilege (str):
        kind (UsedGrantKind):
        object_ (list[str]): A path of names, outermost first; empty is the root.
        reason (str): Which grant, by which role, on which object.
        operation_index (int | Unset): Position of the operation in its batch.
    """

    privilege: str
    kind: UsedGrantKind
    object_: list[str]
    reason: str
    operation_index: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        privilege = self.privilege

        kind = self.kind.value

        object_ = self.object_

        reason = self.reason

        operation_index = self.operation_index

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "privilege": privilege,
                "kind": kind,
                "object": object_,
                "reason": reason,
            }
        )
        if operation_index is not UNSET:
            field_dict["operation_index"] = operation_index

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        privilege = d.pop("privilege")

        kind = UsedGrantKind(d.pop("kind"))

        object_ = cast(list[str], d.pop("object"))

        reason = d.pop("reason")

        operation_index = d.pop("operation_index", UNSET)

        used_grant = cls(
            privilege=privilege,
            kind=kind,
            object_=object_,
            reason=reason,
            operation_index=operation_index,
        )

        used_grant.additional_properties = d
        return used_grant

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
