"""Damage to a backup: each file that is damaged is named, and nothing else; nothing damaged is restored."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lance_core.errors import CorruptFile, LanceCoreError, NotFound
from lance_core.storage.local import LocalStore
from namespace_server.directory.backup import verify
from namespace_server.directory.backup.records import list_backups
from tests.directory.backup.catalogs import T, back_up, build, restore
from tests.directory.tables import Ground


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    return build(tmp_path_factory.mktemp("damage") / "root")


@pytest.fixture(scope="module")
def sound(ground: Ground, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("sound") / "backups"
    back_up(ground, place)
    return place


@pytest.fixture
def backups(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "backups"))


def flip(path: Path) -> None:
    """Another bit in the middle."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


HARMS: list[Callable[[Path], None]] = [flip, shorten, Path.unlink]
FILES = {
    "data file": "files/*_g$t/data/*.lance",
    "deletion file": "files/*_g$t/_deletions/*",
    "index file": "files/*_g$t/_indices/*/*",
    "file of a branch": "files/*_g$t/tree/dev/_deletions/*",
    "file of a clone": "files/clone_of_t/data/*",
    "rows of the catalog": "files/__manifest/data/*",
    "manifest": "manifests/*",
}


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
@pytest.mark.parametrize("kind", FILES)
def test_each_damaged_file_is_named(backups: Path, kind: str, harm: Callable[[Path], None]) -> None:
    victim = min(backups.glob(FILES[kind]))
    harm(victim)
    report = verify(LocalStore(backups))
    key = str(victim.relative_to(backups))
    of_files = {problem.key for problem in report.problems if "/" in problem.key}
    assert of_files == {key}
    others = {problem.key for problem in report.problems} - of_files  # a table that cannot be opened, or the catalog
    assert all(other.startswith(("g$", "catalog of ")) for other in others)


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
def test_a_damaged_inventory_is_named(ground: Ground, backups: Path, harm: Callable[[Path], None]) -> None:
    """The next backup writes it again."""
    location = ground.location(T)
    [victim] = (backups / "tables" / location).iterdir()
    harm(victim)
    report = verify(LocalStore(backups))
    assert [problem.key for problem in report.problems] == [str(victim.relative_to(backups))]
    back_up(ground, backups)
    assert verify(LocalStore(backups)).problems == ()


def test_a_record_that_cannot_be_read_is_named(backups: Path) -> None:
    [backup_id] = list_backups(LocalStore(backups))
    shorten(backups / f"backups/{backup_id}.json")
    [problem] = verify(LocalStore(backups)).problems
    assert problem.key == f"backups/{backup_id}.json"


def test_an_inventory_of_another_state_is_no_match(ground: Ground, backups: Path) -> None:
    """One that has fewer files, and is JSON of the right form."""
    [path] = (backups / "tables" / ground.location(T)).iterdir()
    values = json.loads(path.read_bytes())
    values["content"]["files"].pop()
    content = json.dumps(values["content"], separators=(",", ":"), sort_keys=True)
    path.write_text(json.dumps({"content": values["content"], "sha256": hashlib.sha256(content.encode()).hexdigest()}))
    [problem] = verify(LocalStore(backups)).problems
    assert problem.key == str(path.relative_to(backups))
    assert "expected 7 versions and 14 files of" in problem.text
    assert "found 7 versions and 13 files of" in problem.text


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
@pytest.mark.parametrize("kind", FILES)
def test_nothing_damaged_is_restored(
    sound: Path, backups: Path, tmp_path: Path, kind: str, harm: Callable[[Path], None]
) -> None:
    """The restoration ends with the name of the file, and goes on once the file is put back."""
    victim = min(backups.glob(FILES[kind]))
    harm(victim)
    with pytest.raises(LanceCoreError) as raised:
        restore(backups, tmp_path / "other")
    assert isinstance(raised.value, CorruptFile | NotFound)
    assert victim.name in str(raised.value)
    assert not (tmp_path / "other/__manifest/_versions").exists()
    shutil.copy(sound / victim.relative_to(backups), victim)
    assert restore(backups, tmp_path / "other").ids(T) == [0, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("harm", [shorten, Path.unlink], ids=lambda harm: harm.__name__)
@pytest.mark.parametrize("kind", sorted(FILES.keys() - {"rows of the catalog"}))
def test_the_next_backup_puts_back_what_is_missing(
    ground: Ground, backups: Path, kind: str, harm: Callable[[Path], None]
) -> None:
    """By sizes, which every backup looks at; a flipped bit is found by a verification alone.

    The rows of the catalog are in other files by then.
    """
    victim = min(backups.glob(FILES[kind]))
    if kind == "manifest":  # not that of the catalog, of which the next backup has another one
        inventory = json.loads(min((backups / "tables" / ground.location(T)).iterdir()).read_bytes())["content"]
        victim = backups / "manifests" / inventory["versions"][0][3]
    harm(victim)
    back_up(ground, backups)
    assert verify(LocalStore(backups)).problems == ()
