"""What is told of transactions and batches, and what clients may note on them."""

from __future__ import annotations

import json
import threading
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import lance
import lance_namespace as models
import pytest
from lance.namespace import RestAdapter
from lance_namespace.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    LanceNamespaceError,
    TableNotFoundError,
    TransactionNotFoundError,
)
from lance_namespace_urllib3_client.models.alter_transaction_action import AlterTransactionAction

from namespace_server.directory.model.entries import RecordEntry, VersionEntry, changes_of
from namespace_server.directory.reading.transactions import notes_path
from tests.directory.invariants import check_quiet
from tests.directory.tables import Ground, rows

T = ["g", "t"]


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    """A table with two versions."""
    ground = Ground(tmp_path / "root")
    ground.make_namespace("g")
    ground.make_table("g", "t")
    ground.write(T, rows(3, 5))
    return ground


def describe(ground: Ground, *parts: str, at: int | None = None) -> dict[str, Any]:
    return ground.namespace.read("describe_transaction", {"id": list(parts)}, at=at).body


def properties(ground: Ground, *parts: str, at: int | None = None) -> dict[str, str]:
    found: dict[str, str] = describe(ground, *parts, at=at)["properties"]
    return found


def alter(ground: Ground, parts: list[str], *actions: dict[str, Any]) -> dict[str, Any]:
    return ground.namespace.change("alter_transaction", {"id": parts, "actions": list(actions)}).body


def put(key: str, value: str, mode: str | None = None) -> dict[str, Any]:
    return {"setPropertyAction": {"key": key, "value": value, **({} if mode is None else {"mode": mode})}}


def unset(key: str, mode: str | None = None) -> dict[str, Any]:
    return {"unsetPropertyAction": {"key": key, **({} if mode is None else {"mode": mode})}}


class TestOfATable:
    def test_by_version_and_by_uuid_as_stock_servers_do(self, ground: Ground, tmp_path: Path) -> None:
        dataset = ground.open(T)
        read = dataset.read_transaction(2)
        by_version = describe(ground, *T, "2")
        assert by_version["status"] == "Succeeded"
        assert by_version == describe(ground, *T, read.uuid)
        told = by_version["properties"]
        assert (told["uuid"], told["operation"], told["read_version"], told["version"]) == (
            read.uuid,
            "Append",
            "1",
            "2",
        )

        other = tmp_path / "stock"
        stock = models.connect("dir", {"root": str(other)})
        stock.create_namespace(models.CreateNamespaceRequest(id=["g"]))
        for mode in ("create", "append"):
            lance.write_dataset(rows(0, 1), namespace_client=stock, table_id=T, mode=mode)
        theirs = stock.describe_transaction(models.DescribeTransactionRequest(id=[*T, "2"]))
        assert theirs.status.lower() == by_version["status"].lower()
        assert {"uuid", "operation", "read_version", "version"} == theirs.properties.keys() & told.keys()
        assert theirs.properties["operation"] == told["operation"]

    def test_on_a_branch_by_uuid(self, ground: Ground) -> None:
        ground.call("create_table_branch", id=T, name="dev")
        first = ground.open(T).checkout_version(("dev", None)).read_transaction(2)
        told = properties(ground, *T, first.uuid)
        assert (told["operation"], told["branch"], told["version"]) == ("Clone", "dev", "2")

    def test_what_does_not_exist(self, ground: Ground) -> None:
        for name in ("99", "0", "-1", "abc", str(uuid.uuid4()), "1.0"):
            with pytest.raises(TransactionNotFoundError):
                describe(ground, *T, name)
        with pytest.raises(TableNotFoundError):
            describe(ground, "g", "nope", "1")
        for parts in (["1"], ["g"], []):
            with pytest.raises(InvalidInputError, match="expected the id of a table and a transaction"):
                describe(ground, *parts)

    def test_a_version_that_a_client_removed(self, ground: Ground) -> None:
        ground.catalog.sweep()
        ground.open(T).cleanup_old_versions(older_than=timedelta(0))
        with pytest.raises(TransactionNotFoundError):
            describe(ground, *T, "1")

    def test_as_of_an_earlier_catalog_version(self, ground: Ground) -> None:
        pinned = ground.catalog.snapshot().version
        ground.write(T, rows(5, 6))
        assert properties(ground, *T, "3")["version"] == "3"
        with pytest.raises(TransactionNotFoundError):
            describe(ground, *T, "3", at=pinned)
        assert properties(ground, *T, "2", at=pinned)["version"] == "2"


