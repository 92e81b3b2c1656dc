from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.health_ready_response_mode import HealthReadyResponseMode
from ..types import UNSET, Unset

T = TypeVar("T", bound="HealthReadyResponse")


@_attrs_define
class HealthReadyResponse:
    """
    Attributes:
        status (Literal['ready']):
        catalog_version (int):
        mode (HealthReadyResponseMode | Unset): `read-only` if changes are refused with status 503, code 17 and `Retry-
            After`.
    """

    status: Literal["ready"]
    catalog_version: int
    mode: HealthReadyResponseMode | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        status = self.status

        catalog_version = self.catalog_version

        mode: str | Unset = UNSET
        if not isinstance(self.mode, Unset):
            mode = self.mode.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "status": status,
                "catalog_version": catalog_version,
            }
        )
        if mode is not UNSET:
            field_dict["mode"] = mode

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        status = cast(Literal["ready"], d.pop("status"))
        if status != "ready":
            raise ValueError(f"status must match const 'ready', got '{status}'")

        catalog_version = d.pop("catalog_version")

        _mode = d.pop("mode", UNSET)
        mode: HealthReadyResponseMode | Unset
        if isinstance(_mode, Unset):
            mode = UNSET
        else:
            mode = HealthReadyResponseMode(_mode)

        health_ready_response = cls(
            status=status,
            catalog_version=catalog_version,
            mode=mode,
        )

        health_ready_response.additional_properties = d
        return health_ready_response

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
