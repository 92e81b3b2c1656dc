"""The life of branches: stock pylance opens, lists, continues and deletes branches of this engine."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from lance_core.errors import (
    AlreadyExists,
    ReferenceInUse,
    ReferenceNotFound,
    StorageUnknown,
    TransactionUnknown,
    UnsupportedFeature,
)
from lance_core.format.manifest import encode_manifest_file, parse_manifest_file
from lance_core.format.refs import branch_path, tag_path
from lance_core.storage.local import LocalStore
from lance_core.storage.wrappers.counting import CountingStore
from lance_core.tables.branches import DELETING, Branches
from lance_core.tables.dataset import Dataset, Reference
from tests.storage.faults import Crashed, Fault, FaultStore

MAIN = [1, 2, 3, 4, 5]


def values(table: Path, branch: str) -> list[int]:
    """The rows of a branch, as stock pylance reads them."""
    dataset = lance.dataset(str(table)).checkout_version((branch, None))
    dataset.validate()
    found: list[int] = sorted(dataset.to_table()["a"].to_pylist())
    return found


def ref(table: Path, branch: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((table / branch_path("", branch)).read_text())
    return found


def files(table: Path) -> set[str]:
    return {str(path.relative_to(table)) for path in table.rglob("*") if path.is_file()}


# beginning


@pytest.mark.parametrize(
    ("ref_", "parent", "version", "expected"),
    [
        (None, None, 4, MAIN),
        (1, None, 1, [1, 2, 3]),
        ("two", None, 2, MAIN),
        ("on-dev", "dev", 3, [2, 3, 4, 5]),
        (("main", 2), None, 2, MAIN),
        (("dev", 2), "dev", 2, MAIN),
        (("dev", None), "dev", 3, [2, 3, 4, 5]),
        (("dev/nested", None), "dev/nested", 3, [2, 3, 4, 5]),
        (datetime(2200, 1, 1, tzinfo=UTC), None, 4, MAIN),
        (("dev", datetime(2200, 1, 1, tzinfo=UTC)), "dev", 3, [2, 3, 4, 5]),
    ],
)
def test_a_branch_begins_at_any_reference(
    table: Path, ref_: Reference, parent: str | None, version: int, expected: list[int]
) -> None:
    contents = Dataset.open(str(table)).branches.create("new", ref_, metadata={"k": "v"})

    assert (contents.parent_branch, contents.parent_version) == (parent, version)
    assert values(table, "new") == expected
    stock = lance.dataset(str(table))
    assert stock.branches.list()["new"]["metadata"] == {"k": "v"}
    dev = stock.checkout_version(("new", None))
    assert dev.version == version
    lance.write_dataset(pa.table({"a": [10]}), dev, mode="append")
    assert values(table, "new") == [*expected, 10]
    opened = Dataset.open(str(table), ("new", None))
    assert opened.version == version + 1
    assert opened.history()[1].operation == "clone"


def test_without_a_reference_a_branch_begins_at_the_open_version(table: Path) -> None:
    assert Dataset.open(str(table), 2).branches.create("a").parent_version == 2
    assert Dataset.open(str(table), ("dev", 2)).branches.create("b").parent_branch == "dev"


@pytest.mark.parametrize(("name", "reference"), [("x", ("main", 2)), ("x/y", ("dev", None)), ("x", ("dev/nested", 3))])
def test_file_and_first_version_are_those_of_pylance(table: Path, name: str, reference: tuple[str, int | None]) -> None:
    copy = table.parent / "copy"
    ours, theirs = table, copy
    shutil.copytree(table, copy)
    Dataset.open(str(ours)).branches.create(name, reference)
    moved = lance.dataset(str(theirs))
    moved.checkout_version(reference).create_branch(name, reference)

    mine, stock = ref(ours, name), ref(theirs, name)
    assert list(mine) == list(stock)
    for found in (mine, stock):
        found.pop("createAt")
        found["identifier"]["version_mapping"][-1][1] = "?"
    assert mine == stock
    [ours_first], [theirs_first] = (
        [parse_manifest_file(path.read_bytes()) for path in (root / "tree" / name / "_versions").glob("*.manifest")]
        for root in (ours, theirs)
    )
    assert ours_first.transaction is not None
    assert theirs_first.transaction is not None
    for file in (ours_first, theirs_first):
        file.transaction.uuid = ""  # type: ignore[union-attr]
        file.transaction.clone.ref_path = file.transaction.clone.ref_path.replace(str(copy), str(table))  # type: ignore[union-attr]
    assert ours_first.transaction == theirs_first.transaction
    assert ours_first.manifest.branch == theirs_first.manifest.branch == name
    assert files(ours) >= {path for path in files(theirs) if not path.endswith((".txn", ".json"))} | {
        branch_path("", name)
    }


def test_an_invalid_branch_is_refused(table: Path) -> None:
    branches = Dataset.open(str(table)).branches
    before = files(table)
    for name, reference in (("new", 9), ("new", ("dev", 1)), ("new", "nope"), ("new", ("nope", None))):
        with pytest.raises(ReferenceNotFound):
            branches.create(name, reference)
    with pytest.raises(ValueError, match="main"):
        branches.create("main", 1)
    with pytest.raises(AlreadyExists, match="expected none, found one at version 3"):
        branches.create("dev", 2)
    path = next(path for path in (table / "_versions").glob("*.manifest") if parse_manifest_file(path.read_bytes()))
    file = parse_manifest_file(path.read_bytes())
    file.manifest.writer_feature_flags |= 1 << 12
    path.write_bytes(encode_manifest_file(file.manifest, file.transaction, file.indices))
    with pytest.raises(UnsupportedFeature):
        branches.create("new", file.version)
    assert files(table) == before


def test_nested_branch_names_are_independent(table: Path) -> None:
    dataset = Dataset.open(str(table))
    dataset.branches.create("p", 1)
    dataset.branches.create("p/q", 2)
    dataset.branches.create("p/q/r", ("p", None))
    dataset.branches.delete("p/q")
    assert values(table, "p/q/r") == values(table, "p") == [1, 2, 3]
    with pytest.raises(ReferenceInUse, match="p/q/r"):
        dataset.branches.delete("p")
    dataset.branches.delete("p/q/r")
    dataset.branches.delete("p")
    assert not (table / "tree/p").exists()
    assert values(table, "dev/nested") == [2, 3, 4, 5]


def test_of_concurrent_creators_one_succeeds(table: Path) -> None:
    start = threading.Barrier(8)
    won: list[int] = []

    def create(number: int) -> None:
        start.wait()
        try:
            Branches(LocalStore(table, "none"), "").create("raced", number % 4 + 1, metadata={"by": str(number)})
        except AlreadyExists:
            return
        won.append(number)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    [winner] = won
    assert ref(table, "raced")["metadata"] == {"by": str(winner)}
    [only] = Dataset.open(str(table), ("raced", None)).history()
    assert only.version == winner % 4 + 1


# interrupted beginnings


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
def test_creating_again_completes_a_branch_after_a_crash(table: Path, fault: Fault) -> None:
    def create(store: FaultStore) -> None:
        Branches(store, "").create("new", ("dev", 3), metadata={"k": "v"})

    clean = FaultStore(LocalStore(shutil.copytree(table, table.parent / "clean"), "none"))
    create(clean)
    assert [write.verb for write in clean.writes] == ["put_if_absent", "put", "put_if_absent"]
    for number in range(3):
        store = FaultStore(LocalStore(table, "none"))
        store.fail(fault, nth=number)
        with pytest.raises(Crashed):
            create(store)
        stock = lance.dataset(str(table))
        if "new" not in stock.branches.list():
            assert number == 0
        elif not (number == 2 and fault is Fault.CRASH_AFTER):
            with pytest.raises(ValueError, match="Not found"):
                stock.checkout_version(("new", None))
        if number == 2 and fault is Fault.CRASH_AFTER:
            with pytest.raises(AlreadyExists):
                create(FaultStore(LocalStore(table, "none")))
        else:
            create(FaultStore(LocalStore(table, "none")))
        assert values(table, "new") == [2, 3, 4, 5]
        assert ref(table, "new")["metadata"] == {"k": "v"}
        Dataset.open(str(table)).branches.delete("new")
        assert not (table / "tree/new").exists()


def test_a_partial_branch_is_completed_only_at_its_fork_point_and_deleted_by_pylance(table: Path) -> None:
    store = FaultStore(LocalStore(table, "none"))
    store.fail(Fault.CRASH_AFTER, nth=0)
    with pytest.raises(Crashed):
        Branches(store, "").create("new", 2)
    branches = Dataset.open(str(table)).branches
    for reference, metadata in ((1, {}), (("dev", 2), {}), (2, {"k": "v"})):
        with pytest.raises(AlreadyExists, match="it has no version, and was to begin at version 2 of main; delete it"):
            branches.create("new", reference, metadata=metadata)
    with pytest.raises(ReferenceNotFound):
        Dataset.open(str(table), ("new", None))

    lance.dataset(str(table)).branches.delete("new")

    assert branches.create("new", 1).parent_version == 1
    assert values(table, "new") == [1, 2, 3]


def test_a_lost_answer_is_resolved(table: Path) -> None:
    for number, error in ((0, StorageUnknown), (2, TransactionUnknown)):
        store = FaultStore(LocalStore(table, "none"))
        store.fail(Fault.LOST_REQUEST, when=lambda write: write.verb == "put_if_absent", times=99)
        if number:
            store = FaultStore(LocalStore(table, "none"))
            store.fail(Fault.LOST_REQUEST, when=lambda write: write.path.endswith(".manifest"), times=99)
        with pytest.raises(error):
            Branches(store, "").create(f"new{number}", 2)
        Dataset.open(str(table)).branches.create(f"new{number}", 2)
        assert values(table, f"new{number}") == MAIN
    store = FaultStore(LocalStore(table, "none"))
    store.fail(Fault.LOST_ANSWER, when=lambda write: write.verb == "put_if_absent", times=99)
    Branches(store, "").create("heard", 2)
    assert values(table, "heard") == MAIN


def test_a_branch_without_a_reference_file_is_completed(table: Path) -> None:
    (table / branch_path("", "dev/nested")).unlink()
    branches = Dataset.open(str(table)).branches
    for reference in (2, ("dev", 2)):
        with pytest.raises(AlreadyExists, match="holds the remains of a branch of version 3 of dev; delete it first"):
            branches.create("dev/nested", reference)

    branches.create("dev/nested", ("dev", 3), metadata={"k": "v"})

    assert lance.dataset(str(table)).branches.list()["dev/nested"]["metadata"] == {"k": "v"}
    assert values(table, "dev/nested") == [2, 3, 4, 5]


def test_remains_of_two_stock_clients_are_not_completed(table: Path) -> None:
    """Each committed a first version of its own; the newer one would be the head of the other's branch."""
    stock = lance.dataset(str(table))
    stock.create_branch("new", 2)
    shutil.move(table / "tree/new", table / "aside")
    (table / branch_path("", "new")).unlink()
    stock.create_branch("new", 3)
    (table / branch_path("", "new")).unlink()
    for path in (table / "aside/_versions").glob("*.manifest"):
        shutil.move(path, table / "tree/new/_versions")
    branches = Dataset.open(str(table)).branches
    for version in (2, 3):
        with pytest.raises(
            AlreadyExists, match="remains of a branch of version 2 of main and version 3 of main; delete it"
        ):
            branches.create("new", version)
    branches.delete("new")
    assert branches.create("new", 2).parent_version == 2
    assert values(table, "new") == MAIN


