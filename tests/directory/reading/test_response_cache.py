"""Answers that are given again: only while the storage says that nothing has changed, and only what cannot differ."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import lance
import orjson
import pyarrow as pa
import pytest
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest
from lance_namespace.errors import LanceNamespaceError, TableNotFoundError, TableVersionNotFoundError

from lance_core.errors import StorageError
from lance_core.storage.local import LocalStore
from lance_core.storage.wrappers.counting import CountingStore
from namespace_server.answer import Answer
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.directory.reading.response_cache import CachedResponse, ResponseCache
from tests.directory.breaking import T, is_promotion, stage_fork
from tests.directory.tables import Ground, rows
from tests.storage.faults import Fault, FaultStore

pytestmark = pytest.mark.slow

Question = tuple[str, dict[str, Any]]

DESCRIBE: Question = ("describe_table", {"id": T})
NEWEST: Question = ("list_table_versions", {"id": T, "limit": 1, "descending": True})
HEAD: Question = ("describe_table_version", {"id": T})
KEPT: list[Question] = [
    DESCRIBE,
    NEWEST,
    HEAD,
    ("describe_table", {"id": T, "check_declared": True}),
    ("describe_table_version", {"id": T, "version": 1}),
    ("table_exists", {"id": T}),
    ("describe_namespace", {"id": ["g"]}),
    ("namespace_exists", {"id": ["g"]}),
    ("list_namespaces", {"id": []}),
    ("list_tables", {"id": ["g"]}),
    ("list_tables", {"id": ["g"], "limit": 1}),
    ("list_tables", {"id": ["g"], "include_declared": False}),
    ("list_all_tables", {}),
    ("list_all_tables", {"include_declared": False}),
    ("describe_catalog", {}),
]


def name(question: Question) -> str:
    return f"{question[0]} {orjson.dumps(question[1]).decode()}"


def ask(ground: Ground, question: Question, at: int | None = None) -> Answer:
    """As the server asks: the same question under the same name. What is recalled is what would be answered."""
    namespace = ground.namespace
    recalled = namespace.cached(name(question), namespace.newest()) if at is None else None
    answer = namespace.read(*question, at=at, cache_key=name(question))
    assert recalled is None or recalled is answer
    return answer


def outcome(read: Callable[[], Answer]) -> object:
    try:
        answer = read()
    except LanceNamespaceError as error:
        return type(error)
    return orjson.loads(answer.json), answer.catalog_version


@pytest.fixture
def settled(ground: Ground) -> Ground:
    """The table `g.t` at version 1, its record closed."""
    ground.make_table(*T)
    ground.catalog.sweep()
    ground.catalog.flush_record_housekeeping()
    return ground


@pytest.mark.parametrize("question", KEPT, ids=name)
def test_a_question_asked_again_has_the_same_answer(settled: Ground, question: Question) -> None:
    first = ask(settled, question)
    assert ask(settled, question) is first
    assert first.json == orjson.dumps(settled.namespace.read(*question).body)


@pytest.mark.parametrize("question", KEPT, ids=name)
def test_an_answer_that_is_kept_is_given_only_after_looking_at_storage(tmp_path: Path, question: Question) -> None:
    store = CountingStore(LocalStore(tmp_path / "root", "none"))
    ground = Ground(tmp_path / "root", store)
    ground.make_namespace("g")
    ground.make_table(*T)
    ground.catalog.sweep()
    ground.catalog.flush_record_housekeeping()
    first = ask(ground, question)
    looks = 2 if question in (NEWEST, HEAD) else 1

    with store.measure() as cost:
        assert ground.namespace.read(*question, cache_key=name(question)) is first
    assert cost.by_verb == {"get": looks, "head": 1}  # the next version is not there, and the newest still is (G8)

    with store.measure() as cost:
        newest = ground.namespace.newest()
        assert ground.namespace.cached(name(question), newest) is first
    assert cost.by_verb == {"get": looks, "head": 1}

    with store.measure() as cost:
        assert ground.namespace.cached(name(question), newest) is first
    assert cost.by_verb == ({"get": 1} if looks == 2 else {})


def test_storage_that_does_not_answer_is_an_error_whatever_is_kept(broken: Ground, faults: FaultStore) -> None:
    def fall_silent(verb: str, path: str) -> None:
        raise StorageError(f"{verb} {path}: no answer")

    for question in (DESCRIBE, NEWEST):
        ask(broken, question)
        heal = faults.before(fall_silent)
        with pytest.raises(StorageError, match="no answer"):
            ask(broken, question)
        heal()


@pytest.mark.parametrize("elsewhere", [False, True], ids=["this server", "another server"])
def test_no_answer_outlives_its_catalog_version(ground: Ground, elsewhere: bool) -> None:
    """After each change, here or by another server, every response is what a catalog without a cache gives."""
    dice = random.Random(20)
    writer = ground.again() if elsewhere else ground
    tables = [["g", f"t{number}"] for number in range(3)]
    questions: list[Question] = [
        *KEPT,
        ("describe_namespace", {"id": ["other"]}),
        *(
            (operation, {**request, "id": table})
            for table in tables
            for operation, request in (DESCRIBE, NEWEST, HEAD, ("table_exists", {}))
        ),
    ]

    def change() -> None:
        table = dice.choice(tables)
        kind = dice.choice(["declare", "append", "append", "drop", "namespace", "sweep", "properties"])
        if kind == "declare":
            writer.call("declare_table", id=table)
        elif kind == "append":
            if writer.catalog.snapshot().table(tuple(table)) is not None:
                writer.batch(writer.transaction(table, rows(0, 1)))
        elif kind == "drop":
            writer.call("drop_table", id=table)
        elif kind == "namespace":
            writer.call("create_namespace", id=["g", f"n{dice.randrange(9)}"])
        elif kind == "properties":
            writer.call("create_namespace", id=["other"], mode="overwrite", properties={"p": str(dice.random())})
        else:
            writer.catalog.sweep()
            writer.catalog.flush_record_housekeeping()

    seen = set()
    for _ in range(60):
        try:
            change()
        except LanceNamespaceError:
            continue  # it exists, or does not
        fresh = ground.again().namespace
        for question in questions:
            for _ in range(2):
                assert outcome(partial(ask, ground, question)) == outcome(partial(fresh.read, *question))
        seen.add(ground.catalog.table.current.version)
    assert len(seen) > 20


@pytest.mark.parametrize("question", KEPT, ids=name)
def test_the_first_question_after_a_drop_by_another_server_knows_of_it(settled: Ground, question: Question) -> None:
    before = outcome(partial(ask, settled, question))
    elsewhere = settled.again()
    elsewhere.call("drop_table", id=T)
    elsewhere.call("create_namespace", id=["g"], mode="overwrite", properties={"after": "the drop"})
    elsewhere.call("create_namespace", id=["new"])

    answered = outcome(partial(ask, settled, question))

    assert answered == outcome(partial(elsewhere.namespace.read, *question))
    assert answered != before


def test_an_unmanaged_commit_above_the_head_is_adopted_although_an_answer_is_kept(settled: Ground) -> None:
    for question in (NEWEST, HEAD):
        ask(settled, question)
        before = settled.head(T)
        settled.unmanaged_append(T, rows(7, 8))  # no catalog version tells of it
        answered = orjson.loads(ask(settled, question).json)
        found = answered["version"] if question is HEAD else answered["versions"][0]
        assert found["version"] == before + 1


def test_what_waits_for_its_promotion_is_answered_anew_each_time(broken: Ground, faults: FaultStore) -> None:
    silent = True
    faults.fail(Fault.LOST_REQUEST, when=lambda write: silent and is_promotion(write), times=1000)
    request = broken.stage(T, rows(3, 4))
    broken.batch(request)
    sent = request["create_table_version"]["manifest_path"]
    for _ in range(2):
        assert orjson.loads(ask(broken, HEAD).json)["version"]["manifest_path"] == sent
        assert orjson.loads(ask(broken, NEWEST).json)["versions"][0]["manifest_path"] == sent

    silent = False
    version = broken.catalog.table.current.version

    for question in (HEAD, NEWEST):
        answer = ask(broken, question)
        assert sent not in answer.json.decode()
        assert f"{2**64 - 3}.manifest" in answer.json.decode()
        assert answer.catalog_version == version  # promotion is no flip: nothing else could have told


def test_that_a_version_waits_for_its_promotion_is_true_of_the_moment(broken: Ground, faults: FaultStore) -> None:
    silent = True
    faults.fail(Fault.LOST_REQUEST, when=lambda write: silent and is_promotion(write), times=1000)
    broken.batch(broken.transaction(T, rows(3, 4)), broken.transaction(T, rows(4, 5)))
    question: Question = ("table_exists", {"id": T, "version": 2})
    ask(broken, question)
    silent = False
    ask(broken, NEWEST)  # promotes what lies below the head too

    (broken.root / broken.location(T) / "_versions" / f"{2**64 - 3}.manifest").unlink()  # a client's cleanup

    with pytest.raises(TableVersionNotFoundError):
        ask(broken, question)


def test_a_pin_gets_the_answer_of_its_version_and_leaves_none_behind(settled: Ground) -> None:
    question: Question = ("list_tables", {"id": ["g"]})
    old = ask(settled, question)
    settled.call("declare_table", id=["g", "new"])
    new = ask(settled, question)
    assert orjson.loads(new.json) == {"tables": ["new", "t"]}

    pinned = ask(settled, question, at=old.catalog_version)

    assert (pinned.json, pinned.catalog_version) == (old.json, old.catalog_version)
    assert ask(settled, question) is new


def test_a_tag_is_looked_up_each_time(settled: Ground) -> None:
    settled.write(T, rows(3, 4))
    settled.catalog.sweep()
    question: Question = ("describe_table", {"id": T, "tag": "best", "load_detailed_metadata": True})
    dataset = settled.open(T)
    for version in (1, 2):
        if version == 1:
            dataset.tags.create("best", 1)
        else:
            dataset.tags.update("best", 2)
        assert orjson.loads(ask(settled, question).json)["version"] == version


def test_a_version_that_a_client_cleans_up_is_gone_at_once(settled: Ground) -> None:
    settled.write(T, rows(3, 4))
    settled.catalog.sweep()
    settled.catalog.flush_record_housekeeping()
    questions: list[Question] = [
        ("describe_table_version", {"id": T, "version": 1}),
        ("list_table_versions", {"id": T}),
    ]
    assert [len(orjson.loads(ask(settled, question).json)) for question in questions] == [1, 1]
    (settled.root / settled.location(T) / "_versions" / f"{2**64 - 2}.manifest").unlink()

    with pytest.raises(TableVersionNotFoundError):
        ask(settled, questions[0])
    assert [entry["version"] for entry in orjson.loads(ask(settled, questions[1]).json)["versions"]] == [2]


def test_a_branch_that_a_client_deletes_is_gone_at_once(settled: Ground) -> None:
    settled.batch(stage_fork(settled, "dev", 1))
    settled.catalog.sweep()
    question: Question = ("list_table_versions", {"id": T, "branch": "dev", "limit": 1, "descending": True})
    assert len(orjson.loads(ask(settled, question).json)["versions"]) == 1
    tree = settled.root / settled.location(T) / "tree" / "dev" / "_versions"
    for path in tree.iterdir():
        path.unlink()

    with pytest.raises(LanceNamespaceError, match="dev"):
        ask(settled, question)


def test_in_a_root_of_stock_clients_storage_is_asked_for_versions(tmp_path: Path) -> None:
    stock = lance.namespace.DirectoryNamespace(root=str(tmp_path), dir_listing_enabled="false")
    stock.create_namespace(CreateNamespaceRequest(id=["g"]))
    lance.write_dataset(pa.table({"x": [1]}), namespace_client=stock, table_id=T)
    ours = DirectoryNamespace(root=str(tmp_path), sweep_interval_seconds="0")
    location = ours.read("describe_table", {"id": T}).body["location"]

    def newest() -> int:
        version: int = ours.read(*HEAD, cache_key="head").body["version"]["version"]
        return version

    assert newest() == 1
    lance.write_dataset(pa.table({"x": [2]}), location, mode="append")
    assert newest() == 2


def test_a_missing_table_is_looked_for_each_time(settled: Ground) -> None:
    question: Question = ("describe_table", {"id": ["g", "none"]})
    for _ in range(2):
        with pytest.raises(TableNotFoundError):
            ask(settled, question)


CHILDREN: Question = ("list_tables", {"id": ["g"]})
CARRIED: list[Question] = [
    DESCRIBE,
    NEWEST,
    HEAD,
    CHILDREN,
    ("list_tables", {"id": ["g"], "limit": 1}),
    ("describe_table", {"id": T, "check_declared": True}),
    ("describe_table_version", {"id": T, "version": 1}),
    ("table_exists", {"id": T}),
    ("describe_namespace", {"id": ["g"]}),
    ("namespace_exists", {"id": ["g"]}),
    ("list_namespaces", {"id": ["g"]}),
]
"""Questions about one namespace or table."""


@pytest.mark.parametrize("elsewhere", [False, True], ids=["this server", "another server"])
@pytest.mark.parametrize("question", CARRIED, ids=name)
def test_an_answer_outlives_a_change_of_something_else(settled: Ground, question: Question, elsewhere: bool) -> None:
    settled.call("create_namespace", id=["other"])
    settled.make_table("other", "t")
    settled.catalog.sweep()
    settled.catalog.flush_record_housekeeping()
    first = ask(settled, question)
    writer = settled.again() if elsewhere else settled
    assert settled.namespace.cached(name(question), settled.namespace.newest()) is first
    for number in range(2):
        writer.batch(writer.transaction(["other", "t"], rows(0, 1)))
        writer.call("create_namespace", id=["third"], mode="overwrite", properties={"n": str(number)})
        writer.call("declare_table", id=["other", f"new{number}"])

        newest = settled.namespace.newest()
        recalled = settled.namespace.cached(name(question), newest)

        assert recalled is not None
        assert recalled.json is first.json
        assert (recalled.catalog_version, newest.version) == (writer.catalog.table.current.version,) * 2
        assert ask(settled, question) is recalled


@pytest.mark.parametrize("question", [each for each in KEPT if each not in CARRIED], ids=name)
def test_an_answer_about_more_than_one_thing_ends_with_its_catalog_version(settled: Ground, question: Question) -> None:
    ask(settled, question)
    settled.call("create_namespace", id=["other"])
    assert settled.namespace.cached(name(question), settled.namespace.newest()) is None


CHANGES: dict[str, Callable[[Ground], object]] = {
    "version": lambda ground: ground.batch(ground.transaction(T, rows(0, 1))),
    "table": lambda ground: (ground.call("drop_table", id=T), ground.call("declare_table", id=T)),
    "new table": lambda ground: ground.call("declare_table", id=["g", "new"]),
    "new namespace": lambda ground: ground.call("create_namespace", id=["g", "new"]),
    "namespace": lambda ground: ground.call("create_namespace", id=["g"], mode="overwrite", properties={"p": "q"}),
}
TOUCHED: dict[str, set[str]] = {
    "version": {name(DESCRIBE), name(NEWEST), name(HEAD)},
    "table": {name(DESCRIBE), name(NEWEST), name(HEAD), name(CHILDREN)},
    "new table": {name(CHILDREN)},
    "new namespace": {name(CHILDREN), "list_namespaces", "describe_namespace"},
    "namespace": {name(DESCRIBE), name(NEWEST), name(HEAD), name(CHILDREN), "describe_namespace"},
}


@pytest.mark.parametrize("elsewhere", [False, True], ids=["this server", "another server"])
@pytest.mark.parametrize("change", CHANGES)
def test_an_answer_ends_with_a_change_of_what_it_is_about(settled: Ground, change: str, elsewhere: bool) -> None:
    for question in CARRIED:
        ask(settled, question)
    CHANGES[change](settled.again() if elsewhere else settled)
    newest = settled.namespace.newest()
    for question in CARRIED:
        recalled = settled.namespace.cached(name(question), newest)
        if any(name(question).startswith(touched) for touched in TOUCHED[change]):
            assert recalled is None, question
        answer = outcome(partial(ask, settled, question))
        assert answer == outcome(partial(settled.again().namespace.read, *question))


def test_an_answer_ends_with_the_adoption_of_its_root(tmp_path: Path) -> None:
    stock = lance.namespace.DirectoryNamespace(root=str(tmp_path), dir_listing_enabled="false")
    stock.create_namespace(CreateNamespaceRequest(id=["g"]))
    stock.declare_table(DeclareTableRequest(id=T))
    ours, other = (DirectoryNamespace(root=str(tmp_path), sweep_interval_seconds="0") for _ in range(2))

    def is_managed() -> bool:
        return "managed_versioning" in ours.read(*DESCRIBE, cache_key="table").body

    assert [is_managed(), is_managed()] == [False, False]
    other.adopt()
    assert [is_managed(), is_managed()] == [True, True]


class TestWhatIsKept:
    """Each answer with its catalog version, and bounded."""

    def kept(self, version: int = 1, length: int = 0) -> CachedResponse:
        return CachedResponse(Answer({"x": "y" * length}, version))

    def test_it_belongs_to_one_version(self) -> None:
        kept, answer = ResponseCache(), self.kept()
        kept.keep("q", answer)
        assert [kept.find(CatalogSnapshot(version), "q") for version in (0, 1, 2)] == [None, answer, None]

    def test_the_answer_of_a_newer_version_stays(self) -> None:
        kept, answer = ResponseCache(), self.kept(2)
        kept.keep("q", answer)
        kept.keep("q", self.kept(1))
        assert [kept.find(CatalogSnapshot(version), "q") for version in (1, 2)] == [None, answer]

    def test_their_memory_is_bounded_and_their_keys_count(self) -> None:
        kept, snapshot = ResponseCache(limit=16_000), CatalogSnapshot(1)
        for number in range(100):
            key = (number, "k" * 1000)
            kept.keep(key, self.kept(length=992))  # 1000 bytes of JSON
            kept.keep(key, self.kept(length=992))
            assert kept.size <= 16_000
        found = [number for number in range(100) if kept.find(snapshot, (number, "k" * 1000))]
        assert found == list(range(found[0], 100))
        assert 0 < len(found) * 2000 <= 16_000

    def test_an_answer_that_would_push_out_most_others_is_not_kept(self) -> None:
        kept, snapshot = ResponseCache(limit=16_000), CatalogSnapshot(1)
        kept.keep("short", self.kept())
        kept.keep("long", self.kept(length=8_000))
        assert kept.find(snapshot, "long") is None
        assert kept.find(snapshot, "short") is not None

    def test_a_long_key_is_not_kept(self) -> None:
        kept = ResponseCache()
        kept.keep(("describe_table", b"x" * 5000), self.kept())
        assert kept.size == 0
