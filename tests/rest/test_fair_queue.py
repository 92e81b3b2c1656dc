"""The order in which waiting changes are handed to the committer."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from namespace_server.rest.fair_queue import PRESENT, FairGate, FairQueue, Group

SHARE = 8


@dataclass
class Desk:
    """A queue, and the committer that takes from it and answers. A change is its principal, number and operations."""

    pipelined: bool = False
    now: float = 0.0
    queue: FairQueue[tuple[str, int, int]] = field(init=False)
    added: Counter[str] = field(default_factory=Counter)
    held: dict[int, Group[tuple[str, int, int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.queue = FairQueue(SHARE, pipelined=self.pipelined, clock=lambda: self.now)

    def add(self, principal: str, *costs: int) -> None:
        for cost in costs:
            self.queue.add(principal, cost, (principal, self.added[principal], cost))
            self.added[principal] += 1

    def take(self, most: int = 64) -> list[tuple[str, int, int]]:
        group = self.queue.take(most)
        self.held[id(group.changes)] = group
        return group.changes

    def answer(self, changes: list[tuple[str, int, int]]) -> None:
        self.queue.answered(self.held.pop(id(changes)))

    def commit(self, most: int = 64) -> list[str]:
        """The principals of a group that is taken and answered."""
        group = self.take(most)
        self.answer(group)
        return [principal for principal, _, _ in group]


def test_changes_of_one_principal_alone_are_taken_as_they_came() -> None:
    desk = Desk()
    desk.add("a", *[200] * 70)
    first = desk.take()
    assert [number for _, number, _ in first] == list(range(64))
    assert not desk.queue.is_ready  # one group at a time
    desk.answer(first)
    assert [number for _, number, _ in desk.take()] == list(range(64, 70))


def test_several_groups_of_one_principal_alone_are_with_the_committer_where_it_takes_several() -> None:
    desk = Desk(pipelined=True)
    desk.add("a", *[1] * 5)
    assert [len(desk.take(2)) for _ in range(3)] == [2, 2, 1]
    assert not desk.queue.is_ready


def test_a_group_has_a_share_of_each_principal() -> None:
    desk = Desk()
    desk.add("noisy", *[2] * 100)
    desk.add("quiet", 2)
    assert Counter(desk.commit()) == {"noisy": 4, "quiet": 1}
    desk.add("quiet", 2)
    assert Counter(desk.commit()) == {"noisy": 4, "quiet": 1}
    assert desk.commit() == ["noisy"] * 4  # it stays present


def test_the_next_group_begins_with_those_that_had_none() -> None:
    desk = Desk()
    for principal in "abcde":
        desk.add(principal, 1, 1)
    assert [desk.commit(2) for _ in range(5)] == [["a", "b"], ["c", "d"], ["e", "a"], ["b", "c"], ["d", "e"]]


def test_a_principal_is_not_present_for_ever() -> None:
    desk = Desk()
    desk.add("quiet", 1)
    desk.add("noisy", *[1] * 100)
    desk.commit()
    desk.now = PRESENT + 1
    desk.add("noisy", 1)
    assert desk.commit() == ["noisy"] * 64
    assert desk.queue.principals == 1


def test_nobody_waits_in_a_group_for_a_large_change() -> None:
    desk = Desk()
    desk.add("noisy", 200)
    desk.add("quiet", 2)
    assert desk.commit() == ["noisy"]
    desk.add("noisy", 200)
    assert desk.commit() == ["quiet"]


def test_after_a_large_change_others_have_as_many_operations() -> None:
    desk = Desk()
    desk.add("quiet", 2)
    desk.add("noisy", 200, 200)
    order = []
    for _ in range(210):
        order += desk.commit()
        if order[-1] == "quiet":
            desk.add("quiet", 2)
    assert order[:2] == ["quiet", "noisy"]
    assert order.index("noisy", 2) == 2 + 200 // 2
    assert order.count("noisy") == 2


def test_a_principal_that_has_had_its_part_waits_for_nobody_but_others() -> None:
    desk = Desk()
    desk.add("quiet", 2)
    desk.add("noisy", 200, 200, 200)
    quiet = desk.take()
    assert desk.commit() == ["noisy"]  # beside the group of the other one
    assert not desk.queue.is_ready
    assert desk.queue.held_back == 2
    desk.answer(quiet)
    assert desk.queue.held_back == 0
    assert [desk.commit(), desk.commit()] == [["noisy"], ["noisy"]]


def test_a_change_of_another_principal_is_taken_beside_a_group() -> None:
    desk = Desk()
    desk.add("noisy", *[2] * 10)
    noisy = desk.take()
    assert len(noisy) == 10  # alone until now
    desk.add("noisy", 2)
    desk.add("quiet", 2)
    assert desk.queue.held_back == 1
    assert desk.commit() == ["quiet"]
    desk.answer(noisy)
    assert desk.commit() == ["noisy"]


def test_a_share_is_for_all_groups_where_the_committer_takes_several() -> None:
    desk = Desk(pipelined=True)
    desk.add("quiet", 1)
    desk.add("noisy", *[3] * 10)
    first = desk.take()
    assert Counter(principal for principal, _, _ in first) == {"quiet": 1, "noisy": 2}
    assert not desk.queue.is_ready
    assert desk.queue.held_back == 8
    desk.answer(first)
    assert [principal for principal, _, _ in desk.take(1)] == ["noisy"]
    assert [principal for principal, _, _ in desk.take()] == ["noisy"]
    assert not desk.queue.is_ready


def test_what_a_principal_took_is_forgotten_while_it_is_alone() -> None:
    desk = Desk()
    desk.add("quiet", 2)
    desk.add("noisy", 200)
    assert [desk.commit(), desk.commit()] == [["quiet"], ["noisy"]]
    desk.now = PRESENT
    desk.add("noisy", 2)
    desk.commit()
    desk.add("noisy", 2)
    desk.commit()
    desk.add("quiet", 2)
    desk.add("noisy", 2)
    assert desk.commit() == ["quiet", "noisy"]


def test_callers_that_were_answered_are_expected() -> None:
    desk = Desk()
    desk.add("a", 1, 1)
    assert not desk.queue.is_awaited
    desk.commit()
    assert desk.queue.is_awaited
    desk.add("a", 1)
    assert desk.queue.is_awaited
    desk.add("a", 1)
    assert not desk.queue.is_awaited
    desk.commit()
    desk.add("b", *[1] * SHARE)
    desk.commit()
    assert not desk.queue.is_awaited or desk.queue.principals == 2
    desk.add("b", *[1] * SHARE)  # it has its share: the others may come until the next group
    desk.take()
    assert not desk.queue.is_awaited


def test_a_group_that_others_should_not_wait_for_is_known_before_it_is_taken() -> None:
    desk = Desk()
    desk.add("noisy", 200, 200)
    assert not desk.queue.is_large  # nobody else is there
    desk.add("quiet", 1)
    assert not desk.queue.is_large
    assert [desk.commit(), desk.commit()] == [["noisy"], ["quiet"]]
    assert desk.queue.is_large
    desk.add("quiet", 1)
    assert not desk.queue.is_large


def test_a_gate_lets_a_principal_alone_pass_and_has_turns_for_several() -> None:
    async def scene() -> None:
        gate, inside, go = FairGate(2), list[str](), asyncio.Event()

        async def work(principal: str) -> None:
            async with gate.turn(principal):
                inside.append(principal)
                await go.wait()

        tasks = [asyncio.create_task(work("a")) for _ in range(5)]
        await asyncio.sleep(0)
        assert inside == ["a"] * 5
        tasks += [asyncio.create_task(work(principal)) for principal in "bbbaab"]
        await asyncio.sleep(0)
        assert inside[5:] == ["b", "b"]
        tasks[7].cancel()  # the third of b, which waits
        tasks[0].cancel()  # one of a, which is inside: four are left, more than its part
        await asyncio.gather(tasks[7], tasks[0], return_exceptions=True)
        assert inside[7:] == []
        for task in tasks[1:4]:
            task.cancel()
        await asyncio.gather(*tasks[1:4], return_exceptions=True)
        await asyncio.sleep(0)
        assert inside[7:] == ["a"]
        go.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert sorted(inside[8:]) == ["a", "b"]
        assert (len(gate._queue), gate._begun) == (0, {})
        async with gate.turn("a"), gate.turn("a"):
            pass

    asyncio.run(scene())


changes = st.tuples(st.just("add"), st.sampled_from("abc"), st.sampled_from([1, 2, 5, SHARE, SHARE + 1, 200]))
steps = st.lists(
    changes | st.tuples(st.just("take"), st.integers(1, 6)) | st.tuples(st.just("answer")) | st.tuples(st.just("pass")),
    max_size=120,
)


@settings(max_examples=300, deadline=None)
@given(steps=steps, pipelined=st.booleans())
def test_nothing_is_lost_and_each_principal_has_its_order(steps: list[tuple[str, ...]], pipelined: bool) -> None:
    desk = Desk(pipelined)
    held: deque[list[tuple[str, int, int]]] = deque()
    taken: dict[str, list[int]] = defaultdict(list)

    def take(most: int) -> None:
        was_ready, is_shared = desk.queue.is_ready, desk.queue.is_shared
        beside = {principal for group in held for principal, _, _ in group}
        group = desk.take(most)
        assert group or not was_ready
        assert len(group) <= most
        for principal, number, _ in group:
            taken[principal].append(number)
        if group:
            held.append(group)
        if not pipelined:
            assert not beside & {principal for principal, _, _ in group}
        if is_shared and desk.queue.is_shared:
            of_each = Counter[str]()
            for principal, _, cost in group:
                of_each[principal] += cost
            assert all(cost <= SHARE for cost in of_each.values()) or len(group) == 1

    for step, *arguments in steps:
        match step, arguments:
            case "add", [principal, cost]:
                desk.add(principal, cost)
            case "take", [most]:
                take(most)
            case "answer", _ if held:
                desk.answer(held.popleft())
            case "pass", _:
                desk.now += PRESENT / 2
    while len(desk.queue) or held:
        if desk.queue.is_ready:
            take(6)
        else:
            assert held, "changes wait, and nothing is with the committer"
            desk.answer(held.popleft())
    assert taken == {principal: list(range(number)) for principal, number in desk.added.items() if number}


@settings(max_examples=100, deadline=None)
@given(
    before=st.lists(st.sampled_from([1, 3, SHARE, 60, 200]), max_size=5),
    cost=st.sampled_from([1, SHARE, 200]),
    others=st.lists(st.lists(st.sampled_from([1, 2, SHARE, 200]), min_size=1, max_size=4), min_size=1, max_size=3),
)
def test_no_change_waits_for_more_than_its_principal_has_taken(
    before: list[int], cost: int, others: list[list[int]]
) -> None:
    """Others send without end; of each no more is taken meanwhile than of the waiting one, a share and a change."""
    desk = Desk()
    desk.add("waiting", *before, cost)
    for place in range(len(others)):
        desk.add(f"other {place}", *others[place])
    had, groups = Counter[str](), 0
    number = len(before)
    while ("waiting", number, cost) not in (group := desk.take(4)):
        groups += 1
        for principal, _, operations in group:
            had[principal] += operations
            if principal != "waiting":
                desk.add(principal, operations)
        desk.answer(group)
    bound = sum(before) + (len(before) + 1) * (SHARE + 200)
    assert all(operations <= bound for principal, operations in had.items() if principal != "waiting")
