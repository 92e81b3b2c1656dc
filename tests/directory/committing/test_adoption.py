"""Versions that others committed above a head are adopted before anything is said of the head (P5, P9)."""

from __future__ import annotations

from datetime import timedelta

import lance
import pytest
from lance_namespace.errors import ServiceUnavailableError, TableVersionNotFoundError

from lance_core.errors import StorageError
from lance_core.format.manifest import parse_manifest_file
from lance_core.format.naming import manifest_name
from lance_core.storage.local import LocalStore
from namespace_server.directory.committing.commit_loop import CommitLimits
from namespace_server.directory.model.errors import BatchConflict, CatalogBusy
from tests.directory.tables import Ground, rows
from tests.directory.taken_names import TABLE
from tests.storage.faults import FaultStore


@pytest.fixture
def ahead(ground: Ground) -> Ground:
    """Version 2 was committed by another server, whose record is open; version 3 by path, on it."""
    ground.make_table(*TABLE)
    ground.catalog.sweep()
    ground.batch(ground.transaction(TABLE, rows(3, 4)))
    ground.unmanaged_append(TABLE, rows(4, 5))
    return ground


def head_of(ground: Ground) -> int:
    [version] = ground.read("list_table_versions", id=TABLE, limit=1, descending=True)["versions"]
    return version["version"]


def assertion(version: int) -> dict[str, object]:
    return {"assert_table_version": {"id": TABLE, "version": version}}


def test_the_first_question_after_a_commit_of_another_server_adopts(ahead: Ground) -> None:
    assert ahead.catalog.snapshot().open_records()
    assert head_of(ahead.again()) == 3


def test_an_assertion_after_a_commit_of_another_server_adopts(ahead: Ground) -> None:
    with pytest.raises(BatchConflict, match="found 3"):
        ahead.again().batch(assertion(2))


def test_an_assertion_does_not_hold_where_the_head_cannot_be_promoted(ahead: Ground) -> None:
    path = f"{ahead.location(TABLE)}/_versions/{manifest_name(2)}"
    store = FaultStore(LocalStore(ahead.root, "none"))

    def fail(verb: str, key: str) -> None:
        if verb == "publish" and key == path:
            raise StorageError("no")

    store.before(fail)
    with pytest.raises(ServiceUnavailableError, match="cannot be judged now"):
        ahead.again(store).batch(assertion(2))
    assert head_of(ahead.again(store)) == 2  # reads go on: the catalog's row is right


def test_a_head_is_not_told_where_its_adoption_is_unknown(ahead: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = ahead.again()
    committer = reader.catalog.committer
    monkeypatch.setattr(committer._loop, "_limits", CommitLimits(tries=1))  # the first one finds what it has to adopt
    with pytest.raises(CatalogBusy):
        head_of(reader)


def test_a_file_that_replaced_another_one_of_its_number_is_adopted_itself(ground: Ground) -> None:
    ground.make_table(*TABLE)
    ground.catalog.sweep()
    ground.catalog.flush_record_housekeeping()
    place = ground.root / ground.location(TABLE) / "_versions" / manifest_name(2)
    ground.unmanaged_append(TABLE, rows(4, 5))
    other = place.read_bytes()
    place.unlink()
    ground.unmanaged_append(TABLE, rows(3, 4))
    looks = 0
    store = FaultStore(LocalStore(ground.root, "none"))

    def replace(verb: str, path: str) -> None:
        nonlocal looks
        if verb == "get" and path.endswith(f"{ground.location(TABLE)}/_versions/{manifest_name(2)}"):
            looks += 1
            if looks == 3:  # after the question's own look, and the one of the attempt that found the first file
                place.write_bytes(other)

    store.before(replace)
    reader = ground.again(store)
    assert head_of(reader) == 2
    assert looks > 3
    head = reader.catalog.snapshot().head(tuple(TABLE))
    assert head is not None
    assert head.identity == parse_manifest_file(place.read_bytes()).identity


def test_a_pinned_head_that_a_cleanup_removed_is_not_there(ground: Ground) -> None:
    ground.make_table(*TABLE)
    ground.write(TABLE, rows(3, 4))
    pinned = ground.catalog.snapshot().version
    ground.write(TABLE, rows(4, 5))
    read = ground.namespace.read
    for operation in ("describe_table_version", "list_table_versions"):
        read(operation, {"id": TABLE}, at=pinned)
    lance.dataset(str(ground.root / ground.location(TABLE))).cleanup_old_versions(older_than=timedelta(0))
    newest = ground.catalog.snapshot().version
    for process in (ground, ground.again()):
        for operation, more in (
            ("describe_table_version", {}),
            ("describe_table_version", {"version": 2}),
            ("list_table_versions", {"limit": 1, "descending": True}),
            ("list_table_versions", {}),
        ):
            with pytest.raises(TableVersionNotFoundError):
                process.namespace.read(operation, {"id": TABLE, **more}, at=pinned)
        assert (
            process.namespace.read("describe_table_version", {"id": TABLE}, at=newest).body["version"]["version"] == 3
        )


def test_nothing_is_adopted_above_a_version_of_its_own_group(ground: Ground) -> None:
    """The versions by path above its number are built on the file that has its name."""
    ground.make_table(*TABLE)
    ground.catalog.sweep()
    ground.catalog.flush_record_housekeeping()
    added = [ground.transaction(TABLE, rows(3, 4)), ground.transaction(TABLE, rows(5, 6))]
    calls = [ground.namespace.prepare("batch_commit_tables", {"operations": [each]}) for each in added]
    there = set(ground.root.rglob("data/*.lance"))
    by_path = lance.write_dataset(rows(4, 5), str(ground.root / ground.location(TABLE)), mode="append")
    [lost] = set(ground.root.rglob("data/*.lance")) - there
    by_path.delete("id = 4")  # its fragment, which has the id of that of the first batch
    lost.unlink()  # so that its version is not adopted

    answers = ground.namespace.commit_calls(calls)

    versions = [each.body["results"][0]["commit_transaction"]["version"]["version"] for each in answers]  # type: ignore[union-attr]
    assert versions == [2, 3]
    assert ground.ids(TABLE) == [0, 1, 2, 3, 5]
    assert [row["id"] for row in ground.open(TABLE).to_table().sort_by("id").to_pylist()] == [0, 1, 2, 3, 5]