def test_creation_is_withdrawn_if_another_first_version_is_found(table: Path) -> None:
    """Stock pylance commits first: its Clone may land between our file and our Clone."""
    path = table / branch_path("", "new")
    store = FaultStore(LocalStore(table, "none"))

    def stock(verb: str, key: str) -> None:
        if verb == "put" and key.endswith(".txn"):
            path.rename(table / "aside")
            lance.dataset(str(table)).create_branch("new", 1)
            path.unlink()  # as if it had died here
            (table / "aside").rename(path)

    store.before(stock)
    with pytest.raises(AlreadyExists, match="another client created it meanwhile"):
        Branches(store, "").create("new", 2)
    assert not path.exists()
    [only] = Dataset.open(str(table), ("new", None)).history()
    assert only.version == 1
    Dataset.open(str(table)).branches.create("new", 1)
    assert values(table, "new") == [1, 2, 3]


@pytest.mark.parametrize("when", ["_refs", ".txn"])
def test_the_same_first_version_made_by_pylance_completes_the_creation(table: Path, when: str) -> None:
    path = table / branch_path("", "new")
    store = FaultStore(LocalStore(table, "none"))
    hits: list[str] = []

    def stock(verb: str, key: str) -> None:
        if verb in {"put", "put_if_absent"} and when in key and not hits:
            hits.append(key)
            announced = path.read_bytes() if path.exists() else None
            path.unlink(missing_ok=True)
            lance.dataset(str(table)).create_branch("new", 2)
            path.unlink()  # as if it had found ours
            if announced is not None:
                path.write_bytes(announced)

    store.before(stock)
    contents = Branches(store, "").create("new", 2)
    assert hits
    assert Dataset.open(str(table)).branches.get("new") == contents
    assert values(table, "new") == MAIN
    [_] = Dataset.open(str(table), ("new", None)).history()


