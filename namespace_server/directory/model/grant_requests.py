"""Requests about grants, made into operations. Errors are those of `requests`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from lance_namespace.errors import InvalidInputError, UnsupportedOperationError

from namespace_server.access.grants import Kind
from namespace_server.access.subjects import EVERYONE, MAX_NAME, Grantee, Privilege, Subject, is_name
from namespace_server.directory.model.errors import shown
from namespace_server.directory.model.grant_operations import (
    EnableGrants,
    GrantOperation,
    GrantPrivileges,
    GrantRole,
    RevokePrivileges,
    RevokeRole,
)
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.request_fields import (
    OBJECTS,
    Request,
    check_known,
    is_list,
    located,
    names,
    object_id,
    objects,
    table_id,
    text,
)
from namespace_server.directory.model.requests import RequestRules

_KINDS: Final[tuple[Kind, ...]] = ("catalog", "namespace", "table")
_GRANTEES: Final = ("principal", "role")


def enable_grants(request: Request, rules: RequestRules) -> EnableGrants:
    """Ours."""
    found = objects(request, "administrators")
    rules.limits.check_operations(len(found), "administrators")
    return EnableGrants(tuple(dict.fromkeys(_grantee(item, "administrators") for item in found)))


def grant_privileges(request: Request, _rules: RequestRules) -> GrantPrivileges:
    """Ours."""
    kind, on = granted_object(request)
    return GrantPrivileges(kind, on, _to(request), _privileges(request))


def revoke_privileges(request: Request, _rules: RequestRules) -> RevokePrivileges:
    """Ours. Without `privileges` all go."""
    kind, on = granted_object(request)
    privileges = None if request.get("privileges") is None else _privileges(request)
    return RevokePrivileges(kind, on, _to(request), privileges)


def grant_role(request: Request, _rules: RequestRules) -> GrantRole:
    """Ours."""
    return GrantRole(_role(request), _to(request))


def revoke_role(request: Request, _rules: RequestRules) -> RevokeRole:
    """Ours."""
    return RevokeRole(_role(request), _to(request))


_PARTS: Final[Mapping[str, tuple[Callable[[Request, RequestRules], GrantOperation], frozenset[str]]]] = {
    "revokes": (revoke_privileges, frozenset({"on", "to", "privileges"})),
    "role_revokes": (revoke_role, frozenset({"role", "to"})),
    "role_grants": (grant_role, frozenset({"role", "to"})),
    "grants": (grant_privileges, frozenset({"on", "to", "privileges"})),
}
"""The lists of a request that changes grants, in the order in which they are carried out."""


def change_grants(request: Request, rules: RequestRules) -> tuple[GrantOperation, ...]:
    """Ours: grants and revocations of privileges and roles, all or none. What is taken goes first."""
    found: list[GrantOperation] = []
    for part, (read, known) in _PARTS.items():
        for index, item in enumerate(objects(request, part) if request.get(part) is not None else ()):
            try:
                check_known(item, known, part)
                found.append(read(item, rules))
            except (InvalidInputError, UnsupportedOperationError) as error:
                raise located(f"{part}[{index}]", error) from None
    if not found:
        raise InvalidInputError(f"expected at least one of {', '.join(_PARTS)}, found none")
    rules.limits.check_operations(len(found), "changes of grants")
    return tuple(found)


def granted_object(request: Request) -> tuple[Kind, ObjectId]:
    """The object that `on` names: `{"catalog": true}`, `{"namespace": [..]}` or `{"table": [..]}`."""
    on = request.get("on")
    if not isinstance(on, OBJECTS):
        raise InvalidInputError(f"on: expected an object with one of {', '.join(_KINDS)}, found {shown(on)}")
    given = [name for name, value in on.items() if value is not None]
    if len(given) != 1 or given[0] not in _KINDS:
        raise InvalidInputError(f"on: expected exactly one of {', '.join(_KINDS)}; found {names(given)}")
    if given[0] == "catalog":
        if on["catalog"] is not True:
            raise InvalidInputError(f"on.catalog: expected true, found {shown(on['catalog'])}")
        return "catalog", ()
    if given[0] == "table":
        return "table", table_id({"id": on["table"]}, "on.table")
    found = object_id({"id": on["namespace"]}, "on.namespace")
    return ("namespace", found) if found else ("catalog", ())


def privilege(request: Request) -> Privilege:
    """The privilege that a request names."""
    return _privilege(text(request, "privilege", required=True))


def asked_subject(request: Request) -> Subject | None:
    """The subject that a request asks about, with the roles that its token would have; None for the caller itself."""
    principal = text(request, "principal")
    roles = request.get("roles")
    if principal is None and roles is None:
        return None
    if roles is not None and not (is_list(roles) and all(isinstance(role, str) for role in roles)):
        raise InvalidInputError(f"roles: expected a list of names, found {shown(roles)}")
    if principal is not None:
        _check_name(principal, "principal")
    return Subject(principal, frozenset(str(role) for role in roles) if is_list(roles) else frozenset())


def asked_grantee(request: Request) -> Grantee | None:
    """The grantee whose grants a request asks for; None for any."""
    given = [name for name in _GRANTEES if request.get(name) is not None]
    if len(given) > 1:
        raise InvalidInputError("expected one of principal and role, found both")
    return _grantee({given[0]: request[given[0]]}, "request") if given else None


def _to(request: Request) -> Grantee:
    return _grantee(request.get("to"), "to")


def _grantee(value: object, field: str) -> Grantee:
    if not isinstance(value, OBJECTS):
        raise InvalidInputError(f"{field}: expected an object with principal or role, found {shown(value)}")
    given = [name for name, item in value.items() if item is not None]
    if len(given) != 1 or given[0] not in _GRANTEES:
        raise InvalidInputError(f"{field}: expected exactly one of {', '.join(_GRANTEES)}; found {names(given)}")
    name = text(value, given[0], required=True) or ""
    _check_name(name, f"{field}.{given[0]}")
    return Grantee("principal" if given[0] == "principal" else "role", name)


def _role(request: Request) -> str:
    name = text(request, "role", required=True) or ""
    _check_name(name, "role")
    if name == EVERYONE.name:
        raise InvalidInputError(f"role: expected another one than {EVERYONE.name}, which every caller has")
    return name


def _check_name(name: str, field: str) -> None:
    if not is_name(name):
        raise InvalidInputError(f"{field}: expected 1 to {MAX_NAME} printable characters, found {shown(name)}")


def _privileges(request: Request) -> frozenset[Privilege]:
    given = request.get("privileges")
    if not is_list(given) or not given:
        raise InvalidInputError(f"privileges: expected a non-empty list, found {shown(given)}")
    return frozenset(map(_privilege, given))


def _privilege(value: object) -> Privilege:
    try:
        return Privilege(value)  # type: ignore[arg-type]
    except ValueError:
        expected = ", ".join(Privilege)
        raise InvalidInputError(f"privileges: expected some of {expected}; found {shown(value)}") from None
