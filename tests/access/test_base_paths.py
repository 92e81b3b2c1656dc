"""Who writes a table brings files of others into it only if these may be read, also below a base path that it has."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lance_core.format.manifest import ManifestFile, build_manifest_file, encode_manifest_file, parse_manifest_file
from lance_core.format.naming import NamingScheme, manifest_path
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.apply import apply_transaction
from namespace_server.access.subjects import Privilege
from namespace_server.attempts import authorizations_of
from namespace_server.directory.model.errors import AccessDenied
from namespace_server.directory.model.operations import (
    CloneTable,
    CommitTransaction,
    CreateTableVersion,
    DeclareTable,
    DropTable,
    Operation,
    RenameTable,
)
from namespace_server.directory.planning.plan_builder import Plan
from tests.access.team import ALICE, OPERATOR, Guarded, principal
from tests.directory.tables import Ground, rows

READ, WRITE, ALTER, CREATE, DROP, MAINTAIN = (
    Privilege.READ,
    Privilege.WRITE,
    Privilege.ALTER,
    Privilege.CREATE,
    Privilege.DROP,
    Privilege.MAINTAIN,
)
ME = principal("alice")
SOURCE, CLONE = ("h", "source"), ("g", "clone")
ON_CLONE = {READ, WRITE, ALTER, CREATE, DROP, MAINTAIN}
Edit = Callable[[pb.Transaction, pb.DataFragment, int], None]
"""States an operation that names a fragment of the source below the base path with this id."""


class CloneGround(Guarded):
    """`alice` may do everything with a clone; its source has a fragment more than the clone."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        for name in ("g", "h"):
            self.make_namespace(name)
        self.make_table(*SOURCE)
        head = self.catalog.snapshot().head(SOURCE)
        assert head is not None
        clone = CloneTable(CLONE, "00000000_g$clone", head.location, head.version, head.sha256, str(uuid.uuid4()))
        self.send(OPERATOR, clone)
        self.write(list(SOURCE), rows(10, 14))
        self.allow({})

    def allow(self, on_source: Any) -> None:
        self.reset(ME, [(CLONE, ON_CLONE), (SOURCE, on_source)])

    def manifest(self, table_id: tuple[str, ...], version: int | None = None) -> ManifestFile:
        snapshot = self.catalog.snapshot()
        head = snapshot.head(table_id) if version is None else snapshot.version_entry(table_id, None, version)
        assert head is not None
        return parse_manifest_file((self.root / head.canonical_path).read_bytes())

    @property
    def foreign(self) -> pb.DataFragment:
        """The fragment of the source that was written after the clone."""
        found = pb.DataFragment()
        found.CopyFrom(self.manifest(SOURCE).manifest.fragments[-1])
        found.id = 0
        return found

    @property
    def base_id(self) -> int:
        [base] = self.manifest(CLONE).manifest.base_paths
        return base.id

    def transaction(self, edit: Edit) -> pb.Transaction:  # type: ignore[override]
        message = pb.Transaction(read_version=self.head(list(CLONE)), uuid=str(uuid.uuid4()))
        edit(message, self.foreign, self.base_id)
        return message

    def lacks(self, operation: Operation) -> set[tuple[tuple[str, ...], Privilege]] | None:
        """The privileges that `alice` lacks for an operation; None if it is committed."""
        verdict = self.verdict(ALICE, operation)
        if isinstance(verdict, AccessDenied):
            return {(each.object, Privilege(each.privilege)) for each in authorizations_of(verdict) if not each.allowed}
        assert isinstance(verdict, Plan), verdict
        return None


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[CloneGround]:
    shop = CloneGround(tmp_path / "root")
    yield shop
    shop.namespace.close()


def below(fragment: pb.DataFragment, base: int) -> pb.DataFragment:
    for file in fragment.files:
        file.base_id = base
    return fragment


def append(message: pb.Transaction, fragment: pb.DataFragment, base: int) -> None:
    message.append.fragments.append(below(fragment, base))


def overwrite(schema: Any) -> Edit:
    def edit(message: pb.Transaction, fragment: pb.DataFragment, base: int) -> None:
        message.overwrite.fragments.append(below(fragment, base))
        message.overwrite.schema.extend(schema)

    return edit


def update(message: pb.Transaction, fragment: pb.DataFragment, base: int) -> None:
    message.update.new_fragments.append(below(fragment, base))


