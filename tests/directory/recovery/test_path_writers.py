"""Stock writers commit by path on held handles, beside batches: nothing is lost, twice, or gone without a report."""

from __future__ import annotations

import os
import shutil
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import lance
import pytest
from lance_namespace.errors import InvalidInputError, LanceNamespaceError

from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.lineage import lineage_break
from lance_core.transaction.operations import MapUpdate, UpdateConfig, encode_transaction
from namespace_server.directory.doctor import Examination
from namespace_server.directory.manifests.quarantine import QuarantinedFile
from namespace_server.directory.model.operations import Batch
from namespace_server.directory.planning import planning_context
from namespace_server.directory.recovery import recommits, unmanaged_manifests
from tests.directory.recovery.path_writers import BASE, KINDS, OF_A_CLIENT, TABLE, Scenario, run_random
from tests.directory.tables import Capture, Ground, as_operation, rows

SCENARIOS = int(os.environ.get("LANCE_PATH_WRITERS_SCENARIOS", "8"))
MAY_BRING = {"delete_all", "delete_two", "update_base", "add_column", "index", "index_names", "restore"}
"""What may have deletions of the version on which it was made."""
FOLLOWING = frozenset(KINDS) - {"add_column", "drop_column", "index", "index_names", "restore"}
"""What is committed again after the append that it was built on, beside an append of a batch, if that is known."""
CHAINS = (
    ("append", "update_own", "update_own", "delete_base", "delete_own"),
    ("append", "upsert", "replace_data", "compact", "update_own"),
    ("append", "config", "overwrite", "append", "delete_own"),
    ("append", "add_column", "append", "drop_column", "delete_own"),
    ("append", "delete_base", "update_base", "restore", "append"),
    ("delete_base", "delete_base", "update_base", "delete_base", "index"),
)


def _take_name(scenario: Scenario, batch: str, kind: str = "append") -> None:
    """A batch is committed, and a writer by path has its name before it is promoted."""
    scenario.commit("config")
    scenario.read()
    scenario.batch(batch, promoted=False)
    assert scenario.commit(kind)


@pytest.mark.parametrize(("known", "branch"), [(True, None), (False, None), (True, "dev")])
@pytest.mark.parametrize("kind", KINDS)
def test_a_commit_on_a_quarantined_version(tmp_path: Path, kind: str, known: bool, branch: str | None) -> None:
    """By the same handle: it stands there when the name is repaired, or comes after that."""
    scenario = Scenario(tmp_path / "root", kind, branch=branch)
    _take_name(scenario, "append")
    if kind == "drop_column":
        scenario.commit("add_column")
    if not known:
        scenario.sweep()
    scenario.commit(kind)
    scenario.finish()
    if known and kind in FOLLOWING:
        assert not any(scenario.reasons.values()), scenario.reasons


