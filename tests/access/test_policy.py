"""The policy of a snapshot judges as a plain reading of all grants would, after any edits, and says by which grant."""

from __future__ import annotations

import time
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from namespace_server.access.grants import GrantEntry, MembershipEntry
from namespace_server.access.policy import AccessPolicy
from namespace_server.access.subjects import ANONYMOUS_SUBJECT, EVERYONE, Grantee, Privilege, Subject
from namespace_server.directory.model.object_ids import ObjectId

NAMESPACES: list[ObjectId] = [(), ("a",), ("ab",), ("a", "b"), ("a", "c")]
TABLES: list[ObjectId] = [("t",), ("a", "t"), ("a", "u"), ("ab", "t"), ("a", "b", "t"), ("a", "c", "t")]
ROLES = ["readers", "writers", "everyone"]
GRANTEES = [Grantee("principal", "alice"), Grantee("principal", "bob"), *(Grantee("role", role) for role in ROLES)]
SUBJECTS = [
    Subject("alice"),
    Subject("bob", frozenset({"readers"})),
    Subject("readers"),
    ANONYMOUS_SUBJECT,
    Subject(None, frozenset({"writers"})),
]
ALICE, BOB, READERS = GRANTEES[:3]


def granted(on: ObjectId, to: Grantee, *privileges: Privilege, since: int = 1) -> GrantEntry:
    kind = "table" if on in TABLES else "namespace" if on else "catalog"
    return GrantEntry(kind, on, to, frozenset(privileges), since)  # type: ignore[arg-type]


GRANTS = st.builds(
    lambda on, to, privileges: granted(on, to, *privileges),
    st.sampled_from([*NAMESPACES, *TABLES]),
    st.sampled_from(GRANTEES),
    st.sets(st.sampled_from(Privilege), min_size=1, max_size=3),
)
MEMBERSHIPS = st.builds(
    MembershipEntry,
    st.sampled_from(ROLES),
    st.sampled_from([Grantee("principal", "alice"), Grantee("role", "readers"), Grantee("role", "writers")]),
)
EDITS = st.lists(st.tuples(st.booleans(), GRANTS | MEMBERSHIPS), max_size=25)


class PlainModel:
    """All grants and memberships in two lists, read from the beginning each time."""

    def __init__(self, entries: Iterable[GrantEntry | MembershipEntry]) -> None:
        entries = list(entries)
        self.grants = [each for each in entries if isinstance(each, GrantEntry)]
        self.members = [each for each in entries if isinstance(each, MembershipEntry)]

    def grantees(self, subject: Subject) -> set[Grantee]:
        found = {EVERYONE, *(Grantee("role", role) for role in subject.roles)}
        if subject.principal is not None:
            found.add(Grantee("principal", subject.principal))
        while more := {Grantee("role", each.role) for each in self.members if each.to in found} - found:
            found |= more
        return found

    def allows(self, subject: Subject, privilege: Privilege, path: ObjectId) -> bool:
        mine = [each for each in self.grants if each.to in self.grantees(subject) and path[: len(each.on)] == each.on]
        if privilege is Privilege.SEE:
            return any(each.on == path or each.privileges != {Privilege.CREATE} for each in mine)
        return any(each.privileges & {privilege, Privilege.OWN} for each in mine)

    def shows(self, subject: Subject, path: ObjectId) -> bool:
        mine = [each.on for each in self.grants if each.to in self.grantees(subject)]
        return not path or self.allows(subject, Privilege.SEE, path) or any(on[: len(path)] == path for on in mine)


@settings(max_examples=150, deadline=None)
@given(EDITS)
def test_judges_as_a_plain_reading_of_all_grants(edits: list[tuple[bool, GrantEntry | MembershipEntry]]) -> None:
    policy, rows = AccessPolicy(), {}
    for put, entry in edits:
        old = rows.pop(entry.object_id, None)
        if put:
            rows[entry.object_id] = entry
            policy = policy.edit(put=[entry], remove=[old] if old is not None and len(rows) % 2 else [])
        elif old is not None:
            policy = policy.edit(remove=[old])
    model, again = PlainModel(rows.values()), AccessPolicy.of(rows.values())
    assert set(policy.grants()) == set(model.grants)
    assert set(policy.memberships()) == set(model.members)
    for subject in SUBJECTS:
        for path in [*NAMESPACES, *TABLES]:
            for privilege in Privilege:
                expected = model.allows(subject, privilege, path)
                assert policy.allows(subject, privilege, path) is expected
                decision = policy.judge(subject, privilege, path)
                assert decision.allowed is expected
                assert (decision.grant is not None) is expected
                assert decision.reason
            assert policy.shows(subject, path) is model.shows(subject, path)
        for namespace in NAMESPACES:
            for each in (policy, again):
                names = each.visible_children(subject, namespace)
                for kind, there in (("namespaces", NAMESPACES), ("tables", TABLES)):
                    inside = sorted(path[-1] for path in there if path and path[:-1] == namespace)
                    shown = [name for name in inside if model.shows(subject, (*namespace, name))]
                    if names is None:
                        assert shown == inside
                        continue
                    listed = getattr(names, kind)
                    assert list(listed) == shown
                    assert [name for name in inside if name in listed] == shown
                    for name in inside:
                        assert list(listed.after(name)) == [each for each in shown if each > name]
                        assert list(listed.starting_at(name)) == [each for each in shown if each >= name]
                        assert listed.first(1, after=name) == [each for each in shown if each > name][:1]


