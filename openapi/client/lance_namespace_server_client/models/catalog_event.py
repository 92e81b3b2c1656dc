from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.catalog_event_datacontenttype import CatalogEventDatacontenttype
from ..models.catalog_event_specversion import CatalogEventSpecversion

if TYPE_CHECKING:
    from ..models.event_data import EventData


T = TypeVar("T", bound="CatalogEvent")


@_attrs_define
class CatalogEvent:
    """A catalog version as a CloudEvent 1.0 in the JSON format. It is the same whichever server tells it, and whenever.

    Attributes:
        specversion (CatalogEventSpecversion):
        id (str): The identity of the catalog and the catalog version.
        source (str): The identity of the catalog as a URN. A restored backup has another one.
        type_ (str): `lance.catalog.version.` and the `kind`.
        subject (str): `catalog/versions/` and the catalog version.
        time (datetime.datetime): When it was committed.
        sequence (str): The catalog version in 20 digits, so that texts are in its order.
        datacontenttype (CatalogEventDatacontenttype):
        data (EventData):
    """

    specversion: CatalogEventSpecversion
    id: str
    source: str
    type_: str
    subject: str
    time: datetime.datetime
    sequence: str
    datacontenttype: CatalogEventDatacontenttype
    data: EventData
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        specversion = self.specversion.value

        id = self.id

        source = self.source

        type_ = self.type_

        subject = self.subject

        time = self.time.isoformat()

        sequence = self.sequence

        datacontenttype = self.datacontenttype.value

        data = self.data.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "specversion": specversion,
                "id": id,
                "source": source,
                "type": type_,
                "subject": subject,
                "time": time,
                "sequence": sequence,
                "datacontenttype": datacontenttype,
                "data": data,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.event_data import EventData

        d = dict(src_dict)
        specversion = CatalogEventSpecversion(d.pop("specversion"))

        id = d.pop("id")

        source = d.pop("source")

        type_ = d.pop("type")

        subject = d.pop("subject")

        time = datetime.datetime.fromisoformat(d.pop("time"))

        sequence = d.pop("sequence")

        datacontenttype = CatalogEventDatacontenttype(d.pop("datacontenttype"))

        data = EventData.from_dict(d.pop("data"))

        catalog_event = cls(
            specversion=specversion,
            id=id,
            source=source,
            type_=type_,
            subject=subject,
            time=time,
            sequence=sequence,
            datacontenttype=datacontenttype,
            data=data,
        )

        catalog_event.additional_properties = d
        return catalog_event

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
