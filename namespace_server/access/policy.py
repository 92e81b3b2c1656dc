"""The grants of one snapshot of a catalog, and the judgement of subjects by them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from immutables import Map

from namespace_server.access.grants import GrantEntry, MembershipEntry, object_name
from namespace_server.access.subjects import EVERYONE, Grantee, Privilege, Subject, ordered
from namespace_server.access.visible_names import NO_PATHS, GrantedPaths, VisibleNames, VisibleRoots, names_of_all
from namespace_server.directory.model.object_ids import ObjectId
from namespace_server.directory.model.persistent.name_index import NameIndex

_MOST_SUBJECTS: Final = 4_096
"""Subjects whose grantees are kept until memberships change; a server meets as many as it has callers."""
_MOST_ROOTS: Final = 64
"""Subjects of whom is kept what they may see; some may see ten thousand tables one by one."""
_MAKES_ONLY: Final = frozenset({Privilege.CREATE})
"""Who may create in a namespace sees the namespace, and not what others have in it."""
_NO_GRANTS: Final[Map[Grantee, GrantEntry]] = Map()


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a subject may do something, and by which grant.

    Attributes:
        allowed: Whether it may.
        reason: The grant in words, or that there is none.
        grant: The grant that allows it; None if none does, and for the operator.
    """

    allowed: bool
    reason: str
    grant: GrantEntry | None = None


