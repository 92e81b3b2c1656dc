from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.catalog_change import CatalogChange
    from ..models.request_origin import RequestOrigin
    from ..models.used_grant import UsedGrant


T = TypeVar("T", bound="AuditedBatch")


@_attrs_define
class AuditedBatch:
    """
    Attributes:
        transaction_id (str): The uuid of the batch.
        message (str | Unset):
        principal (str | Unset): The principal that sent it; absent if the server knows no principals.
        num_operations (int | Unset): Changes of the batch, without assertions.
        operations (list[CatalogChange] | Unset): The first 200 changes, in order. Absent if they are not known: earlier
            releases kept less.
        origin (RequestOrigin | Unset): Where a request came from. Absent for what a process did without a server.
        granted (list[UsedGrant] | Unset): The grants by which its operations were allowed; absent while no grants are
            in force.
    """

    transaction_id: str
    message: str | Unset = UNSET
    principal: str | Unset = UNSET
    num_operations: int | Unset = UNSET
    operations: list[CatalogChange] | Unset = UNSET
    origin: RequestOrigin | Unset = UNSET
    granted: list[UsedGrant] | Unset = UNSET
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

        origin: dict[str, Any] | Unset = UNSET
        if not isinstance(self.origin, Unset):
            origin = self.origin.to_dict()

        granted: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.granted, Unset):
            granted = []
            for granted_item_data in self.granted:
                granted_item = granted_item_data.to_dict()
                granted.append(granted_item)

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
        if origin is not UNSET:
            field_dict["origin"] = origin
        if granted is not UNSET:
            field_dict["granted"] = granted

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.catalog_change import CatalogChange
        from ..models.request_origin import RequestOrigin
        from ..models.used_grant import UsedGrant

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

        _origin = d.pop("origin", UNSET)
        origin: RequestOrigin | Unset
        if isinstance(_origin, Unset):
            origin = UNSET
        else:
            origin = RequestOrigin.from_dict(_origin)

        _granted = d.pop("granted", UNSET)
        granted: list[UsedGrant] | Unset = UNSET
        if _granted is not UNSET:
            granted = []
            for granted_item_data in _granted:
                granted_item = UsedGrant.from_dict(granted_item_data)

                granted.append(granted_item)

        audited_batch = cls(
            transaction_id=transaction_id,
            message=message,
            principal=principal,
            num_operations=num_operations,
            operations=operations,
            origin=origin,
            granted=granted,
        )

        audited_batch.additional_properties = d
        return audited_batch

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
