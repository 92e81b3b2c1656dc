"""An upload in parts when processes die at a write, and when answers of the store are lost or writes come late."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lance_namespace.errors import ConcurrentModificationError, InvalidInputError, LanceNamespaceError

from lance_core.errors import CorruptFile, StorageError, StorageUnknown
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.local import LocalStore
from lance_core.transaction.operations import Append, Delete, Overwrite, encode_transaction
from namespace_server.answer import Answer
from namespace_server.data.change_request import OPERATOR
from namespace_server.data.inline import InlineWork, inline_tables
from namespace_server.data.multipart import MultipartWrites, PartUnknown
from namespace_server.data.operations import DataOperations
from namespace_server.directory.multipart_uploads import find_ended_uploads
from table_data.batch_operations import TransactionCommit
from table_data.composition import join_parts
from table_data.errors import InvalidCall
from tests.data.arrow import stream
from tests.directory.gc.collecting import collect, let_pass
from tests.directory.tables import Ground, rows
from tests.storage.faults import Crashed, Fault, FaultStore, Write

TABLE = ["t"]
PART = str(uuid.UUID(int=1))


def done(work: Coroutine[Any, Any, Answer]) -> dict[str, Any]:
    """The answer of work that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as end:
        return dict(end.value.body)
    raise AssertionError("it waits")


class Process:
    """A process that takes parts of uploads, on a store that fails."""

    def __init__(self, root: Path) -> None:
        self.store = FaultStore(LocalStore(root, "none"))
        self.ground = Ground(root, self.store)
        tables = inline_tables(self.ground.namespace.tables(), self.ground.namespace.commit_change)
        self._writes: MultipartWrites[bytes] = MultipartWrites(tables, DataOperations(tables, InlineWork()))

    def begin(self) -> str:
        begun: str = done(self._writes.begin({"id": TABLE}, caller=OPERATOR))["upload_id"]
        return begun

    def part(self, upload_id: str, data: pa.Table, part_id: str = PART) -> dict[str, Any]:
        body = stream(data)

        async def digest() -> str:
            return str(len(body))

        return done(self._writes.add({"id": TABLE}, upload_id, part_id, body, digest, caller=OPERATOR))

    def complete(self, upload_id: str) -> dict[str, Any]:
        return done(self._writes.complete({"id": TABLE, "upload_id": upload_id}, caller=OPERATOR))

    def abort(self, upload_id: str) -> dict[str, Any]:
        return done(self._writes.abort({"id": TABLE, "upload_id": upload_id}, caller=OPERATOR))

    @property
    def ids(self) -> list[int]:
        found = self.ground.namespace.row_reads.rows("query_table", {"id": TABLE, "columns": {"column_names": ["id"]}})
        return sorted(pa.ipc.open_file(found).read_all()["id"].to_pylist())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    ground = Ground(tmp_path)
    ground.make_table(*TABLE, count=2)
    ground.namespace.close()
    return tmp_path


@pytest.fixture
def process(root: Path) -> Iterator[Process]:
    made = Process(root)
    yield made
    made.ground.namespace.close()


