"""Two pipelines and one SQL session change the nodes and edges of one graph at the same time.

What they acknowledge is replayed in the order of catalog versions, and compared with the rows that pylance reads.
Commits that the server put into one flip have one catalog version. None of them depends on another of that flip.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Literal

import lance
import pyarrow as pa
import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

from namespace_client import Catalog, RetryableConflict
from namespace_client.http import CatalogServer
from spark_catalog import GraphConflict, GraphWrite
from spark_catalog.sql.blocks import commit_error, lance_transaction
from spark_catalog.sql.settings import catalog_options
from tests.spark.social import GRAPH, Social

HUBS = range(4)
"""Nodes that are never deleted. Every writer counts visits at them."""

COMMITS = {"client": 185, "graph": 6, "sql": 9}
_PERMITS = 12
"""Commits that the fast pipeline may make for each attempt of a slow one."""

Edge = tuple[int, int]


@dataclass(frozen=True)
class Commit:
    """What an acknowledged commit did: added nodes and edges, counted visits, deleted nodes with their edges."""

    version: int
    nodes: tuple[int, ...] = ()
    edges: tuple[Edge, ...] = ()
    visits: tuple[int, ...] = ()
    gone: tuple[int, ...] = ()


@dataclass
class Model:
    """The graph as the ledger tells it."""

    nodes: dict[int, int] = field(default_factory=lambda: dict.fromkeys(HUBS, 0))
    edges: Counter[Edge] = field(default_factory=Counter)

    def apply(self, commit: Commit) -> None:
        for node in commit.nodes:
            assert node not in self.nodes
            self.nodes[node] = 0
        self.edges.update(commit.edges)
        for node in commit.visits:
            self.nodes[node] += 1
        for node in commit.gone:
            del self.nodes[node]
        self.edges = Counter({edge: count for edge, count in self.edges.items() if not {*edge} & {*commit.gone}})


class Scene:
    """The graph, and what its writers share."""

    def __init__(self, spark: SparkSession, catalog: CatalogServer, namespace: list[str]) -> None:
        self.spark = spark
        self.catalog = catalog
        self.namespace = namespace
        self.ledger: list[Commit] = []
        self.conflicts: Counter[str] = Counter()
        self.permits = threading.Semaphore(0)
        self.turn = threading.Lock()
        """Held by a writer that tries again. Without it the fast pipeline would win each time."""
        with Catalog.connect(catalog.url, namespace=namespace) as client, client.begin() as tx:
            tx.create(
                "person", pa.table({"id": pa.array(HUBS, pa.int64()), "n": pa.array([0] * len(HUBS), pa.int64())})
            )
            tx.create("knows", schema=pa.schema({"a": pa.int64(), "b": pa.int64()}))

    def at(self, version: int) -> tuple[dict[int, int], Counter[Edge]]:
        """Nodes and edges of a catalog version, by pylance."""
        tables = self.catalog.pins(version).tables
        opened = []
        for name in ("person", "knows"):
            state = tables[(*self.namespace, name)]
            opened.append(lance.dataset(state.uri, version=state.version).to_table().to_pylist())
        nodes = {row["id"]: row["n"] for row in opened[0]}
        assert len(nodes) == len(opened[0])
        return nodes, Counter((row["a"], row["b"]) for row in opened[1])

    def nodes_at(self, version: int) -> list[int]:
        """Nodes of a catalog version that may be deleted."""
        return sorted(set(self.at(version)[0]) - {*HUBS})

    def run(self, writer: str, work: Callable[[int], Commit], *, is_slow: bool) -> None:
        """Make the commits of a writer, each until no other one is in its way."""
        try:
            for number in range(COMMITS[writer]):
                self._commit(writer, lambda number=number: work(number), is_slow=is_slow)  # type: ignore[misc]
        finally:
            if is_slow:
                self.permits.release(COMMITS["client"])

    def _commit(self, writer: str, work: Callable[[], Commit], *, is_slow: bool) -> None:
        if not is_slow:
            self.permits.acquire()
        for attempt in range(20):
            if is_slow:
                self.permits.release(_PERMITS)
            if not attempt:
                with self.turn:
                    pass
            with self.turn if attempt else nullcontext():
                try:
                    self.ledger.append(work())
                except (RetryableConflict, GraphConflict):
                    self.conflicts[writer] += 1
                    continue
                return
        raise AssertionError(f"{writer}: expected a commit within 20 attempts")


def fast_pipeline(client: Catalog) -> Callable[[int], Commit]:
    """Nodes before edges, by pylance."""
    choice = random.Random(1)

    def work(number: int) -> Commit:
        kind = number % 6
        with client.begin(isolation="serializable" if kind > 3 else "snapshot") as tx:
            if kind == 3:
                done = Commit(0, visits=(choice.choice(HUBS),))
                tx.update("person", {"n": "n + 1"}, where=f"id = {done.visits[0]}")
            elif kind == 4:
                nodes = tx.table("person").to_table(["id"]).column("id").to_pylist()
                done = Commit(0, edges=((choice.choice(nodes), choice.choice(nodes)),))
            elif kind == 5:
                found = tx.table("person").to_table(["id"], filter=f"id >= {len(HUBS)}").column("id").to_pylist()
                done = Commit(0, gone=(choice.choice(found),))
                tx.delete("person", f"id = {done.gone[0]}")
                tx.delete("knows", f"a = {done.gone[0]} OR b = {done.gone[0]}")
            else:
                new = 1000 + number
                done = Commit(0, nodes=(new,), edges=((new, choice.choice(HUBS)), (choice.choice(HUBS), new)))
                tx.append("person", [{"id": new, "n": 0}])
            if done.edges:
                tx.append("knows", [{"a": a, "b": b} for a, b in done.edges])
        return replace(done, version=tx.result.catalog_version)

    return work


def graph_pipeline(scene: Scene) -> Callable[[int], Commit]:
    """Edges before nodes, by graph writes of Spark."""
    choice = random.Random(2)
    spark = scene.spark

    def work(number: int) -> Commit:
        deletes = number % 2 == 1
        isolation = "serializable" if deletes else "snapshot"
        with GraphWrite(
            spark, scene.catalog, namespace=scene.namespace, graph=GRAPH, isolation=isolation, check="full"
        ) as tx:
            if deletes:
                found = scene.nodes_at(tx.transaction.catalog_version)
                done = Commit(0, gone=tuple(choice.sample(found, 2)))
                tx.delete_nodes("person", spark.createDataFrame([(node,) for node in done.gone], "id long"))
            else:
                new = (2000 + 2 * number, 2001 + 2 * number)
                done = Commit(0, nodes=new, edges=(new, (new[1], choice.choice(HUBS))))
                tx.append("knows", spark.createDataFrame(list(done.edges), "a long, b long"))
                tx.append("person", spark.createDataFrame([(node, 0) for node in new], "id long, n long"))
        version = tx.result.catalog_version
        assert version is not None
        return replace(done, version=version)

    return work


def sql_session(scene: Scene) -> Callable[[int], Commit]:
    """Transactions of several statements."""
    choice = random.Random(3)
    sql = scene.spark.newSession()
    for name, value in catalog_options(scene.catalog.url).items():
        sql.conf.set(name, value)
    place = f"lance.{scene.namespace[0]}"

    def statements(number: int, found: list[int]) -> Commit:
        kind = number % 3
        if kind == 0:
            new, hub = 3000 + number, choice.choice(HUBS)
            sql.sql(f"INSERT INTO {place}.knows VALUES ({new}, {hub}), ({new}, {new})")
            sql.sql(f"INSERT INTO {place}.person VALUES ({new}, 0)")
            return Commit(0, nodes=(new,), edges=((new, hub), (new, new)))
        if kind == 1:
            edge = (choice.choice(found), choice.choice(found))
            sql.sql(f"INSERT INTO {place}.knows VALUES {edge}")
            sql.sql(f"UPDATE {place}.person SET n = n + 1 WHERE id IN (0, 1)")
            return Commit(0, edges=(edge,), visits=(0, 1))
        gone = choice.choice([node for node in found if node not in HUBS])
        sql.sql(f"DELETE FROM {place}.knows WHERE a = {gone} OR b = {gone}")
        sql.sql(f"DELETE FROM {place}.person WHERE id = {gone}")
        return Commit(0, gone=(gone,))

    def work(number: int) -> Commit:
        sql.sql(f"CALL lance.system.begin(isolation => '{'serializable' if number % 3 else 'snapshot'}')")
        try:
            found = [row["id"] for row in sql.sql(f"SELECT id FROM {place}.person").collect()] if number % 3 else []
            done = statements(number, found)
        except BaseException:
            sql.sql("CALL lance.system.rollback()")
            raise
        try:
            committed = sql.sql("CALL lance.system.commit()").collect()
        except IllegalArgumentException as error:
            raise commit_error(error) or error from error
        return replace(done, version=committed[0]["catalog_version"])

    return work


@pytest.mark.timeout(300)
def test_every_row_of_200_commits_is_accounted_for(
    spark: SparkSession, catalog: CatalogServer, namespace: list[str]
) -> None:
    scene = Scene(spark, catalog, namespace)
    with Catalog.connect(catalog.url, namespace=namespace) as client, ThreadPoolExecutor(3) as threads:
        running = [
            threads.submit(scene.run, "graph", graph_pipeline(scene), is_slow=True),
            threads.submit(scene.run, "sql", sql_session(scene), is_slow=True),
            threads.submit(scene.run, "client", fast_pipeline(client), is_slow=False),
        ]
        for future in running:
            future.result()
    assert len(scene.ledger) == sum(COMMITS.values()) == 200
    assert scene.conflicts["graph"] + scene.conflicts["sql"] > 0
    ledger = sorted(scene.ledger, key=lambda commit: commit.version)
    model = Model()
    for number, (version, group) in enumerate(groupby(ledger, key=lambda commit: commit.version)):
        commits = list(group)
        for commit in commits:
            model.apply(commit)
        if number % 10 == 0 or len(commits) > 1 or commits[0].gone:
            nodes, edges = scene.at(version)
            assert (nodes, edges) == (model.nodes, model.edges), commits
            assert not dangling(nodes, edges)
    assert (model.nodes, model.edges) == scene.at(ledger[-1].version)
    assert sum(model.nodes.values()) == sum(len(commit.visits) for commit in ledger) > 0


def dangling(nodes: Iterable[int], edges: Iterable[Edge]) -> list[Edge]:
    """Edges with an end that is not there."""
    there = set(nodes)
    return [edge for edge in edges if not there.issuperset(edge)]


@pytest.mark.parametrize("isolation", ["snapshot", "serializable"])
@pytest.mark.parametrize("first", ["graph", "sql"])
def test_write_skew_is_a_conflict_if_serializable(
    social: Social, isolation: Literal["snapshot", "serializable"], first: str
) -> None:
    """One adds an edge to a node, the other deletes a node without edges: each reads what the other writes."""
    social.load()
    with social.write() as tx:
        tx.append("person", social.people(4))
    sql = social.spark.newSession()
    for name, value in catalog_options(social.catalog.url).items():
        sql.conf.set(name, value)
    place = f"lance.{social.namespace[0]}"

    def without_edges() -> None:
        assert sql.sql(f"SELECT * FROM {place}.knows WHERE a = 4 OR b = 4").collect() == []
        sql.sql(f"DELETE FROM {place}.person WHERE id = 4")

    def write() -> GraphWrite:
        return social.write(isolation=isolation, check="full")

    def interleave() -> None:
        if first == "sql":
            with write() as tx:
                tx.append("knows", social.pairs((1, 4)))
                tx.preview()
                with lance_transaction(sql, isolation=isolation):
                    without_edges()
            return
        with lance_transaction(sql, isolation=isolation):
            without_edges()
            with write() as tx:
                tx.append("knows", social.pairs((1, 4)))

    if isolation == "serializable":
        with pytest.raises(RetryableConflict):
            interleave()
    else:
        interleave()
    edges = dangling(social.people_now(), social.pairs_now())
    assert edges == ([(1, 4)] if isolation == "snapshot" else [])
