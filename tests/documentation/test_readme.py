"""The README is short, and its status and numbers are those of the pages that it links."""

from __future__ import annotations

import re

from benchmarks.__main__ import NAMES, RESULTS
from tests.documentation.pages import REPOSITORY, literals

README = REPOSITORY / "README.md"
WHAT_WORKS = REPOSITORY / "docs" / "reference" / "what-works.md"
MOST_WORDS = 900
MOST_STATUS_ROWS = 8


def _rows(text: str, heading: str) -> list[list[str]]:
    """The cells of the table below a heading, without its first row."""
    _, _, section = text.partition(f"\n## {heading}\n")
    lines = [line for line in section.partition("\n## ")[0].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_it_is_read_in_five_minutes() -> None:
    assert len(README.read_text("utf-8").split()) <= MOST_WORDS


def test_its_status_has_few_rows() -> None:
    assert 0 < len(_rows(README.read_text("utf-8"), "Status")) <= MOST_STATUS_ROWS


def test_its_numbers_are_results_of_benchmarks() -> None:
    numbers = _rows(README.read_text("utf-8"), "Five numbers")

    assert len(numbers) == 5
    for what, name, ratios in numbers:
        assert name.strip("`") in NAMES, what
        results = (RESULTS / f"{name.strip('`')}.md").read_text("utf-8")
        shown = re.findall(r"[\d.]+x", ratios)
        assert shown, what
        assert [ratio for ratio in shown if f" {ratio} " not in results] == [], what


def test_every_row_of_what_works_names_what_shows_it() -> None:
    rows = [line for line in WHAT_WORKS.read_text("utf-8").splitlines() if re.match(r"\| (?!what \|)", line)]

    assert len(rows) > 30
    assert [row for row in rows if not re.search(r"`(tests/|make |examples/)[^`]+`[^|]*\|$", row)] == []
    assert {"make demo", "make test-install"} <= set(literals(WHAT_WORKS))
