"""The rules of collection suffice in small models, and none of them can be left out."""

import pytest

from tests.directory.gc.model import report


@pytest.mark.parametrize("long", [False, pytest.param(True, marks=pytest.mark.long)])
def test_the_rules_suffice_and_the_note_has_the_figures_of_the_models(long: bool) -> None:
    note = report.NOTE.read_text().splitlines()
    assert [line for line in report.states(large=False, long=long) if line not in note] == []


@pytest.mark.long
def test_each_rule_left_out_alone_loses_something_in_as_many_steps_as_the_note_says() -> None:
    note = report.NOTE.read_text().splitlines()
    assert [line for line in report.removals() if line not in note] == []