@pytest.mark.parametrize("what", ["tag", "move", "branch"])
def test_no_reference_is_created_to_a_version_removed_meanwhile(table: Path, what: str) -> None:
    store = FaultStore(LocalStore(table, "none"))
    dataset = Dataset.open(store)
    stock = lance.dataset(str(table))
    stock.tags.delete("two")
    stock.tags.create("kept", 4)
    before = files(table / "_refs")

    def clean(verb: str, key: str) -> None:
        if verb in {"put", "put_if_absent"} and key.startswith("_refs"):
            for version in (table / "_versions").glob("*.manifest"):
                if parse_manifest_file(version.read_bytes()).version == 1:
                    version.unlink()

    store.before(clean)
    act: dict[str, Callable[[], object]] = {
        "tag": lambda: dataset.tags.create("t", 1),
        "move": lambda: dataset.tags.update("kept", 1),
        "branch": lambda: dataset.branches.create("new", 1),
    }
    with pytest.raises(ReferenceNotFound, match="version 1 was removed meanwhile"):
        act[what]()
    assert files(table / "_refs") == before
    assert dataset.tags.get("kept").version == 4
    assert not (table / "tree/new").exists()


# deleting


def test_deletion_is_that_of_pylance(table: Path) -> None:
    dataset = Dataset.open(str(table))
    stock = lance.dataset(str(table))
    with pytest.raises(ReferenceInUse, match="found dev/nested"):
        dataset.branches.delete("dev")
    with pytest.raises(OSError, match="dev/nested"):
        stock.branches.delete("dev")
    dataset.branches.delete("dev/nested")
    with pytest.raises(ReferenceInUse, match="found on-dev"):
        dataset.branches.delete("dev")
    with pytest.raises(OSError, match="on-dev"):
        stock.branches.delete("dev")
    assert DELETING not in ref(table, "dev")["metadata"]
    assert values(table, "dev") == [2, 3, 4, 5]
    dataset.tags.delete("on-dev")
    dataset.branches.delete("dev")

    assert stock.branches.list() == dataset.branches.list() == {}
    assert not (table / "tree").exists()
    for delete in (dataset.branches.delete, stock.branches.delete):
        with pytest.raises((ReferenceNotFound, ValueError), match="dev"):
            delete("dev")
    with pytest.raises(ReferenceNotFound):
        Dataset.open(str(table), ("dev", None))
    stock.create_branch("dev", 1)
    assert values(table, "dev") == [1, 2, 3]
    assert dataset.to_pylance().count_rows() == 5