def test_a_reason_names_the_grant_and_how_the_subject_comes_to_it() -> None:
    policy = AccessPolicy.of(
        [
            granted(("a",), READERS, Privilege.READ, Privilege.SEE),
            granted(("a", "t"), BOB, Privilege.OWN),
            MembershipEntry("readers", Grantee("role", "staff")),
            MembershipEntry("staff", ALICE),
        ]
    )
    assert policy.judge(None, Privilege.DROP, ()).reason == "the operator of the catalog is not judged"
    assert policy.judge(Subject("bob"), Privilege.DROP, ("a", "t")).reason == (
        "own granted to principal bob on table a$t"
    )
    by_membership = policy.judge(Subject("alice"), Privilege.READ, ("a", "t"))
    assert by_membership.reason == (
        "see, read granted to role readers on namespace a, a role of role staff, of principal alice"
    )
    by_token = policy.judge(Subject("eve", frozenset({"readers"})), Privilege.READ, ("a", "t"))
    assert by_token.reason == "see, read granted to role readers on namespace a, a role of the token"
    refused = policy.judge(Subject("alice"), Privilege.WRITE, ("a", "t"))
    assert refused.reason == "no grant of write to alice on it or above it"


def test_creating_in_a_namespace_shows_it_and_nothing_that_others_have_in_it() -> None:
    policy = AccessPolicy.of([granted(("a",), ALICE, Privilege.CREATE)])
    alice = Subject("alice")
    assert policy.allows(alice, Privilege.SEE, ("a",))
    assert policy.allows(alice, Privilege.CREATE, ("a", "b"))
    assert not policy.shows(alice, ("a", "t"))
    names = policy.visible_children(alice, ("a",))
    assert names is not None
    assert not list(names.tables)


def test_a_grant_counts_at_an_earlier_version_only_for_the_object_that_had_the_name_then() -> None:
    policy = AccessPolicy.of(
        [granted(("a", "t"), ALICE, Privilege.READ, since=7), granted((), BOB, Privilege.READ, since=9)]
    )
    assert not policy.allowed_at(Subject("alice"), Privilege.READ, ("a", "t"), 6)
    assert policy.allowed_at(Subject("alice"), Privilege.READ, ("a", "t"), 7)
    assert policy.allowed_at(Subject("bob"), Privilege.READ, ("a", "t"), 1)


@pytest.mark.parametrize("path", [("a", "t"), ("ab", "t"), ("a", "b", "t")])
def test_a_name_that_begins_as_another_one_is_another_object(path: ObjectId) -> None:
    policy = AccessPolicy.of([granted((path[0],), ALICE, Privilege.READ)])
    for other in TABLES:
        assert policy.allows(Subject("alice"), Privilege.READ, other) is (other[0] == path[0])


def test_ten_thousand_grants_cost_no_more_than_ten() -> None:
    grants = [granted((f"n{number}",), Grantee("principal", f"p{number}"), Privilege.READ) for number in range(10_000)]
    roles = [MembershipEntry(f"r{number}", ALICE) for number in range(10)]
    policy = AccessPolicy.of([*grants, *roles, granted(("a",), Grantee("role", "r9"), Privilege.READ)])
    alice, rounds = Subject("alice"), 2_000
    assert policy.allows(alice, Privilege.READ, ("a", "b", "t"))
    began = time.thread_time()
    for _ in range(rounds):
        policy.allows(alice, Privilege.READ, ("a", "b", "t"))
    assert (time.thread_time() - began) / rounds < 20e-6
    began = time.thread_time()
    for number in range(200):
        policy = policy.edit(put=[granted(("x", str(number)), ALICE, Privilege.OWN)])
    assert (time.thread_time() - began) / 200 < 200e-6
