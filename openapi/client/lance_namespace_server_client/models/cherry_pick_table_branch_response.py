from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.branch_difference import BranchDifference
    from ..models.branch_preview import BranchPreview


T = TypeVar("T", bound="CherryPickTableBranchResponse")


@_attrs_define
class CherryPickTableBranchResponse:
    """
    Attributes:
        version (int): The newest version of main.
        status (str): cherry_picked, ready (with dry_run), failed or not_implemented
        diff (BranchDifference):
        preview (BranchPreview):
        transaction_id (str | Unset):
    """

    version: int
    status: str
    diff: BranchDifference
    preview: BranchPreview
    transaction_id: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        version = self.version

        status = self.status

        diff = self.diff.to_dict()

        preview = self.preview.to_dict()

        transaction_id = self.transaction_id

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "version": version,
                "status": status,
                "diff": diff,
                "preview": preview,
            }
        )
        if transaction_id is not UNSET:
            field_dict["transaction_id"] = transaction_id

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.branch_difference import BranchDifference
        from ..models.branch_preview import BranchPreview

        d = dict(src_dict)
        version = d.pop("version")

        status = d.pop("status")

        diff = BranchDifference.from_dict(d.pop("diff"))

        preview = BranchPreview.from_dict(d.pop("preview"))

        transaction_id = d.pop("transaction_id", UNSET)

        cherry_pick_table_branch_response = cls(
            version=version,
            status=status,
            diff=diff,
            preview=preview,
            transaction_id=transaction_id,
        )

        cherry_pick_table_branch_response.additional_properties = d
        return cherry_pick_table_branch_response

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
