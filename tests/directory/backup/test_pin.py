"""A backup is made of files that its pin kept: one whose pin did not hold is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from lance_namespace.errors import ServiceUnavailableError

from lance_core.storage.local import LocalStore
from namespace_server.directory.backup import BackupRun
from namespace_server.directory.backup import run as backup_run
from namespace_server.directory.backup.records import list_backups
from tests.directory.tables import Ground

T = ["g", "t"]


class Clock:
    """Seconds that a test lets pass; the machine may have been suspended in between."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(backup_run, "elapsed_clock", lambda: self.now)


@pytest.fixture
def two(ground: Ground) -> Ground:
    for name in "tu":
        ground.make_table("g", name)
    ground.catalog.sweep()
    return ground


def back_up(ground: Ground, place: Path, meanwhile: Callable[[], None]) -> list[str]:
    """The backups after a run; `meanwhile` happens before it copies each table."""
    BackupRun(ground.catalog, LocalStore(place / "backups", "none"), progress=lambda *_: meanwhile()).make()
    return list_backups(LocalStore(place / "backups"))


def unpin(ground: Ground) -> None:
    for pin in ground.catalog.snapshot().pins():
        ground.call("unpin_catalog_version", name=pin.name)


def test_a_pin_that_is_gone_at_the_end(two: Ground, tmp_path: Path) -> None:
    with pytest.raises(ServiceUnavailableError, match="is gone before its time"):
        back_up(two, tmp_path, lambda: unpin(two.again()))
    assert list_backups(LocalStore(tmp_path / "backups")) == []
    assert len(back_up(two, tmp_path, lambda: None)) == 1


def test_a_pin_that_is_gone_is_not_set_again(two: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, other = Clock(monkeypatch), two.again()

    def pass_time() -> None:
        unpin(other)
        clock.now += 901

    with pytest.raises(ServiceUnavailableError, match="is gone before its time"):
        back_up(two, tmp_path, pass_time)
    assert list_backups(LocalStore(tmp_path / "backups")) == []


@pytest.mark.parametrize(("passed", "is_made"), [(1_700, True), (3_601, False)])
def test_a_pin_is_renewed_in_time(
    two: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passed: int, is_made: bool
) -> None:
    """A process that was suspended for longer cannot know whether a collection ended it."""
    clock = Clock(monkeypatch)

    def pass_time() -> None:
        clock.now += passed

    if is_made:
        assert len(back_up(two, tmp_path, pass_time)) == 1
        return
    with pytest.raises(ServiceUnavailableError, match="was not renewed for"):
        back_up(two, tmp_path, pass_time)
    assert list_backups(LocalStore(tmp_path / "backups")) == []