@pytest.mark.parametrize("branch", [None, "dev"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_commit_on_a_quarantined_version_of_a_table_that_is_not_registered(
    tmp_path: Path, kind: str, branch: str | None
) -> None:
    """It is judged when the table comes back, as one above any head is (P15)."""
    scenario = Scenario(tmp_path / "root", kind, branch=branch)
    _take_name(scenario, "append")
    if kind == "drop_column":
        scenario.commit("add_column")
    location = scenario.deregister()
    scenario.commit(kind)
    scenario.ground.call("register_table", id=TABLE, location=location)
    scenario.finish()


def test_what_was_written_while_a_table_was_not_registered_is_there_when_it_is(ground: Ground) -> None:
    """Also where its earlier versions, or all that it was, have been removed meanwhile."""
    for number, change in enumerate((_append, _append_and_clean, _replace)):
        table_id = ground.make_table("g", f"t{number}")
        ground.write(table_id, rows(3, 5))
        location = ground.location(table_id)
        ground.call("deregister_table", id=table_id)
        change(ground.root / location)
        found = lance.dataset(str(ground.root / location))
        ground.call("register_table", id=table_id, location=location)
        assert ground.open(table_id).to_table() == found.to_table()
        ground.write(table_id, rows(20, 21))
        ground.catalog.sweep()
        assert ground.open(table_id).count_rows() == found.count_rows() + 1


@pytest.mark.parametrize("versions", [1, 2, 4])
def test_a_dataset_that_has_the_place_of_a_deregistered_table_is_registered_whole(
    ground: Ground, versions: int
) -> None:
    """Also if it has a version of the number that the table's head had: that is another file."""
    table_id = ground.make_table("g", "t")
    ground.write(table_id, rows(3, 5))
    assert ground.head(table_id) == 2
    location = ground.location(table_id)
    ground.call("deregister_table", id=table_id)
    _replace(ground.root / location, versions)
    ground.call("register_table", id=table_id, location=location)
    assert [entry.version for entry in ground.catalog.snapshot().versions(tuple(table_id))] == [*range(1, versions + 1)]
    assert ground.ids(table_id) == [*range(versions)]


def test_a_head_that_a_path_writer_cleaned_up_comes_back_by_a_registration(ground: Ground) -> None:
    """As `doctor` says: no request came between its commits and its clean-up, so that they cannot be judged."""
    table_id = ground.make_table("g", "t")
    ground.write(table_id, rows(3, 5))
    ground.catalog.sweep()
    location = ground.location(table_id)
    _append_and_clean(ground.root / location)
    again = ground.again()
    report = Examination(again.store).examine()
    [lost] = [each for each in report.findings if each.code == "head-lost"]
    assert "deregister the table and register it again" in lost.advice
    with pytest.raises(LanceNamespaceError, match="damaged"):
        again.batch(
            as_operation(table_id, pb.Transaction(read_version=2, uuid=str(uuid4()), append=pb.Transaction.Append()))
        )
    again.call("deregister_table", id=table_id)
    again.call("register_table", id=table_id, location=location)
    again.write(table_id, rows(20, 21))
    assert again.ids(table_id) == [*range(5), 7, 8, 20]


def _append(place: Path) -> None:
    for number in range(7, 9):
        lance.write_dataset(rows(number, number + 1), str(place), mode="append")


def _append_and_clean(place: Path) -> None:
    _append(place)
    lance.dataset(str(place)).cleanup_old_versions(older_than=timedelta(0))


def _replace(place: Path, versions: int = 4) -> None:
    shutil.rmtree(place)
    for number in range(versions):
        lance.write_dataset(rows(number, number + 1), str(place), mode="append" if number else "create")


@pytest.mark.parametrize(("batch", "known"), [("append", 5), ("append", 3), ("config", 1), ("config", 5)])
@pytest.mark.parametrize("chain", CHAINS)
def test_a_chain_of_five(tmp_path: Path, chain: tuple[str, ...], known: int, batch: str) -> None:
    """Of which so many stand there when the name is repaired."""
    scenario = Scenario(tmp_path / "root", "".join(chain))
    _take_name(scenario, batch, chain[0])
    for number, kind in enumerate(chain[1:], 1):
        if number == known:
            scenario.sweep()
        scenario.commit(kind)
    scenario.finish()


@pytest.mark.parametrize("kind", ["delete_own", "update_own", "upsert", "compact", "index", "overwrite"])
def test_two_writers_go_on_from_two_versions_of_one_number(tmp_path: Path, kind: str) -> None:
    scenario = Scenario(tmp_path / "root", kind, writers=2)
    _take_name(scenario, "append")
    scenario.sweep()
    scenario.commit("append", 1)
    scenario.batch("append", promoted=False)
    scenario.commit("append", 1)
    scenario.commit(kind, 0)
    scenario.commit(kind, 1)
    scenario.batch("append")
    scenario.finish()


@pytest.mark.parametrize("kind", ["delete_own", "update_own", "upsert", "delete_base", "update_base"])
def test_a_change_that_pylance_rebased_over_versions_of_another_writer(tmp_path: Path, kind: str) -> None:
    """Its writer read a version of the catalog, and its number is that of a version which is in quarantine then.

    A version of the first writer is not adopted, and its name is free again: the second writer takes it, with a version
    that is adopted. The first one goes on by its handle, and the second one commits over that.
    """
    scenario = Scenario(tmp_path / "root", kind, writers=2)
    _take_name(scenario, "append")
    scenario.sweep()
    assert scenario.commit("delete_own")
    scenario.read()
    assert scenario.commit("append", 1)
    assert scenario.commit("append", 0)
    assert scenario.commit(kind, 1)
    scenario.finish()


@pytest.mark.parametrize("kind", ["update_own", "delete_own", "append"])
@pytest.mark.parametrize("moved", [1, 2])
def test_a_chain_is_judged_when_all_of_it_is_in_quarantine(tmp_path: Path, kind: str, moved: int) -> None:
    """It is moved from the top down; another thread or process may look between any two moves."""
    scenario = Scenario(tmp_path / "root", kind)
    _take_name(scenario, "append")
    for step in ("append", kind, kind):
        assert scenario.commit(step)
    other, moves, begun = scenario.ground.again(), 0, list[Batch]()

    def look(verb: str, path: str) -> None:
        nonlocal moves
        if verb == "rename_if_absent":
            moves += 1
            if moves == moved + 1:
                begun.extend(other.catalog.unmanaged_manifests.recommits())

    forget = scenario.store.before(look)
    scenario.read()
    forget()
    assert moves > moved
    assert not begun
    scenario.finish()
    assert not any(scenario.reasons.values()), scenario.reasons


@pytest.mark.parametrize("later", [True, False])
@pytest.mark.parametrize("kind", ["delete_base", "replace_data"])
def test_an_index_of_a_version_whose_change_is_kept_aside(tmp_path: Path, kind: str, later: bool) -> None:
    """What it was made of is not in the table: the change before it conflicts with a column that was added since."""
    scenario = Scenario(tmp_path / "root", kind)
    scenario.commit("append")
    _take_name(scenario, "config", kind)
    if not later:
        scenario.commit("index_names")
    lance.dataset(namespace_client=scenario.ground.namespace, table_id=TABLE).add_columns({"late": "id + 1"})
    if later:
        scenario.sweep()
        assert scenario.commit("index_names")
    scenario.finish()
    assert len(scenario.reasons) == 2, scenario.reasons


@pytest.mark.parametrize(
    "kind", [pytest.param(each, marks=() if each in MAY_BRING else pytest.mark.long) for each in OF_A_CLIENT]
)
@pytest.mark.parametrize(
    ("change", "later"),
    [("delete_two", None), ("delete_two", "delete"), ("update_two", None), ("update_two", "append"), ("config", None)],
)
def test_a_client_of_the_catalog_that_has_read_a_quarantined_version(
    tmp_path: Path, change: str, kind: str, later: str | None
) -> None:
    """By the names on storage, before the repair. Nothing of that version comes into the table by what it commits.

    A batch has deleted one of the two rows that the path writer changes, so that its change is kept aside; where that
    changes none, the row would be back.
    """
    scenario = Scenario(tmp_path / "root", kind)
    scenario.batch("delete", promoted=False, of=scenario.writers[0].base[-1])
    assert scenario.commit(change)
    scenario.client_opens()
    assert scenario.client.handle.version == scenario.writers[0].handle.version
    scenario.sweep()
    if later is not None and kind != "delete_all":  # which names a version as read that it did not read, then
        scenario.batch(later, of=BASE // 2)
    scenario.client_commits(kind)
    scenario.finish()
    assert change == "config" or f"path0 {change}" in scenario.reasons


def test_a_transaction_that_says_what_it_read_may_delete_the_rows_of_a_commit_that_was_kept_aside(
    tmp_path: Path,
) -> None:
    """With others, in its first try: by the SHA-256 of the version, or since it read what its own batch makes."""
    scenario = Scenario(tmp_path / "root", "aside")
    gone = scenario.writers[0].base[-2:]
    scenario.batch("delete", promoted=False, of=gone[1])
    assert scenario.commit("delete_two")
    scenario.sweep()
    head = scenario.ground.catalog.snapshot().head(tuple(TABLE))
    assert head is not None
    capture = Capture(scenario.ground.namespace)
    lance.dataset(namespace_client=capture, table_id=TABLE).delete(f"id IN ({gone[0]}, 7)")
    [staged] = [parse_manifest_file(Path("/", each["manifest_path"]).read_bytes()) for each in capture.captured]
    message = staged.transaction
    assert message is not None
    found = "that only version 3, which is in quarantine, had deleted; after another commit, which has another number"
    with pytest.raises(InvalidInputError, match=found):
        scenario.ground.batch(as_operation(TABLE, message))
    stated = as_operation(TABLE, message)
    stated["commit_transaction"]["manifest_sha256"] = head.sha256
    again = pb.Transaction.FromString(message.SerializeToString())
    again.uuid, again.read_version = str(uuid4()), head.version + 1
    own = encode_transaction(UpdateConfig(config=MapUpdate({"a": "b"})), read_version=head.version, uuid=str(uuid4()))
    for operations in ([as_operation(TABLE, own), as_operation(TABLE, again)], [stated]):
        twin = shutil.copytree(scenario.ground.root, tmp_path / "twin")
        ground = Ground(twin)
        ground.batch(*operations)
        assert not {gone[0], 7} & set(ground.ids(TABLE))
        shutil.rmtree(twin)


@pytest.mark.parametrize(("kind", "first"), [("index", "config"), ("delete_two", "config"), ("delete_all", "delete")])
def test_what_is_refused_at_a_version_is_committed_at_the_next_one(tmp_path: Path, kind: str, first: str) -> None:
    """A stock client that has read the table's version may have read the other one; a fragment goes after their row."""
    scenario = Scenario(tmp_path / "root", kind)
    theirs, gone = scenario.writers[0].base[-2:]
    scenario.batch("delete", promoted=False, of=gone)
    assert scenario.commit("delete_two")
    scenario.sweep()
    scenario.client.base.append(theirs)
    for is_known in (False, True):
        scenario.client_opens(by_names=False)
        assert scenario.client_commits(kind) is is_known, scenario.log
        if not is_known:
            scenario.batch(first, of=theirs)
    scenario.finish()


@pytest.mark.parametrize("seed", range(SCENARIOS))
def test_a_scenario(tmp_path: Path, seed: int) -> None:
    run_random(tmp_path / "root", str(seed))


@pytest.mark.parametrize("kind", ["delete_own", "update_own"])
def test_the_check_sees_a_version_that_is_adopted_as_it_is(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning_context, "other_meaning", lambda *_: None)
    scenario = Scenario(tmp_path / "root", kind)
    _take_name(scenario, "append")
    scenario.sweep()
    scenario.batch("append")
    scenario.commit(kind)
    with pytest.raises(AssertionError, match=r"expected|twice"):
        scenario.finish()


def test_what_a_long_chain_was_built_on_is_found_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stock writer that goes on by its handle builds each version on the one before, for as long as it runs."""
    looks = 0

    def count(head: ManifestFile, proposed: ManifestFile) -> str | None:
        nonlocal looks
        looks += 1
        return lineage_break(head, proposed)

    monkeypatch.setattr(recommits, "lineage_break", count)
    scenario = Scenario(tmp_path / "root", "long")
    _take_name(scenario, "append")
    for _ in range(30):
        scenario.commit("config")
    scenario.finish()
    assert looks < 4 * 30


def test_the_quarantined_files_that_a_commit_can_have_read_are_read_alone(tmp_path: Path) -> None:
    """There may be thousands, of which none is of the version that an append names."""
    scenario = Scenario(tmp_path / "root", "many")
    for _ in range(12):
        _take_name(scenario, "append")
        scenario.sweep()
    scenario.ground = scenario.ground.again(scenario.store)
    read: list[str] = []
    forget = scenario.store.before(lambda verb, path: read.append(path) if verb == "get" else None)
    scenario.commit("append", again=True)
    scenario.read()
    assert scenario.ground.head(TABLE) == scenario.writers[0].handle.version
    assert not [path for path in read if "/foreign/" in path]
    for number in (0, 1):
        read.clear()
        scenario.commit("delete_base", again=True)
        scenario.read()
        assert len([path for path in read if "/foreign/" in path]) == (12, 0)[number]
        assert len([path for path in read if "/_deletions/" in path]) < 6
    forget()
    scenario.finish()


def test_a_listing_of_the_quarantine_that_takes_long_is_made_seldom(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, took = 0.0, 0.0
    monkeypatch.setattr(unmanaged_manifests, "elapsed_clock", lambda: now)
    files, listed = ground.catalog.unmanaged_manifests._quarantine.files, []

    def listing() -> list[QuarantinedFile]:
        nonlocal now
        listed.append(now)
        now += took
        return files()

    monkeypatch.setattr(ground.catalog.unmanaged_manifests._quarantine, "files", listing)
    for took in (0.01, 1.0):
        listed.clear()
        for _ in range(30):
            ground.catalog.unmanaged_manifests.recommits()
            now += 2
        assert len(listed) == (30 if took < 1 else 3)