class TestOfABatch:
    def test_the_record_tells_what_it_did(self, ground: Ground) -> None:
        ground.make_table("g", "u")
        request = {
            "operations": [ground.transaction(T, rows(5, 6)), ground.transaction(["g", "u"], rows(5, 6))],
            "context": {"message": "both"},
        }
        answer = ground.namespace.commit_batch(request)
        name = answer["transaction_id"]
        version = ground.catalog.snapshot().version
        told = describe(ground, name)
        assert told["status"] == "Succeeded"
        found = told["properties"]
        assert json.loads(found.pop("versions")) == [{"id": T, "version": 3}, {"id": ["g", "u"], "version": 2}]
        assert abs(int(found.pop("timestamp_millis")) - ground.catalog.snapshot().timestamp_ms) < 5000
        assert found == {
            "uuid": name,
            "state": "open",
            "operation": "commit_transaction",
            "catalog_version": str(version),
            "message": "both",
        }
        assert describe(ground, *T, name) == describe(ground, name)
        with pytest.raises(TransactionNotFoundError):
            describe(ground, "g", "t", str(uuid.uuid4()))
        ground.catalog.sweep()
        assert properties(ground, name)["state"] == "closed"
        assert describe(ground.again(), name) == describe(ground, name)

    def test_every_answer_names_a_batch_that_can_be_described(self, ground: Ground) -> None:
        change = ground.namespace.change
        names = {
            "create_namespace": ground.call("create_namespace", id=["x"])["transaction_id"],
            "declare_table": ground.call("declare_table", id=["g", "d"])["transaction_id"],
            "create_table_branch": ground.call("create_table_branch", id=T, name="dev")["transaction_id"],
            "create_table_tag": change("create_table_tag", {"id": T, "tag": "v", "version": 1}).body["transaction_id"],
            "update_table_tag": change("update_table_tag", {"id": T, "tag": "v", "version": 2}).body["transaction_id"],
            "delete_table_branch": change("delete_table_branch", {"id": T, "name": "dev"}).body["transaction_id"],
        }
        seen = set()
        for operation, name in names.items():
            told = properties(ground, name)
            assert told["operation"] == operation
            seen.add(int(told["catalog_version"]))
        assert len(seen) == len(names)
        history = ground.read("list_catalog_versions", limit=100)["versions"]
        at = {batch["transaction_id"]: entry["version"] for entry in history for batch in entry["batches"]}
        assert {name: int(properties(ground, name)["catalog_version"]) for name in names.values()} == {
            name: at[name] for name in names.values()
        }

    def test_of_the_first_batch_of_a_catalog(self, tmp_path: Path) -> None:
        empty = Ground(tmp_path / "empty")
        name = empty.call("create_namespace", id=["x"])["transaction_id"]
        [made] = [
            entry["version"]
            for entry in empty.read("list_catalog_versions", limit=100)["versions"]
            if name in {batch["transaction_id"] for batch in entry["batches"]}
        ]
        assert properties(empty, name)["catalog_version"] == str(made)

    def test_as_of_an_earlier_catalog_version(self, ground: Ground) -> None:
        pinned = ground.catalog.snapshot().version
        name = ground.call("create_namespace", id=["x"])["transaction_id"]
        with pytest.raises(TransactionNotFoundError):
            describe(ground, name, at=pinned)
        assert describe(ground, name, at=pinned + 1)["status"] == "Succeeded"

    def test_records_that_are_no_batches(self, ground: Ground) -> None:
        """A tombstone is none; a report of a quarantined commit has failed."""
        quarantined = RecordEntry(str(uuid.uuid4()), "foreign", message="quarantined", timestamp_ms=5)
        ground.catalog.committer.commit_changes(lambda _: changes_of([quarantined]))
        assert describe(ground, quarantined.batch_uuid)["status"] == "Failed"
        assert properties(ground, quarantined.batch_uuid)["message"] == "quarantined"
        ground.call("drop_table", id=T)
        [tombstone] = [record for record in ground.catalog.snapshot().records() if record.state == "dropped"]
        with pytest.raises(TransactionNotFoundError):
            describe(ground, tombstone.batch_uuid)

    def test_a_batch_that_was_rejected_leaves_no_transaction(self, ground: Ground) -> None:
        call = ground.namespace.prepare("create_namespace", {"id": ["g"]})
        [answer] = ground.namespace.commit_calls([call])
        assert isinstance(answer, LanceNamespaceError)
        with pytest.raises(TransactionNotFoundError):
            describe(ground, call.batch_uuid)


