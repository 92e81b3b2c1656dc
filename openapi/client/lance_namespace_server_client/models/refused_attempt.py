from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.refusal_decision import RefusalDecision
from ..models.refused_attempt_event import RefusedAttemptEvent
from ..models.refused_attempt_means import RefusedAttemptMeans
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.attempted_object import AttemptedObject
    from ..models.checked_authorization import CheckedAuthorization
    from ..models.failed_operation import FailedOperation


T = TypeVar("T", bound="RefusedAttempt")


@_attrs_define
class RefusedAttempt:
    """A line of the log of refused attempts. Of `event` `refused_attempt` it is one attempt. `refused_attempts_folded`
    stands for `count` attempts of one caller in `seconds`, which were too many for a line each, and
    `refused_attempts_dropped` for those that could not be written. Texts have at most 300 characters.

        Attributes:
            format_ (int):
            time (str): UTC, with milliseconds: `2026-01-31T12:00:00.000Z`.
            event (RefusedAttemptEvent):
            server (str): The process that recorded it.
            action (str | Unset): Name of the operation; `unmatched` where no route was found.
            decision (RefusalDecision | Unset): `denied`: the caller may not do it. `rejected`: a change that is wrong, or
                in conflict. `failed`: the server could
                not make the change, and nothing was done. `unknown`: the change may be made or not.
            status (int | Unset): HTTP status of the answer.
            code (int | Unset): Error code of the answer.
            principal (str | Unset): Absent if it is not known.
            means (RefusedAttemptMeans | Unset): What the caller has shown.
            objects (list[AttemptedObject] | Unset): What it was about, as far as the request was read; the first ones,
                `num_objects` counts all.
            num_objects (int | Unset):
            authorizations (list[CheckedAuthorization] | Unset): The checks that decided it; the first ones,
                `num_authorizations` counts all.
            num_authorizations (int | Unset):
            failures (list[FailedOperation] | Unset): The operations that could not be carried out; the first ones,
                `num_failures` counts all.
            num_failures (int | Unset):
            transaction_id (str | Unset): The uuid of its batch.
            detail (str | Unset): Text of the error, with (…) in place of literals and addresses.
            client (str | Unset): Address of the client.
            user_agent (str | Unset): What the client says of itself; never evidence.
            request_id (str | Unset): The `X-Request-Id` of the answer.
            key_sha256 (str | Unset): First digits of the digest of a key or token that was refused.
            count (int | Unset):
            seconds (float | Unset):
    """

    format_: int
    time: str
    event: RefusedAttemptEvent
    server: str
    action: str | Unset = UNSET
    decision: RefusalDecision | Unset = UNSET
    status: int | Unset = UNSET
    code: int | Unset = UNSET
    principal: str | Unset = UNSET
    means: RefusedAttemptMeans | Unset = UNSET
    objects: list[AttemptedObject] | Unset = UNSET
    num_objects: int | Unset = UNSET
    authorizations: list[CheckedAuthorization] | Unset = UNSET
    num_authorizations: int | Unset = UNSET
    failures: list[FailedOperation] | Unset = UNSET
    num_failures: int | Unset = UNSET
    transaction_id: str | Unset = UNSET
    detail: str | Unset = UNSET
    client: str | Unset = UNSET
    user_agent: str | Unset = UNSET
    request_id: str | Unset = UNSET
    key_sha256: str | Unset = UNSET
    count: int | Unset = UNSET
    seconds: float | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        format_ = self.format_

        time = self.time

        event = self.event.value

        server = self.server

        action = self.action

        decision: str | Unset = UNSET
        if not isinstance(self.decision, Unset):
            decision = self.decision.value

        status = self.status

        code = self.code

        principal = self.principal

        means: str | Unset = UNSET
        if not isinstance(self.means, Unset):
            means = self.means.value

        objects: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.objects, Unset):
            objects = []
            for objects_item_data in self.objects:
                objects_item = objects_item_data.to_dict()
                objects.append(objects_item)

        num_objects = self.num_objects

        authorizations: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.authorizations, Unset):
            authorizations = []
            for authorizations_item_data in self.authorizations:
                authorizations_item = authorizations_item_data.to_dict()
                authorizations.append(authorizations_item)

        num_authorizations = self.num_authorizations

        failures: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.failures, Unset):
            failures = []
            for failures_item_data in self.failures:
                failures_item = failures_item_data.to_dict()
                failures.append(failures_item)

        num_failures = self.num_failures

        transaction_id = self.transaction_id

        detail = self.detail

        client = self.client

        user_agent = self.user_agent

        request_id = self.request_id

        key_sha256 = self.key_sha256

        count = self.count

        seconds = self.seconds

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "format": format_,
                "time": time,
                "event": event,
                "server": server,
            }
        )
        if action is not UNSET:
            field_dict["action"] = action
        if decision is not UNSET:
            field_dict["decision"] = decision
        if status is not UNSET:
            field_dict["status"] = status
        if code is not UNSET:
            field_dict["code"] = code
        if principal is not UNSET:
            field_dict["principal"] = principal
        if means is not UNSET:
            field_dict["means"] = means
        if objects is not UNSET:
            field_dict["objects"] = objects
        if num_objects is not UNSET:
            field_dict["num_objects"] = num_objects
        if authorizations is not UNSET:
            field_dict["authorizations"] = authorizations
        if num_authorizations is not UNSET:
            field_dict["num_authorizations"] = num_authorizations
        if failures is not UNSET:
            field_dict["failures"] = failures
        if num_failures is not UNSET:
            field_dict["num_failures"] = num_failures
        if transaction_id is not UNSET:
            field_dict["transaction_id"] = transaction_id
        if detail is not UNSET:
            field_dict["detail"] = detail
        if client is not UNSET:
            field_dict["client"] = client
        if user_agent is not UNSET:
            field_dict["user_agent"] = user_agent
        if request_id is not UNSET:
            field_dict["request_id"] = request_id
        if key_sha256 is not UNSET:
            field_dict["key_sha256"] = key_sha256
        if count is not UNSET:
            field_dict["count"] = count
        if seconds is not UNSET:
            field_dict["seconds"] = seconds

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.attempted_object import AttemptedObject
        from ..models.checked_authorization import CheckedAuthorization
        from ..models.failed_operation import FailedOperation

        d = dict(src_dict)
        format_ = d.pop("format")

        time = d.pop("time")

        event = RefusedAttemptEvent(d.pop("event"))

        server = d.pop("server")

        action = d.pop("action", UNSET)

        _decision = d.pop("decision", UNSET)
        decision: RefusalDecision | Unset
        if isinstance(_decision, Unset):
            decision = UNSET
        else:
            decision = RefusalDecision(_decision)

        status = d.pop("status", UNSET)

        code = d.pop("code", UNSET)

        principal = d.pop("principal", UNSET)

        _means = d.pop("means", UNSET)
        means: RefusedAttemptMeans | Unset
        if isinstance(_means, Unset):
            means = UNSET
        else:
            means = RefusedAttemptMeans(_means)

        _objects = d.pop("objects", UNSET)
        objects: list[AttemptedObject] | Unset = UNSET
        if _objects is not UNSET:
            objects = []
            for objects_item_data in _objects:
                objects_item = AttemptedObject.from_dict(objects_item_data)

                objects.append(objects_item)

        num_objects = d.pop("num_objects", UNSET)

        _authorizations = d.pop("authorizations", UNSET)
        authorizations: list[CheckedAuthorization] | Unset = UNSET
        if _authorizations is not UNSET:
            authorizations = []
            for authorizations_item_data in _authorizations:
                authorizations_item = CheckedAuthorization.from_dict(authorizations_item_data)

                authorizations.append(authorizations_item)

        num_authorizations = d.pop("num_authorizations", UNSET)

        _failures = d.pop("failures", UNSET)
        failures: list[FailedOperation] | Unset = UNSET
        if _failures is not UNSET:
            failures = []
            for failures_item_data in _failures:
                failures_item = FailedOperation.from_dict(failures_item_data)

                failures.append(failures_item)

        num_failures = d.pop("num_failures", UNSET)

        transaction_id = d.pop("transaction_id", UNSET)

        detail = d.pop("detail", UNSET)

        client = d.pop("client", UNSET)

        user_agent = d.pop("user_agent", UNSET)

        request_id = d.pop("request_id", UNSET)

        key_sha256 = d.pop("key_sha256", UNSET)

        count = d.pop("count", UNSET)

        seconds = d.pop("seconds", UNSET)

        refused_attempt = cls(
            format_=format_,
            time=time,
            event=event,
            server=server,
            action=action,
            decision=decision,
            status=status,
            code=code,
            principal=principal,
            means=means,
            objects=objects,
            num_objects=num_objects,
            authorizations=authorizations,
            num_authorizations=num_authorizations,
            failures=failures,
            num_failures=num_failures,
            transaction_id=transaction_id,
            detail=detail,
            client=client,
            user_agent=user_agent,
            request_id=request_id,
            key_sha256=key_sha256,
            count=count,
            seconds=seconds,
        )

        refused_attempt.additional_properties = d
        return refused_attempt

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
