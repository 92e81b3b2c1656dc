from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.branch_column import BranchColumn
    from ..models.branch_column_change import BranchColumnChange
    from ..models.branch_index import BranchIndex
    from ..models.branch_obstacle import BranchObstacle
    from ..models.branch_rows import BranchRows


T = TypeVar("T", bound="BranchDifference")


@_attrs_define
class BranchDifference:
    """
    Attributes:
        from_branch (str):
        parent_version (int): The version at which the branch began.
        main_version (int):
        branch_version (int):
        base_moved (bool): Whether main has newer versions than that.
        row_count_main (int):
        row_count_branch (int):
        row_summary (BranchRows):
        added_columns (list[BranchColumn]):
        removed_columns (list[BranchColumn]):
        changed_columns (list[BranchColumnChange]):
        added_indexes (list[BranchIndex]):
        removed_indexes (list[BranchIndex]):
        errors (list[BranchObstacle]): Why main cannot take it
    """

    from_branch: str
    parent_version: int
    main_version: int
    branch_version: int
    base_moved: bool
    row_count_main: int
    row_count_branch: int
    row_summary: BranchRows
    added_columns: list[BranchColumn]
    removed_columns: list[BranchColumn]
    changed_columns: list[BranchColumnChange]
    added_indexes: list[BranchIndex]
    removed_indexes: list[BranchIndex]
    errors: list[BranchObstacle]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from_branch = self.from_branch

        parent_version = self.parent_version

        main_version = self.main_version

        branch_version = self.branch_version

        base_moved = self.base_moved

        row_count_main = self.row_count_main

        row_count_branch = self.row_count_branch

        row_summary = self.row_summary.to_dict()

        added_columns = []
        for added_columns_item_data in self.added_columns:
            added_columns_item = added_columns_item_data.to_dict()
            added_columns.append(added_columns_item)

        removed_columns = []
        for removed_columns_item_data in self.removed_columns:
            removed_columns_item = removed_columns_item_data.to_dict()
            removed_columns.append(removed_columns_item)

        changed_columns = []
        for changed_columns_item_data in self.changed_columns:
            changed_columns_item = changed_columns_item_data.to_dict()
            changed_columns.append(changed_columns_item)

        added_indexes = []
        for added_indexes_item_data in self.added_indexes:
            added_indexes_item = added_indexes_item_data.to_dict()
            added_indexes.append(added_indexes_item)

        removed_indexes = []
        for removed_indexes_item_data in self.removed_indexes:
            removed_indexes_item = removed_indexes_item_data.to_dict()
            removed_indexes.append(removed_indexes_item)

        errors = []
        for errors_item_data in self.errors:
            errors_item = errors_item_data.to_dict()
            errors.append(errors_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "from_branch": from_branch,
                "parent_version": parent_version,
                "main_version": main_version,
                "branch_version": branch_version,
                "base_moved": base_moved,
                "row_count_main": row_count_main,
                "row_count_branch": row_count_branch,
                "row_summary": row_summary,
                "added_columns": added_columns,
                "removed_columns": removed_columns,
                "changed_columns": changed_columns,
                "added_indexes": added_indexes,
                "removed_indexes": removed_indexes,
                "errors": errors,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.branch_column import BranchColumn
        from ..models.branch_column_change import BranchColumnChange
        from ..models.branch_index import BranchIndex
        from ..models.branch_obstacle import BranchObstacle
        from ..models.branch_rows import BranchRows

        d = dict(src_dict)
        from_branch = d.pop("from_branch")

        parent_version = d.pop("parent_version")

        main_version = d.pop("main_version")

        branch_version = d.pop("branch_version")

        base_moved = d.pop("base_moved")

        row_count_main = d.pop("row_count_main")

        row_count_branch = d.pop("row_count_branch")

        row_summary = BranchRows.from_dict(d.pop("row_summary"))

        added_columns = []
        _added_columns = d.pop("added_columns")
        for added_columns_item_data in _added_columns:
            added_columns_item = BranchColumn.from_dict(added_columns_item_data)

            added_columns.append(added_columns_item)

        removed_columns = []
        _removed_columns = d.pop("removed_columns")
        for removed_columns_item_data in _removed_columns:
            removed_columns_item = BranchColumn.from_dict(removed_columns_item_data)

            removed_columns.append(removed_columns_item)

        changed_columns = []
        _changed_columns = d.pop("changed_columns")
        for changed_columns_item_data in _changed_columns:
            changed_columns_item = BranchColumnChange.from_dict(changed_columns_item_data)

            changed_columns.append(changed_columns_item)

        added_indexes = []
        _added_indexes = d.pop("added_indexes")
        for added_indexes_item_data in _added_indexes:
            added_indexes_item = BranchIndex.from_dict(added_indexes_item_data)

            added_indexes.append(added_indexes_item)

        removed_indexes = []
        _removed_indexes = d.pop("removed_indexes")
        for removed_indexes_item_data in _removed_indexes:
            removed_indexes_item = BranchIndex.from_dict(removed_indexes_item_data)

            removed_indexes.append(removed_indexes_item)

        errors = []
        _errors = d.pop("errors")
        for errors_item_data in _errors:
            errors_item = BranchObstacle.from_dict(errors_item_data)

            errors.append(errors_item)

        branch_difference = cls(
            from_branch=from_branch,
            parent_version=parent_version,
            main_version=main_version,
            branch_version=branch_version,
            base_moved=base_moved,
            row_count_main=row_count_main,
            row_count_branch=row_count_branch,
            row_summary=row_summary,
            added_columns=added_columns,
            removed_columns=removed_columns,
            changed_columns=changed_columns,
            added_indexes=added_indexes,
            removed_indexes=removed_indexes,
            errors=errors,
        )

        branch_difference.additional_properties = d
        return branch_difference

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
