from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.refused_attempt import RefusedAttempt


T = TypeVar("T", bound="ListRefusedAttemptsResponse")


@_attrs_define
class ListRefusedAttemptsResponse:
    """
    Attributes:
        attempts (list[RefusedAttempt]): A page may have fewer than `limit`, or none, although others follow.
        page_token (str | Unset): Absent on the last page.
        unreadable (int | Unset): Lines that were not whole.
    """

    attempts: list[RefusedAttempt]
    page_token: str | Unset = UNSET
    unreadable: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        attempts = []
        for attempts_item_data in self.attempts:
            attempts_item = attempts_item_data.to_dict()
            attempts.append(attempts_item)

        page_token = self.page_token

        unreadable = self.unreadable

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "attempts": attempts,
            }
        )
        if page_token is not UNSET:
            field_dict["page_token"] = page_token
        if unreadable is not UNSET:
            field_dict["unreadable"] = unreadable

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.refused_attempt import RefusedAttempt

        d = dict(src_dict)
        attempts = []
        _attempts = d.pop("attempts")
        for attempts_item_data in _attempts:
            attempts_item = RefusedAttempt.from_dict(attempts_item_data)

            attempts.append(attempts_item)

        page_token = d.pop("page_token", UNSET)

        unreadable = d.pop("unreadable", UNSET)

        list_refused_attempts_response = cls(
            attempts=attempts,
            page_token=page_token,
            unreadable=unreadable,
        )

        list_refused_attempts_response.additional_properties = d
        return list_refused_attempts_response

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
