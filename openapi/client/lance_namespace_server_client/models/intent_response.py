from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.intent import Intent


T = TypeVar("T", bound="IntentResponse")


@_attrs_define
class IntentResponse:
    """
    Attributes:
        transaction_id (str | Unset):
        intent (Intent | Unset):
    """

    transaction_id: str | Unset = UNSET
    intent: Intent | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        transaction_id = self.transaction_id

        intent: dict[str, Any] | Unset = UNSET
        if not isinstance(self.intent, Unset):
            intent = self.intent.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if transaction_id is not UNSET:
            field_dict["transaction_id"] = transaction_id
        if intent is not UNSET:
            field_dict["intent"] = intent

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.intent import Intent

        d = dict(src_dict)
        transaction_id = d.pop("transaction_id", UNSET)

        _intent = d.pop("intent", UNSET)
        intent: Intent | Unset
        if isinstance(_intent, Unset):
            intent = UNSET
        else:
            intent = Intent.from_dict(_intent)

        intent_response = cls(
            transaction_id=transaction_id,
            intent=intent,
        )

        intent_response.additional_properties = d
        return intent_response

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
