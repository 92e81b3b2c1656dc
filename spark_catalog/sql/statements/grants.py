"""Procedures about grants: who may do what with the catalog."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from namespace_client.errors import InvalidCall
from namespace_client.grants import (
    GrantedOn,
    GrantedTo,
    GrantList,
    GrantOutcome,
    PrivilegeCheck,
    granted_on,
    granted_to,
)
from spark_catalog.sql.access import Access
from spark_catalog.sql.catalog_requests import parse_names, sql_errors, table_path
from spark_catalog.sql.errors import InvalidStatement
from table_data.batch_operations import Json

Row = list[Any]


class GrantProcedure(Protocol):
    """A procedure that changes grants."""

    __name__: str

    def __call__(self, access: Access, values: Json) -> Sequence[Row]:
        """Run it with the values of its parameters."""
        ...


def grant(access: Access, values: Json) -> Sequence[Row]:
    """Grant privileges on an object to a grantee."""
    change = _named(values) | {"privileges": _privileges(values["privileges"])}
    return _change(access, "grants", change)


def revoke(access: Access, values: Json) -> Sequence[Row]:
    """Revoke privileges on an object from a grantee, all for NULL."""
    given = {} if values["privileges"] is None else {"privileges": _privileges(values["privileges"])}
    return _change(access, "revokes", _named(values) | given)


def grant_role(access: Access, values: Json) -> Sequence[Row]:
    """Give a role."""
    [row] = _change(access, "role_grants", {"role": values["name"], "to": _to(values).json})
    return [row[:1]]


def revoke_role(access: Access, values: Json) -> Sequence[Row]:
    """Take a role."""
    [row] = _change(access, "role_revokes", {"role": values["name"], "to": _to(values).json})
    return [row[:1]]


def grants(access: Access, values: Json) -> Sequence[Row]:
    """The grants that the caller may see."""
    asked: Json = {} if values["principal"] is None and values["role"] is None else _to(values).json
    with sql_errors():
        found = GrantList.read(access.server, asked)
    return [
        [
            str(each.on),
            str(each.to),
            ", ".join(each.privileges),
            each.principal,
            int(each.changed_at.timestamp() * 1000),
        ]
        for each in found.grants
    ]


def can(access: Access, values: Json) -> Sequence[Row]:
    """Whether a privilege is held, and by which grant."""
    asked: Json = {"privilege": values["privilege"], "on": _on(values).json}
    asked |= {} if values["principal"] is None else {"principal": values["principal"]}
    with sql_errors():
        found = access.server.asked("check_privilege", asked, PrivilegeCheck.of)
    return [[found.allowed, found.reason]]


def _change(access: Access, kind: str, change: Json) -> list[Row]:
    with sql_errors():
        made = GrantOutcome.of_change(access.server, kind, change)
    return [[made.changed, ", ".join(made.privileges)]]


def _named(values: Json) -> Json:
    return {"on": _on(values).json, "to": _to(values).json}


def _on(values: Json) -> GrantedOn:
    table, namespace = values["table"], values["namespace"]
    with _refusing("table, namespace and on_catalog"):
        return granted_on(
            None if table is None else table_path(table),
            None if namespace is None else parse_names(namespace),
            (),
            catalog=bool(values["on_catalog"]),
        )


def _to(values: Json) -> GrantedTo:
    with _refusing("principal and role"):
        return granted_to(values["principal"], values["role"])


def _privileges(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


@contextmanager
def _refusing(names: str) -> Iterator[None]:
    try:
        yield
    except InvalidCall as error:
        raise InvalidStatement(f"expected exactly one of {names}") from error
