from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.commit_transaction_request_data_storage_version import CommitTransactionRequestDataStorageVersion
from ..types import UNSET, Unset

T = TypeVar("T", bound="CommitTransactionRequest")


@_attrs_define
class CommitTransactionRequest:
    """Commit a Lance transaction; the server rebases it onto the newest version of the table, or rejects the batch. Not
    part of the
    published namespace API.

        Attributes:
            id (list[str]): A path of names, outermost first; empty is the root.
            transaction (str): The Lance Transaction message.
            branch (str | Unset):
            location (str | Unset): Where the table must be; another table of the same name is elsewhere.
            stable_row_ids (bool | Unset): For the first version of a table; its rows keep their ids when they move.
            data_storage_version (CommitTransactionRequestDataStorageVersion | Unset): For the first version of a table, the
                format of its data files. Needed for one that begins without files.
            manifest_sha256 (str | Unset): SHA-256 of the manifest of the version that the transaction read, 64 lower-case
                hexadecimal digits. Another version of that
                number, of a branch that was made again for instance, is a conflict (code 14).
    """

    id: list[str]
    transaction: str
    branch: str | Unset = UNSET
    location: str | Unset = UNSET
    stable_row_ids: bool | Unset = UNSET
    data_storage_version: CommitTransactionRequestDataStorageVersion | Unset = UNSET
    manifest_sha256: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        transaction = self.transaction

        branch = self.branch

        location = self.location

        stable_row_ids = self.stable_row_ids

        data_storage_version: str | Unset = UNSET
        if not isinstance(self.data_storage_version, Unset):
            data_storage_version = self.data_storage_version.value

        manifest_sha256 = self.manifest_sha256

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "transaction": transaction,
            }
        )
        if branch is not UNSET:
            field_dict["branch"] = branch
        if location is not UNSET:
            field_dict["location"] = location
        if stable_row_ids is not UNSET:
            field_dict["stable_row_ids"] = stable_row_ids
        if data_storage_version is not UNSET:
            field_dict["data_storage_version"] = data_storage_version
        if manifest_sha256 is not UNSET:
            field_dict["manifest_sha256"] = manifest_sha256

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        id = cast(list[str], d.pop("id"))

        transaction = d.pop("transaction")

        branch = d.pop("branch", UNSET)

        location = d.pop("location", UNSET)

        stable_row_ids = d.pop("stable_row_ids", UNSET)

        _data_storage_version = d.pop("data_storage_version", UNSET)
        data_storage_version: CommitTransactionRequestDataStorageVersion | Unset
        if isinstance(_data_storage_version, Unset):
            data_storage_version = UNSET
        else:
            data_storage_version = CommitTransactionRequestDataStorageVersion(_data_storage_version)

        manifest_sha256 = d.pop("manifest_sha256", UNSET)

        commit_transaction_request = cls(
            id=id,
            transaction=transaction,
            branch=branch,
            location=location,
            stable_row_ids=stable_row_ids,
            data_storage_version=data_storage_version,
            manifest_sha256=manifest_sha256,
        )

        commit_transaction_request.additional_properties = d
        return commit_transaction_request

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
