"""Clean-up by age, on a store with a controlled clock: ages are by the store's clock alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from lance_core.cleanup import CleanupReport, Retention, cleanup_table
from lance_core.commit.loop import commit_transaction
from lance_core.data import schema_fields
from lance_core.errors import ReferenceNotFound
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.memory import MemoryStore
from lance_core.tables.dataset import Dataset
from lance_core.transaction.operations import Overwrite, encode_transaction

SCHEMA = tuple(schema_fields(pa.schema([("id", pa.int64())])))


class Place:
    """A table in memory; every version overwrites the one before with one file, `data/<number>.lance`."""

    def __init__(self) -> None:
        self.now = datetime(2001, 1, 1, tzinfo=UTC)  # far from the local clock
        self.store = MemoryStore(clock=lambda: self.now)

    def commit(self, number: int) -> None:
        file = pb.DataFile(
            path=f"{number}.lance", fields=[0], column_indices=[0], file_major_version=2, file_minor_version=2
        )
        self.store.put(f"t/data/{number}.lance", b"rows")
        operation = Overwrite((pb.DataFragment(files=[file], physical_rows=1),), SCHEMA)
        commit_transaction(self.store, "t", encode_transaction(operation, read_version=number - 1))

    def clean(self, **retention: object) -> CleanupReport:
        return cleanup_table(
            self.store,
            "t",
            Retention(**retention),
            grace=timedelta(days=7),
            sleep=lambda _: None,  # type: ignore[arg-type]
        )

    def data(self) -> list[str]:
        return sorted(meta.path.removeprefix("t/data/") for meta in self.store.list("t/data"))


@pytest.fixture
def place() -> Place:
    """Five versions, ten days apart; the last is of today."""
    made = Place()
    for number in range(1, 6):
        made.commit(number)
        made.now += timedelta(days=10 if number < 5 else 0)
    return made


def test_versions_are_removed_by_age(place: Place) -> None:
    report = place.clean(older_than=timedelta(days=15))
    assert [garbage.version for garbage in report.versions] == [1, 2]  # superseded 30 and 20 days ago
    assert place.data() == ["3.lance", "4.lance", "5.lance"]
    place.now += timedelta(days=6)
    assert [garbage.version for garbage in place.clean(older_than=timedelta(days=15)).versions] == [3]
    assert Dataset.open(place.store, location="t").version == 5
    with pytest.raises(ReferenceNotFound):
        Dataset.open(place.store, 3, location="t")


def test_versions_of_an_idle_table_expire(place: Place) -> None:
    """The store is asked what time it is; that nothing was written for a year does not stop the clock."""
    assert place.clean(older_than=timedelta(days=100)).versions == ()
    place.now += timedelta(days=365)
    assert len(place.clean(older_than=timedelta(days=100)).versions) == 4
    assert [meta.path for meta in place.store.list("t/_staging")] == []


def test_unreferenced_files_expire_after_the_grace_time(place: Place) -> None:
    place.store.put("t/data/late.lance", b"rows")
    place.now += timedelta(days=7)
    assert place.clean().files == ()
    place.now += timedelta(seconds=1)
    [garbage] = place.clean().files
    assert (garbage.path, garbage.size) == ("t/data/late.lance", 4)
    assert garbage.reason == "needed by no version, written 2001-02-10 00:00Z"


def test_many_manifests_are_removed_in_several_rounds(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is held in memory, to be put back if need be, is bounded; in the end the same is gone."""
    monkeypatch.setattr("lance_core.cleanup.collector._ROUND_BYTES", 1)
    place.now += timedelta(days=1)
    report = place.clean(keep=1)
    assert [garbage.version for garbage in report.versions] == [1, 2, 3, 4]
    assert place.data() == ["5.lance"]
    assert report.kept == {5: "the newest version"}
