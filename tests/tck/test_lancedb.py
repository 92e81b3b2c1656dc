"""Our server answers requests of lancedb's clients as the table of the kit says; wrong answers are noticed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import httpx
import pytest

from namespace_server.rest.dialects.lancedb import TRANSLATIONS
from namespace_server.rest.dialects.unserved import NotServed
from namespace_server.rest.routers import ROUTES
from namespace_server.rest.routing import LANCEDB as DIALECT
from namespace_tck import Check, CheckOutcome, Result, run_check
from namespace_tck.lancedb import LANCEDB, LINES, LancedbSession, LancedbTrial
from tests.cli.commands import invoke
from tests.server.servers import ServerProcess
from tests.tck.falsifying import Exchanged, falsifying

REFUSED_BY_NAME: Final = {
    "use_lsm": "rows are in tables at once, there is no log to read or write",
    "computed": "columns are filled when they are added",
    "function": "functions of clients are not run here",
    "document_granularity": "a row is a document",
    "combined_fields": "pylance 14 has no such query",
    "approx_mode": "how exact a search is, ef, nprobes and refine_factor say",
    "distributed_metrics": "one worker answers a query",
    "number_of_items": "a bloom filter has the size that pylance gives it",
    "page_size": "an R-tree has the pages that pylance gives it",
    "is_shallow": "a clone is shallow: copies of files are no request",
    "FM": "pylance 14 has no such index",
}
"""Fields and values that this server answers with 400 and their name, each with the reason."""
CHECKS = {check.id: check for check in LANCEDB}
ROUTED = {(route.method, route.path): route for route in ROUTES if DIALECT in route.dialects}


def template(path: str) -> str:
    """The route of the path of a request."""
    place = re.sub(r"^/v1/(table|namespace|view|materialized_view|function|secret)/[^/]+", r"/v1/\1/{id}", path)
    place = place.partition("?")[0].rstrip("/")
    place = re.sub(r"/index/(?!list$)[^/]+", "/index/{index_name}", place)
    return re.sub(r"/blob/[^/]+/[^/]+/", "/blob/{column}/{row}/", place)


def is_served(method: str, path: str) -> bool:
    """Whether this server has a route of the dialect for it, which does not refuse it."""
    route = ROUTED.get((method, template(path)))
    return route is not None and not isinstance(TRANSLATIONS[route.operation].work, NotServed)


def is_excused(result: Result) -> bool:
    """Whether this server need not answer a line: it does not announce it, refuses it by name, or has no such route."""
    if result.reason.startswith("the server announces protocol"):
        return True
    told = re.fullmatch(r"not served: (\w+) (\S+) \((.*)\)", result.reason, re.DOTALL)
    if told is None:
        return False
    return not is_served(told[1], told[2]) or any(name in told[3] for name in REFUSED_BY_NAME)


@pytest.fixture(scope="module")
def lancedb_session(server: ServerProcess) -> Iterator[LancedbSession]:
    with LancedbSession(server.url) as opened:
        yield opened


@pytest.mark.parametrize("check", LANCEDB, ids=lambda check: check.id)
def test_our_server_answers_as_the_line_says(lancedb_session: LancedbSession, check: Check) -> None:
    result = run_check(lancedb_session, check, LancedbTrial)
    if result.outcome is CheckOutcome.SKIPPED:
        assert is_excused(result), result.reason
    else:
        assert result.outcome is CheckOutcome.PASSED, f"{check.statement}\n{result.reason}\n{result.exchange}"


def test_there_are_lines_for_each_route_of_the_dialect() -> None:
    asked = {(each.method, template(each.path)) for group in LINES for line in group for each in line.asked}
    assert ROUTED.keys() - asked == set()


def test_lines_have_names_of_their_own_and_state_one_sentence() -> None:
    sentence = re.compile(r"[A-Z](?!.*\. ).{10,150}\.")
    assert [check.id for check in LANCEDB if not sentence.fullmatch(check.statement)] == []
    assert [name for name, count in Counter(check.id for check in LANCEDB).items() if count > 1] == []
    assert len(LANCEDB) >= 350


def _one_row_less(exchanged: Exchanged) -> None:
    if exchanged.operation == "count_rows/" and isinstance(exchanged.json, int):
        exchanged.answer(200, exchanged.json - 1)


def _counts_are_lost(exchanged: Exchanged) -> None:
    if exchanged.operation in ("update/", "delete/") and exchanged.status == 200:
        exchanged.answer(200, {"version": exchanged.json["version"]})


def _made_again(exchanged: Exchanged) -> None:
    """A change is made once more, as by a server that does not know the request id."""
    if exchanged.operation == "update/" and exchanged.status == 200:
        httpx.post(
            exchanged.upstream + exchanged.path,
            content=exchanged.sent.replace(b"id = 1", b"id > 1"),
            headers={"x-lancedb-database": DATABASES[-1], "content-type": "application/json"},
        )


def _conflict(exchanged: Exchanged) -> None:
    if exchanged.status == 400:
        exchanged.status = 409


def _missing(exchanged: Exchanged) -> None:
    if exchanged.status == 400:
        exchanged.status = 404


def _all_databases_are_one(exchanged: Exchanged) -> None:
    if exchanged.status == 404 and exchanged.operation == "describe/":
        exchanged.answer(200, {"version": 1, "schema": {"fields": []}})


def _wrapped_tags(exchanged: Exchanged) -> None:
    if exchanged.operation == "tags/list/":
        exchanged.answer(200, {"tags": exchanged.json})


def _types_of_the_published_api(exchanged: Exchanged) -> None:
    exchanged.content = exchanged.content.replace(b'"float"', b'"float32"')


def _another_metric(exchanged: Exchanged) -> None:
    exchanged.content = exchanged.content.replace(b'"cosine"', b'"l2"')


def _no_version(exchanged: Exchanged) -> None:
    """The proxy hands on no other header than the type of the content."""


FAULTS: list[tuple[Callable[[Exchanged], None], str, str]] = [
    (_one_row_less, "rows.count_rows.the_number_of_rows_is_a_json_number", "expected 6, found 5"),
    (_counts_are_lost, "rows.update.rows_that_are_updated_are_counted", "expected 'rows_updated'"),
    (_counts_are_lost, "rows.delete.rows_that_are_deleted_are_counted", "expected 'num_deleted_rows'"),
    (_made_again, "repeats.update.an_update_that_comes_again_under_its_request_id_is_made_once", "expected 1, found 0"),
    (_conflict, "tags.create.a_tag_that_exists_is_refused_and_stays", "found 409"),
    (_missing, "rows.count_rows.a_column_that_is_missing_is_no_missing_table", "found 404"),
    (
        _all_databases_are_one,
        "databases.connect.two_databases_have_tables_of_one_name_and_neither_sees_that_of_the_other",
        "expected status 404",
    ),
    (_wrapped_tags, "tags.list.tags_are_an_object_by_their_names", "expected 'v1'"),
    (
        _types_of_the_published_api,
        "tables.schema.a_column_of_the_type_float32_is_described_in_the_words_of_the_client",
        "float32",
    ),
    (
        _another_metric,
        "indices.create_index.an_index_ivf_sq_is_made_with_partitions_of_its_metric",
        "expected 'cosine'",
    ),
    (_no_version, "freshness.count_rows.reads_say_of_which_version_they_are", "x-lancedb-version"),
]
DATABASES: list[str] = []


@pytest.mark.parametrize(("falsify", "name", "reason"), FAULTS, ids=lambda value: getattr(value, "__name__", value))
def test_a_wrong_answer_is_noticed(
    server: ServerProcess, falsify: Callable[[Exchanged], None], name: str, reason: str
) -> None:
    active: list[Callable[[Exchanged], None]] = []

    def change(exchanged: Exchanged) -> None:
        for each in active:
            each(exchanged)

    with falsifying(server.url, change) as url, LancedbSession(url) as session:
        DATABASES.append(session.database)
        active.append(falsify)
        result = run_check(session, CHECKS[name], LancedbTrial)
        active.clear()
    assert result.outcome is CheckOutcome.FAILED
    assert reason in result.reason


def databases(url: str) -> list[str]:
    """The databases of the kit that are on the server."""
    listed = httpx.get(f"{url}/v1/namespace/%24/list").json()["namespaces"]
    return [name for name in listed if name.startswith("tck_")]


def test_the_command_checks_a_server_and_leaves_nothing(server: ServerProcess, tmp_path: Path) -> None:
    before = databases(server.url)
    options = ["--dialect", "lancedb", "--only", "databases", "--only", "clones", "--junit", f"{tmp_path}/x.xml"]
    done = invoke("tck", "--url", server.url, *options)

    assert done.exit_code == 0, done.stdout
    assert databases(server.url) == before
    suite = ET.parse(tmp_path / "x.xml").getroot()
    assert int(suite.attrib["tests"]) == sum(check.operation in ("databases", "clones") for check in LANCEDB)
    assert int(suite.attrib["failures"]) == 0


def test_the_command_lists_lines_and_refuses_another_dialect() -> None:
    listed = invoke("tck", "--dialect", "lancedb", "--list", "--only", "tags")
    assert len(listed.stdout.splitlines()) == sum(check.operation == "tags" for check in LANCEDB)
    other = invoke("tck", "--dialect", "klingon", "--url", "http://127.0.0.1:9")
    assert (other.exit_code, "--dialect klingon: expected published or lancedb" in other.stderr) == (2, True)
    silent = invoke("tck", "--dialect", "lancedb", "--url", "http://127.0.0.1:9")
    assert (silent.exit_code, "the server did not answer" in silent.stderr) == (5, True)
