from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.commit_table_operation import CommitTableOperation


T = TypeVar("T", bound="StageMergeResponse")


@_attrs_define
class StageMergeResponse:
    """
    Attributes:
        operations (list[CommitTableOperation]): For the list of a BatchCommitTables request, in this order and
            unchanged.
        num_updated_rows (int):
        num_inserted_rows (int):
        num_deleted_rows (int):
    """

    operations: list[CommitTableOperation]
    num_updated_rows: int
    num_inserted_rows: int
    num_deleted_rows: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        operations = []
        for operations_item_data in self.operations:
            operations_item = operations_item_data.to_dict()
            operations.append(operations_item)

        num_updated_rows = self.num_updated_rows

        num_inserted_rows = self.num_inserted_rows

        num_deleted_rows = self.num_deleted_rows

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "operations": operations,
                "num_updated_rows": num_updated_rows,
                "num_inserted_rows": num_inserted_rows,
                "num_deleted_rows": num_deleted_rows,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.commit_table_operation import CommitTableOperation

        d = dict(src_dict)
        operations = []
        _operations = d.pop("operations")
        for operations_item_data in _operations:
            operations_item = CommitTableOperation.from_dict(operations_item_data)

            operations.append(operations_item)

        num_updated_rows = d.pop("num_updated_rows")

        num_inserted_rows = d.pop("num_inserted_rows")

        num_deleted_rows = d.pop("num_deleted_rows")

        stage_merge_response = cls(
            operations=operations,
            num_updated_rows=num_updated_rows,
            num_inserted_rows=num_inserted_rows,
            num_deleted_rows=num_deleted_rows,
        )

        stage_merge_response.additional_properties = d
        return stage_merge_response

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
