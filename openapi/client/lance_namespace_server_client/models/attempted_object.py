from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.attempted_object_kind import AttemptedObjectKind

T = TypeVar("T", bound="AttemptedObject")


@_attrs_define
class AttemptedObject:
    """
    Attributes:
        kind (AttemptedObjectKind):
        id (list[str]): A path of names, outermost first; empty is the root.
    """

    kind: AttemptedObjectKind
    id: list[str]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        kind = self.kind.value

        id = self.id

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "kind": kind,
                "id": id,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        kind = AttemptedObjectKind(d.pop("kind"))

        id = cast(list[str], d.pop("id"))

        attempted_object = cls(
            kind=kind,
            id=id,
        )

        attempted_object.additional_properties = d
        return attempted_object

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