def test_pylance_and_this_engine_delete_each_others_branches(table: Path) -> None:
    dataset, stock = Dataset.open(str(table)), lance.dataset(str(table))
    dataset.branches.create("ours", 2)
    dataset.branches.create("ours2", ("ours", None))
    dataset.tags.create("t", ("ours2", None))
    with pytest.raises(OSError, match="ours2"):
        stock.branches.delete("ours")
    with pytest.raises(OSError, match="referenced by tags"):
        stock.branches.delete("ours2")
    stock.tags.delete("t")
    stock.branches.delete("ours2")
    stock.branches.delete("ours")
    assert not (table / "tree/ours").exists()
    stock.create_branch("theirs", 2)
    dataset.branches.delete("theirs")
    assert not (table / "tree/theirs").exists()
    assert sorted(stock.branches.list()) == ["dev", "dev/nested"]


def test_a_branch_whose_parent_is_not_recorded_still_protects_it(table: Path) -> None:
    path = table / branch_path("", "dev/nested")
    contents = json.loads(path.read_text())
    contents["parentBranch"] = None
    path.write_text(json.dumps(contents))
    Dataset.open(str(table)).tags.delete("on-dev")
    with pytest.raises(ReferenceInUse, match="dev/nested"):
        Dataset.open(str(table)).branches.delete("dev")


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
def test_a_partly_deleted_branch_is_complete_or_cannot_be_opened(table: Path, fault: Fault) -> None:
    def prepare() -> None:
        dataset = Dataset.open(str(table))
        if "gone" in dataset.branches.list() or (table / "tree/gone").exists():
            dataset.branches.delete("gone")
        dataset.branches.create("gone", 2)
        for number in (10, 11):
            branch = lance.dataset(str(table)).checkout_version(("gone", None))
            lance.write_dataset(pa.table({"a": [number]}), branch, mode="append")
        branch.checkout_version(("gone", None)).delete("a = 10")

    prepare()
    expected = values(table, "gone")
    clean = FaultStore(LocalStore(table, "none"))
    Branches(clean, "").delete("gone")
    assert {write.verb for write in clean.writes} == {"replace", "delete"}
    for number in range(len(clean.writes)):
        prepare()
        store = FaultStore(LocalStore(table, "none"))
        store.fail(fault, nth=number)
        with pytest.raises(Crashed):
            Branches(store, "").delete("gone")
        stock = lance.dataset(str(table))
        try:
            left = stock.checkout_version(("gone", None))
        except ValueError:
            with pytest.raises(ReferenceNotFound):
                Dataset.open(str(table), ("gone", None))
        else:
            assert sorted(left.to_table()["a"].to_pylist()) == expected
        over = number == len(clean.writes) - 1 and fault is Fault.CRASH_AFTER
        if not over:
            assert "gone" in stock.branches.list()
        if number and not over:
            with pytest.raises(AlreadyExists, match="it is being deleted; delete it again to complete the deletion"):
                Dataset.open(str(table)).branches.create("gone", 2)
        if number % 2 and not over:
            stock.branches.delete("gone")
        elif not over:
            Dataset.open(str(table)).branches.delete("gone")
        assert not (table / "tree/gone").exists()
        assert "gone" not in stock.branches.list()
    prepare()
    assert values(table, "gone") == expected


