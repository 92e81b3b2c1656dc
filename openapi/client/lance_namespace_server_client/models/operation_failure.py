from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.operation_failure_kind import OperationFailureKind
from ..types import UNSET, Unset

T = TypeVar("T", bound="OperationFailure")


@_attrs_define
class OperationFailure:
    """
    Attributes:
        operation_index (int | Unset): Position of the operation in the batch.
        id (list[str] | Unset): A path of names, outermost first; empty is the root.
        branch (str | Unset):
        expected (int | Unset): The version that the operation needed.
        actual (int | Unset): The version that was found.
        privilege (str | Unset): The privilege that is missing on the object `id`; not part of the published namespace
            API.
        winner_transaction_id (str | Unset): The transaction that came first.
        hint (str | Unset): What to do.
        kind (OperationFailureKind | Unset): `retryable`: the operation can succeed when it is done again on the newer
            version. `incompatible`: doing the
            same again does not help. Not part of the published namespace API.
    """

    operation_index: int | Unset = UNSET
    id: list[str] | Unset = UNSET
    branch: str | Unset = UNSET
    expected: int | Unset = UNSET
    actual: int | Unset = UNSET
    privilege: str | Unset = UNSET
    winner_transaction_id: str | Unset = UNSET
    hint: str | Unset = UNSET
    kind: OperationFailureKind | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        operation_index = self.operation_index

        id: list[str] | Unset = UNSET
        if not isinstance(self.id, Unset):
            id = self.id

        branch = self.branch

        expected = self.expected

        actual = self.actual

        privilege = self.privilege

        winner_transaction_id = self.winner_transaction_id

        hint = self.hint

        kind: str | Unset = UNSET
        if not isinstance(self.kind, Unset):
            kind = self.kind.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if operation_index is not UNSET:
            field_dict["operation_index"] = operation_index
        if id is not UNSET:
            field_dict["id"] = id
        if branch is not UNSET:
            field_dict["branch"] = branch
        if expected is not UNSET:
            field_dict["expected"] = expected
        if actual is not UNSET:
            field_dict["actual"] = actual
        if privilege is not UNSET:
            field_dict["privilege"] = privilege
        if winner_transaction_id is not UNSET:
            field_dict["winner_transaction_id"] = winner_transaction_id
        if hint is not UNSET:
            field_dict["hint"] = hint
        if kind is not UNSET:
            field_dict["kind"] = kind

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        operation_index = d.pop("operation_index", UNSET)

        id = cast(list[str], d.pop("id", UNSET))

        branch = d.pop("branch", UNSET)

        expected = d.pop("expected", UNSET)

        actual = d.pop("actual", UNSET)

        privilege = d.pop("privilege", UNSET)

        winner_transaction_id = d.pop("winner_transaction_id", UNSET)

        hint = d.pop("hint", UNSET)

        _kind = d.pop("kind", UNSET)
        kind: OperationFailureKind | Unset
        if isinstance(_kind, Unset):
            kind = UNSET
        else:
            kind = OperationFailureKind(_kind)

        operation_failure = cls(
            operation_index=operation_index,
            id=id,
            branch=branch,
            expected=expected,
            actual=actual,
            privilege=privilege,
            winner_transaction_id=winner_transaction_id,
            hint=hint,
            kind=kind,
        )

        operation_failure.additional_properties = d
        return operation_failure

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
