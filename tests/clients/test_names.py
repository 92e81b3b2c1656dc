"""Names with spaces, pluses and percent signs: every call of the stock clients is about the one that it names.

Pylance's native client writes a path as a form: a space as `+`, a plus as `%2B`. Beside each table stands one whose
name is another reading of the same path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import lance
import lance_namespace as m
import lancedb
import pytest
from lance.namespace import RestNamespace
from lance_namespace_urllib3_client import ApiClient, Configuration
from lance_namespace_urllib3_client.api import TableApi

from tests.clients.outcomes import Differs, outcome
from tests.clients.test_rest_namespace import CASES, MORE, ROWS, Subject
from tests.data.arrow import stream
from tests.running import running

NAMES = ("a {} b", "a+{}+b", "a {}+b", "100%20+ {}%2B")
_numbers = count()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(tmp_path_factory.mktemp("root")) as url:
        RestNamespace(uri=url).create_namespace(m.CreateNamespaceRequest(id=["w"]))
        yield url


def twins(names: list[str]) -> list[list[str]]:
    """The ids that the same path could mean to a server that decodes it in another way."""
    readings = [
        [name.replace("+", " ") for name in names],
        [name.replace(" ", "+") for name in names],
        [name.translate({ord("+"): " ", ord(" "): "+"}) for name in names],
    ]
    return [list(names) for names in {tuple(found) for found in readings} - {tuple(names)}]


def state(client: RestNamespace, table_id: list[str]) -> Any:
    """What a change of a table would change."""
    versions = client.list_table_versions(m.ListTableVersionsRequest(id=table_id)).versions
    tags = client.list_table_tags(m.ListTableTagsRequest(id=table_id)).tags
    indices = client.list_table_indices(m.ListTableIndicesRequest(id=table_id)).indexes
    described = client.describe_table(m.DescribeTableRequest(id=table_id))
    return ([v.version for v in versions], sorted(tags or {}), len(indices), described.location)


def outcomes(name: str, subject: Subject) -> list[str]:
    """What each step of a case comes to, with the name of the subject left out."""
    calls = [step.step if isinstance(step, Differs) else step for step in CASES[name]]
    found = [outcome(lambda call=call: call(subject)) for call in calls]
    return [repr(value).replace(subject.id[-1], "(name)") for value in found]


@pytest.mark.combinations
@pytest.mark.parametrize("pattern", NAMES)
@pytest.mark.parametrize("method", CASES)
def test_a_method_is_about_the_table_that_it_names(url: str, method: str, pattern: str) -> None:
    client, number = RestNamespace(uri=url), next(_numbers)
    plain, odd = Subject(client, ["w", f"plain{number}"]), Subject(client, ["w", pattern.format(number)])
    plain.create()
    odd.create()
    beside = twins(odd.id)
    for table_id in beside:
        odd.create(table_id)
    before = [state(client, table_id) for table_id in beside]
    assert outcomes(method, odd) == outcomes(method, plain)
    assert [state(client, table_id) for table_id in beside] == before


@pytest.mark.parametrize("pattern", NAMES)
def test_a_table_that_is_not_there_is_no_other_one(url: str, pattern: str) -> None:
    client, table_id = RestNamespace(uri=url), ["w", pattern.format(next(_numbers))]
    subject = Subject(client, table_id)
    for other in twins(table_id):
        subject.create(other)
    calls: list[Callable[[], Any]] = [
        lambda: client.drop_table(m.DropTableRequest(id=table_id)),
        lambda: client.list_table_versions(m.ListTableVersionsRequest(id=table_id)),
        lambda: client.list_table_tags(m.ListTableTagsRequest(id=table_id)),
        lambda: client.list_table_branches(m.ListTableBranchesRequest(id=table_id)),
        lambda: client.insert_into_table(m.InsertIntoTableRequest(id=table_id), stream(MORE)),
        lambda: client.update_table_schema_metadata(m.UpdateTableSchemaMetadataRequest(id=table_id, metadata={})),
    ]
    assert [outcome(call).kind for call in calls] == ["TableNotFoundError"] * len(calls)
    for other in twins(table_id):
        assert state(client, other)[0] == [1]
    subject.create()
    assert {tuple(i) for i in [table_id, *twins(table_id)]} <= {
        ("w", name) for name in client.list_tables(m.ListTablesRequest(id=["w"])).tables
    }


@pytest.mark.parametrize("name", ["n s", "n+s", "n s+t", "n%20s+ t"])
def test_a_namespace_is_the_one_that_is_named(url: str, name: str) -> None:
    client = RestNamespace(uri=url)
    parent = f"p{next(_numbers)}"
    client.create_namespace(m.CreateNamespaceRequest(id=[parent]))
    for other in [[parent, name], *twins([parent, name])]:
        client.create_namespace(m.CreateNamespaceRequest(id=other))
        Subject(client, [*other, "in " + "+".join(other)]).create()
    here = [parent, name]
    assert client.list_tables(m.ListTablesRequest(id=here)).tables == ["in " + "+".join(here)]
    client.create_namespace(m.CreateNamespaceRequest(id=[*here, "c d"]))
    assert client.list_namespaces(m.ListNamespacesRequest(id=here)).namespaces == ["c d"]
    client.drop_namespace(m.DropNamespaceRequest(id=here, behavior="Cascade"))
    left = client.list_namespaces(m.ListNamespacesRequest(id=[parent])).namespaces
    assert sorted(left) == sorted(other[1] for other in twins(here))


@pytest.mark.parametrize("pattern", NAMES)
def test_lancedb_and_pylance_open_and_drop_the_table_that_is_named(url: str, pattern: str) -> None:
    client, name = RestNamespace(uri=url), pattern.format(next(_numbers))
    for other in twins(["w", name]):
        Subject(client, other).create(rows=MORE)
    Subject(client, ["w", name]).create()
    opened = lance.dataset(namespace_client=client, table_id=["w", name])
    assert opened.count_rows() == ROWS.num_rows
    opened.insert(MORE)
    assert opened.tags.list() == {}
    db = lancedb.connect_namespace("rest", {"uri": url})
    table = db.open_table(name, namespace_path=["w"])
    assert table.count_rows() == ROWS.num_rows + MORE.num_rows
    table.delete("id = 11")
    assert name in db.list_tables(namespace_path=["w"], limit=10_000).tables
    db.drop_table(name, namespace_path=["w"])
    names = db.list_tables(namespace_path=["w"], limit=10_000).tables
    assert name not in names
    assert {other[1] for other in twins(["w", name])} <= set(names)


@pytest.mark.parametrize("pattern", NAMES)
def test_the_generated_client_names_the_table_that_it_means(url: str, pattern: str) -> None:
    client, name = RestNamespace(uri=url), pattern.format(next(_numbers))
    for other in [["w", name], *twins(["w", name])]:
        Subject(client, other).create()
    api = TableApi(ApiClient(Configuration(host=url)))
    assert len(api.list_table_versions(f"w${name}", delimiter="$").versions) == 1
    api.insert_into_table(f"w${name}", stream(MORE), delimiter="$")
    api.drop_table(f"w${name}", delimiter="$")
    assert outcome(lambda: state(client, ["w", name])).kind == "TableNotFoundError"
    for other in twins(["w", name]):
        assert state(client, other)[0] == [1]
