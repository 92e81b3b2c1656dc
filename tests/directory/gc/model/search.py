"""Breadth-first search over all interleavings of a small model."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import NamedTuple, TypeVar

State = TypeVar("State", bound=Hashable)


class Result(NamedTuple):
    """What a search found.

    Attributes:
        states: The number of distinct states that were reached.
        problems: Each kind of problem, with the steps of its shortest trace.
    """

    states: int
    problems: dict[str, tuple[str, ...]]


def explore(
    initial: State,
    steps: Callable[[State], Iterable[tuple[str, State]]],
    problems: Callable[[State], Iterable[str]],
    *,
    first_only: bool = False,
) -> Result:
    """Visit every state that can be reached; a state with a problem is not left again.

    Args:
        initial: The first state.
        steps: The names of the steps that are possible in a state, and where they lead.
        problems: The violated invariants of a state.
        first_only: Stop when all states were visited that are as near as the nearest one with a problem.
    """
    came_from: dict[State, tuple[State, str] | None] = {initial: None}
    found: dict[str, tuple[str, ...]] = {}
    level = [initial]
    while level and not (found and first_only):
        next_level: list[State] = []
        for state in level:
            violated = tuple(problems(state))
            for problem in violated:
                if problem not in found:
                    found[problem] = tuple(_steps_to(came_from, state))[::-1]
            if violated:
                continue
            for name, following in steps(state):
                if following not in came_from:
                    came_from[following] = (state, name)
                    next_level.append(following)
        level = next_level
    return Result(len(came_from), found)


def _steps_to(came_from: dict[State, tuple[State, str] | None], state: State) -> Iterator[str]:
    while (origin := came_from[state]) is not None:
        state, name = origin
        yield name
