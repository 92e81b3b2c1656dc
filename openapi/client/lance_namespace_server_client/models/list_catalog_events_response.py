from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.catalog_event import CatalogEvent


T = TypeVar("T", bound="ListCatalogEventsResponse")


@_attrs_define
class ListCatalogEventsResponse:
    """
    Attributes:
        events (list[CatalogEvent]):
        last (int): Catalog version from which to go on.
        newest (int): The newest catalog version.
    """

    events: list[CatalogEvent]
    last: int
    newest: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        events = []
        for events_item_data in self.events:
            events_item = events_item_data.to_dict()
            events.append(events_item)

        last = self.last

        newest = self.newest

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "events": events,
                "last": last,
                "newest": newest,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.catalog_event import CatalogEvent

        d = dict(src_dict)
        events = []
        _events = d.pop("events")
        for events_item_data in _events:
            events_item = CatalogEvent.from_dict(events_item_data)

            events.append(events_item)

        last = d.pop("last")

        newest = d.pop("newest")

        list_catalog_events_response = cls(
            events=events,
            last=last,
            newest=newest,
        )

        list_catalog_events_response.additional_properties = d
        return list_catalog_events_response

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
