from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.failed_operation_kind import FailedOperationKind
from ..types import UNSET, Unset

T = TypeVar("T", bound="FailedOperation")


@_attrs_define
class FailedOperation:
    """An operation that could not be carried out.

    Attributes:
        operation_index (int):
        id (list[str]): A path of names, outermost first; empty is the root.
        operation (str | Unset):
        branch (str | Unset): Absent is the main branch.
        expected (int | Unset): The version of the table that was expected.
        found (int | Unset): The version of the table that was found.
        kind (FailedOperationKind | Unset):
    """

    operation_index: int
    id: list[str]
    operation: str | Unset = UNSET
    branch: str | Unset = UNSET
    expected: int | Unset = UNSET
    found: int | Unset = UNSET
    kind: FailedOperationKind | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        operation_index = self.operation_index

        id = self.id

        operation = self.operation

        branch = self.branch

        expected = self.expected

        found = self.found

        kind: str | Unset = UNSET
        if not isinstance(self.kind, Unset):
            kind = self.kind.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "operation_index": operation_index,
                "id": id,
            }
        )
        if operation is not UNSET:
            field_dict["operation"] = operation
        if branch is not UNSET:
            field_dict["branch"] = branch
        if expected is not UNSET:
            field_dict["expected"] = expected
        if found is not UNSET:
            field_dict["found"] = found
        if kind is not UNSET:
            field_dict["kind"] = kind

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        operation_index = d.pop("operation_index")

        id = cast(list[str], d.pop("id"))

        operation = d.pop("operation", UNSET)

        branch = d.pop("branch", UNSET)

        expected = d.pop("expected", UNSET)

        found = d.pop("found", UNSET)

        _kind = d.pop("kind", UNSET)
        kind: FailedOperationKind | Unset
        if isinstance(_kind, Unset):
            kind = UNSET
        else:
            kind = FailedOperationKind(_kind)

        failed_operation = cls(
            operation_index=operation_index,
            id=id,
            operation=operation,
            branch=branch,
            expected=expected,
            found=found,
            kind=kind,
        )

        failed_operation.additional_properties = d
        return failed_operation

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