def test_a_branch_without_a_reference_file_can_be_deleted(table: Path) -> None:
    dataset = Dataset.open(str(table))
    dataset.branches.create("gone", 2)
    (table / branch_path("", "gone")).unlink()
    dataset.branches.delete("gone")
    assert not (table / "tree/gone").exists()
    assert not (table / branch_path("", "gone")).exists()
    dataset.branches.create("gone", 1)
    assert values(table, "gone") == [1, 2, 3]


def test_a_commit_during_the_deletion_is_removed_too(table: Path) -> None:
    Dataset.open(str(table)).branches.create("gone", 2)
    late = lance.dataset(str(table)).checkout_version(("gone", None))
    store = FaultStore(LocalStore(table, "none"))
    manifests: list[str] = []

    def write(verb: str, key: str) -> None:
        if verb == "delete" and key.endswith(".manifest") and not manifests:
            manifests.append(key)
            lance.write_dataset(pa.table({"a": [10]}), late, mode="append")

    store.before(write)
    Branches(store, "").delete("gone")
    assert manifests
    assert not (table / "tree/gone").exists()


@pytest.mark.parametrize("what", ["tag", "move", "branch"])
@pytest.mark.parametrize("moment", ["replace", "get"])
def test_no_reference_is_created_to_a_branch_that_is_being_deleted(table: Path, what: str, moment: str) -> None:
    """A new reference to a branch and the deletion of the branch detect each other after both are written."""
    Dataset.open(str(table)).branches.create("gone", 2)
    store = LocalStore(table, "none")
    deleted: list[bool] = []

    def delete() -> None:
        try:
            Dataset.open(store).branches.delete("gone")
        except ReferenceInUse:
            deleted.append(False)
        else:
            deleted.append(True)

    faults = FaultStore(store)
    hits: list[str] = []

    def meanwhile(verb: str, key: str) -> None:
        announced = tag_path("", "two") if what == "move" else tag_path("", "t")
        if what == "branch":
            announced = branch_path("", "child")
        before = verb in {"put", "put_if_absent"} and key == announced
        after = verb == "get" and bool(hits) and key == branch_path("", "gone")
        if before:
            hits.append(key)
        if not deleted and (before if moment == "replace" else after):
            delete()

    faults.before(meanwhile)
    dataset = Dataset.open(faults)
    act: dict[str, Callable[[], object]] = {
        "tag": lambda: dataset.tags.create("t", ("gone", 2)),
        "move": lambda: dataset.tags.update("two", ("gone", 2)),
        "branch": lambda: dataset.branches.create("child", ("gone", 2)),
    }
    if moment == "replace":  # deleted before it was announced
        with pytest.raises(ReferenceNotFound, match="being deleted"):
            act[what]()
        assert deleted == [True]
    else:
        act[what]()
        assert deleted == [False]
        assert values(table, "gone") == MAIN
    assert dataset.tags.get("two").branch == ("gone" if (what, moment) == ("move", "get") else None)
    assert ("t" in dataset.tags.list()) == ((what, moment) == ("tag", "get"))
    assert ("child" in dataset.branches.list()) == ((what, moment) == ("branch", "get"))