def edits(shop: CloneGround) -> dict[str, Edit]:
    fields = shop.manifest(CLONE).manifest.fields
    held = shop.manifest(CLONE).manifest.fragments[0]

    def delete(message: pb.Transaction, fragment: pb.DataFragment, base: int) -> None:
        changed = message.delete.updated_fragments.add()
        changed.CopyFrom(held)
        changed.deletion_file.CopyFrom(pb.DeletionFile(read_version=1, id=7, num_deleted_rows=1, base_id=base))

    def merge(message: pb.Transaction, fragment: pb.DataFragment, base: int) -> None:
        message.merge.fragments.extend([held, below(fragment, base)])
        message.merge.schema.extend(fields)

    def replacement(message: pb.Transaction, fragment: pb.DataFragment, base: int) -> None:
        group = message.data_replacement.replacements.add(fragment_id=held.id)
        group.new_file.CopyFrom(below(fragment, base).files[0])

    def overlay(message: pb.Transaction, fragment: pb.DataFragment, base: int) -> None:
        group = message.data_overlay.groups.add(fragment_id=held.id)
        group.overlays.add().data_file.CopyFrom(below(fragment, base).files[0])

    def index(message: pb.Transaction, _: pb.DataFragment, base: int) -> None:
        made = message.create_index.new_indices.add(name="i", fields=[0], base_id=base, dataset_version=1)
        made.uuid.uuid = uuid.uuid4().bytes

    def rewrite(message: pb.Transaction, fragment: pb.DataFragment, base: int) -> None:
        group = message.rewrite.groups.add()
        group.old_fragments.append(held)
        group.new_fragments.append(below(fragment, base))

    return {
        "append": append,
        "overwrite": overwrite(fields),
        "update": update,
        "delete": delete,
        "merge": merge,
        "data_replacement": replacement,
        "data_overlay": overlay,
        "create_index": index,
        "rewrite": rewrite,
    }


KINDS = ("append", "overwrite", "update", "delete", "merge", "data_replacement", "data_overlay", "create_index")


@pytest.mark.parametrize("kind", [*KINDS, "rewrite"])
def test_a_file_below_a_base_path_that_the_table_has_needs_read_where_it_lies(shop: CloneGround, kind: str) -> None:
    operation = CommitTransaction(CLONE, None, shop.transaction(edits(shop)[kind]))
    assert shop.lacks(operation) == {((), READ)}, "the source is hidden"
    shop.allow({Privilege.SEE})
    assert shop.lacks(operation) == {(SOURCE, READ)}
    shop.send(OPERATOR, RenameTable(SOURCE, ("h", "renamed")))
    assert shop.lacks(operation) == {(("h", "renamed"), READ)}
    shop.send(OPERATOR, DropTable(("h", "renamed")))
    assert shop.lacks(operation) == {((), READ)}
    assert shop.head(list(CLONE)) == 1


def test_who_may_read_there_commits_it(shop: CloneGround) -> None:
    shop.allow({READ})
    assert shop.lacks(CommitTransaction(CLONE, None, shop.transaction(append))) is None
    assert shop.ids(list(CLONE)) == [0, 1, 2, 10, 11, 12, 13]


def test_files_that_the_table_has_need_nothing(shop: CloneGround) -> None:
    """Rows are deleted in a fragment of the source, rows are added, and an index is made of it."""
    held = shop.manifest(CLONE).manifest.fragments[0]
    shop.open(list(CLONE))
    message = pb.Transaction(read_version=1, uuid=str(uuid.uuid4()))
    message.update.updated_fragments.append(held)
    own = pb.DataFragment()
    own.CopyFrom(held)
    assert "denied" not in str(shop.verdict(ALICE, CommitTransaction(CLONE, None, message)))
    [staged] = shop.operations(shop.stage(list(CLONE), rows(20, 22)))
    assert shop.lacks(staged) is None
    assert shop.ids(list(CLONE)) == [0, 1, 2, 20, 21]


def staged(shop: CloneGround, kind: str, manifest_too: bool) -> CreateTableVersion:
    """A staged manifest of an overwrite or restore that brings a file of the source into the clone."""
    [operation] = shop.operations(shop.stage(list(CLONE), rows(20, 21), mode="overwrite"))
    assert isinstance(operation, CreateTableVersion)
    assert operation.manifest_path is not None
    path = shop.root / operation.manifest_path
    file = parse_manifest_file(path.read_bytes())
    transaction, fragment = file.transaction, below(shop.foreign, shop.base_id)
    assert transaction is not None
    fragment.id = file.manifest.fragments[0].id
    file.manifest.fragments[0].CopyFrom(fragment)
    if kind == "restore":
        transaction.ClearField("overwrite")
        transaction.restore.version = 1
    elif manifest_too:
        fragment.id = 0
        transaction.overwrite.fragments[0].CopyFrom(fragment)
    path.write_bytes(encode_manifest_file(file.manifest, transaction, file.indices))
    return CreateTableVersion(
        **{
            **{name: getattr(operation, name) for name in operation.__slots__},
            "manifest_size": path.stat().st_size,
        }
    )


@pytest.mark.parametrize("manifest_too", [True, False])
def test_a_staged_manifest_is_judged_by_all_files_that_it_names(shop: CloneGround, manifest_too: bool) -> None:
    operation = staged(shop, "overwrite", manifest_too)
    assert shop.lacks(operation) == {((), READ)}
    shop.allow({READ})
    assert shop.lacks(operation) is None


