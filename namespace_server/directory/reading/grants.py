"""Answers about grants: who has which, and whether somebody may do something."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import orjson
from lance_namespace.errors import InvalidInputError, PermissionDeniedError

from namespace_server.access.grants import GrantEntry, Kind, MembershipEntry, object_name
from namespace_server.access.subjects import Grantee, Privilege, Subject, ordered
from namespace_server.answer import Answer
from namespace_server.attempts import Authorization, with_authorizations
from namespace_server.directory.catalog import StoredCatalog
from namespace_server.directory.model import grant_requests
from namespace_server.directory.model.errors import shown
from namespace_server.directory.model.grant_operations import (
    GrantOperation,
    GrantPrivileges,
    GrantRole,
    RevokePrivileges,
    RevokeRole,
)
from namespace_server.directory.model.object_ids import ObjectId, parse_id
from namespace_server.directory.model.request_fields import Request, text
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.plan_builder import Plan
from namespace_server.directory.reading.read_context import ReadContext

Body = dict[str, object]
_Key = tuple[ObjectId, tuple[str, str]]
_NOT_IN_FORCE: Final = "grants are not in force: every caller may do everything"
_LISTS: Final[Mapping[type[GrantOperation], str]] = {
    GrantPrivileges: "grants",
    RevokePrivileges: "revokes",
    GrantRole: "role_grants",
    RevokeRole: "role_revokes",
}


def answer_grants(_catalog: StoredCatalog, plan: Plan, snapshot: CatalogSnapshot) -> Answer:
    """ChangeGrantsResponse: the results in the lists of the request."""
    found: dict[str, object] = {"transaction_id": plan.transaction_id}
    for kind, name in _LISTS.items():
        pairs = zip(plan.batch.operations, plan.results, strict=True)
        results = [result for operation, result in pairs if isinstance(operation, kind)]
        if results:
            found[name] = results
    return Answer(found, plan.answered_version(snapshot))


def list_grants(context: ReadContext, request: Request) -> Body:
    """Ours: grants and memberships that the caller may see, by object and grantee.

    These are its own, and those on objects where it may grant; of roles its own, and all for who owns the catalog.
    """
    to, on, after = grant_requests.asked_grantee(request), _object(request), _position(request)
    size = context.entry_count(request)
    policy = context.snapshot.policy
    if policy is None:
        return {"in_force": False, "grants": [], "roles": []}
    sees, sees_role = _visible(context)
    chosen = policy.grants() if on is None else iter(policy.on(on))
    wanted = (entry for entry in chosen if to in {None, entry.to} and (after is None or _key(entry) > after))
    found = sorted(filter(sees, wanted), key=_key)
    answer: Body = {"in_force": True, "grants": [_grant(entry) for entry in found[:size]], "roles": []}
    if after is None and on is None:
        members = (
            entry for entry in policy.memberships() if to is None or to in {entry.to, Grantee("role", entry.role)}
        )
        roles = sorted((entry for entry in members if sees_role(entry)), key=lambda each: (each.role, each.to))
        answer["roles"] = [_membership(entry) for entry in roles]
    if len(found) > size:
        last = found[size - 1]
        answer["page_token"] = orjson.dumps([*last.on, *last.to]).decode()
    return answer


def check_privilege(context: ReadContext, request: Request) -> Body:
    """Ours: whether somebody has a privilege on an object, and by which grant.

    Raises PermissionDeniedError (15) for a caller that asks about another one, and may not grant on the object. What
    is there is not looked at: the answer is the same for what is hidden. To ask about others at an earlier version
    needs `grant` from then on: the object that has the name now is perhaps not the one that had it.
    """
    privilege, (kind, on) = grant_requests.privilege(request), grant_requests.granted_object(request)
    asked, caller = grant_requests.asked_subject(request), _caller(context)
    policy, version = context.snapshot.policy, context.snapshot.version
    if policy is None:
        return {"allowed": True, "reason": _NOT_IN_FORCE, "in_force": False}
    if asked is None:
        asked = caller
    elif context.sight is not None and asked != caller and not context.sight.allowed_at(Privilege.GRANT, on, version):
        reason = context.sight.policy.judge(caller, Privilege.GRANT, on).reason
        raise with_authorizations(
            PermissionDeniedError(
                f"permission denied: expected grant on {object_name(kind, on)}, to ask what others may do with it"
            ),
            [Authorization(Privilege.GRANT, False, reason, kind, on)],
        )
    if context.sight is not None and not context.sight.allows(Privilege.SEE, on):
        policy = context.sight.policy  # what is hidden today was never there
    decision = policy.judge(asked, privilege, on)
    return {"allowed": decision.allowed, "reason": decision.reason, "in_force": True}


def _caller(context: ReadContext) -> Subject | None:
    return None if context.sight is None else context.sight.subject


def _visible(
    context: ReadContext,
) -> tuple[Callable[[GrantEntry], bool], Callable[[MembershipEntry], bool]]:
    """Which grants and memberships of a snapshot the caller may see, by the grants of today."""
    sight = context.sight
    if sight is None:
        return lambda _: True, lambda _: True
    mine, version = frozenset(sight.policy.grantees(sight.subject)), context.snapshot.version
    owns = sight.allows(Privilege.OWN, ())

    def sees(entry: GrantEntry) -> bool:
        is_own = entry.to in mine and sight.allowed_at(Privilege.SEE, entry.on, version)
        return is_own or sight.allowed_at(Privilege.GRANT, entry.on, version)

    def sees_role(entry: MembershipEntry) -> bool:
        return owns or entry.to in mine

    return sees, sees_role


def _object(request: Request) -> ObjectId | None:
    """The object whose grants are asked for: its names joined by `$`, the catalog if that is empty; None for any."""
    given = text(request, "object")
    return None if given is None else parse_id(given) if given else ()


def _key(entry: GrantEntry) -> _Key:
    return entry.on, entry.to


def _position(request: Request) -> _Key | None:
    """The object and the grantee of the last grant on the page before; None on the first page."""
    token = text(request, "page_token")
    if token is None:
        return None
    try:
        found = orjson.loads(token)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, list) or len(found) <= 1 or not all(isinstance(part, str) for part in found):
        raise InvalidInputError(f"page_token: expected one of an answer, found {shown(token)}")
    *on, kind, name = found
    return tuple(on), (kind, name)


def _on(kind: Kind, on: ObjectId) -> Body:
    return {kind: list(on) if on else True}


def _grant(entry: GrantEntry) -> Body:
    found: Body = {
        "on": _on(entry.kind, entry.on),
        "to": {entry.to.kind: entry.to.name},
        "privileges": [str(each) for each in ordered(entry.privileges)],
        "since_version": entry.since,
        "timestamp_millis": entry.timestamp_ms,
    }
    return found if entry.principal is None else {**found, "principal": entry.principal}


def _membership(entry: MembershipEntry) -> Body:
    found: Body = {
        "role": entry.role,
        "to": {entry.to.kind: entry.to.name},
        "timestamp_millis": entry.timestamp_ms,
    }
    return found if entry.principal is None else {**found, "principal": entry.principal}
