"""What the kit says of itself: every check names its source, and every operation has checks."""

from __future__ import annotations

import re
from collections import Counter

import lance_namespace_urllib3_client.api as published
import pytest
from lance_namespace_urllib3_client import models

from namespace_tck import ALL, Check, Promise
from namespace_tck.operations import BY_NAME, OPERATIONS, SuccessBody
from namespace_tck.registry import CheckList, select
from tests.server.servers import REPOSITORY

TITLES = {operation.title for operation in OPERATIONS}


def _published() -> dict[str, tuple[str, str]]:
    """Method and path of every published operation, read from the generated client."""
    found = {}
    for api in vars(published).values():
        for name in vars(api) if isinstance(api, type) else ():
            serialize = re.fullmatch(r"_(\w+)_serialize", name)
            if serialize is not None:
                constants = getattr(api, name).__code__.co_consts
                path = next(text for text in constants if isinstance(text, str) and text.startswith("/v1/"))
                method = next(text for text in constants if text in ("GET", "POST"))
                found[serialize[1]] = (method, path)
    return found


def test_the_operations_are_the_published_ones() -> None:
    assert {operation.name: (operation.method, operation.path) for operation in OPERATIONS} == _published()


def test_the_models_of_successes_are_published() -> None:
    named = [operation.success for operation in OPERATIONS if operation.success not in set(SuccessBody)]

    assert [name for name in named if not hasattr(models, name)] == []


def _has_published_source(check: Check) -> bool:
    name, _, field = check.source.partition(".")
    if not field:
        return name in TITLES or hasattr(models, name)
    fields = getattr(models, name).model_fields
    return field in fields or field in {info.alias for info in fields.values()}


def test_checks_name_published_sources() -> None:
    assert [(check.id, check.source) for check in ALL if not _has_published_source(check)] == []


def test_checks_state_one_sentence() -> None:
    sentence = re.compile(r"[A-Z](?!.*\. ).{19,177}\.")
    assert [(check.id, check.statement) for check in ALL if not sentence.fullmatch(check.statement)] == []


def test_checks_have_names_of_their_own() -> None:
    assert [name for name, count in Counter(check.id for check in ALL).items() if count > 1] == []


def test_there_are_checks_of_every_operation_and_every_promise() -> None:
    assert len(ALL) >= 300
    assert {check.operation for check in ALL} >= set(BY_NAME)
    assert {check.promise for check in ALL} == set(Promise)


def test_patterns_select_by_id_operation_and_promise() -> None:
    assert {check.operation for check in select(ALL, ["list_table*"])} >= {"list_tables", "list_table_tags"}
    assert {check.promise for check in select(ALL, ["paging"])} == {Promise.PAGING}
    assert [check.id for check in select(ALL, ["drop_table.drops_a_declared_table"])] == [
        "drop_table.drops_a_declared_table"
    ]
    assert select(ALL, []) == list(ALL)


def test_a_pattern_that_matches_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="--only invented"):
        select(ALL, ["paging", "invented"])


def test_a_check_without_a_sentence_is_refused() -> None:
    checks = CheckList()
    with pytest.raises(ValueError, match="sentence"):
        checks.define("create_table", "x", Promise.ROWS, "CreateTable", "no sentence", lambda _: None)
    with pytest.raises(ValueError, match="published operation"):
        checks.define("invent_table", "x", Promise.ROWS, "CreateTable", "A sentence.", lambda _: None)


def test_the_report_is_about_these_checks() -> None:
    page = (REPOSITORY / "docs" / "reference" / "conformance.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", page, re.MULTILINE))

    assert f"has {len(ALL)} checks" in page
    counted = {name: sum(int(count) for count in re.findall(r"\d+", cell)) for name, cell in rows.items()}
    assert counted == Counter(check.operation for check in ALL)
