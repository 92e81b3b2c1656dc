"""Random operations on tables over HTTP, beside a model of what they hold: rows of every version, names, tags, errors.

The cases are the same in every run. To try more of them:

    LANCE_MODEL_EXAMPLES=500 python -m pytest tests/fuzz/test_model.py --timeout 0
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tests.data.arrow import ARROW, stream
from tests.running import running

EXAMPLES = int(os.environ.get("LANCE_MODEL_EXAMPLES", "15"))
SCHEMA = pa.schema([("id", pa.int64()), ("value", pa.int64())])
NAMES = st.sampled_from(["one", "two", "three"])
TAGS = st.sampled_from(["first", "second"])
ROWS = st.dictionaries(st.integers(0, 40), st.integers(0, 9), max_size=8)
BOUND = st.integers(0, 40)
_numbers = itertools.count()

Rows = Counter[tuple[int, int]]
"""The rows of a version, each with the number of times it is there."""

done: Counter[str] = Counter()
"""How often each operation was accepted in all cases together."""


@dataclass
class Table:
    """What the model knows: the rows of each version, and where the tags point."""

    versions: list[Rows] = field(default_factory=list)
    tags: dict[str, int] = field(default_factory=dict)

    @property
    def rows(self) -> Rows:
        return self.versions[-1] if self.versions else Counter()


def arrow(rows: dict[int, int]) -> bytes:
    return stream(pa.table({"id": list(rows), "value": list(rows.values())}, schema=SCHEMA))


def counted(rows: dict[int, int]) -> Rows:
    return Counter(rows.items())


class Tables(RuleBasedStateMachine):
    """One namespace of a server that all cases share."""

    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.http = httpx.Client(base_url=self.url, timeout=60)
        self.namespace = f"n{next(_numbers)}"
        self.tables: dict[str, Table] = {}
        assert self.post(f"/v1/namespace/{self.namespace}/create", {}).is_success

    def teardown(self) -> None:
        self.http.close()

    def post(self, route: str, body: dict[str, Any]) -> httpx.Response:
        return self.http.post(route, json=body)

    def route(self, name: str) -> str:
        return f"/v1/table/{self.namespace}${name}"

    def send_rows(self, name: str, operation: str, rows: dict[int, int], **query: str) -> httpx.Response:
        return self.http.post(f"{self.route(name)}/{operation}", content=arrow(rows), headers=ARROW, params=query)

    def expect(self, response: httpx.Response, operation: str, *, code: int | None = None) -> None:
        """The operation is accepted, or refused with this code."""
        if code is None:
            assert response.is_success, (operation, response.text)
            done[operation] += 1
        else:
            assert not response.is_success, operation
            assert response.json()["code"] == code, (operation, response.text)

    def added(self, name: str, response: httpx.Response, operation: str, rows: Rows) -> None:
        """The operation made a version with these rows."""
        self.expect(response, operation)
        table = self.tables[name]
        table.versions.append(rows)
        assert response.json().get("version", len(table.versions)) == len(table.versions)

    def changed(self, name: str, response: httpx.Response, operation: str, rows: Rows, *, changes: bool) -> None:
        """The operation made a version with these rows; or none, if it changes nothing."""
        if name not in self.tables:
            self.expect(response, operation, code=4)
        elif not self.tables[name].versions:
            self.expect(response, operation, code=13)
        elif changes:
            self.added(name, response, operation, rows)
        else:
            self.expect(response, operation)
            assert response.json()["version"] == len(self.tables[name].versions)

    @rule(name=NAMES, rows=ROWS, mode=st.sampled_from(["create", "exist_ok", "overwrite"]))
    def create(self, name: str, rows: dict[int, int], mode: str) -> None:
        response = self.send_rows(name, "create", rows, mode=mode)
        if name in self.tables and self.tables[name].versions:
            if mode == "create":
                return self.expect(response, "create", code=5)
            if mode == "exist_ok":
                return self.expect(response, "create exist_ok")
        self.tables.setdefault(name, Table())
        return self.added(name, response, f"create {mode}", counted(rows))

    @rule(name=NAMES)
    def declare(self, name: str) -> None:
        response = self.post(f"{self.route(name)}/declare", {})
        self.expect(response, "declare", code=5 if name in self.tables else None)
        self.tables.setdefault(name, Table())

    @rule(name=NAMES, rows=ROWS)
    def insert(self, name: str, rows: dict[int, int]) -> None:
        response = self.send_rows(name, "insert", rows)
        if name not in self.tables:
            return self.expect(response, "insert", code=4)
        table = self.tables[name]
        if not rows and table.versions:
            return self.expect(response, "insert of nothing")
        return self.added(name, response, "insert", table.rows + counted(rows))

    @rule(name=NAMES, rows=ROWS)
    def replace(self, name: str, rows: dict[int, int]) -> None:
        response = self.send_rows(name, "insert", rows, mode="overwrite")
        if name not in self.tables:
            return self.expect(response, "replace", code=4)
        return self.added(name, response, "replace", counted(rows))

    @rule(name=NAMES, bound=BOUND)
    def delete(self, name: str, bound: int) -> None:
        response = self.post(f"{self.route(name)}/delete", {"predicate": f"id < {bound}"})
        before = self.tables[name].rows if name in self.tables else Counter()
        left = Counter({row: count for row, count in before.items() if row[0] >= bound})
        self.changed(name, response, "delete", left, changes=left != before)

    @rule(name=NAMES, bound=BOUND)
    def update(self, name: str, bound: int) -> None:
        body = {"predicate": f"id >= {bound}", "updates": [["value", "value + 1"]]}
        response = self.post(f"{self.route(name)}/update", body)
        before = self.tables[name].rows if name in self.tables else Counter()
        after: Rows = Counter()
        for (identifier, value), count in before.items():
            after[identifier, value + (identifier >= bound)] += count
        self.changed(name, response, "update", after, changes=after != before)

    @rule(name=NAMES, rows=ROWS.filter(bool))
    def merge(self, name: str, rows: dict[int, int]) -> None:
        flags = {"when_matched_update_all": "true", "when_not_matched_insert_all": "true"}
        response = self.send_rows(name, "merge_insert", rows, on="id", **flags)
        before = self.tables[name].rows if name in self.tables else Counter()
        # Each row with the key of a given one takes its values, also where several have that key.
        after: Rows = Counter()
        for (identifier, value), count in before.items():
            after[identifier, rows.get(identifier, value)] += count
        present = {identifier for identifier, _ in before}
        after.update(counted({key: value for key, value in rows.items() if key not in present}))
        if name in self.tables:
            return self.added(name, response, "merge", after)
        return self.expect(response, "merge", code=4)

    @rule(name=NAMES, version=st.integers(1, 6))
    def restore(self, name: str, version: int) -> None:
        response = self.post(f"{self.route(name)}/restore", {"version": version})
        if name not in self.tables:
            return self.expect(response, "restore", code=4)
        table = self.tables[name]
        if version > len(table.versions):
            return self.expect(response, "restore", code=11 if table.versions else 13)
        return self.added(name, response, "restore", table.versions[version - 1])

    @rule(name=NAMES, tag=TAGS, version=st.integers(1, 6))
    def tag(self, name: str, tag: str, version: int) -> None:
        response = self.post(f"{self.route(name)}/tags/create", {"tag": tag, "version": version})
        if name not in self.tables:
            return self.expect(response, "tag", code=4)
        table = self.tables[name]
        if version > len(table.versions):
            return self.expect(response, "tag", code=11)
        if tag in table.tags:
            return self.expect(response, "tag", code=9)
        table.tags[tag] = version
        return self.expect(response, "tag")

    @rule(name=NAMES, tag=TAGS)
    def untag(self, name: str, tag: str) -> None:
        response = self.post(f"{self.route(name)}/tags/delete", {"tag": tag})
        if name not in self.tables:
            return self.expect(response, "untag", code=4)
        if tag not in self.tables[name].tags:
            return self.expect(response, "untag", code=8)
        del self.tables[name].tags[tag]
        return self.expect(response, "untag")

    @rule(name=NAMES)
    def drop(self, name: str) -> None:
        response = self.post(f"{self.route(name)}/drop", {})
        self.expect(response, "drop", code=None if name in self.tables else 4)
        self.tables.pop(name, None)

    @rule(name=NAMES, other=NAMES)
    def rename(self, name: str, other: str) -> None:
        response = self.post(f"{self.route(name)}/rename", {"new_table_name": other})
        if name not in self.tables:
            return self.expect(response, "rename", code=4)
        if other in self.tables and other != name:
            return self.expect(response, "rename", code=5)
        self.tables[other] = self.tables.pop(name)
        return self.expect(response, "rename")

    @precondition(lambda self: sum(bool(table.versions) for table in self.tables.values()) > 1)
    @rule(rows=ROWS.filter(bool), stale=st.booleans())
    def batch(self, rows: dict[int, int], stale: bool) -> None:
        """Rows of two tables in one batch, with the version of one of them: all or nothing."""
        first, second = [name for name, table in self.tables.items() if table.versions][:2]
        operations: list[Any] = []
        for name in (first, second):
            staged = self.send_rows(name, "stage", rows, mode="append")
            self.expect(staged, "stage")
            operations += staged.json()["operations"]
        version = len(self.tables[first].versions) - stale
        check = {"assert_table_version": {"id": [self.namespace, first], "version": version}}
        response = self.post("/v1/table/batch-commit", {"operations": [check, *operations]})
        if stale:
            return self.expect(response, "batch", code=14)
        self.expect(response, "batch")
        for name in (first, second):
            table = self.tables[name]
            table.versions.append(table.rows + counted(rows))
        return None

    @rule(name=NAMES, version=st.integers(1, 6), bound=BOUND)
    def query(self, name: str, version: int, bound: int) -> None:
        body = {"k": 1000, "vector": {}, "version": version, "filter": f"id < {bound}"}
        response = self.post(f"{self.route(name)}/query", body)
        if name not in self.tables:
            return self.expect(response, "query", code=4)
        versions = self.tables[name].versions
        if version > len(versions):
            return self.expect(response, "query", code=11)
        self.expect(response, "query")
        expected = Counter({row: count for row, count in versions[version - 1].items() if row[0] < bound})
        assert self.found(response) == expected
        return None

    @invariant()
    def every_table_is_as_the_model_says(self) -> None:
        listed = self.http.get(f"/v1/namespace/{self.namespace}/table/list").json()["tables"]
        assert sorted(listed) == sorted(self.tables)
        for name, table in self.tables.items():
            route = self.route(name)
            if not table.versions:
                continue
            versions = self.post(f"{route}/version/list", {}).json()["versions"]
            assert sorted(found["version"] for found in versions) == list(range(1, len(table.versions) + 1))
            assert self.found(self.post(f"{route}/query", {"k": 1000, "vector": {}})) == table.rows
            assert self.post(f"{route}/count_rows", {}).json() == table.rows.total()
            tags = self.post(f"{route}/tags/list", {}).json()["tags"]
            assert {tag: found["version"] for tag, found in tags.items()} == table.tags

    @staticmethod
    def found(response: httpx.Response) -> Rows:
        assert response.is_success, response.text
        rows = pa.ipc.open_file(response.content).read_all()
        return Counter(zip(rows["id"].to_pylist(), rows["value"].to_pylist(), strict=True))


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(tmp_path_factory.mktemp("root")) as url:
        yield url


def test_tables_are_as_the_model_says(url: str) -> None:
    Tables.url = url
    limits = settings(
        max_examples=EXAMPLES,
        stateful_step_count=25,
        derandomize=True,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Tables, settings=limits)
    print(f"\n{done.total()} accepted operations: {dict(done.most_common())}")
    assert done.total() >= 60, done
    assert len(done) >= 8, done
