"""A table with an external manifest store, and processes that crash while using it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lance_core.commit.handlers import ExternalManifestHandler
from lance_core.commit.loop import Committed, commit_transaction
from lance_core.errors import StorageError
from lance_core.format.naming import manifest_path
from lance_core.storage.port import ObjectStore
from lance_core.tables.dataset import Dataset
from lance_core.transaction.lineage import lineage_break
from lance_core.transaction.operations import MapUpdate, UpdateConfig, encode_transaction
from tests.storage.faults import Crashed, Fault, FaultStore, Write
from tests.storage.limited import PlainStore
from tests.storage.manifests import FaultyManifestStore, MemoryManifestStore
from tests.transaction.tables import Table


@dataclass
class Place:
    """The table `t` at version 2, made by stock pylance, on a store without exclusive writes; and the rows."""

    table: Table
    manifests: MemoryManifestStore = field(default_factory=MemoryManifestStore)

    def process(self) -> Process:
        """A process of its own: what breaks in it breaks nowhere else."""
        return Process(FaultStore(PlainStore(self.table.store)), FaultyManifestStore(self.manifests))

    def final(self, version: int) -> Path:
        return self.table.root / manifest_path("t", version)

    def staged(self) -> list[Path]:
        return sorted((self.table.path / "_versions").glob("*.manifest-*"))

    def hint(self) -> dict[str, str]:
        """The config of the newest version as stock pylance sees it."""
        return self.table.open().config()

    def check(self, *expected: str) -> None:
        """All readers see the same table: two versions of pylance's, then those that set the expected config keys."""
        last = 2 + len(expected)
        assert [row.staged for row in self.manifests.rows] == [False] * len(self.manifests.rows)
        assert list(self.table.manifests()) == list(range(1, last + 1))
        dataset = self.table.open()
        dataset.validate()
        assert (dataset.version, sorted(dataset.config())) == (last, sorted(expected))
        assert Dataset.open(self.table.uri).version == last
        chain = self.table.manifests()
        assert [lineage_break(chain[number - 1], chain[number]) for number in range(2, last + 1)] == [None] * (last - 1)


@dataclass
class Process:
    objects: FaultStore
    manifests: FaultyManifestStore

    @property
    def store(self) -> ObjectStore:
        return ExternalManifestHandler(self.manifests).over(self.objects)

    def commit(self, key: str, read_version: int = 2) -> Committed:
        """Set a config key, in one new version."""
        message = encode_transaction(UpdateConfig(MapUpdate({key: "1"})), read_version=read_version)
        return commit_transaction(self.store, "t", message)

    def open(self) -> Dataset:
        return Dataset.open(self.store, location="t")


def is_staging(write: Write) -> bool:
    return write.verb == "put" and ".manifest-" in write.path


def is_final(write: Write) -> bool:
    return write.verb == "put" and write.path.endswith(".manifest")


def is_tidying(write: Write) -> bool:
    return write.verb == "delete" and ".manifest-" in write.path


DEATHS: dict[str, tuple[Callable[[Process], None], bool]] = {
    "before staging": (lambda process: process.objects.fail(Fault.CRASH_BEFORE, when=is_staging), False),
    "after staging": (lambda process: process.objects.fail(Fault.CRASH_AFTER, when=is_staging), False),
    "before the row": (lambda process: process.manifests.fail(Fault.CRASH_BEFORE, "put_if_absent"), False),
    "after the row": (lambda process: process.manifests.fail(Fault.CRASH_AFTER, "put_if_absent"), True),
    "before the final name": (lambda process: process.objects.fail(Fault.CRASH_BEFORE, when=is_final), True),
    "after the final name": (lambda process: process.objects.fail(Fault.CRASH_AFTER, when=is_final), True),
    "before the update": (lambda process: process.manifests.fail(Fault.CRASH_BEFORE, "replace"), True),
    "after the update": (lambda process: process.manifests.fail(Fault.CRASH_AFTER, "replace"), True),
    "before tidying": (lambda process: process.objects.fail(Fault.CRASH_BEFORE, when=is_tidying), True),
    "after tidying": (lambda process: process.objects.fail(Fault.CRASH_AFTER, when=is_tidying), True),
}


def die(place: Place, moment: str) -> list[str]:
    """A writer of the key `dead` dies. Returns the keys that are committed."""
    arm, committed = DEATHS[moment]
    process = place.process()
    arm(process)
    with pytest.raises(Crashed):
        process.commit("dead")
    assert place.table.open().version in ({2, 3} if committed else {2}), "stock is one version behind at most"
    return ["dead"] if committed else []


def refuse_final(process: Process) -> None:
    def refuse(verb: str, path: str) -> None:
        if verb == "put" and path.endswith(".manifest"):
            raise StorageError("no permission")

    process.objects.before(refuse)
