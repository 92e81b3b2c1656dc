"""The published API answers as it was recorded, whatever dialects its routes have beside it."""

from __future__ import annotations

from pathlib import Path

from tests.rest.recorded import expected, record


def test_the_published_dialect_answers_byte_for_byte_as_recorded(tmp_path: Path) -> None:
    answers = expected()
    assert len(answers) > 60
    found = record(tmp_path / "root")
    assert {name: found.get(name) for name in answers} == answers
