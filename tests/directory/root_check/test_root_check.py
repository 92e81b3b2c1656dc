"""A root check finds each broken promise of a store and nothing else, and leaves nothing."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lance_core.commit.handlers import ExternalManifestHandler
from lance_core.storage.local import LocalStore
from lance_core.storage.memory import MemoryStore
from lance_core.storage.opening import open_store
from lance_core.storage.port import ObjectStore
from lance_core.transaction.apply import WRITER_LIBRARY
from namespace_server.cli import cli
from namespace_server.directory.manifest_table.schema import COLLECTED, MANAGED_FLAG, READER_FLAGS_KEY, WRITER_FLAGS_KEY
from namespace_server.directory.model.errors import CatalogTooNew
from namespace_server.directory.model.root_layout import MANIFEST_TABLE
from namespace_server.directory.root_check import RootCheck, RootReport
from namespace_server.directory.root_check.exclusive_writes import Racer, RacerOutcome, what_is_wrong
from namespace_server.directory.root_check.report import ROOT_FINDINGS
from tests.directory.gc.unreferenced import find_orphans
from tests.directory.releases import make_newer
from tests.directory.root_check.broken_stores import BROKEN
from tests.directory.tables import Ground
from tests.emulators import Emulator
from tests.storage.latency import LatencyStore
from tests.storage.limited import PlainStore
from tests.storage.manifests import MemoryManifestStore


def codes(report: RootReport) -> set[str]:
    return {finding.code for finding in report.findings}


def tree(root: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in root.rglob("*")}


def keys(store: ObjectStore) -> list[str]:
    return [meta.path for meta in store.list("")]


def invoke(*arguments: str) -> tuple[int, str]:
    kept: dict[str, str | None] = {name: None for name in os.environ if name.startswith("LANCE_NAMESPACE_")}
    result = CliRunner(env=kept).invoke(cli, ["check", *arguments], catch_exceptions=False)
    return result.exit_code, result.stdout


# sound roots


def test_an_empty_directory(tmp_path: Path) -> None:
    report = RootCheck(LocalStore(tmp_path)).check()
    assert (report.findings, report.usable, report.catalog, list(tmp_path.iterdir())) == ((), True, None, [])


def test_a_root_in_memory() -> None:
    store = MemoryStore()
    report = RootCheck(store).check()
    assert (report.findings, report.usable, keys(store)) == ((), True, [])


@pytest.mark.parametrize("service", ["moto_server", "azurite", "fake_gcs"])
def test_a_bucket(service: str, request: pytest.FixtureRequest) -> None:
    emulator: Emulator = request.getfixturevalue(service)
    with closing(open_store(emulator.new_root(), emulator.storage_options)) as store:
        report = RootCheck(store).check()
        assert (report.findings, report.usable, keys(store)) == ((), True, [])
    assert report.cost is not None
    assert 0 < report.cost.seconds_to_commit < report.cost.seconds


def test_a_catalog_is_told_and_not_touched(tmp_path: Path) -> None:
    ground = Ground(tmp_path / "root")
    ground.make_namespace("g")
    ground.make_table("g", "t")
    before = tree(ground.root / MANIFEST_TABLE), set(tree(ground.root))
    report = RootCheck(LocalStore(ground.root)).check()
    assert report.findings == ()
    assert report.catalog is not None
    assert report.catalog.version == ground.catalog.snapshot().version
    assert report.catalog.written_by.startswith("lance-namespace-server ")
    assert (tree(ground.root / MANIFEST_TABLE), set(tree(ground.root))) == before


def test_a_store_whose_commits_a_database_decides(tmp_path: Path) -> None:
    plain, manifests = PlainStore(LocalStore(tmp_path)), MemoryManifestStore()
    assert "no-exclusive-write" in codes(RootCheck(plain).check())
    report = RootCheck(ExternalManifestHandler(manifests).over(plain)).check()
    assert (report.findings, manifests.rows, list(tmp_path.iterdir())) == ((), [], [])


# broken ones


@pytest.mark.parametrize("name", BROKEN)
def test_each_broken_store_is_named_and_nothing_else(name: str) -> None:
    make, expected = BROKEN[name]
    report = RootCheck(make()).check()
    assert codes(report) == expected, list(report.lines())
    known = not any(ROOT_FINDINGS[code].fails for code in expected)
    assert report.usable == (None if report.unreachable else known)
    assert all(finding.text and finding.advice for finding in report.findings)


def test_a_service_without_conditional_writes(unconditional_s3: Emulator) -> None:
    with closing(open_store(unconditional_s3.new_root(), unconditional_s3.storage_options)) as store:
        report = RootCheck(store).check()
        assert codes(report) == {"no-exclusive-write", "no-replace", "no-conditional-delete"}
        assert keys(store) == []


def test_a_bucket_that_is_not_there(moto_server: Emulator) -> None:
    with closing(open_store("s3://nowhere/x", moto_server.storage_options)) as store:
        [finding] = RootCheck(store).check().findings
    assert finding.code == "unreachable"
    assert "NoSuchBucket" in finding.text


def test_requests_that_take_long() -> None:
    report = RootCheck(LatencyStore(MemoryStore(), 0.003), slow=0.002).check()
    assert (codes(report), report.usable) == ({"slow"}, True)


@pytest.mark.parametrize(("seconds", "expected"), [(4, 0), (-4, 0), (600, 1)])
def test_the_clock_of_the_machine(seconds: int, expected: int) -> None:
    report = RootCheck(MemoryStore(), now=lambda: datetime.now(UTC) - timedelta(seconds=seconds)).check()
    assert len(report.findings) == expected
    assert report.clock_offset == pytest.approx(seconds, abs=0.5)


def test_a_date_in_whole_seconds_is_not_taken_for_another_clock(tmp_path: Path) -> None:
    store = MemoryStore(clock=lambda: datetime.now(UTC).replace(microsecond=0))
    assert RootCheck(store).check().clock_offset == 0.0


WON, LOST, SILENT = RacerOutcome.WON, RacerOutcome.LOST, RacerOutcome.SILENT


@pytest.mark.parametrize(
    ("racers", "final", "said"),
    [
        ([Racer(b"1", WON), Racer(b"2", LOST, b"1")], b"1", None),
        ([Racer(b"1", SILENT), Racer(b"2", LOST, b"1")], b"1", None),
        ([Racer(b"1", WON), Racer(b"2", WON)], b"2", "2 got the answer"),
        ([Racer(b"1", LOST, b"1"), Racer(b"2", LOST, b"1")], b"1", "sends requests again"),
        ([Racer(b"1", LOST, b"3"), Racer(b"2", LOST, b"3")], b"3", "each got the answer that another did"),
        ([Racer(b"1", WON), Racer(b"2", SILENT)], b"2", "does not hold the bytes of the one"),
        ([Racer(b"1", WON)], None, "does not hold the bytes of the one"),
        ([Racer(b"1", WON), Racer(b"2", LOST, None)], b"1", "found nothing"),
        ([Racer(b"1", WON), Racer(b"2", LOST, b"0")], b"1", "other bytes than those of the winner"),
    ],
)
def test_what_the_outcomes_of_a_race_show(racers: list[Racer], final: bytes | None, said: str | None) -> None:
    wrong = what_is_wrong(racers, final)
    assert (wrong is None) == (said is None)
    assert (said or "") in (wrong or "")


# places and catalogs


def test_a_directory_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    status, text = invoke(str(tmp_path / "typo"))
    assert status == 2
    assert f"would make it in {tmp_path}" in text
    assert list(tmp_path.iterdir()) == []
    status, text = invoke(str(tmp_path / "no" / "typo"))
    assert (status, "neither it nor the directory above is there" in text) == (1, True)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_root(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert codes(RootCheck(LocalStore(tmp_path / "file")).check()) == {"root-unusable"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    ground = Ground(tmp_path_factory.mktemp("made") / "root")
    ground.make_namespace("g")
    return ground.root


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "root"))


@pytest.mark.parametrize(
    ("key", "value"),
    [(WRITER_FLAGS_KEY, str(MANAGED_FLAG | COLLECTED | 1 << 35)), (READER_FLAGS_KEY, "1"), (WRITER_FLAGS_KEY, "new")],
)
def test_a_catalog_of_a_newer_release(root: Path, key: str, value: str) -> None:
    make_newer(root, key, value)
    report = RootCheck(LocalStore(root)).check()
    [finding] = report.findings
    assert (finding.code, report.usable) == ("catalog-unsupported", False)
    assert f"one of {WRITER_LIBRARY} 99.0.0: " in finding.text
    assert f"flags {value}" in finding.text
    with pytest.raises(CatalogTooNew) as refused:
        Ground(root).make_namespace("h")
    assert f"one of {WRITER_LIBRARY} 99.0.0: " in str(refused.value)
    assert f"flags {value}" in str(refused.value)
    examined = CliRunner().invoke(cli, ["doctor", str(root)])
    assert (examined.exit_code, "damage" in examined.stdout) == (2 if key == READER_FLAGS_KEY else 0, False)


def test_a_damaged_catalog(root: Path) -> None:
    newest = min((root / MANIFEST_TABLE / "_versions").glob("*.manifest"))
    newest.write_bytes(newest.read_bytes()[:-9])
    assert codes(RootCheck(LocalStore(root)).check()) == {"catalog-damaged"}


def test_a_catalog_of_stock_clients(tmp_path: Path) -> None:
    from lance.namespace import DirectoryNamespace as StockNamespace
    from lance_namespace import CreateNamespaceRequest

    StockNamespace(root=str(tmp_path)).create_namespace(CreateNamespaceRequest(id=["w"]))
    report = RootCheck(LocalStore(tmp_path)).check()
    assert (codes(report), report.usable) == ({"catalog-unmanaged"}, True)


# what it leaves


class Interrupted(BaseException):
    pass


@pytest.mark.parametrize("phase", ["replacements", "listings", "copies", "clocks", "the catalog"])
def test_an_interrupt_leaves_nothing(tmp_path: Path, phase: str) -> None:
    def interrupt(what: str, *_: object) -> None:
        if what == phase:
            assert list(tmp_path.iterdir()) != []
            raise Interrupted

    with pytest.raises(Interrupted):
        RootCheck(LocalStore(tmp_path), progress=interrupt).check()
    assert list(tmp_path.iterdir()) == []


def test_what_a_dead_check_left_is_understood_and_later_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground = Ground(tmp_path / "root")
    ground.make_namespace("g")
    ground.make_table("g", "t")
    monkeypatch.setattr("namespace_server.directory.root_check.workspace.Workspace.clear", lambda _: [])
    RootCheck(LocalStore(ground.root)).check()
    left = {key for key in keys(LocalStore(ground.root)) if key.startswith("_staging/") and key.count("/") > 2}
    assert len(left) > 20

    now = datetime.now(UTC)
    young = find_orphans(ground.store, now=now, older_than=timedelta(days=7))
    old = find_orphans(ground.store, now=now + timedelta(days=8), older_than=timedelta(days=7))

    assert (young.not_judged, young.unknown, young.orphans) == ({}, (), ())
    assert {orphan.path for orphan in old.orphans} >= left


# the command


def test_the_report(tmp_path: Path) -> None:
    status, text = invoke(str(tmp_path), "--json")
    found = json.loads(text)
    assert (status, found["usable"], found["findings"], found["catalog"]) == (0, True, [], None)
    assert found["batch"]["round_trips"] == 3
    assert {"put", "get", "head", "list"} <= found["requests"].keys()
    assert all(0 < each["median"] <= each["slowest"] for each in found["requests"].values())
    status, text = invoke(str(tmp_path))
    assert (status, text.splitlines()[-1]) == (0, f"file://{tmp_path}: can be used")


def test_a_wrong_option_is_refused() -> None:
    assert invoke("s3://bucket/x", "--storage-option", "allow_http")[0] == 2
    assert invoke("ftp://bucket/x")[0] == 2
