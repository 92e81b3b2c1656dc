from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.checked_authorization_kind import CheckedAuthorizationKind
from ..types import UNSET, Unset

T = TypeVar("T", bound="CheckedAuthorization")


@_attrs_define
class CheckedAuthorization:
    """One check of one object.

    Attributes:
        privilege (str): What was needed: `authenticate`, `call`, or a privilege.
        allowed (bool):
        kind (CheckedAuthorizationKind):
        id (list[str]): A path of names, outermost first; empty is the root.
        reason (str):
        operation_index (int | Unset): Position in its batch of the operation that needed it.
    """

    privilege: str
    allowed: bool
    kind: CheckedAuthorizationKind
    id: list[str]
    reason: str
    operation_index: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        privilege = self.privilege

        allowed = self.allowed

        kind = self.kind.value

        id = self.id

        reason = self.reason

        operation_index = self.operation_index

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "privilege": privilege,
                "allowed": allowed,
                "kind": kind,
                "id": id,
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

        allowed = d.pop("allowed")

        kind = CheckedAuthorizationKind(d.pop("kind"))

        id = cast(list[str], d.pop("id"))

        reason = d.pop("reason")

        operation_index = d.pop("operation_index", UNSET)

        checked_authorization = cls(
            privilege=privilege,
            allowed=allowed,
            kind=kind,
            id=id,
            reason=reason,
            operation_index=operation_index,
        )

        checked_authorization.additional_properties = d
        return checked_authorization

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
