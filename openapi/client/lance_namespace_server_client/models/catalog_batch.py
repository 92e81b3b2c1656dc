from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.catalog_change import CatalogChange


T = TypeVar("T", bound="CatalogBatch")


@_attrs_define
class CatalogBatch:
    """
    Attributes:
        transaction_id (str): The uuid of the batch.
        message (str | Unset):
        principal (str | Unset): The principal that sent it; absent if the server knows no principals.
        num_operations (int | Unset): Changes of the batch, without assertions.
        operations (list[CatalogChange] | Unset): The first 200 changes, in order. Absent if they are not known: earlier
            releases kept less.
    """

    transaction_id: str
    message: str | Unset = UNSET
    principal: str | Unset = UNSET
    num_operations: int | Unset = UNSET
    operations: list[CatalogChange] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        transaction_id = self.transaction_id

        message = self.message

        principal = self.principal

        num_operations = self.num_operations

        operations: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.operations, Unset):
            operations = []
            for operations_item_data in self.operations:
                operations_item = operations_item_data.to_dict()
                operations.append(operations_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "transaction_id": transaction_id,
            }
        )
        if message is not UNSET:
            field_dict["message"] = message
        if principal is not UNSET:
            field_dict["principal"] = principal
        if num_operations is not UNSET:
            field_dict["num_operations"] = num_operations
        if operations is not UNSET:
            field_dict["operations"] = operations

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.catalog_change import CatalogChange

        d = dict(src_dict)
        transaction_id = d.pop("transaction_id")

        message = d.pop("message", UNSET)

        principal = d.pop("principal", UNSET)

        num_operations = d.pop("num_operations", UNSET)

        _operations = d.pop("operations", UNSET)
        operations: list[CatalogChange] | Unset = UNSET
        if _operations is not UNSET:
            operations = []
            for operations_item_data in _operations:
                operations_item = CatalogChange.from_dict(operations_item_data)

                operations.append(operations_item)

        catalog_batch = cls(
            transaction_id=transaction_id,
            message=message,
            principal=principal,
            num_operations=num_operations,
            operations=operations,
        )

        catalog_batch.additional_properties = d
        return catalog_batch

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
