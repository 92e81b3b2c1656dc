"""The rules of forwarding suffice in a small model, and none of them can be left out; the note has the figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.collection.model.search import explore
from tests.rest.model.forwarding import RULES, Model, State

NOTE = (Path(__file__).parents[2] / "docs/design/025-several-servers.md").read_text("utf-8")


def test_with_all_rules_a_change_is_committed_once_and_truly_answered() -> None:
    model = Model(frozenset(RULES))
    found = explore(State(), model.steps, model.problems)
    assert found.problems == {}
    assert f"searched completely: {found.states:,} states" in NOTE


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_left_out_alone_breaks_something_in_as_many_steps_as_the_note_says(rule: str) -> None:
    model = Model(frozenset(RULES) - {rule})
    [(problem, trace)] = explore(State(), model.steps, model.problems, first_only=True).problems.items()
    assert f"| {rule} | {problem} | {len(trace)} |" in NOTE