def test_a_process_dies_at_each_write_of_a_completion(root: Path, process: Process) -> None:
    """Another one completes the upload: once, with the answer that the dead one would have given."""
    expected = [0, 1]
    for number in range(100):
        dying = Process(root)
        upload_id = dying.begin()
        start = 10 * (number + 1)
        assert dying.part(upload_id, rows(start, start + 2)) == {"num_inserted_rows": 2}
        writes = len(dying.store.writes)
        dying.store.fail(Fault.CRASH_AFTER if number % 2 else Fault.CRASH_BEFORE, nth=writes + number // 2)
        died = False
        try:
            dying.complete(upload_id)
        except Crashed:
            died = True
        again = [process.complete(upload_id) for _ in range(2)]
        assert again[0] == again[1]
        expected += [start, start + 1]
        assert process.ids == expected
        assert again[0]["version"] == len(expected) // 2
        if not died:
            break
    assert number > 8


@pytest.mark.parametrize("fault", [Fault.LOST_ANSWER, Fault.LOST_REQUEST, Fault.DELAYED])
def test_an_answer_of_the_store_is_lost(process: Process, fault: Fault) -> None:
    """What may be written is not said to be; asked again, it is there once."""

    def of(name: str) -> Callable[[Write], bool]:
        return lambda write: write.path.rpartition("/")[2].startswith(name)

    upload_id = process.begin()
    for name, ask in (
        ("part-", lambda: process.part(upload_id, rows(10, 12))),
        ("end", lambda: process.complete(upload_id)),
    ):
        process.store.fail(fault, when=of(name))
        if fault is not Fault.LOST_ANSWER:
            with pytest.raises(StorageUnknown):
                ask()
            assert process.ids == [0, 1]
        first = ask()
        process.store.deliver()
        assert ask() == first if name == "end" else first == {"num_inserted_rows": 2}
    assert process.ids == [0, 1, 10, 11]


def test_an_end_that_comes_late_ends_nothing(process: Process) -> None:
    upload_id = process.begin()
    process.part(upload_id, rows(10, 12))
    process.store.fail(Fault.DELAYED, when=lambda write: write.path.endswith("/end"))
    with pytest.raises(StorageUnknown):
        process.complete(upload_id)
    assert process.abort(upload_id) == {}
    [late] = process.store.deliver()
    assert isinstance(late, StorageError)
    with pytest.raises(InvalidInputError, match="aborted"):
        process.complete(upload_id)
    assert process.ids == [0, 1]


@pytest.mark.parametrize("end", ["complete", "abort"])
def test_an_upload_ends_while_a_part_is_written(root: Path, process: Process, end: str) -> None:
    """At each request of a part to the store in turn. A part that was answered is committed with the others."""
    other = Process(root)
    outcomes = set()
    committed = [0, 1]
    for number in range(40):
        upload_id = process.begin()
        start = 100 * (number + 1)
        process.part(upload_id, rows(start, start + 1), str(uuid.UUID(int=2)))
        calls = 0

        def before(_verb: str, _path: str, upload_id: str = upload_id, number: int = number) -> None:
            nonlocal calls
            calls += 1
            if calls == number + 1:
                getattr(other, end)(upload_id)

        stop = process.store.before(before)
        outcome = "answered"
        try:
            process.part(upload_id, rows(start + 1, start + 2))
        except PartUnknown:
            outcome = "unknown"
        except InvalidInputError:
            outcome = "refused"
        stop()
        if calls <= number:
            break
        outcomes.add(outcome)
        ids = process.ids
        added = ids[len(committed) :]
        assert ids[: len(committed)] == committed
        if end == "abort":
            assert added == []
        else:
            assert added in ([start], [start, start + 1])
            assert outcome == "unknown" or added == {"refused": [start], "answered": [start, start + 1]}[outcome]
        committed = ids
    assert outcomes == ({"refused", "answered"} if end == "abort" else {"refused", "answered", "unknown"})


def test_the_record_of_a_completion_is_forgotten(process: Process) -> None:
    """The version that it made says that it was committed."""
    upload_id = process.begin()
    process.part(upload_id, rows(10, 12))
    first = process.complete(upload_id)
    catalog = process.ground.catalog
    records = [record.object_id for record in catalog.snapshot().records() if record.idempotency_key is not None]
    assert len(records) == 1
    from namespace_server.directory.model.entries import changes_of

    catalog.committer.commit_changes(lambda _snapshot: changes_of([], records))
    again = process.complete(upload_id)
    assert (again["version"], again["num_inserted_rows"]) == (first["version"], 2)
    assert process.ids == [0, 1, 10, 11]


def cast_ids(root: Path) -> None:
    alterations = [{"path": "id", "data_type": {"type": "int32"}}]
    Ground(root).namespace.data.change("alter_table_alter_columns", {"id": TABLE, "alterations": alterations})


def test_a_column_is_cast_between_the_parts(root: Path, process: Process) -> None:
    """Values of the type before are not in the column: an upload is refused, and an insert is written again."""
    upload_id = process.begin()
    process.part(upload_id, rows(10, 12), "first")
    cast_ids(root)
    process.part(upload_id, rows(20, 22), "second")
    with pytest.raises(ConcurrentModificationError, match="replaced columns"):
        process.complete(upload_id)
    assert process.ids == [0, 1]


def test_a_column_is_cast_while_rows_are_inserted(
    root: Path, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide, calls = process.ground.catalog.committer.decide, list[Any]()

    def late(batches: Any) -> Any:
        calls.append(batches)
        if len(calls) == 1:
            cast_ids(root)
        return decide(batches)

    monkeypatch.setattr(process.ground.catalog.committer, "decide", late)
    process.ground.namespace.data.change("insert_into_table", {"id": TABLE}, stream(rows(10, 12)))
    assert len(calls) == 2
    assert process.ground.open(TABLE).to_table()["id"].to_pylist() == [0, 1, 10, 11]


def test_the_objects_of_an_upload_go_together(root: Path, process: Process) -> None:
    """A completion dies. It is asked for again a day after the first part, when a collection has died at a removal."""
    upload_id = process.begin()
    process.part(upload_id, rows(10, 12), "first")
    let_pass(process.ground, timedelta(hours=19))
    process.part(upload_id, rows(20, 22), "second")
    dying = Process(root)
    dying.store.fail(Fault.CRASH_AFTER, when=lambda write: write.path.endswith("/end"))
    with pytest.raises(Crashed):
        dying.complete(upload_id)
    let_pass(process.ground, timedelta(hours=6))
    uploads, settings = root / "_staging" / "uploads", {"gc.uncommitted.grace": "1d"}
    uploads.rename(root.with_name("uploads"))
    collect(Ground(root), settings)
    root.with_name("uploads").rename(uploads)  # it has removed none of these yet, and dies at the second one
    for meta in find_ended_uploads(process.store, datetime.now(UTC) - timedelta(days=1)):
        if meta.path.endswith("first"):
            process.store.delete(meta.path)
    for _ in range(2):
        with pytest.raises(LanceNamespaceError):
            process.complete(upload_id)
        assert process.ids == [0, 1]
        let_pass(process.ground)
        collect(Ground(root), settings)
    assert not [path for path in uploads.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    "damage", [b"", b"[]", b'{"mode":1}', b'{"mode":"append","rows_sha256":"","commit":{"transaction":"?"}}']
)
def test_a_damaged_part_is_named(root: Path, process: Process, damage: bytes) -> None:
    upload_id = process.begin()
    process.part(upload_id, rows(10, 12))
    [part] = (root / "_staging" / "uploads" / upload_id).glob("part-*")
    part.write_bytes(damage)
    with pytest.raises(CorruptFile, match=part.name):
        process.complete(upload_id)
    assert process.ids == [0, 1]


FRAGMENT = pb.DataFragment(physical_rows=1)
FIELD = pb.Field(name="a", id=0, parent_id=-1)


def commit(operation: Any, read_version: int = 3, **given: Any) -> TransactionCommit:
    fields = {"location": "l", "manifest_sha256": f"of {read_version}", **given}
    return TransactionCommit(("t",), encode_transaction(operation, read_version=read_version), **fields)


def test_parts_are_joined_on_the_lowest_version_that_one_was_written_for() -> None:
    joined = join_parts([commit(Append((FRAGMENT,)), 5), commit(Append((FRAGMENT, FRAGMENT)), 4)], PART)
    assert (joined.transaction.uuid, joined.transaction.read_version) == (PART, 4)
    assert (len(joined.transaction.append.fragments), joined.manifest_sha256) == (3, "of 4")
    whole = join_parts([commit(Overwrite((FRAGMENT,), (FIELD,))), commit(Overwrite((FRAGMENT,), (FIELD,)))], PART)
    assert (len(whole.transaction.overwrite.fragments), list(whole.transaction.overwrite.schema)) == (2, [FIELD])


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [commit(Append((FRAGMENT,))), commit(Overwrite((FRAGMENT,), (FIELD,)))],
        [commit(Append((FRAGMENT,))), commit(Append((FRAGMENT,)), location="m")],
        [commit(Append((FRAGMENT,))), commit(Append((FRAGMENT,)), branch="dev")],
        [commit(Append((FRAGMENT,))), commit(Append((FRAGMENT,)), manifest_sha256="another")],
        [commit(Overwrite((FRAGMENT,), (FIELD,))), commit(Overwrite((FRAGMENT,), (FIELD, FIELD)))],
        [commit(Delete((), (1,)))],
    ],
    ids=["none", "kinds", "tables", "branches", "versions", "schemas", "deletion"],
)
def test_parts_that_make_no_one_version_are_not_joined(parts: list[TransactionCommit]) -> None:
    with pytest.raises(InvalidCall, match="part"):
        join_parts(parts, PART)
