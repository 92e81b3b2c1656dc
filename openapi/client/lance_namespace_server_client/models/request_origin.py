from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="RequestOrigin")


@_attrs_define
class RequestOrigin:
    """Where a request came from. Absent for what a process did without a server.

    Attributes:
        request_id (str): The `X-Request-Id` of the answer.
        client (str | Unset): Address of the client.
        user_agent (str | Unset): What the client says of itself; never evidence.
    """

    request_id: str
    client: str | Unset = UNSET
    user_agent: str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        request_id = self.request_id

        client = self.client

        user_agent = self.user_agent

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "request_id": request_id,
            }
        )
        if client is not UNSET:
            field_dict["client"] = client
        if user_agent is not UNSET:
            field_dict["user_agent"] = user_agent

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        request_id = d.pop("request_id")

        client = d.pop("client", UNSET)

        user_agent = d.pop("user_agent", UNSET)

        request_origin = cls(
            request_id=request_id,
            client=client,
            user_agent=user_agent,
        )

        request_origin.additional_properties = d
        return request_origin

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