class AccessPolicy:
    """The grants in force in one snapshot. Immutable: a change of them makes another one, which shares the rest.

    An object is named by its id, `()` is the catalog. A subject that is None is the operator, who may do everything.
    A judgement costs a look for each part of the id, whatever the number of grants.
    """

    __slots__ = ("_grantees", "_grants", "_members", "_paths", "_roots")

    def __init__(
        self,
        grants: Map[ObjectId, Map[Grantee, GrantEntry]] | None = None,
        paths: Map[Grantee, GrantedPaths] | None = None,
        members: Map[Grantee, Map[str, MembershipEntry]] | None = None,
    ) -> None:
        self._grants: Map[ObjectId, Map[Grantee, GrantEntry]] = Map() if grants is None else grants
        self._paths: Map[Grantee, GrantedPaths] = Map() if paths is None else paths
        self._members: Map[Grantee, Map[str, MembershipEntry]] = Map() if members is None else members
        self._grantees: dict[Subject, tuple[Grantee, ...]] = {}
        self._roots: dict[Subject, VisibleRoots] = {}

    @classmethod
    def of(cls, entries: Iterable[GrantEntry | MembershipEntry]) -> AccessPolicy:
        """The policy of these grants and memberships."""
        return cls().edit(put=entries)

    def edit(
        self,
        *,
        put: Iterable[GrantEntry | MembershipEntry] = (),
        remove: Iterable[GrantEntry | MembershipEntry] = (),
    ) -> AccessPolicy:
        """The policy without some grants and memberships, and with others in the place of those of the same key."""
        grants, paths, members = self._grants, self._paths, self._members
        for entry in remove:
            if isinstance(entry, MembershipEntry):
                roles: Map[str, MembershipEntry] = members.get(entry.to, Map())
                if entry.role in roles:
                    roles = roles.delete(entry.role)
                    members = members.set(entry.to, roles) if roles else members.delete(entry.to)
                continue
            held: Map[Grantee, GrantEntry] = grants.get(entry.on, _NO_GRANTS)
            if entry.to not in held:
                continue
            held = held.delete(entry.to)
            grants = grants.set(entry.on, held) if held else grants.delete(entry.on)
            left = paths.get(entry.to, NO_PATHS).without_object(entry.on)
            paths = paths.set(entry.to, left) if len(left) else paths.delete(entry.to)
        for entry in put:
            if isinstance(entry, MembershipEntry):
                members = members.set(entry.to, members.get(entry.to, Map()).set(entry.role, entry))
                continue
            grants = grants.set(entry.on, grants.get(entry.on, _NO_GRANTS).set(entry.to, entry))
            known: GrantedPaths = paths.get(entry.to, NO_PATHS)
            paths = paths.set(entry.to, known.with_object(entry.on, table=entry.kind == "table"))
        edited = AccessPolicy(grants, paths, members)
        if members is self._members:
            edited._grantees = self._grantees
        return edited

    def allows(self, subject: Subject | None, privilege: Privilege, path: ObjectId) -> bool:
        """Whether a subject may do something with an object."""
        return subject is None or self._find(subject, privilege, path, None) is not None

    def allowed_at(self, subject: Subject | None, privilege: Privilege, path: ObjectId, version: int) -> bool:
        """As `allows`, of the object that had this id in a catalog version.

        Grants on namespaces and tables count only if they are for the object that had the name then.
        """
        return subject is None or self._find(subject, privilege, path, version) is not None

    def judge(self, subject: Subject | None, privilege: Privilege, path: ObjectId) -> Decision:
        """Whether a subject may do something with an object, and by which grant."""
        if subject is None:
            return Decision(allowed=True, reason="the operator of the catalog is not judged")
        grant = self._find(subject, privilege, path, None)
        if grant is not None:
            return Decision(allowed=True, reason=self._reason(subject, grant), grant=grant)
        return Decision(allowed=False, reason=f"no grant of {privilege} to {_named(subject)} on it or above it")

    def shows(self, subject: Subject | None, path: ObjectId) -> bool:
        """Whether a subject may know that an object is there: it may see it, or something below it. The root always."""
        if not path or self.allows(subject, Privilege.SEE, path):
            return True
        return subject is not None and any(
            self._paths[grantee].leads_below(path) for grantee in self.grantees(subject) if grantee in self._paths
        )

    def visible_children(self, subject: Subject | None, namespace: ObjectId) -> VisibleNames | None:
        """The names directly below a namespace that `shows` is true of; None: all that are there.

        None of them is walked to: names are read from an index of each grantee.
        """
        if subject is None or self._find(subject, Privilege.SEE, (*namespace, ""), None) is not None:
            return None
        return names_of_all(self._paths_of(subject), namespace)

    def visible_roots(self, subject: Subject | None) -> VisibleRoots | None:
        """The namespaces all below which a subject may see, and the other tables; None: all of the catalog.

        It looks at the grants of the subject, not at the objects. What is granted may not be there. It is kept until
        grants are changed.
        """
        if subject is None or self._find(subject, Privilege.SEE, ("",), None) is not None:
            return None
        known = self._roots.get(subject)
        if known is None:
            if len(self._roots) >= _MOST_ROOTS:
                self._roots.clear()
            known = self._roots[subject] = self._found_roots(subject)
        return known

    def _found_roots(self, subject: Subject) -> VisibleRoots:
        namespaces: list[ObjectId] = []
        tables: dict[ObjectId, bool] = {}
        for path in sorted({path for paths in self._paths_of(subject) for path in paths}):
            if namespaces and path[: len(namespaces[-1])] == namespaces[-1]:
                continue
            if self._is_table(path):
                if self._find(subject, Privilege.SEE, path, None) is not None:
                    tables[path] = True
            elif self._find(subject, Privilege.SEE, (*path, ""), None) is not None:
                namespaces.append(path)
        return VisibleRoots(namespaces, NameIndex(()).edited(tables))

    def _is_table(self, path: ObjectId) -> bool:
        return any(entry.kind == "table" for entry in self._grants.get(path, _NO_GRANTS).values())

    def knows(self, subject: Subject | None) -> bool:
        """Whether a subject has any grant at all."""
        return subject is None or bool(self._paths_of(subject))

    def on(self, path: ObjectId) -> list[GrantEntry]:
        """The grants on an object itself, by grantee."""
        held: Map[Grantee, GrantEntry] = self._grants.get(path, _NO_GRANTS)
        return [held[grantee] for grantee in sorted(held)]

    def grant(self, path: ObjectId, to: Grantee) -> GrantEntry | None:
        """The grant of one grantee on an object itself, or None."""
        found: GrantEntry | None = self._grants.get(path, _NO_GRANTS).get(to)
        return found

    def membership(self, role: str, to: Grantee) -> MembershipEntry | None:
        """The membership of a grantee in a role, or None."""
        found: MembershipEntry | None = self._members.get(to, Map()).get(role)
        return found

    def grants(self) -> Iterator[GrantEntry]:
        """All grants, in no particular order."""
        return (entry for held in self._grants.values() for entry in held.values())

    def memberships(self) -> Iterator[MembershipEntry]:
        """All memberships, in no particular order."""
        return (entry for roles in self._members.values() for entry in roles.values())

    def grantees(self, subject: Subject) -> tuple[Grantee, ...]:
        """What a subject has grants as: its principal, the roles of its token, and those that these have."""
        found = self._grantees.get(subject)
        if found is None:
            if len(self._grantees) >= _MOST_SUBJECTS:
                self._grantees.clear()
            found = self._grantees[subject] = tuple(self._closure(subject))
        return found

    def leads_to(self, member: Grantee, role: str) -> bool:
        """Whether a grantee has a role already, by any number of memberships, or is that role."""
        return Grantee("role", role) in self._with_roles([member])

    def privileges(self, subject: Subject | None, path: ObjectId) -> frozenset[Privilege]:
        """All privileges that a subject has on an object."""
        return frozenset(each for each in Privilege if self.allows(subject, each, path))

    def _closure(self, subject: Subject) -> list[Grantee]:
        begin = [] if subject.principal is None else [Grantee("principal", subject.principal)]
        begin += [Grantee("role", role) for role in sorted(subject.roles)]
        return self._with_roles([*begin, EVERYONE])

    def _with_roles(self, begin: list[Grantee]) -> list[Grantee]:
        """These grantees, and the roles that they have, nearest first."""
        found = dict.fromkeys(begin)
        waiting = list(found)
        for grantee in waiting:
            for role in sorted(self._members.get(grantee, ())):
                each = Grantee("role", role)
                if each not in found:
                    found[each] = None
                    waiting.append(each)
        return waiting

    def _find(self, subject: Subject, privilege: Privilege, path: ObjectId, version: int | None) -> GrantEntry | None:
        """The nearest grant that allows it: on the object itself, then on what is above it."""
        grantees, grants = self.grantees(subject), self._grants
        is_see = privilege is Privilege.SEE
        for depth in range(len(path), -1, -1):
            held = grants.get(path[:depth])
            if held is None:
                continue
            for grantee in grantees:
                entry: GrantEntry | None = held.get(grantee)
                if entry is None or (version is not None and depth and entry.since > version):
                    continue
                privileges = entry.privileges
                if privilege in privileges or Privilege.OWN in privileges:
                    return entry
                if is_see and (depth == len(path) or privileges != _MAKES_ONLY):
                    return entry
        return None

    def _paths_of(self, subject: Subject) -> list[GrantedPaths]:
        paths = self._paths
        return [paths[grantee] for grantee in self.grantees(subject) if grantee in paths]

    def _reason(self, subject: Subject, grant: GrantEntry) -> str:
        given = ", ".join(ordered(grant.privileges))
        return f"{given} granted to {grant.to} on {object_name(grant.kind, grant.on)}{self._means(subject, grant.to)}"

    def _means(self, subject: Subject, role: Grantee) -> str:
        """How a subject comes to have a role."""
        if role.kind == "principal" or role == EVERYONE:
            return ""
        if role.name in subject.roles:
            return ", a role of the token"
        chain = [role]
        grantees = self.grantees(subject)
        while chain[0].kind == "role" and chain[0].name not in subject.roles and chain[0] != EVERYONE:
            chain.insert(0, next(each for each in grantees if chain[0].name in self._members.get(each, ())))
        return ", a role of " + ", of ".join(str(each) for each in reversed(chain[:-1]))


def _named(subject: Subject) -> str:
    return "a caller without a name" if subject.principal is None else subject.principal