def _row(ground: Ground, version: int) -> VersionEntry:
    entry = ground.catalog.snapshot().version_entry(("g", "t"), None, version)
    assert entry is not None
    return entry


@pytest.fixture(params=["table", "batch"])
def target(request: pytest.FixtureRequest, ground: Ground) -> list[str]:
    """The id of a transaction of a table, and that of a batch."""
    if request.param == "table":
        return [*T, "2"]
    return [ground.call("create_namespace", id=["x"])["transaction_id"]]


class TestNotes:
    def test_are_set_replaced_and_removed(self, ground: Ground, target: list[str]) -> None:
        own = properties(ground, *target)
        assert alter(ground, target, put("k", "v"), put("é", "ü")) == {
            "status": "Succeeded",
            "properties": {**own, "k": "v", "é": "ü"},
        }
        alter(ground, target, put("k", "w"), put("é", "x", "Skip"), {"setStatusAction": {"status": "succeeded"}})
        assert properties(ground.again(), *target) == {**own, "k": "w", "é": "ü"}
        alter(ground, target, unset("k"), unset("k"))
        assert properties(ground, *target) == {**own, "é": "ü"}
        ground.catalog.sweep()
        assert properties(ground, *target)["é"] == "ü"
        check_quiet(ground.root)

    def test_all_actions_or_none(self, ground: Ground, target: list[str]) -> None:
        alter(ground, target, put("k", "v"))
        before = properties(ground, *target)
        refused: list[tuple[list[dict[str, Any]], type[LanceNamespaceError], str]] = [
            ([put("a", "b"), put("k", "x", "FAIL")], ConcurrentModificationError, "the mode is Fail"),
            ([put("a", "b"), unset("nope", "fail")], InvalidInputError, "expected one, found none"),
            ([put("a", "b"), put("version", "9")], InvalidInputError, "property of the transaction itself"),
            ([put("a", "b"), unset("operation")], InvalidInputError, "property of the transaction itself"),
            (
                [put("a", "b"), {"setStatusAction": {"status": "Canceled"}}],
                InvalidInputError,
                "is Succeeded, not Canceled",
            ),
            ([{"setStatusAction": {"status": "nix"}}], InvalidInputError, "expected one of Queued"),
            ([put("a", "b", "nix")], InvalidInputError, "expected one of overwrite, fail, skip"),
            ([{}], InvalidInputError, "expected exactly one of"),
            ([{**put("a", "b"), **unset("k")}], InvalidInputError, "expected exactly one of"),
            ([], InvalidInputError, "expected a non-empty list"),
            ([put("", "b")], InvalidInputError, "expected at least one character"),
            ([put("a", "b" * 70_000)], InvalidInputError, "expected values of at most"),
            ([{"setPropertyAction": {"key": "a"}}], InvalidInputError, "expected a string"),
        ]
        for actions, error, text in refused:
            with pytest.raises(error, match=text):
                alter(ground, target, *actions)
        assert properties(ground, *target) == before

    def test_of_what_does_not_exist(self, ground: Ground) -> None:
        with pytest.raises(TransactionNotFoundError):
            alter(ground, [*T, "99"], put("k", "v"))
        with pytest.raises(TransactionNotFoundError):
            alter(ground, [str(uuid.uuid4())], put("k", "v"))

    def test_concurrent_notes_on_a_batch_are_all_kept(self, ground: Ground) -> None:
        target = [ground.call("create_namespace", id=["x"])["transaction_id"]]
        grounds = [ground.again() for _ in range(3)]
        errors: list[Exception] = []

        def note(which: int) -> None:
            try:
                for number in range(4):
                    alter(grounds[which], target, put(f"{which}.{number}", "v"))
            except Exception as error:  # noqa: BLE001 - told below
                errors.append(error)

        threads = [threading.Thread(target=note, args=(which,)) for which in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        noted = {key for key in properties(ground, *target) if key[1:2] == "."}
        assert errors == []
        assert len(noted) == 12

    def test_notes_on_a_table_that_meet_are_all_kept(self, ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
        """Another client changes the file between its reading and its replacement: it is read again."""
        alter(ground, [*T, "2"], put("a", "1"))
        replace, other, met = ground.store.replace, ground.again(), []

        def meet(path: str, data: bytes, *, if_match: str) -> str | None:
            if not met:
                met.append(path)
                alter(other, [*T, "2"], put("theirs", "2"))
            return replace(path, data, if_match=if_match)

        monkeypatch.setattr(ground.store, "replace", meet)
        alter(ground, [*T, "2"], put("ours", "3"))
        assert met
        told = properties(ground, *T, "2")
        assert {key: told.get(key) for key in ("a", "theirs", "ours")} == {"a": "1", "theirs": "2", "ours": "3"}

    def test_a_note_on_an_open_record_stays_when_the_record_is_closed(self, ground: Ground) -> None:
        name = ground.batch(ground.transaction(T, rows(5, 6)))["transaction_id"]
        closing = list(ground.catalog.snapshot().open_records())
        alter(ground, [name], put("k", "v"))
        ground.catalog.promoter.finish_records(closing, ground.catalog.snapshot())
        ground.catalog.record_housekeeping.close(closing)  # as they were before the note
        ground.catalog.flush_record_housekeeping()
        assert {key: properties(ground, name)[key] for key in ("k", "state")} == {"k": "v", "state": "closed"}

    def test_notes_of_stock_servers_on_the_same_root(self, ground: Ground) -> None:
        """Both keep the properties of a table's transaction in one file."""
        alter(ground, [*T, "2"], put("ours", "1"))
        stock = models.connect("dir", {"root": str(ground.root)})
        told = stock.describe_transaction(models.DescribeTransactionRequest(id=[*T, "2"]))
        assert told.properties["ours"] == "1"
        with RestAdapter("dir", {"root": str(ground.root)}, port=0) as server:
            actions = {"actions": [put("theirs", "2")]}
            httpx.post(
                f"http://127.0.0.1:{server.port}/v1/transaction/g%24t%242/alter", json=actions
            ).raise_for_status()
        assert {key: properties(ground, *T, "2").get(key) for key in ("ours", "theirs")} == {"ours": "1", "theirs": "2"}
        file = ground.root / notes_path(_row(ground, 2))
        file.write_text(file.read_text().replace('"removed_properties":[]', '"removed_properties":["x"]'))
        alter(ground, [*T, "2"], unset("theirs"))
        assert json.loads(file.read_text())["removed_properties"] == ["x"]
        assert "theirs" not in stock.describe_transaction(models.DescribeTransactionRequest(id=[*T, "2"])).properties

    def test_by_models(self, ground: Ground) -> None:
        action = AlterTransactionAction.from_dict(put("k", "v"))
        request = models.AlterTransactionRequest(id=[*T, "2"], actions=[action])
        assert ground.namespace.alter_transaction(request).properties["k"] == "v"
        told = ground.namespace.describe_transaction(models.DescribeTransactionRequest(id=[*T, "2"]))
        assert (told.status, told.properties["k"]) == ("Succeeded", "v")
