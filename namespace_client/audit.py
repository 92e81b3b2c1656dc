"""Refused attempts, as a server has recorded them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from namespace_client.display import ShownAsTable, when
from namespace_client.explanations import explain
from namespace_client.names import Name
from table_data.batch_operations import Json

_HEADERS: Final = ("time", "principal", "client", "action", "objects", "decision", "reason")
_SHOWN: Final = 3
_WIDEST: Final = 60
"""Characters of a name in a table."""


@dataclass(frozen=True, slots=True)
class FailedOperation:
    """An operation of a refused batch that could not be carried out.

    Attributes:
        operation: Its name.
        name: Path of the table.
        branch: Name of the branch, None for the main branch.
        expected: Version of the table that it was built on.
        found: Version that the catalog found.
        kind: `retryable`, or `incompatible` where the same batch can never be committed.
    """

    operation: str
    name: Name
    branch: str | None
    expected: int | None
    found: int | None
    kind: str | None

    @classmethod
    def of(cls, row: Json) -> FailedOperation:
        """A failure of a line. Raises `KeyError` or `TypeError` if it is none."""
        numbers = (row.get("expected"), row.get("found"))
        return cls(row.get("operation") or "operation", Name(row["id"]), row.get("branch"), *numbers, row.get("kind"))


@dataclass(frozen=True, slots=True)
class RefusedAttempt:
    """A request that was refused or whose outcome is unknown, or a count of such requests.

    Attributes:
        time: When it was answered, by the clock of the server.
        event: `refused_attempt`; `refused_attempts_folded` or `refused_attempts_dropped` for a count.
        count: 1, or how many requests it stands for.
        action: Name of the operation.
        decision: `denied`: the caller may not do it. `rejected`: a change that is wrong, or in conflict. `failed`: the
            server could not make the change, and nothing was done. `unknown`: the change may be made or not.
        principal: Who sent it, None if that is not known.
        client: Address of the client.
        objects: Paths of the namespaces and tables that it was about.
        reasons: Why, in words: checks that were not passed, or the error.
        failures: The operations of a batch that could not be carried out, with what they expected and what was found.
        transaction_id: Id of the batch, by which the history tells whether one of unknown outcome was committed.
        request_id: The `X-Request-Id` of the answer.
        row: The line as it was recorded.
    """

    time: datetime
    event: str
    count: int
    action: str | None
    decision: str | None
    principal: str | None
    client: str | None
    objects: tuple[Name, ...]
    reasons: tuple[str, ...]
    failures: tuple[FailedOperation, ...]
    transaction_id: str | None
    request_id: str | None
    row: Mapping[str, Any]

    @property
    def advice(self) -> str:
        """What its sender can do."""
        if self.decision == "rejected" and any(each.kind == "incompatible" for each in self.failures):
            return "The same batch can never be committed: look what the other one did before computing it anew."
        code = self.row.get("code")
        return explain("", code if isinstance(code, int) else None, self.decision).advice

    @classmethod
    def of(cls, row: Json) -> RefusedAttempt:
        """A row of the list of refused attempts. Raises `KeyError`, `TypeError` or `ValueError` if it is none."""
        return cls(
            datetime.fromisoformat(row["time"]).astimezone(UTC),
            row["event"],
            int(row.get("count", 1)),
            row.get("action"),
            row.get("decision"),
            row.get("principal"),
            row.get("client"),
            tuple(Name(each["id"]) for each in row.get("objects") or ()),
            tuple(_reasons(row)) or _without_words(row),
            tuple(FailedOperation.of(each) for each in row.get("failures") or ()),
            row.get("transaction_id"),
            row.get("request_id"),
            row,
        )


class RefusedAttempts(ShownAsTable, list[RefusedAttempt]):
    """Refused attempts, newest first. As text it is a table."""

    __slots__ = ()

    def _headers(self) -> Sequence[str]:
        return _HEADERS

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for each in self:
            what = each.action or "" if each.count == 1 else f"{each.count} times {each.action or 'any operation'}"
            who = (each.principal or "", each.client or "")
            reason = each.reasons[0] if each.reasons else ""
            yield when(each.time), *who, what, shown_objects(each), each.decision or "", reason


def shown_objects(attempt: RefusedAttempt) -> str:
    """The objects of an attempt in a line."""
    count = max(int(attempt.row.get("num_objects", 0)), len(attempt.objects))
    more = f", and {count - _SHOWN} more" if count > _SHOWN else ""
    return ", ".join(_cut(str(each)) for each in attempt.objects[:_SHOWN]) + more


def _cut(name: str) -> str:
    return name if len(name) <= _WIDEST else f"{name[: _WIDEST - 1]}…"


def _without_words(row: Json) -> tuple[str, ...]:
    return (f"status {row['status']}, code {row['code']}",) if "status" in row else ()


def _reasons(row: Json) -> Iterator[str]:
    for check in row.get("authorizations") or ():
        if not check["allowed"]:
            about = Name(check["id"]) if check["id"] else check["kind"]
            yield f"{check['privilege']} on {about}: {check['reason']}"
    for failure in row.get("failures") or ():
        if failure.get("expected") is not None or failure.get("found") is not None:
            yield (
                f"{failure.get('operation', 'operation')} of {Name(failure['id'])}: expected version "
                f"{failure.get('expected')}, found {failure.get('found')}, {failure.get('kind')}"
            )
    if row.get("detail"):
        yield str(row["detail"])
    if row["event"] == "refused_attempts_dropped":
        yield "not recorded: they could not be written"
