"""The rules of forwarding suffice in a small model, and none of them can be left out; the note has the figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.directory.gc.model.search import explore
from tests.rest.model.forwarding import RULES, Model, State

NOTE = (Path(__file__).parents[2] / "docs/design/025-several-servers.md").read_text("utf-8")


INITIAL = [State(keyed=keyed, lacking=lacking) for keyed in (True, False) for lacking in (False, True)]


def test_with_all_rules_a_change_is_committed_once_and_truly_answered() -> None:
    model = Model(frozenset(RULES))
    found = [explore(state, model.steps, model.problems) for state in INITIAL]
    assert [each.problems for each in found] == [{}] * len(INITIAL)
    assert f"searched completely: {sum(each.states for each in found):,} states" in NOTE


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_left_out_alone_breaks_something_in_as_many_steps_as_the_note_says(rule: str) -> None:
    model = Model(frozenset(RULES) - {rule})
    found = [explore(state, model.steps, model.problems, first_only=True) for state in INITIAL]
    traces = [(len(trace), problem) for each in found for problem, trace in each.problems.items()]
    steps, problem = min(traces)
    assert f"| {rule} | {problem} | {steps} |" in NOTE
