"""Refused attempts are read newest first, of all processes, in pages, past what is torn."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from namespace_server.attempts import AttemptedObject, AttemptQuery, Authorization
from namespace_server.observability.audit import reading
from namespace_server.observability.audit.lines import attempt_line
from namespace_server.observability.audit.reading import DirectoryReader
from tests.audit.lines import Clock, attempt, files_of, ids

Attempts = list[Mapping[str, Any]]


def fill(directory: Path, count: int, seed: int = 1) -> list[str]:
    """Lines of three processes, mixed; their request ids, newest first."""
    chosen = random.Random(seed)
    clock = Clock()
    processes = {name: files_of(directory, name, clock) for name in ("p1", "p2", "p3")}
    names = []
    for number in range(count):
        clock.passes(chosen.choice([0.01, 0.25, 3_000]))
        process = chosen.choice(list(processes))
        line = attempt_line(attempt(f"{number}", principal=chosen.choice(["ann", "bob"])), clock.now, process)
        time = line[len(b'{"format":1,"time":"') :][:24].decode()
        processes[process].append(line, time, time)
        names.append(f"{number}")
    return names[::-1]


def pages(directory: Path, limit: int, **given: Any) -> tuple[Attempts, int]:
    found: Attempts = []
    token, count = None, 0
    while True:
        page = DirectoryReader(directory).page(AttemptQuery(limit=limit, token=token, **given))
        assert len(page.attempts) <= limit
        found += page.attempts
        token, count = page.token, count + 1
        if token is None:
            return found, count


@pytest.mark.parametrize("limit", [1, 7, 100, 1_000])
def test_pages_of_several_processes_are_newest_first_and_leave_nothing_out(tmp_path: Path, limit: int) -> None:
    expected = fill(tmp_path, 500)
    assert len(list(tmp_path.iterdir())) > 10
    found, count = pages(tmp_path, limit)
    assert ids(tuple(found)) == expected
    assert count == -(-500 // limit)


def test_lines_that_come_between_two_pages_do_not_disturb_them(tmp_path: Path) -> None:
    expected = fill(tmp_path, 50)
    first = DirectoryReader(tmp_path).page(AttemptQuery(limit=20))
    newest = max(tmp_path.iterdir())
    with newest.open("ab") as file:
        file.write(attempt_line(attempt("new"), 2_000_000_000, "p1"))
    second = DirectoryReader(tmp_path).page(AttemptQuery(limit=30, token=first.token))
    assert ids((*first.attempts, *second.attempts)) == expected


@pytest.mark.parametrize("block", [16, 100, 1_000])
def test_lines_that_span_blocks_are_whole(tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = fill(tmp_path, 40)
    monkeypatch.setattr(reading, "_BLOCK", block)
    found, _ = pages(tmp_path, 9)
    assert ids(tuple(found)) == expected


def test_what_is_no_line_is_counted_and_passed_over(tmp_path: Path) -> None:
    expected = fill(tmp_path, 5)
    [first, *_] = sorted(tmp_path.iterdir())
    data = first.read_bytes()
    torn = b'{"format":1,"time":"2026-09-21T12:00:00.000Z","event":'
    first.write_bytes(b"\n\x00\xff\n" + torn + b"\n" + data + torn)
    page = DirectoryReader(tmp_path).page(AttemptQuery())
    assert ids(tuple(page.attempts)) == expected
    assert page.unreadable == 3
    (tmp_path / "refused-20260101T000000-p9-000001.jsonl").write_bytes(torn)
    (tmp_path / "refused-20260101T000000-p8-000001.jsonl").touch()
    assert ids(tuple(DirectoryReader(tmp_path).page(AttemptQuery()).attempts)) == expected


def test_attempts_are_found_by_principal_object_and_decision(tmp_path: Path) -> None:
    to = files_of(tmp_path)
    of_table = [AttemptedObject("table", ("a", "t"))]
    checks = [Authorization("drop", False, "no grant", "table", ("a", "u"), 0)]
    for line in (
        attempt("1", objects=of_table, principal="ann"),
        attempt("2", objects=(), principal="bob", authorizations=checks, decision="denied"),
        attempt("3", objects=[AttemptedObject("namespace", ("ab",))], principal=None),
    ):
        to.append(attempt_line(line, 1.0, "p1"), "", "")

    def found(**given: Any) -> list[Any]:
        return ids(tuple(DirectoryReader(tmp_path).page(AttemptQuery(**given)).attempts))

    assert found(principal="ann") == ["1"]
    assert found(id=("a",)) == ["2", "1"]
    assert found(id=("a", "t")) == ["1"]
    assert found(decision="denied") == ["2"]
    assert found(id=()) == ["3", "2", "1"]
    assert found(limit=0) == []


def test_a_search_looks_at_so_many_lines_for_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, 100)
    monkeypatch.setattr(reading, "_MOST_LINES", 30)
    first = DirectoryReader(tmp_path).page(AttemptQuery(principal="nobody"))
    assert (list(first.attempts), first.token is None) == ([], False)
    assert pages(tmp_path, 10, principal="nobody") == ([], 4)


@pytest.mark.parametrize("token", ["", "x", "e30=", "WzEsMiwzXQ==", "é"])
def test_a_token_that_is_none_is_refused(tmp_path: Path, token: str) -> None:
    with pytest.raises(ValueError, match="page_token"):
        DirectoryReader(tmp_path).page(AttemptQuery(token=token))


def test_a_directory_that_is_not_there_has_no_attempts(tmp_path: Path) -> None:
    assert not DirectoryReader(tmp_path / "none").page(AttemptQuery()).attempts
