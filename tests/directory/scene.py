"""A root on which a batch over several tables is prepared, to be broken again and again.

The batch publishes a client-staged version and begins a branch at it, publishes a deletion that is rebased over another
one and the first version of a table that it declares, and it deletes a version.
"""

from __future__ import annotations

import base64
import copy
import shutil
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import lance

from lance_core.data import schema_fields
from lance_core.format.manifest import parse_manifest_file
from lance_core.format.naming import manifest_name
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.local import LocalStore
from lance_core.storage.port import ObjectStore
from lance_core.transaction.operations import Clone, encode_transaction
from namespace_server.directory.model.snapshot import CatalogSnapshot
from tests.directory.gc.horizons import move_horizon
from tests.directory.invariants import check_quiet, check_same
from tests.directory.tables import Ground, as_operation, rows
from tests.staged_fragments import stage_fragments
from tests.storage.bucketlike import BucketLike
from tests.storage.faults import FaultStore, Write

KEY = "one batch"
PERSON, KNOWS, OLD, MADE = (["g", name] for name in ("person", "knows", "old", "made"))


@dataclass(frozen=True)
class Scene:
    """A root on which everything is prepared for the batch, and the batch. `copy` gives a root to break."""

    root: Path
    operations: list[dict[str, Any]]
    before: int
    writes: tuple[Write, ...] = ()
    sweep_writes: tuple[Write, ...] = ()
    bucket: bool = False

    def copy(self, to: Path) -> Try:
        shutil.copytree(self.root, to)
        operations = copy.deepcopy(self.operations)
        for operation in operations:
            for request in operation.values():
                for field in ("manifest_path", "location"):
                    if field in request:
                        request[field] = request[field].replace(str(self.root)[1:], str(to)[1:])
                if "transaction" in request:
                    request["transaction"] = _moved(request["transaction"], str(self.root), str(to))
        return Try(to, operations, self.before, self.bucket)

    @property
    def flip(self) -> int:
        """The number of the write that is the commit point."""
        [number] = [write.number for write in self.writes if write.path.startswith("__manifest/_versions/")]
        return number


@dataclass(frozen=True)
class Try:
    """The batch on a root of its own. Every `open` is another process."""

    root: Path
    operations: list[dict[str, Any]]
    before: int
    bucket: bool = False

    def open(self) -> Ground:
        return Ground(self.root, self._store())

    def faulty(self) -> tuple[Ground, FaultStore]:
        store = FaultStore(self._store())
        return Ground(self.root, store), store

    def _store(self) -> ObjectStore:
        store = LocalStore(self.root, "none")
        return BucketLike(store) if self.bucket else store

    def send(self, ground: Ground) -> dict[str, Any]:
        return ground.batch(*self.operations, key=KEY)

    def applied(self) -> bool:
        """Whether the batch is there, the same for every part of it, at every catalog version (invariant 1)."""
        ground = self.open()
        newest = ground.catalog.snapshot()
        history = [_parts(ground.catalog.snapshot(version)) for version in range(self.before, newest.version + 1)]
        torn = [parts for parts in history if len(set(parts.values())) > 1]
        assert not torn, f"1: {torn[0]}"
        there = [all(parts.values()) for parts in history]
        assert there == sorted(there), f"3: the batch came and went: {there}"
        return there[-1]

    def check_applied_once(self) -> None:
        """The batch is there, once, and its rows are."""
        assert self.applied()
        ground = self.open()
        assert ground.ids(PERSON) == [0, 1, 2, 3, 4]
        assert ground.ids(KNOWS) == [2]
        assert ground.ids(MADE) == [0, 1]
        assert [ground.head(table) for table in (PERSON, KNOWS, MADE, OLD)] == [2, 3, 1, 2]
        assert ground.head(PERSON, "dev") == 2
        branch = ground.open(PERSON).checkout_version(("dev", None))
        assert branch.to_table()["id"].to_pylist() == [0, 1, 2, 3, 4]

    def recover(self) -> None:
        self.open().catalog.sweep()


