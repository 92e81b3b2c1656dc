from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="MatchQuery")


@_attrs_define
class MatchQuery:
    """
    Attributes:
        terms (str):
        column (str | Unset): Absent is all that have a full-text index; the best counts.
        operator (str | Unset): `And` or `Or` (default), in any case.
        boost (float | Unset):  Default: 1.0.
        fuzziness (int | Unset): Edits by which a word may differ. Default: 0.
        max_expansions (int | Unset): Words that a fuzzy one may stand for. Default: 50.
        prefix_length (int | Unset): First characters that may not differ. Default: 0.
    """

    terms: str
    column: str | Unset = UNSET
    operator: str | Unset = UNSET
    boost: float | Unset = 1.0
    fuzziness: int | Unset = 0
    max_expansions: int | Unset = 50
    prefix_length: int | Unset = 0
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        terms = self.terms

        column = self.column

        operator = self.operator

        boost = self.boost

        fuzziness = self.fuzziness

        max_expansions = self.max_expansions

        prefix_length = self.prefix_length

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "terms": terms,
            }
        )
        if column is not UNSET:
            field_dict["column"] = column
        if operator is not UNSET:
            field_dict["operator"] = operator
        if boost is not UNSET:
            field_dict["boost"] = boost
        if fuzziness is not UNSET:
            field_dict["fuzziness"] = fuzziness
        if max_expansions is not UNSET:
            field_dict["max_expansions"] = max_expansions
        if prefix_length is not UNSET:
            field_dict["prefix_length"] = prefix_length

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        d = dict(src_dict)
        terms = d.pop("terms")

        column = d.pop("column", UNSET)

        operator = d.pop("operator", UNSET)

        boost = d.pop("boost", UNSET)

        fuzziness = d.pop("fuzziness", UNSET)

        max_expansions = d.pop("max_expansions", UNSET)

        prefix_length = d.pop("prefix_length", UNSET)

        match_query = cls(
            terms=terms,
            column=column,
            operator=operator,
            boost=boost,
            fuzziness=fuzziness,
            max_expansions=max_expansions,
            prefix_length=prefix_length,
        )

        match_query.additional_properties = d
        return match_query

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