def test_a_staged_restore_has_the_files_of_the_version_that_it_restores(shop: CloneGround) -> None:
    """Also if the caller may read what it brings (P16)."""
    operation = staged(shop, "restore", False)
    assert shop.lacks(operation) == {((), READ)}
    shop.allow({READ})
    assert "it restores another version 1 than that of the table" in str(shop.verdict(ALICE, operation))


def test_an_earlier_version_is_restored_by_who_may_read_what_it_brings_back(shop: CloneGround) -> None:
    shop.write(list(CLONE), rows(20, 22), "overwrite")
    message = pb.Transaction(read_version=shop.head(list(CLONE)), uuid=str(uuid.uuid4()))
    message.restore.version = 1
    operation = CommitTransaction(CLONE, None, message)
    assert shop.lacks(operation) == {((), READ)}
    shop.allow({READ})
    assert shop.lacks(operation) is None
    assert shop.ids(list(CLONE)) == [0, 1, 2]


def test_a_table_whose_place_is_a_part_of_the_path_of_the_root_opens_nothing(shop: CloneGround, tmp_path: Path) -> None:
    """Its name is chosen by a client: what lies where is told by the whole key below the root."""
    part = tmp_path.parts[1]
    shop.send(OPERATOR, DeclareTable(("g", "part"), part, {}, chosen=True))
    shop.reset(ME, [(CLONE, ON_CLONE), (("g", "part"), {READ})])
    for path in (shop.root, shop.root / shop.location(list(SOURCE)), shop.root / "_staging"):
        message = pb.Transaction(read_version=1, uuid=str(uuid.uuid4()))
        message.update_bases.new_bases.add(id=9, path=str(path))
        assert shop.lacks(CommitTransaction(CLONE, None, message)) == {((), READ)}, path


def test_names_of_files_do_not_lead_out_of_the_base(shop: CloneGround) -> None:
    """Whoever may read the source reads no table beside it: a path is one below `data` of the base."""
    hidden = shop.make_table("h", "hidden")
    [file] = (shop.root / shop.location(hidden) / "data").iterdir()
    shop.allow({READ})
    for path in (f"../../{shop.location(hidden)}/data/{file.name}", str(file), f"x/../{file.name}", f"/{file.name}"):
        message = shop.transaction(append)
        message.append.fragments[0].files[0].path = path
        verdict = shop.verdict(ALICE, CommitTransaction(CLONE, None, message))
        assert "expected a path below the table's data directory" in str(verdict), path
    assert pa.compute.min(shop.open(list(CLONE)).to_table()["id"]).as_py() == 0


class TestVersionsOfNobody:
    """Who writes files of a table commits by path, in nobody's name: so no grant counts for what it reaches (P5)."""

    def by_path(self, shop: CloneGround, table_id: tuple[str, ...], edit: Edit) -> None:
        """Put the next version of a table under its canonical name, as a stock writer does."""
        head = shop.manifest(table_id)
        message = pb.Transaction(read_version=head.version, uuid=str(uuid.uuid4()))
        edit(message, shop.foreign, shop.base_id)
        built = apply_transaction(head, message, version=head.version + 1, now_ns=time.time_ns())
        data, file = build_manifest_file(built.manifest, message, built.indices)
        path = shop.root / manifest_path(shop.location(list(table_id)), file.version, NamingScheme.V2)
        path.write_bytes(data)

    def test_files_of_others_are_not_adopted(self, shop: CloneGround) -> None:
        self.by_path(shop, CLONE, append)
        for _ in range(3):  # what is not adopted goes to quarantine, from which a sweep commits transactions again
            [kept] = shop.read("list_table_versions", id=list(CLONE))["versions"]
            assert kept["version"] == 1
            shop.catalog.sweep()
        assert shop.canonical(list(CLONE)) == [1]
        assert shop.namespace.row_reads.value("count_table_rows", {"id": list(CLONE)}).body == 3

    def test_a_first_version_with_files_of_others_is_not_adopted(self, shop: CloneGround) -> None:
        location = "00000000_g$mine"
        shop.send(OPERATOR, DeclareTable(("g", "mine"), location, {}))
        shop.open(list(SOURCE)).shallow_clone(str(shop.root / location), 1)
        shop.namespace.newest()
        assert shop.read("list_table_versions", id=["g", "mine"])["versions"] == []

    def test_rows_of_their_own_and_deletions_are(self, shop: CloneGround) -> None:
        shop.unmanaged_append(list(CLONE), rows(20, 22))
        shop.open(list(CLONE)).delete("id = 1")
        assert shop.namespace.row_reads.value("count_table_rows", {"id": list(CLONE)}).body == 4

    def test_without_grants_all_are(self, tmp_path: Path) -> None:
        ground = Ground(tmp_path / "root")
        ground.make_namespace("g")
        ground.make_table("g", "t")
        ground.call("declare_table", id=["g", "c"])
        ground.open(["g", "t"]).shallow_clone(str(ground.root / ground.location(["g", "c"])), 1)
        assert ground.namespace.row_reads.value("count_table_rows", {"id": ["g", "c"]}).body == 3
        ground.namespace.close()
