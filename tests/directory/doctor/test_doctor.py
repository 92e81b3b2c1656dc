"""The doctor finds every damage that is planted, nothing else, and mends what it says that it mends."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import lance
import pytest
from lance_namespace.errors import LanceNamespaceError
from typer.testing import CliRunner

from lance_core.storage.local import LocalStore
from lance_core.storage.wrappers.counting import CountingStore
from namespace_server.cli import cli
from namespace_server.directory.doctor import Examination, ExaminationReport, Severity
from namespace_server.directory.doctor.findings import KINDS
from namespace_server.directory.doctor.repairs import repair
from tests.directory.doctor.damages import DAMAGES, Place, T, U, build
from tests.directory.tables import Ground, rows
from tests.storage.faults import Crashed, Fault, FaultStore


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sound") / "root"
    build(root)
    return root


@pytest.fixture
def place(sound: Path, tmp_path: Path) -> Iterator[Place]:
    shutil.copytree(sound, tmp_path / "root", symlinks=True)
    yield Place(tmp_path / "root")
    shutil.rmtree(tmp_path / "root")


def examination(root: Path) -> Examination:
    return Examination(LocalStore(root, "none"), sleep=lambda _seconds: None)


def codes(report: ExaminationReport) -> set[str]:
    return {finding.code for finding in report.findings}


def test_a_sound_root(place: Place) -> None:
    before = {path: path.stat().st_mtime_ns for path in place.root.rglob("*")}
    report = examination(place.root).examine()
    assert report.findings == ()
    assert (report.tables, report.versions) == (2, 6 + 1 + 3)
    assert {path: path.stat().st_mtime_ns for path in place.root.rglob("*")} == before


@pytest.mark.parametrize("name", DAMAGES)
def test_each_damage_is_found_and_nothing_else(place: Place, name: str) -> None:
    plant, expected = DAMAGES[name]
    plant(place)
    report = examination(place.root).examine()
    assert codes(report) == expected, list(report.lines())
    assert all(finding.text and finding.advice for finding in report.findings)


def test_enough_kinds_are_planted() -> None:
    planted = {code for _, expected in DAMAGES.values() for code in expected}
    assert len(DAMAGES) >= 40
    assert KINDS.keys() - planted == {"catalog-rows-disagree", "not-checked", "no-catalog"}


REPAIRED = sorted(name for name, (_, expected) in DAMAGES.items() if any(KINDS[code].repairable for code in expected))


@pytest.mark.parametrize("name", REPAIRED)
def test_what_is_repairable_is_repaired(place: Place, name: str) -> None:
    plant, expected = DAMAGES[name]
    plant(place)
    left = set() if "head-lost" not in expected or "quarantined-version" in expected else expected
    found = examination(place.root)
    report = repair(Ground(place.root).namespace, found, found.examine())
    assert codes(report) - {"quarantined-file", "version-without-row"} == left, list(report.lines())
    assert {finding.code for finding in report.repaired} >= {code for code in expected if KINDS[code].repairable}
    for table in (T, U):
        place.ground.open(table).validate()
        place.ground.write(table, rows(50, 51))
        assert 50 in place.ground.ids(table)
    place.ground.catalog.sweep()
    assert codes(examination(place.root).examine()) <= {"quarantined-file", "version-without-row"}


@pytest.mark.parametrize(
    "name",
    [
        "head_is_in_quarantine",
        "old_version_is_missing",
        "server_died_after_its_flip",
        "manifests_were_renamed_by_path",
    ],
)
@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
def test_a_repair_that_dies_is_repeated(place: Place, tmp_path: Path, name: str, fault: Fault) -> None:
    plant, _ = DAMAGES[name]
    plant(place)
    dies, number = True, -1
    while dies:
        number += 1
        root = tmp_path / f"{number}"
        shutil.copytree(place.root, root)
        store = FaultStore(LocalStore(root, "none"))
        store.fail(fault, nth=number)
        found = examination(root)
        try:
            repair(Ground(root, store).namespace, found, found.examine(), remove_lost=True)
        except Crashed:
            pass
        else:
            dies = False
        report = repair(Ground(root).namespace, found, found.examine(), remove_lost=True)
        assert codes(report) <= {"quarantined-file"}, list(report.lines())
        shutil.rmtree(root)
    assert number > 1


def test_names_that_pylance_migrated_by_path_are_given_back(ground: Ground) -> None:
    """And the name of a version that was committed by path after that, so that it is adopted."""
    lance.write_dataset(
        rows(0, 3), mode="create", namespace_client=ground.namespace, table_id=T, enable_v2_manifest_paths=False
    )
    ground.write(T, rows(3, 4))
    ground.catalog.sweep()
    ground.open(T).migrate_manifest_paths_v2()
    ground.unmanaged_append(T, rows(4, 5))
    with pytest.raises(LanceNamespaceError, match="is damaged: expected the manifest of version 2, the newest"):
        ground.again().batch(ground.transaction(T, rows(5, 6)))
    found = examination(ground.root)
    report = found.examine()
    assert codes(report) == {"renamed-manifest", "unmanaged-version"}, list(report.lines())
    assert repair(ground.namespace, found, report).findings == ()
    ground.batch(ground.transaction(T, rows(5, 6)))
    ground.catalog.sweep()
    assert ground.ids(T) == [0, 1, 2, 3, 4, 5]
    assert codes(found.examine()) == set()


def test_a_version_by_path_of_a_table_in_a_deeper_directory_is_adopted(ground: Ground) -> None:
    lance.write_dataset(rows(0, 3), str(ground.root / "a/b/t"))
    ground.call("register_table", id=T, location="a/b/t")
    ground.unmanaged_append(T, rows(3, 4))
    found = examination(ground.root)
    report = found.examine()
    assert codes(report) == {"unmanaged-version"}
    assert repair(ground.namespace, found, report).findings == ()
    assert ground.head(T) == 2


def test_beside_writers_nothing_is_found(place: Place) -> None:
    """A server commits and sweeps between the calls of the doctor, and a path writer commits."""
    store, calls = FaultStore(LocalStore(place.root, "none")), [0]
    busy = False

    def work(_verb: str, _path: str) -> None:
        nonlocal busy
        calls[0] += 1
        if busy or calls[0] % 40:
            return
        busy = True
        ground = place.ground
        number = 100 + calls[0]
        ground.batch(*(ground.transaction(table, rows(number, number + 1)) for table in (T, U)))
        if calls[0] % 120 == 0:
            ground.catalog.sweep()
        busy = False

    store.before(work)
    report = Examination(store, sleep=lambda _seconds: place.ground.catalog.sweep()).examine()
    assert report.worst is Severity.NOTE, list(report.lines())
    assert calls[0] > 150


def test_a_sample_and_heads_cost_less(place: Place) -> None:
    costs = []
    for heads, tables, sample in ((False, (), None), (True, (), None), (True, (), 1), (True, (tuple(U),), None)):
        store = CountingStore(LocalStore(place.root, "none"))
        report = Examination(store, tables, sample, heads).examine()
        assert report.findings == ()
        costs.append(store.cost.requests)
    assert costs == sorted(costs, reverse=True)
    assert costs[0] - costs[1] == 2 * (5 + 2)  # manifests and transaction files of the versions below the heads


def test_the_command(place: Place) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(cli, ["doctor", str(place.root), *arguments])
        return done.exit_code, done.stdout

    status, said = run()
    assert (status, said.splitlines()[-1].endswith("2 tables, 10 versions: sound")) == (0, True)
    assert run("--table", "g$none")[0] == 2
    DAMAGES["old_version_is_missing"][0](place)
    status, said = run("--json")
    assert (status, json.loads(said)["worst"]) == (1, "warning")
    status, said = run("--repair")
    assert status == 1
    assert "restore the manifest from a backup" in said
    assert run("--remove-lost")[0] == 2
    status, said = run("--repair", "--remove-lost")
    assert status == 0
    assert "repaired: version-lost" in said
    DAMAGES["head_is_missing"][0](place)
    status, said = run("--table", "g$u")
    assert status == 3
    assert said.startswith("damage: head-lost: ")
    assert run("--table", "g$t")[0] == 0


def test_a_root_without_a_catalog(tmp_path: Path) -> None:
    """It may be served already, and have had no change."""
    done = CliRunner().invoke(cli, ["doctor", str(tmp_path / "none")])
    assert (done.exit_code, "no catalog here yet" in done.stdout) == (0, True)
    assert not (tmp_path / "none").exists()
    Ground(tmp_path / "none").catalog.sweep()
    assert codes(examination(tmp_path / "none").examine()) == {"no-catalog"}


@pytest.mark.parametrize("name", ["manifest_of_an_old_version_has_another_bit", "old_version_is_missing"])
def test_a_repair_makes_nothing_final(place: Place, name: str) -> None:
    """A manifest that is put back from a backup, after a repair and a collection, is that of its row."""
    manifest = place.version(U, 2)
    before, ids = manifest.read_bytes(), place.ground.open(U, 2).to_table()["id"].to_pylist()
    DAMAGES[name][0](place)
    found = examination(place.root)
    damaged = name != "old_version_is_missing"  # which a client may have removed, so that it is removed on request
    report = repair(Ground(place.root).namespace, found, found.examine(), remove_lost=damaged)
    assert codes(report) == DAMAGES[name][1]
    manifest.write_bytes(before)
    assert found.examine().findings == ()
    assert place.ground.open(U, 2).to_table()["id"].to_pylist() == ids


def test_a_table_with_a_log_is_sound(ground: Ground) -> None:
    """Its index, which holds metadata of the table, has no files."""
    ground.make_table(*T)
    ground.open(T).initialize_mem_wal(maintained_indexes=[])
    ground.read("list_table_versions", id=T)
    ground.catalog.sweep()
    assert [index.name for index in ground.open(T).describe_indices()] == ["__lance_mem_wal"]
    assert examination(ground.root).examine().findings == ()