def _parts(snapshot: CatalogSnapshot) -> dict[str, bool]:
    """What the batch does, part by part: whether it is done."""
    heads = {table[-1]: snapshot.head(tuple(table)) for table in (PERSON, KNOWS, OLD, MADE)}
    old = snapshot.version_entry(tuple(OLD), None, 1)
    return {
        "person": heads["person"] is not None and heads["person"].version >= 2,
        "branch": snapshot.head(tuple(PERSON), "dev") is not None,
        "knows": heads["knows"] is not None and heads["knows"].version >= 3,
        "declared": snapshot.table(tuple(MADE)) is not None,
        "made": heads["made"] is not None,
        "deleted": heads["old"] is not None and heads["old"].version == 2 and old is None,
        "record": snapshot.record_by_key(KEY) is not None,
    }


def _moved(transaction: str, root: str, to: str) -> str:
    """A transaction for another root: a Clone names the path of its parent."""
    message = pb.Transaction.FromString(base64.b64decode(transaction))
    if message.HasField("clone"):
        message.clone.ref_path = message.clone.ref_path.replace(root, to)
    return base64.b64encode(message.SerializeToString()).decode()


def _delete_elsewhere(ground: Ground, table: list[str], predicate: str, workshop: Path) -> pb.Transaction:
    """The Delete that stock pylance makes of a predicate on the table's head, its deletion file put in place."""
    home = ground.root / ground.location(table)
    shutil.copytree(home, workshop)
    dataset = lance.dataset(str(workshop))
    dataset.delete(predicate)
    file = parse_manifest_file((workshop / "_versions" / manifest_name(dataset.version)).read_bytes())
    shutil.copytree(workshop / "_deletions", home / "_deletions", dirs_exist_ok=True)
    shutil.rmtree(workshop)
    assert file.transaction is not None
    return file.transaction


def make_scene(place: Path, *, bucket: bool = False) -> Scene:
    """Prepare the batch below `place`, and send it once to a copy to learn which writes it makes.

    With `bucket` the directory is asked as a bucket is, and was collected: the manifests that the server builds are
    staged in one object.
    """
    ground = Ground(place / "root")
    ground.make_namespace("g")
    for table in (PERSON, KNOWS, OLD):
        ground.make_table(*table)
    ground.write(OLD, rows(3, 4))
    delete = _delete_elsewhere(ground, KNOWS, "id = 1", place / "workshop")
    dataset = lance.dataset(namespace_client=ground.namespace, table_id=KNOWS)
    dataset.delete("id = 0")
    fork = encode_transaction(
        Clone(str(ground.root / ground.location(PERSON)), 2, None, "dev"), read_version=2, uuid=str(uuid.uuid4())
    )
    location = "0a1b2c3d_g$made"
    first = pb.Transaction(uuid=str(uuid.uuid4()))
    first.overwrite.fragments.extend(stage_fragments(rows(0, 2), str(ground.root / location), mode="create"))
    first.overwrite.schema.extend(schema_fields(rows(0, 2).schema))
    operations = [
        ground.stage(PERSON, rows(3, 5)),
        as_operation(PERSON, fork, "dev"),
        as_operation(KNOWS, delete),
        {"declare_table": {"id": MADE, "location": f"{ground.catalog.store.uri}/{location}"}},
        as_operation(MADE, first),
        {"delete_table_versions": {"id": OLD, "ranges": [{"start_version": 1, "end_version": 2}]}},
    ]
    if bucket:
        move_horizon(ground)
    ground.catalog.sweep()
    bare = Scene(ground.root, operations, check_quiet(ground.root).version, bucket=bucket)
    dry = bare.copy(place / "dry")
    ground, store = dry.faulty()
    dry.send(ground)
    sent = len(store.writes)
    ground.catalog.sweep()
    check_same(ground.catalog.snapshot(), check_quiet(dry.root))
    dry.check_applied_once()
    return replace(bare, writes=tuple(store.writes[:sent]), sweep_writes=tuple(store.writes[sent:]))
