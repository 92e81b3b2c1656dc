"""Grants: who may do what with a catalog, as requests and answers have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from namespace_client.access import CatalogAccess
from namespace_client.errors import InvalidCall
from namespace_client.history import moment
from namespace_client.names import AnyName, Name, absolute
from table_data.batch_operations import Json, TableId

Privileges = str | Sequence[str]
"""One privilege, or several."""


@dataclass(frozen=True, slots=True)
class GrantedOn:
    """What a grant is on: the catalog, a namespace, or a table. It holds for all below as well.

    Attributes:
        kind: Which of these.
        path: Its path; empty for the catalog.
    """

    kind: Literal["catalog", "namespace", "table"]
    path: TableId = ()

    @classmethod
    def of(cls, row: Json) -> GrantedOn:
        """As an answer has it. Raises `KeyError` or `TypeError` if it is none."""
        if row.get("table") is not None:
            return cls("table", tuple(row["table"]))
        if row.get("namespace") is not None:
            return cls("namespace", tuple(row["namespace"]))
        return cls("catalog") if row["catalog"] else cls("namespace", ())

    @property
    def json(self) -> Json:
        """As a request has it."""
        return {self.kind: True if self.kind == "catalog" else list(self.path)}

    def __str__(self) -> str:
        return self.kind if self.kind == "catalog" else f"{self.kind} {Name(self.path)}"


@dataclass(frozen=True, slots=True)
class GrantedTo:
    """Who a grant is to. Every caller has the role `everyone`.

    Attributes:
        kind: "principal" or "role".
        name: The name of the principal or the role.
    """

    kind: Literal["principal", "role"]
    name: str

    @classmethod
    def of(cls, row: Json) -> GrantedTo:
        """As an answer has it. Raises `KeyError` or `TypeError` if it is none."""
        principal = row.get("principal")
        return cls("role", row["role"]) if principal is None else cls("principal", principal)

    @property
    def json(self) -> Json:
        """As a request has it."""
        return {self.kind: self.name}

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class CatalogGrant:
    """The privileges that one grantee has on one object itself.

    Attributes:
        on: The object.
        to: The grantee.
        privileges: The privileges, of which `own` is all.
        changed_at: When they were changed last.
        principal: Who changed them last; None for the operator.
    """

    on: GrantedOn
    to: GrantedTo
    privileges: tuple[str, ...]
    changed_at: datetime
    principal: str | None

    @classmethod
    def of(cls, row: Json) -> CatalogGrant:
        """A row of the list of grants. Raises `KeyError`, `TypeError` or `ValueError` if it is none."""
        return cls(
            GrantedOn.of(row["on"]),
            GrantedTo.of(row["to"]),
            tuple(row["privileges"]),
            moment(row["timestamp_millis"]),
            row.get("principal"),
        )


@dataclass(frozen=True, slots=True)
class RoleHolder:
    """A principal or role that has a role.

    Attributes:
        role: The role.
        to: Who has it.
        given_at: When it was given.
        principal: Who gave it; None for the operator.
    """

    role: str
    to: GrantedTo
    given_at: datetime
    principal: str | None

    @classmethod
    def of(cls, row: Json) -> RoleHolder:
        """A row of the list of roles. Raises `KeyError`, `TypeError` or `ValueError` if it is none."""
        return cls(row["role"], GrantedTo.of(row["to"]), moment(row["timestamp_millis"]), row.get("principal"))


@dataclass(frozen=True, slots=True)
class GrantList:
    """Grants and roles, as far as the caller may see them.

    Attributes:
        in_force: Whether grants are in force. If not, every caller may do everything.
        grants: The grants, by object.
        roles: Who has which role. Roles that tokens name are not kept in the catalog.
    """

    in_force: bool
    grants: tuple[CatalogGrant, ...]
    roles: tuple[RoleHolder, ...]

    @classmethod
    def read(cls, access: CatalogAccess, request: Json) -> GrantList:
        """All pages of what a request asks for. Raises as `CatalogAccess.asked`."""
        grants: list[CatalogGrant] = []
        roles: list[RoleHolder] = []
        while True:
            page, token = access.asked("list_grants", request, cls._page)
            grants += page.grants
            roles += page.roles
            if not token:
                return cls(page.in_force, tuple(grants), tuple(roles))
            request = request | {"page_token": token}

    @classmethod
    def _page(cls, answer: Json) -> tuple[GrantList, str | None]:
        grants = tuple(CatalogGrant.of(row) for row in answer["grants"])
        roles = tuple(RoleHolder.of(row) for row in answer.get("roles") or ())
        return cls(bool(answer["in_force"]), grants, roles), answer.get("page_token")


@dataclass(frozen=True, slots=True)
class GrantOutcome:
    """What a change of a grant did.

    Attributes:
        changed: Whether it changed anything. What was granted already, or was not there to be revoked, did not.
        privileges: What the grantee has on the object itself by now; empty for roles.
    """

    changed: bool
    privileges: tuple[str, ...] = ()

    @classmethod
    def of_change(cls, access: CatalogAccess, kind: str, change: Json, message: str | None = None) -> GrantOutcome:
        """Make one change, of the list `kind` of a request. Raises as `CatalogAccess.changed`."""
        return access.changed(
            "change_grants", {kind: [change]}, lambda answer: cls.of(answer[kind][0]), message=message
        )

    @classmethod
    def of(cls, row: Json) -> GrantOutcome:
        """The answer about a change. Raises `KeyError` or `TypeError` if it is none."""
        return cls(bool(row["changed"]), tuple(row.get("privileges") or ()))


@dataclass(frozen=True, slots=True)
class PrivilegeCheck:
    """Whether a privilege is held.

    Attributes:
        allowed: Whether it is.
        reason: The grant that allows it, in words, or that there is none.
        in_force: Whether grants are in force.
    """

    allowed: bool
    reason: str
    in_force: bool

    @classmethod
    def of(cls, row: Json) -> PrivilegeCheck:
        """The answer about a privilege. Raises `KeyError` if it is none."""
        return cls(bool(row["allowed"]), str(row["reason"]), bool(row["in_force"]))

    def __bool__(self) -> bool:
        return self.allowed


def granted_on(table: AnyName | None, namespace: AnyName | None, default: Sequence[str], *, catalog: bool) -> GrantedOn:
    """The object that a call names, relative to its default namespace. Raises `InvalidCall` unless it is one."""
    if [table is not None, namespace is not None, catalog].count(True) != 1:
        raise InvalidCall("expected exactly one of table=, namespace= and catalog=True")
    if table is not None:
        return GrantedOn("table", absolute(table, default))
    path = () if namespace is None else absolute(namespace, default, "namespace")
    return GrantedOn("namespace", path) if path else GrantedOn("catalog")


def granted_to(principal: str | None, role: str | None) -> GrantedTo:
    """The grantee that a call names. Raises `InvalidCall` unless it is one."""
    if (principal is None) == (role is None):
        raise InvalidCall("expected exactly one of principal= and role=")
    return GrantedTo("principal", principal) if principal is not None else GrantedTo("role", str(role))


def listed(names: Privileges, what: str) -> list[str]:
    """Names as a request has them; one may be given as it is, where several may be. Raises `InvalidCall`."""
    if isinstance(names, str):
        return [names]
    found = list(names)
    if not all(isinstance(each, str) for each in found):
        raise InvalidCall(f"{what}: expected names, found {found!r}")
    return found
