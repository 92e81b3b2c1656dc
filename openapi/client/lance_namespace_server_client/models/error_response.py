from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.error_response_outcome import ErrorResponseOutcome
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.operation_failure import OperationFailure


T = TypeVar("T", bound="ErrorResponse")


@_attrs_define
class ErrorResponse:
    """
    Attributes:
        error (str): What was named
        code (int): 0 unsupported; 1 namespace not found; 2 namespace exists; 3 namespace not empty; 4 table not found;
            5 table
            exists; 6 index not found; 7 index exists; 8 tag not found; 9 tag exists; 10 transaction not found; 11 table
            version not found; 12 column not found; 13 invalid input; 14 concurrent modification; 15 permission denied;
            16 unauthenticated; 17 unavailable, or outcome unknown; 18 internal; 19 invalid table state; 20 schema
            validation; 21 throttling; 22 branch not found; 23 branch exists.
        outcome (ErrorResponseOutcome | Unset): What became of the request. `nothing_done`: it changed nothing, and will
            not. `unknown`: it may have been
            applied, or may be later; send it again unchanged, with the same `Idempotency-Key`. It is about this request
            alone, not about one before under the same key whose answer was lost. Not part of the published namespace
            API; every error answer of this server has it.
        detail (str | Unset): More about it; for an unknown outcome the uuid of the batch.
        instance (str | Unset): Names this occurrence in the server's log.
        failures (list[OperationFailure] | Unset): For a rejected batch, the operations that stood in the way.
    """

    error: str
    code: int
    outcome: ErrorResponseOutcome | Unset = UNSET
    detail: str | Unset = UNSET
    instance: str | Unset = UNSET
    failures: list[OperationFailure] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        error = self.error

        code = self.code

        outcome: str | Unset = UNSET
        if not isinstance(self.outcome, Unset):
            outcome = self.outcome.value

        detail = self.detail

        instance = self.instance

        failures: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.failures, Unset):
            failures = []
            for failures_item_data in self.failures:
                failures_item = failures_item_data.to_dict()
                failures.append(failures_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "error": error,
                "code": code,
            }
        )
        if outcome is not UNSET:
            field_dict["outcome"] = outcome
        if detail is not UNSET:
            field_dict["detail"] = detail
        if instance is not UNSET:
            field_dict["instance"] = instance
        if failures is not UNSET:
            field_dict["failures"] = failures

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.operation_failure import OperationFailure

        d = dict(src_dict)
        error = d.pop("error")

        code = d.pop("code")

        _outcome = d.pop("outcome", UNSET)
        outcome: ErrorResponseOutcome | Unset
        if isinstance(_outcome, Unset):
            outcome = UNSET
        else:
            outcome = ErrorResponseOutcome(_outcome)

        detail = d.pop("detail", UNSET)

        instance = d.pop("instance", UNSET)

        _failures = d.pop("failures", UNSET)
        failures: list[OperationFailure] | Unset = UNSET
        if _failures is not UNSET:
            failures = []
            for failures_item_data in _failures:
                failures_item = OperationFailure.from_dict(failures_item_data)

                failures.append(failures_item)

        error_response = cls(
            error=error,
            code=code,
            outcome=outcome,
            detail=detail,
            instance=instance,
            failures=failures,
        )

        error_response.additional_properties = d
        return error_response

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
