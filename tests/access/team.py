"""A catalog in a directory with grants in force, and callers whose batches are judged."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lance_namespace.errors import LanceNamespaceError

from lance_core.storage.port import ObjectStore
from namespace_server.access.grants import Kind
from namespace_server.access.policy import AccessPolicy
from namespace_server.access.subjects import Grantee, Privilege, Subject
from namespace_server.directory.model.batch_requests import batch_operations
from namespace_server.directory.model.grant_operations import (
    EnableGrants,
    GrantPrivileges,
    GrantRole,
    RevokePrivileges,
    RevokeRole,
)
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.operations import Batch, Operation
from namespace_server.directory.planning.plan_builder import Plan
from tests.directory.tables import Ground

OPERATOR = None
ROOT, ALICE, BOB = Subject("root"), Subject("alice"), Subject("bob")


def principal(name: str) -> Grantee:
    return Grantee("principal", name)


def role(name: str) -> Grantee:
    return Grantee("role", name)


class Guarded(Ground):
    """A root; `root` owns the catalog once grants are in force."""

    def __init__(self, root: Path, store: ObjectStore | None = None, *, in_force: bool = True) -> None:
        super().__init__(root, store)
        if in_force and self.catalog.snapshot().policy is None:
            self.send(OPERATOR, EnableGrants((principal("root"),)))

    def again(self, store: ObjectStore | None = None) -> Guarded:
        return Guarded(self.root, store, in_force=False)

    @property
    def policy(self) -> AccessPolicy:
        policy = self.catalog.snapshot().policy
        assert policy is not None
        return policy

    def send(self, subject: Subject | None, *operations: Operation, key: str | None = None) -> Plan:
        """Commit a batch of a caller, or raise its verdict."""
        name = None if subject is None else subject.principal
        asked = str(uuid.uuid5(uuid.NAMESPACE_OID, repr(operations))) if key else str(uuid.uuid4())
        batch = Batch(str(uuid.uuid4()), operations, asked, key, name, subject=subject)
        [pending] = self.catalog.commit_batches([batch])
        if isinstance(pending.verdict, LanceNamespaceError):
            raise pending.verdict
        assert isinstance(pending.verdict, Plan)
        return pending.verdict

    def verdict(self, subject: Subject | None, *operations: Operation) -> Plan | LanceNamespaceError:
        """As `send`, with the error as a value."""
        try:
            return self.send(subject, *operations)
        except LanceNamespaceError as error:
            return error

    def ask(self, subject: Subject | None, *requests: dict[str, Any]) -> Plan:
        """As `send`, of operations as a request has them."""
        return self.send(subject, *self.operations(*requests))

    def operations(self, *requests: dict[str, Any]) -> tuple[Operation, ...]:
        return batch_operations({"operations": list(requests)}, self.namespace._rules)

    def kind(self, on: ObjectId) -> Kind:
        return "catalog" if not on else "table" if self.catalog.snapshot().table(on) is not None else "namespace"

    def grant(self, on: ObjectId, to: Grantee, *privileges: Privilege, by: Subject | None = OPERATOR) -> None:
        self.send(by, GrantPrivileges(self.kind(on), on, to, frozenset(privileges)))

    def revoke(self, on: ObjectId, to: Grantee, *privileges: Privilege, by: Subject | None = OPERATOR) -> None:
        self.send(by, RevokePrivileges(self.kind(on), on, to, frozenset(privileges) or None))

    def give(self, name: str, to: Grantee, by: Subject | None = OPERATOR) -> None:
        self.send(by, GrantRole(name, to))

    def take(self, name: str, to: Grantee, by: Subject | None = OPERATOR) -> None:
        self.send(by, RevokeRole(name, to))

    def reset(self, to: Grantee, grants: Iterable[tuple[ObjectId, Iterable[Privilege]]]) -> None:
        """Have a grantee have these privileges and no others, in one flip."""
        held = [each for each in self.policy.grants() if each.to == to]
        taken = [RevokePrivileges(each.kind, each.on, to, None) for each in held]
        given = [GrantPrivileges(self.kind(on), on, to, frozenset(some)) for on, some in grants if some]
        if taken or given:
            self.send(OPERATOR, *taken, *given)

    def owner(self, on: ObjectId) -> list[str]:
        """Who owns an object by a grant on it itself."""
        return [each.to.name for each in self.policy.on(on) if Privilege.OWN in each.privileges]
