"""What a refused request is in the log of refused attempts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from lance_namespace.errors import ErrorCode, InvalidInputError, LanceNamespaceError, UnauthenticatedError
from starlette.types import Scope

from lance_core.hidden_credentials import without_credentials
from namespace_server.attempts import (
    AttemptedObject,
    AttemptRecord,
    Authorization,
    Decision,
    ObjectKind,
    RefusedOperation,
    authorizations_of,
)
from namespace_server.directory.model.errors import CommittedElsewhere
from namespace_server.directory.model.history import outline_of
from namespace_server.directory.model.operations import Batch
from namespace_server.outcomes import UNKNOWN, outcome_of
from namespace_server.rest.errors import ClientDisconnected, Misdirected, OriginRefused
from namespace_server.rest.origins import origin_of
from namespace_server.rest.principals import RequestIdentity, TokenRefused
from namespace_server.rest.request.headers import read_id, read_query
from namespace_server.rest.request.ids import PlaceOf, kind_of
from namespace_server.rest.wrong_keys import TooManyWrongKeys

_FAILURES: Final = frozenset({ErrorCode.SERVICE_UNAVAILABLE, ErrorCode.INTERNAL, ErrorCode.THROTTLING})
_LITERALS: Final = re.compile(r"'[^']*'?|\"[^\"]*\"?|[a-zA-Z][\w+.-]*://\S*")
"""Texts of clients in an error, and addresses, which may hold credentials."""
_MASK: Final = "(…)"
_UNCHANGED: Final = (ClientDisconnected, CommittedElsewhere, Misdirected)
"""No refusals: the client went away, or another server is asked."""


def refused_attempt(
    error: Exception, answered: LanceNamespaceError, status: int, scope: Scope, place_of: PlaceOf, *, shows_text: bool
) -> AttemptRecord | None:
    """The attempt of a request that ended with an error, and was answered this one; None for what is no attempt.

    A change is one whatever it was refused for. A read is one where its caller may not make it. `status` is that of the
    answer, `place_of` gives the scope of the ids of a request. `shows_text`: whether the text of the error has no
    values of rows.
    """
    if isinstance(error, _UNCHANGED):
        return None
    checks = authorizations_of(error) or _checks_of_server(error, answered)
    is_denied = any(not each.allowed for each in checks)
    if not (is_denied or scope.get("is_change", False)):
        return None
    batch: Batch | None = scope.get("batch")
    identity: RequestIdentity | None = scope.get("identity")
    return AttemptRecord(
        action=scope.get("operation", "unmatched"),
        decision="denied" if is_denied else _decision(error, answered),
        status=status,
        code=int(answered.code),
        origin=origin_of(scope),
        principal=scope.get("principal"),
        means=None if identity is None else identity.means,
        objects=_of_path(scope, place_of) if batch is None else list(dict.fromkeys(_of_batch(batch))),
        authorizations=checks,
        failures=[_failure(each, batch) for each in getattr(error, "failures", None) or ()],
        transaction_id=None if batch is None else batch.uuid,
        detail=_without_literals(str(answered)) if shows_text and batch is not None and not is_denied else None,
        key=scope.get("key_digest"),
    )


def _checks_of_server(error: Exception, answered: LanceNamespaceError) -> Sequence[Authorization]:
    """The check that a request did not pass before it reached the catalog."""
    if isinstance(error, TokenRefused):
        return [Authorization("authenticate", False, f"the token is not valid: {error.reason}", "server")]
    if isinstance(error, UnauthenticatedError | TooManyWrongKeys):
        return [Authorization("authenticate", False, str(error), "server")]
    if isinstance(error, OriginRefused):
        return [Authorization("call", False, _without_literals(str(error)), "server")]
    if int(answered.code) == ErrorCode.PERMISSION_DENIED:
        return [Authorization("call", False, _without_literals(str(answered)), "server")]
    return ()


def _decision(error: Exception, answered: LanceNamespaceError) -> Decision:
    if outcome_of(error if hasattr(error, "outcome") else answered) == UNKNOWN:
        return "unknown"
    return "failed" if int(answered.code) in _FAILURES else "rejected"


def _of_path(scope: Scope, place_of: PlaceOf) -> Sequence[AttemptedObject]:
    """The object in the path of a request; none where the path has none, or one that cannot be read."""
    template: str = scope.get("route_path", "")
    named = dict(zip(template.split("/"), scope["path"].split("/"), strict=False)).get("{id}")
    if named is None:
        return ()
    try:
        found = read_id(named, read_query(scope["query_string"]))
        found = place_of(scope["header_map"], template).absolute(found)
    except InvalidInputError:
        found = [named]
    kind: ObjectKind = "namespace" if kind_of(template) == "namespace" else "table"
    return [AttemptedObject(kind, tuple(map(without_credentials, found)))]


def _of_batch(batch: Batch) -> Iterator[AttemptedObject]:
    """The objects of the operations of a batch, each once, as the history would name them."""
    for operation in cast("list[dict[str, Any]]", outline_of(batch, ())["operations"]):
        kind: ObjectKind = "namespace" if operation["operation"].endswith("_namespace") else "table"
        for name in ("id", "new_id"):
            if name in operation:
                yield AttemptedObject(kind, tuple(map(without_credentials, operation[name])))


def _failure(failure: Mapping[str, Any], batch: Batch | None) -> RefusedOperation:
    index = int(failure.get("operation_index", 0))
    is_known = batch is not None and 0 <= index < len(batch.operations)
    return RefusedOperation(
        index,
        batch.operations[index].name if batch is not None and is_known else None,
        tuple(failure.get("id") or ()),
        failure.get("branch"),
        failure.get("expected"),
        failure.get("actual"),
        failure.get("kind"),
    )


def _without_literals(text: str) -> str:
    return without_credentials(_LITERALS.sub(_MASK, text))
