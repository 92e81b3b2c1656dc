from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.maintenance_work import MaintenanceWork


T = TypeVar("T", bound="MaintainTableResponse")


@_attrs_define
class MaintainTableResponse:
    """
    Attributes:
        status (str): done, nothing_to_do, planned (with dry_run), busy, given_up or failed
        catalog_version (int): The catalog version that was looked at last.
        version_before (int): The newest version of the table before.
        version (int): The newest version of the table after it.
        fragments_before (int):
        commits (int): Its commits of fragments and indices, each a batch of the caller. One more reserves ids of
            fragments that an index covers.
        removed_fragments (int):
        added_fragments (int): Fragments that have the rows of the removed ones.
        rewritten_indices (int): Index segments that were written again for these fragments.
        added_segments (int): Index segments over all rows.
        removed_segments (int): Index segments that these replaced.
        found (MaintenanceWork): What of a version of a table is worth work.
        reason (str | Unset): Why it was left to other writers, given up, or failed.
        fragments (int | Unset): Absent where the table could not be looked at again.
        left (MaintenanceWork | Unset): What of a version of a table is worth work.
    """

    status: str
    catalog_version: int
    version_before: int
    version: int
    fragments_before: int
    commits: int
    removed_fragments: int
    added_fragments: int
    rewritten_indices: int
    added_segments: int
    removed_segments: int
    found: MaintenanceWork
    reason: str | Unset = UNSET
    fragments: int | Unset = UNSET
    left: MaintenanceWork | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        status = self.status

        catalog_version = self.catalog_version

        version_before = self.version_before

        version = self.version

        fragments_before = self.fragments_before

        commits = self.commits

        removed_fragments = self.removed_fragments

        added_fragments = self.added_fragments

        rewritten_indices = self.rewritten_indices

        added_segments = self.added_segments

        removed_segments = self.removed_segments

        found = self.found.to_dict()

        reason = self.reason

        fragments = self.fragments

        left: dict[str, Any] | Unset = UNSET
        if not isinstance(self.left, Unset):
            left = self.left.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "status": status,
                "catalog_version": catalog_version,
                "version_before": version_before,
                "version": version,
                "fragments_before": fragments_before,
                "commits": commits,
                "removed_fragments": removed_fragments,
                "added_fragments": added_fragments,
                "rewritten_indices": rewritten_indices,
                "added_segments": added_segments,
                "removed_segments": removed_segments,
                "found": found,
            }
        )
        if reason is not UNSET:
            field_dict["reason"] = reason
        if fragments is not UNSET:
            field_dict["fragments"] = fragments
        if left is not UNSET:
            field_dict["left"] = left

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.maintenance_work import MaintenanceWork

        d = dict(src_dict)
        status = d.pop("status")

        catalog_version = d.pop("catalog_version")

        version_before = d.pop("version_before")

        version = d.pop("version")

        fragments_before = d.pop("fragments_before")

        commits = d.pop("commits")

        removed_fragments = d.pop("removed_fragments")

        added_fragments = d.pop("added_fragments")

        rewritten_indices = d.pop("rewritten_indices")

        added_segments = d.pop("added_segments")

        removed_segments = d.pop("removed_segments")

        found = MaintenanceWork.from_dict(d.pop("found"))

        reason = d.pop("reason", UNSET)

        fragments = d.pop("fragments", UNSET)

        _left = d.pop("left", UNSET)
        left: MaintenanceWork | Unset
        if isinstance(_left, Unset):
            left = UNSET
        else:
            left = MaintenanceWork.from_dict(_left)

        maintain_table_response = cls(
            status=status,
            catalog_version=catalog_version,
            version_before=version_before,
            version=version,
            fragments_before=fragments_before,
            commits=commits,
            removed_fragments=removed_fragments,
            added_fragments=added_fragments,
            rewritten_indices=rewritten_indices,
            added_segments=added_segments,
            removed_segments=removed_segments,
            found=found,
            reason=reason,
            fragments=fragments,
            left=left,
        )

        maintain_table_response.additional_properties = d
        return maintain_table_response

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
