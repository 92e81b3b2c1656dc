"""A destination belongs to one catalog: by the identity that is kept in both, and by its history."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from lance_namespace.errors import InvalidInputError
from typer.testing import CliRunner

from lance_core.errors import CorruptFile
from lance_core.storage.local import LocalStore
from namespace_server.cli import cli
from namespace_server.directory.backup import verify
from namespace_server.directory.backup.ownership import OWNER_KEY, read_owner
from namespace_server.directory.backup.records import BackupRecord, encode_file, list_backups, read_records, record_key
from namespace_server.directory.manifest_table.schema import OnDisk
from tests.directory.backup.catalogs import T, U, back_up, restore
from tests.directory.tables import Ground, rows


def make(root: Path, table: list[str]) -> Ground:
    ground = Ground(root)
    ground.make_namespace("g")
    ground.make_table(*table)
    ground.catalog.sweep()
    return ground


def identity(ground: Ground) -> str:
    disk = ground.again().catalog.snapshot().disk
    assert isinstance(disk, OnDisk)
    return disk.identity


@pytest.fixture
def production(tmp_path: Path) -> Ground:
    return make(tmp_path / "production", T)


@pytest.fixture
def backups(tmp_path: Path) -> Path:
    return tmp_path / "backups"


def of_an_earlier_release(backups: Path) -> None:
    """What a release left that knew of no owners."""
    store = LocalStore(backups)
    for record in read_records(store):
        values = record.as_json()
        del values["identity"]
        (backups / record_key(record.id)).write_bytes(encode_file(values))
    (backups / OWNER_KEY).unlink()


def refused(ground: Ground, backups: Path, because: str) -> None:
    """Nothing is written, and no pin stays."""
    before = {path: path.stat().st_mtime_ns for path in backups.rglob("*")}
    with pytest.raises(InvalidInputError, match=f"{because}.*: back it up to a destination of its own"):
        back_up(ground, backups)
    assert {path: path.stat().st_mtime_ns for path in backups.rglob("*")} == before
    assert ground.again().catalog.snapshot().pins() == []


def test_a_second_catalog_is_refused(production: Ground, backups: Path, tmp_path: Path) -> None:
    done = back_up(production, backups)
    assert done.record.identity == identity(production) != ""
    owner = read_owner(LocalStore(backups))
    assert owner is not None
    assert owner.identity == done.record.identity
    test = make(tmp_path / "test", U)
    refused(test, backups, f"belongs to catalog {done.record.identity}")
    assert back_up(production, backups).record.identity == done.record.identity
    assert restore(backups, tmp_path / "back").ids(T) == [0, 1, 2]


def test_two_first_backups_to_one_destination(production: Ground, backups: Path, tmp_path: Path) -> None:
    """Also where the one that came first died before its record."""
    test = make(tmp_path / "test", U)
    with pytest.raises(KeyboardInterrupt):
        back_up(production, backups, progress=_interrupt)
    assert list_backups(LocalStore(backups)) == []
    refused(test, backups, "belongs to catalog")
    back_up(production, backups)


def test_two_first_backups_of_two_copies(production: Ground, backups: Path, tmp_path: Path) -> None:
    """At one time: the second one begins before the first one has its record."""
    copy = Ground(Path(shutil.copytree(production.root, tmp_path / "copy")))
    began: list[str] = []

    def begin_another(*_told: object) -> None:
        if not began:
            began.append("copy")
            refused(
                copy, backups, "belongs to the catalog at .*production, which is still there, and of which .* is a copy"
            )

    done = back_up(production, backups, progress=begin_another)
    assert began
    assert list_backups(LocalStore(backups)) == [done.record.id]


def test_a_root_that_was_moved_before_its_first_backup_was_done(
    production: Ground, backups: Path, tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        back_up(production, backups, progress=_interrupt)
    back_up(Ground(production.root.rename(tmp_path / "moved")), backups)


def test_a_damaged_owner(production: Ground, backups: Path, tmp_path: Path) -> None:
    """It is named, and no backup goes on; a restoration needs no owner."""
    back_up(production, backups)
    (backups / OWNER_KEY).write_bytes((backups / OWNER_KEY).read_bytes()[:-1])
    [problem] = verify(LocalStore(backups)).problems
    assert problem.key == OWNER_KEY
    with pytest.raises(CorruptFile, match=OWNER_KEY):
        back_up(production, backups)
    assert restore(backups, tmp_path / "back").ids(T) == [0, 1, 2]


def _interrupt(*_told: object) -> None:
    raise KeyboardInterrupt


def test_a_root_that_was_moved_goes_on(production: Ground, backups: Path, tmp_path: Path) -> None:
    first = back_up(production, backups).record
    moved = Ground(production.root.rename(tmp_path / "moved"))
    second = back_up(moved, backups).record
    assert (first.identity, first.root) != (second.identity, second.root)
    assert first.identity == second.identity
    assert restore(backups, tmp_path / "back").ids(T) == [0, 1, 2]


def test_a_copy_is_refused_while_the_root_is_there(production: Ground, backups: Path, tmp_path: Path) -> None:
    back_up(production, backups)
    copy = Ground(Path(shutil.copytree(production.root, tmp_path / "copy")))
    refused(copy, backups, "of a catalog that is still there, of which this one is a copy")
    back_up(copy, tmp_path / "its own")
    back_up(production, backups)


def test_of_two_copies_one_goes_on(production: Ground, backups: Path, tmp_path: Path) -> None:
    """The root is on another machine, at the same path: what the other one backed up is no history of it."""
    back_up(production, backups)
    away = Path(shutil.copytree(production.root, tmp_path / "away"))
    production.write(T, rows(3, 4))
    back_up(production, backups)
    shutil.rmtree(production.root)
    other = Ground(away.rename(production.root))
    refused(other, backups, "has catalog version \\d+, the newest of this root is")
    for number in range(10):
        other.write(T, rows(10 + number, 11 + number))
    refused(other, backups, "has another catalog version")


def copies_that_do_not_see_each_other(production: Ground, backups: Path, tmp_path: Path) -> tuple[Ground, Ground]:
    """They are on two machines, and have the same path there: each finds its own root where a record names one."""
    back_up(production, backups)
    copy = Ground(Path(shutil.copytree(production.root, tmp_path / "copy")))
    for number, ground in enumerate((production, copy)):
        ground.write(T, rows(3 + number, 5 + number))
    return production, copy


def alone(ground: Ground) -> Callable[[str], LocalStore]:
    """Opens what is at each URI for a root that does not see the other one."""
    return lambda _uri: LocalStore(ground.root)


def test_two_copies_back_up_at_once(production: Ground, backups: Path, tmp_path: Path) -> None:
    """The one that ends last writes no record."""
    first, second = copies_that_do_not_see_each_other(production, backups, tmp_path)
    done: list[str] = []

    def begin_another(*_told: object) -> None:
        if not done:
            done.append(back_up(second, backups, open_root=alone(second)).record.id)

    with pytest.raises(InvalidInputError, match=r"has (another )?catalog version"):
        back_up(first, backups, progress=begin_another, open_root=alone(first))
    assert list_backups(LocalStore(backups))[1:] == done
    assert first.again().catalog.snapshot().pins() == []
    back_up(second, backups, open_root=alone(second))


@pytest.mark.parametrize("newer", [0, 1])
def test_backups_of_two_copies_are_told(production: Ground, backups: Path, tmp_path: Path, newer: int) -> None:
    """As where one of them went on after the versions of the other one were collected."""
    first, second = copies_that_do_not_see_each_other(production, backups, tmp_path)
    shutil.copytree(backups, tmp_path / "others")
    for number in range(newer):
        second.write(T, rows(6 + number, 7 + number))
    back_up(second, tmp_path / "others", open_root=alone(second))
    back_up(first, backups, open_root=alone(first))
    assert verify(LocalStore(backups)).copies is None
    shutil.copytree(tmp_path / "others", backups, dirs_exist_ok=True)
    _, of_second, of_first = (record.id for record in read_records(LocalStore(backups)))
    report = verify(LocalStore(backups))
    assert report.problems == ()
    expected = r"is younger than \d+ of the other" if newer else "is not that of the other"
    assert report.copies is not None
    before, after = (of_first, of_second) if newer else (of_second, of_first)
    assert re.search(f"backups {before} of .* and {after} of .* two copies: .*{expected}", report.copies)
    assert verify(LocalStore(backups), of_second).copies is None
    for command in ("backups", "verify-backup"):
        ended = CliRunner().invoke(cli, [command, str(backups)])
        assert (ended.exit_code, report.copies in ended.output) == (1, True)
    with pytest.raises(InvalidInputError, match=r"two copies.*: name one with --id"):
        restore(backups, tmp_path / "back")
    assert restore(backups, tmp_path / "back", of_second).ids(T) == [0, 1, 2, 4, 5, 6][: 5 + newer]


def test_a_restored_catalog_is_another_one(production: Ground, backups: Path, tmp_path: Path) -> None:
    back_up(production, backups)
    one, other = restore(backups, tmp_path / "one"), restore(backups, tmp_path / "other")
    assert len({identity(each) for each in (production, one, other)}) == 3
    refused(one, backups, "belongs to catalog")
    before = identity(one)
    one.write(T, rows(3, 4))
    assert identity(one) == before
    back_up(one, tmp_path / "its own")


def test_backups_of_an_earlier_release_are_adopted(production: Ground, backups: Path, tmp_path: Path) -> None:
    back_up(production, backups)
    production.write(T, rows(3, 4))
    first = back_up(production, backups).record
    of_an_earlier_release(backups)
    assert restore(backups, tmp_path / "back").ids(T) == [0, 1, 2, 3]  # those of one root are of one catalog
    second = back_up(production, backups).record
    assert (read_records(LocalStore(backups))[0].identity, second.identity) == ("", identity(production))
    assert restore(backups, tmp_path / "again").catalog.snapshot().version == second.catalog_version
    assert first.id in list_backups(LocalStore(backups))
    assert verify(LocalStore(backups)).problems == ()


def test_backups_of_an_earlier_release_of_another_catalog(production: Ground, backups: Path, tmp_path: Path) -> None:
    back_up(make(tmp_path / "test", U), backups)
    of_an_earlier_release(backups)
    refused(production, backups, "has another catalog version")
    restored = restore(backups, tmp_path / "restored")  # the version has the same number
    refused(restored, backups, "has another catalog version")


@pytest.mark.parametrize("change", [lambda record: {"identity": "another"}, lambda record: {"root": "file:///another"}])
def test_a_restoration_does_not_guess(
    production: Ground, backups: Path, tmp_path: Path, change: Callable[[BackupRecord], dict[str, str]]
) -> None:
    """A release that knew of no owners had put backups of two catalogs there."""
    first, second = back_up(production, backups).record, back_up(production, backups).record
    if "root" in change(second):
        of_an_earlier_release(backups)
    values = orjson.loads((backups / record_key(second.id)).read_bytes())["content"]
    (backups / record_key(second.id)).write_bytes(encode_file({**values, **change(second)}))
    with pytest.raises(InvalidInputError, match=f"expected backups of one catalog, found those of 2.*{first.id}"):
        restore(backups, tmp_path / "back")
    assert not (tmp_path / "back").exists()
    assert restore(backups, tmp_path / "back", first.id).ids(T) == [0, 1, 2]
