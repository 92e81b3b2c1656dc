"""Plan changes of grants: privileges, roles, and putting grants in force."""

from __future__ import annotations

from dataclasses import replace

from lance_namespace.errors import InvalidInputError

from namespace_server.access.grants import (
    AccessEntry,
    GrantEntry,
    Kind,
    MembershipEntry,
    membership_id,
)
from namespace_server.access.policy import AccessPolicy
from namespace_server.access.subjects import Grantee, Privilege, ordered
from namespace_server.directory.model.errors import namespace_not_found, table_not_found
from namespace_server.directory.model.grant_operations import (
    EnableGrants,
    GrantOperation,
    GrantPrivileges,
    GrantRole,
    RevokePrivileges,
    RevokeRole,
)
from namespace_server.directory.model.results import OperationResult
from namespace_server.directory.planning.plan_builder import OWNER, PlanBuilder


def plan_grant(builder: PlanBuilder, operation: GrantOperation) -> OperationResult:
    """Plan one change of grants. Raises InvalidInputError (13) unless grants are in force, or for a cycle of roles."""
    match operation:
        case EnableGrants():
            return _enable(builder, operation)
        case GrantPrivileges():
            return _grant(builder, operation)
        case RevokePrivileges():
            return _revoke(builder, operation)
        case GrantRole():
            return _grant_role(builder, operation)
        case RevokeRole():
            return _revoke_role(builder, operation)


def _enable(builder: PlanBuilder, operation: EnableGrants) -> OperationResult:
    """Put grants in force, and make the administrators owners of the catalog in the same flip: somebody is (GR2)."""
    subject, principal = builder.batch.subject, builder.batch.principal
    if builder.work.policy is not None:
        raise InvalidInputError("grants are in force already: expected `own` on the catalog to be granted to others")
    if subject is not None and subject.principal is None:
        raise InvalidInputError(
            "grants cannot be put in force by a caller without a name: expected API keys or issuers in the settings of "
            "the server, by which it knows its callers; found neither"
        )
    now_ms, since = builder.context.now_ms, builder.base.version + 1
    owners = [GrantEntry("catalog", (), to, OWNER, since, principal, now_ms) for to in operation.administrators]
    builder.change([AccessEntry(principal, now_ms), *owners])
    builder.is_governed = True
    return {"changed": True}


def _grant(builder: PlanBuilder, operation: GrantPrivileges) -> OperationResult:
    policy = _policy(builder)
    _require_object(builder, operation.kind, operation)
    known = policy.grant(operation.id, operation.to)
    privileges = operation.privileges if known is None else operation.privileges | known.privileges
    if known is None or privileges != known.privileges:
        since = builder.base.version + 1 if known is None else known.since
        made = (since, builder.batch.principal, builder.context.now_ms)
        builder.change([GrantEntry(operation.kind, operation.id, operation.to, privileges, *made)])
    return _changed(known is None or privileges != known.privileges, privileges)


def _revoke(builder: PlanBuilder, operation: RevokePrivileges) -> OperationResult:
    policy = _policy(builder)
    _require_object(builder, operation.kind, operation)
    known = policy.grant(operation.id, operation.to)
    if known is None:
        return _changed(False, frozenset())
    left = frozenset[Privilege]() if operation.privileges is None else known.privileges - operation.privileges
    if not left:
        builder.change(removes=[known.object_id])
    elif left != known.privileges:
        now_ms = builder.context.now_ms
        builder.change([replace(known, privileges=left, principal=builder.batch.principal, timestamp_ms=now_ms)])
    return _changed(left != known.privileges, left)


def _grant_role(builder: PlanBuilder, operation: GrantRole) -> OperationResult:
    policy = _policy(builder)
    if policy.membership(operation.role, operation.to) is not None:
        return {"changed": False}
    if operation.to.kind == "role" and policy.leads_to(Grantee("role", operation.role), operation.to.name):
        raise InvalidInputError(
            f"role {operation.role} cannot be given to {operation.to}: it has that role already, expected no cycle"
        )
    entry = MembershipEntry(operation.role, operation.to, builder.batch.principal, builder.context.now_ms)
    builder.change([entry])
    return {"changed": True}


def _revoke_role(builder: PlanBuilder, operation: RevokeRole) -> OperationResult:
    known = _policy(builder).membership(operation.role, operation.to)
    if known is not None:
        builder.change(removes=[membership_id(operation.role, operation.to)])
    return {"changed": known is not None}


def _policy(builder: PlanBuilder) -> AccessPolicy:
    policy = builder.work.policy
    if policy is None:
        raise InvalidInputError("grants are not in force in this catalog, expected enable_grants first")
    return policy


def _require_object(builder: PlanBuilder, kind: Kind, operation: GrantPrivileges | RevokePrivileges) -> None:
    """Raise TableNotFoundError (4) or NamespaceNotFoundError (1) unless the object is there, and of that kind."""
    if kind == "table" and builder.work.table(operation.id) is None:
        raise table_not_found(operation.id)
    if kind == "namespace" and builder.work.namespace(operation.id) is None:
        raise namespace_not_found(operation.id)


def _changed(changed: bool, privileges: frozenset[Privilege]) -> OperationResult:
    return {"changed": changed, "privileges": [str(each) for each in ordered(privileges)]}
