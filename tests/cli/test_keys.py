"""`keys`: keys of a file that a server reads, made, listed and removed; the file keeps what it had."""

from __future__ import annotations

import json
import os
import stat
import tomllib
from pathlib import Path

import pytest

from namespace_server.rest import key_file
from namespace_server.rest.identity import Authenticator
from namespace_server.rest.key_file import hashed
from tests.cli.commands import parsed, printed, refused

WRITTEN = '# keys of the shop\n"key-of-ann" = "ann"  # until May\n"sha256:{digest}" = "bob"'


@pytest.fixture(params=["keys.toml", "keys.json"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The name of a file that is not there."""
    return tmp_path / str(request.param)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A file with comments, a key in plain text and one as a digest."""
    path = tmp_path / "keys.toml"
    path.write_text(WRITTEN.format(digest=hashed("key-of-bob").removeprefix("sha256:").upper()))
    path.chmod(0o640)
    return path


def principal(file: Path, key: str) -> str | None:
    """Whose key a server takes it for."""
    return Authenticator({}, file).ring.find(key.encode())


def test_a_key_is_shown_once_and_the_file_has_its_digest(file: Path) -> None:
    first = printed("keys", "add", str(file), "ann").strip()
    second = parsed("keys", "add", str(file), 'Zoë "Z" \\ O')
    assert (len(first), first != second["key"]) == (43, True)
    assert principal(file, first) == "ann"
    assert principal(file, second["key"]) == second["principal"] == 'Zoë "Z" \\ O'
    assert first not in file.read_text()
    assert second["key"] not in file.read_text()
    listed = parsed("keys", "list", str(file))
    assert listed[1] == {
        "principal": 'Zoë "Z" \\ O',
        "digest": second["digest"].removeprefix("sha256:"),
        "plain": False,
    }
    assert first not in printed("keys", "list", str(file))


def test_a_key_is_rotated(file: Path) -> None:
    old, other = (printed("keys", "add", str(file), name).strip() for name in ("ann", "bob"))
    new = printed("keys", "add", str(file), "ann").strip()
    digest = hashed(old).removeprefix("sha256:")[:12]
    assert printed("keys", "remove", str(file), "ann", "--digest", digest.upper()) == "ann: 1 of 3 keys removed\n"
    assert [principal(file, key) for key in (old, new, other)] == [None, "ann", "bob"]
    assert printed("keys", "remove", str(file), "bob") == "bob: 1 of 2 keys removed\n"
    assert [principal(file, key) for key in (new, other)] == ["ann", None]


def test_the_last_key_stays(file: Path) -> None:
    key = printed("keys", "add", str(file), "ann").strip()
    assert "expected a key that stays" in refused("keys", "remove", str(file), "ann")
    assert "expected a key of bob, found none" in refused("keys", "remove", str(file), "bob")
    assert "with a digest that begins with zz" in refused("keys", "remove", str(file), "ann", "--digest", "zz")
    assert principal(file, key) == "ann"


def test_what_is_written_in_a_file_stays_as_it_is(written: Path) -> None:
    before = written.read_text()
    printed("keys", "add", str(written), "eve")
    assert written.read_text().startswith(before + "\n")
    assert stat.S_IMODE(written.stat().st_mode) == 0o640
    printed("keys", "remove", str(written), "bob")
    assert written.read_text().splitlines()[:2] == before.splitlines()[:2]
    assert list(tomllib.loads(written.read_text()).values()) == ["ann", "eve"]
    assert [each["plain"] for each in parsed("keys", "list", str(written))] == [True, False]
    printed("keys", "remove", str(written), "ann", "--digest", hashed("key-of-ann").removeprefix("sha256:")[:8])
    assert written.read_text().startswith("# keys of the shop\n")
    assert sorted(path.name for path in written.parent.iterdir()) == ["keys.toml"]


def test_a_link_stays_one(written: Path) -> None:
    link = written.with_name("link.toml")
    link.symlink_to(written)
    printed("keys", "add", str(link), "eve")
    assert link.is_symlink()
    assert len(tomllib.loads(written.read_text())) == 3


def test_a_key_on_several_lines_is_removed_by_hand(written: Path) -> None:
    before = 'a-long-key = """\nann"""\n"key-of-bob" = "bob"\n'
    written.write_text(before)
    assert "remove it by hand" in refused("keys", "remove", str(written), "ann")
    assert written.read_text() == before


def test_a_file_that_changes_meanwhile_is_not_overwritten(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = key_file.os.fsync

    def change(number: int) -> None:
        fsync(number)
        written.write_text('"key-of-zoe" = "zoe"\n')

    monkeypatch.setattr(key_file.os, "fsync", change)
    assert "changed by another process" in refused("keys", "add", str(written), "eve")
    assert written.read_text() == '"key-of-zoe" = "zoe"\n'
    assert sorted(path.name for path in written.parent.iterdir()) == ["keys.toml"]


@pytest.mark.parametrize(
    ("text", "said"),
    [("not toml", "malformed TOML"), ('"key-of-ann" = ', "malformed TOML")],
)
def test_a_file_of_something_else_is_refused_and_not_shown(written: Path, text: str, said: str) -> None:
    written.write_text(text)
    for command in (("add", "eve"), ("list",), ("remove", "ann")):
        message = refused("keys", command[0], str(written), *command[1:])
        assert said in message
        assert "key-of-ann" not in message
    assert written.read_text() == text


def test_a_principal_is_checked_before_anything_is_written(file: Path) -> None:
    assert "expected a principal" in refused("keys", "add", str(file), " ")
    assert not file.exists()
    assert "No such file" in refused("keys", "list", str(file))


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "keys.toml")
    for command in (("add", "ann"), ("list",), ("remove", "ann")):
        message = refused("keys", command[0], str(tmp_path / "keys.toml"), *command[1:])
        assert "expected a regular file" in message


def test_json_stays_json(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text('{"key-of-ann": "ann"}')
    printed("keys", "add", str(path), "bob")
    assert list(json.loads(path.read_text()).values()) == ["ann", "bob"]
