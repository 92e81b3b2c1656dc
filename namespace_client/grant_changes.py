"""Changes of grants and roles of a catalog, and questions about them."""

from __future__ import annotations

from collections.abc import Sequence

from namespace_client.changes import CatalogChanges
from namespace_client.grants import (
    GrantedOn,
    GrantList,
    GrantOutcome,
    PrivilegeCheck,
    Privileges,
    granted_on,
    granted_to,
    listed,
)
from namespace_client.names import AnyName
from namespace_client.wire import present
from table_data.batch_operations import DELIMITER, Json


class CatalogGrants(CatalogChanges):
    """Changes of grants and roles, and questions about them.

    An object is named by one of `table`, `namespace` and `catalog=True`, a grantee by one of `principal` and `role`.
    Privileges are `see`, `read`, `write`, `alter`, `create`, `drop`, `reference`, `maintain`, `grant` and `own`. A
    catalog in this process is changed as its operator, who is not judged.

    Every method raises as those of `CatalogChanges` do, and `InvalidCall` where not exactly one is named. What
    is denied raises `AccessRefused`.
    """

    def enable_grants(
        self, *, principals: Sequence[str] = (), roles: Sequence[str] = (), message: str | None = None
    ) -> None:
        """Put grants in force, for good: what no grant allows is refused from then on, on every server.

        Args:
            principals: Who owns the catalog from then on.
            roles: Roles that own it. At least one of both has to be named.
            message: Text that is stored with the change.
        """
        owners = [{"principal": name} for name in listed(principals, "principals")]
        owners += [{"role": name} for name in listed(roles, "roles")]
        self.access.change("enable_grants", {"administrators": owners}, message=message)

    def grant(
        self,
        privileges: Privileges,
        *,
        table: AnyName | None = None,
        namespace: AnyName | None = None,
        catalog: bool = False,
        principal: str | None = None,
        role: str | None = None,
        message: str | None = None,
    ) -> GrantOutcome:
        """Grant privileges on an object, and on all below it, beside those that the grantee has."""
        change: Json = {
            "on": self._on(table, namespace, catalog=catalog).json,
            "to": granted_to(principal, role).json,
            "privileges": listed(privileges, "privileges"),
        }
        return self._change_grants("grants", change, message)

    def revoke(
        self,
        privileges: Privileges | None = None,
        *,
        table: AnyName | None = None,
        namespace: AnyName | None = None,
        catalog: bool = False,
        principal: str | None = None,
        role: str | None = None,
        message: str | None = None,
    ) -> GrantOutcome:
        """Take privileges that a grantee has on an object itself; all of them without `privileges`.

        What it has by another grant, on what is above or to a role of it, stays.
        """
        change: Json = {
            "on": self._on(table, namespace, catalog=catalog).json,
            "to": granted_to(principal, role).json,
        }
        if privileges is not None:
            change["privileges"] = listed(privileges, "privileges")
        return self._change_grants("revokes", change, message)

    def grant_role(
        self, name: str, *, principal: str | None = None, role: str | None = None, message: str | None = None
    ) -> GrantOutcome:
        """Give a role to a principal, or to another role, whose holders have it by that."""
        return self._change_grants("role_grants", {"role": name, "to": granted_to(principal, role).json}, message)

    def revoke_role(
        self, name: str, *, principal: str | None = None, role: str | None = None, message: str | None = None
    ) -> GrantOutcome:
        """Take a role from a principal or a role that was given it. Roles of tokens are their issuer's."""
        return self._change_grants("role_revokes", {"role": name, "to": granted_to(principal, role).json}, message)

    def grants(
        self,
        *,
        table: AnyName | None = None,
        namespace: AnyName | None = None,
        catalog: bool = False,
        principal: str | None = None,
        role: str | None = None,
    ) -> GrantList:
        """The grants on an object itself, to a grantee itself, or all; as far as the caller may see them.

        That are its own, and those on what it may grant.
        """
        request: Json = {}
        if table is not None or namespace is not None or catalog:
            request["object"] = DELIMITER.join(self._on(table, namespace, catalog=catalog).path)
        if principal is not None or role is not None:
            request |= granted_to(principal, role).json
        return GrantList.read(self.access, request)

    def can(
        self,
        privilege: str,
        *,
        table: AnyName | None = None,
        namespace: AnyName | None = None,
        catalog: bool = False,
        principal: str | None = None,
        roles: Sequence[str] | None = None,
    ) -> PrivilegeCheck:
        """Whether a privilege on an object is held, and by which grant.

        Args:
            privilege: The privilege.
            table: The table.
            namespace: The namespace.
            catalog: Whether it is the catalog.
            principal: Who is meant; the caller, if `roles` is None as well. About others may ask who may grant on it.
            roles: Roles that the token of that principal would name.
        """
        on, named = self._on(table, namespace, catalog=catalog).json, None if roles is None else listed(roles, "roles")
        request = present(privilege=privilege, on=on, principal=principal, roles=named)
        return self.access.asked("check_privilege", request, PrivilegeCheck.of)

    def _on(self, table: AnyName | None, namespace: AnyName | None, *, catalog: bool) -> GrantedOn:
        return granted_on(table, namespace, self._namespace, catalog=catalog)

    def _change_grants(self, kind: str, change: Json, message: str | None) -> GrantOutcome:
        return GrantOutcome.of_change(self.access, kind, change, message)
