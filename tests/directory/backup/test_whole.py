"""A backup is of files that can be read: each that a version names is compared with what the version says of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lance_namespace.errors import InvalidInputError

from lance_core.errors import CorruptFile
from lance_core.storage.local import LocalStore
from lance_core.tables.stored_files import StoredFiles
from namespace_server.directory.backup import verify
from tests.directory.backup.catalogs import BRANCH, T, back_up, build, check_sound, content, out_of_reach, restore
from tests.directory.tables import Ground


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("whole") / "root"
    build(root)
    return root


@pytest.fixture
def ground(built: Path) -> Iterator[Ground]:
    """The catalog, which a test may change."""
    before = built.with_name("before")
    shutil.copytree(built, before, symlinks=True)
    yield Ground(built)
    shutil.rmtree(built)
    before.rename(built)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-9] ^= 4
    path.write_bytes(data)


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


DAMAGES: list[tuple[str, Callable[[Path], None]]] = [
    *(("_deletions/*", harm) for harm in (Path.unlink, halve, empty, flip)),
    *(
        (f"_indices/*/{name}", harm)
        for name in ("page_data.lance", "page_lookup.lance")
        for harm in (Path.unlink, halve)
    ),
    ("data/*.lance", halve),
]


@pytest.mark.parametrize(("name", "harm"), DAMAGES, ids=lambda value: getattr(value, "__name__", value))
def test_a_head_that_cannot_be_read_is_refused(
    ground: Ground, tmp_path: Path, name: str, harm: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup of it, such as a release made that did not look, is not sound."""
    victim = min((ground.root / ground.location(T)).glob(name))
    harm(victim)
    with pytest.raises(CorruptFile, match=rf"table g\$\w+: version \d, the newest of its branch: .*{victim.name}: "):
        back_up(ground, tmp_path / "backups")
    with monkeypatch.context() as patch:
        patch.setattr(StoredFiles, "problems", lambda *_arguments, **_given: [])
        back_up(ground, tmp_path / "unsound")
    told = {problem.key for problem in verify(LocalStore(tmp_path / "unsound")).problems if "/" in problem.key}
    assert told == {f"files/{victim.relative_to(ground.root)}"}


@pytest.mark.parametrize("directory", ["data", "_deletions", "_indices", "data/*.lance"])
def test_what_lies_behind_a_link_is_backed_up(ground: Ground, tmp_path: Path, directory: str) -> None:
    [*_, place] = sorted((ground.root / ground.location(T)).glob(directory))
    expected = content(ground)
    shutil.move(place, tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    back_up(ground, tmp_path / "backups")
    assert verify(LocalStore(tmp_path / "backups")).problems == ()
    restored = restore(tmp_path / "backups", tmp_path / "other")
    (tmp_path / "elsewhere").rename(tmp_path / "away")
    assert content(restored) == expected
    assert not [path for path in restored.root.rglob("*") if path.is_symlink()]


def test_a_root_is_the_same_through_a_link(tmp_path: Path) -> None:
    """Base paths that name it by a link lead into it."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    expected = content(build(tmp_path / "link"))
    back_up(Ground(tmp_path / "real"), tmp_path / "backups")
    restored = restore(tmp_path / "backups", tmp_path / "other")
    with out_of_reach(Ground(tmp_path / "real")):
        assert content(restored) == expected
        check_sound(tmp_path / "other")


def test_a_destination_within_the_root_is_refused_through_a_link(ground: Ground, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(ground.root)
    (ground.root / "empty").mkdir()
    for root, destination in (
        (ground.root, tmp_path / "link/backups"),
        (tmp_path / "link", ground.root / "backups"),
        (tmp_path / "link", ground.root.parent),
        (ground.root / "empty/..", ground.root / "backups"),
    ):
        with pytest.raises(InvalidInputError, match="a destination apart from the root"):
            back_up(Ground(root), destination)
    assert not (ground.root / "backups").exists()


def test_an_earlier_version_without_a_file_of_its_index(ground: Ground, tmp_path: Path) -> None:
    """Its rows are backed up, and the file is named, also when nothing is new."""
    ground.namespace.change("delete_table_tag", {"id": T, "tag": "branched"})
    ground.namespace.change("delete_table_branch", {"id": T, "name": BRANCH})
    ground.namespace.data.change("drop_table_index", {"id": T, "index_name": "id_idx"})
    ground.catalog.sweep()
    victim = min((ground.root / ground.location(T)).glob("_indices/*/page_data.lance"))
    victim.unlink()
    for _ in range(2):
        done = back_up(ground, tmp_path / "backups")
        assert [each.what for each in done.record.left_out] == [str(victim.relative_to(ground.root))] * 2
    assert verify(LocalStore(tmp_path / "backups")).problems == ()
    assert content(restore(tmp_path / "backups", tmp_path / "other")).versions == content(ground).versions
