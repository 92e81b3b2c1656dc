from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.data_file import DataFile


T = TypeVar("T", bound="Fragment")


@_attrs_define
class Fragment:
    """
    Attributes:
        id (int):
        num_rows (int): Without deleted ones.
        files (list[DataFile]):
        num_deleted_rows (int | Unset): Absent if none is.
        deletion_file (str | Unset): Path of the file that names the deleted rows.
    """

    id: int
    num_rows: int
    files: list[DataFile]
    num_deleted_rows: int | Unset = UNSET
    deletion_file: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        num_rows = self.num_rows

        files = []
        for files_item_data in self.files:
            files_item = files_item_data.to_dict()
            files.append(files_item)

        num_deleted_rows = self.num_deleted_rows

        deletion_file = self.deletion_file

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "num_rows": num_rows,
                "files": files,
            }
        )
        if num_deleted_rows is not UNSET:
            field_dict["num_deleted_rows"] = num_deleted_rows
        if deletion_file is not UNSET:
            field_dict["deletion_file"] = deletion_file

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.data_file import DataFile

        d = dict(src_dict)
        id = d.pop("id")

        num_rows = d.pop("num_rows")

        files = []
        _files = d.pop("files")
        for files_item_data in _files:
            files_item = DataFile.from_dict(files_item_data)

            files.append(files_item)

        num_deleted_rows = d.pop("num_deleted_rows", UNSET)

        deletion_file = d.pop("deletion_file", UNSET)

        fragment = cls(
            id=id,
            num_rows=num_rows,
            files=files,
            num_deleted_rows=num_deleted_rows,
            deletion_file=deletion_file,
        )

        fragment.additional_properties = d
        return fragment

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
