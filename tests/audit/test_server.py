"""Where a server records refused attempts, as its settings say, and what else is at its root."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import typer
from pydantic import ValidationError

from namespace_server.attempts import AttemptQuery
from namespace_server.cli import server as server_command
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.observability.audit.log import RefusedAttemptLog
from namespace_server.settings import load_settings
from tests.audit.lines import attempt, written
from tests.cli.commands import parsed, printed


@contextmanager
def log_of(root: str, **given: Any) -> Iterator[RefusedAttemptLog | None]:
    """The log that a server of a root makes, while it runs."""
    with closing(DirectoryNamespace(root=root)) as namespace:
        log = server_command._attempts(load_settings(None, root=root, **given), namespace)
        if log is not None:
            log.start()
        yield log
        if log is not None:
            log.stop()


def test_a_root_in_a_directory_has_them_in_itself(tmp_path: Path) -> None:
    with log_of(str(tmp_path / "a root")) as log:
        assert log is not None
        assert not (tmp_path / "a root" / "_audit").exists()  # before there is one
        log.add(attempt("r-1"))
    [line] = written(tmp_path / "a root" / "_audit")
    assert line["request_id"] == "r-1"
    assert stat.S_IMODE((tmp_path / "a root" / "_audit").stat().st_mode) == 0o700


def test_a_directory_that_is_named_is_made_or_the_server_does_not_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "logs" / "audit"
    with log_of(str(tmp_path / "root"), audit_log=str(place)) as log:
        assert log is not None
        log.add(attempt("r-1"))
        assert place.is_dir()
    assert len(written(place)) == 1
    (tmp_path / "file").touch()
    with pytest.raises(typer.Exit), log_of(str(tmp_path / "root"), audit_log=str(tmp_path / "file" / "x")):
        pass
    assert "audit_log: " in capsys.readouterr().err


@pytest.mark.parametrize(("root", "audit_log"), [("memory://audited", None), ("{}", "stdout")])
def test_standard_output_has_them_where_there_is_no_directory(
    root: str, audit_log: str | None, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with log_of(root.format(tmp_path), audit_log=audit_log) as log:
        assert log is not None
        log.add(attempt("r-1"))
        assert log.read(AttemptQuery()) is None
    assert '"request_id":"r-1"' in capfd.readouterr().out
    assert not (tmp_path / "_audit").exists()


def test_it_can_be_off(tmp_path: Path) -> None:
    with log_of(str(tmp_path), audit_log="off") as log:
        assert log is None


def test_auditors_need_names() -> None:
    with pytest.raises(ValidationError, match="audit_readers: expected API keys"):
        load_settings(None, root="r", audit_readers=["ann"])
    named = load_settings(None, root="r", audit_readers="ann, bob", api_keys={"a-long-key": "ann"})
    assert named.audit_readers == ["ann", "bob"]


def test_commands_on_the_root_leave_them_alone(tmp_path: Path) -> None:
    root, backups, other = (str(tmp_path / name) for name in ("root", "backups", "other"))
    with closing(DirectoryNamespace(root=root)) as namespace:
        namespace.write("create_namespace", {"id": ["n"]})
    for place in (root, other):
        with log_of(place) as log:
            assert log is not None
            log.add(attempt("r-1"))
    assert not [each for each in parsed("doctor", root)["findings"] if "_audit" in str(each)]
    printed("gc", root)
    printed("backup", root, backups)
    assert not list((tmp_path / "backups").rglob("*audit*"))
    printed("restore", backups, other)
    for place in ("root", "other"):
        assert len(written(tmp_path / place / "_audit")) == 1
    with closing(DirectoryNamespace(root=other)) as namespace:
        namespace.read("namespace_exists", {"id": ["n"]})