def test_a_reference_created_before_the_mark_stops_the_deletion(table: Path) -> None:
    dataset = Dataset.open(str(table))
    dataset.branches.create("gone", 2, metadata={"k": "v"})
    before = ref(table, "gone")
    store = FaultStore(LocalStore(table, "none"))

    def tag(verb: str, _: str) -> None:
        if verb == "replace" and "t" not in dataset.tags.list():
            dataset.tags.create("t", ("gone", 2))

    store.before(tag)
    with pytest.raises(ReferenceInUse, match="found t"):
        Branches(store, "").delete("gone")
    assert ref(table, "gone") == before
    assert lance.dataset(str(table), version="t").count_rows() == 5


def test_a_nested_branch_without_a_reference_file_keeps_its_files(table: Path) -> None:
    dataset = Dataset.open(str(table))
    dataset.branches.create("p", 2)
    dataset.branches.create("p/q", 2)
    (table / branch_path("", "p/q")).unlink()
    dataset.branches.delete("p")
    assert not (table / "tree/p/_versions").exists()
    assert values(table, "p/q") == MAIN
    dataset.branches.create("p/q", 2)
    assert set(dataset.branches.list()) == {"dev", "dev/nested", "p/q"}


def test_requests_of_creating_and_deleting_a_branch(table: Path) -> None:
    store = CountingStore(LocalStore(table, "none"))
    branches = Branches(store, "", None, 2)
    with store.measure() as cost:
        branches.create("new", 2)
    gets = 2 if has_v2_names(table) else 3
    assert dict(cost.by_verb) == {"get": gets, "head": 1, "list": 3, "put_if_absent": 2, "put": 1}
    with store.measure() as cost:
        branches.delete("new")
    assert cost.by_verb["delete"] == 3  # the manifest, the transaction, the file


def has_v2_names(table: Path) -> bool:
    return not (table / "_versions/1.manifest").exists()
