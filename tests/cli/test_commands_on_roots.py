"""Commands that work on the files of a catalog take its root as all commands on a catalog do."""

from __future__ import annotations

from pathlib import Path

import pytest

from namespace_client import Catalog
from namespace_server.directory.root_check import RootCheck
from namespace_server.directory.root_check.report import RootFinding, RootReport
from tests.cli.commands import invoke, printed, refused

ON_A_ROOT = (["gc", "--dry-run"], ["maintain", "--dry-run"], ["doctor"], ["check"])
NAMES = [arguments[0] for arguments in ON_A_ROOT]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = str(tmp_path_factory.mktemp("root") / "catalog")
    with Catalog.connect(root) as catalog:
        catalog.create("t", {"id": [1]})
    return root


@pytest.mark.parametrize("arguments", ON_A_ROOT, ids=NAMES)
def test_the_root_is_an_argument_an_option_a_variable_or_of_a_profile(
    root: str, arguments: list[str], tmp_path: Path
) -> None:
    profiles = tmp_path / "lance-namespace" / "profiles.toml"
    profiles.parent.mkdir()
    profiles.write_text(f'[p]\nurl = "{root}"\n')
    for given, environment in (
        ([root], {}),
        (["--root", root], {}),
        (["--profile", "p"], {"XDG_CONFIG_HOME": str(tmp_path)}),
        ([], {"LANCE_NAMESPACE_ROOT": root}),
        ([], {"LANCE_NAMESPACE_ROOT": root, "LANCE_NAMESPACE_URL": "http://127.0.0.1:1"}),
        ([root], {"LANCE_NAMESPACE_ROOT": "/nowhere"}),
    ):
        ended = invoke(*arguments, *given, **environment)
        assert ended.exit_code == 0, (given, ended.stderr)


@pytest.mark.parametrize("arguments", ON_A_ROOT, ids=NAMES)
def test_a_server_is_refused_by_name(arguments: list[str]) -> None:
    command = arguments[0]
    told = (
        f"{command}: works on the files of a catalog, expected its root (ROOT or --root), found the server http://h:1"
    )
    if command == "maintain":
        told = "maintain: a server is asked by --table for each table; --namespace and --policy go with a root"
    assert refused(*arguments, "--url", "http://h:1") == told
    assert refused(*arguments, LANCE_NAMESPACE_URL="http://h:1") == told
    missing = f"{command}: expected ROOT, --root, --profile or LANCE_NAMESPACE_ROOT, found none"
    assert refused(*arguments) == missing
    assert refused(*arguments, "a", "b") == "expected no argument but the root, found 1 arguments"


def test_what_goes_with_a_server_is_refused_for_a_root(root: str) -> None:
    for option in ("--api-key", "--token", "--ca"):
        assert f"{option}: goes with a server, found the root {root}" in refused("ls", "--root", root, option, "x")
        assert f"{option}: goes with a server" in refused("doctor", "--root", root, option, "x")
    assert "--durability: goes with --root" in refused("ls", "--url", "http://h:1", "--durability", "none")
    store = ("--manifest-store", "sqlite:///x")
    assert "--manifest-store: goes with --root" in refused("ls", "--url", "http://h:1", *store)
    assert "this command commits nothing" in refused("check", "--root", root, "--durability", "none")


def test_a_backup_goes_from_the_root_to_the_destination(root: str, tmp_path: Path) -> None:
    for number, (given, environment) in enumerate(
        (
            ([root], {}),
            (["--root", root], {}),
            ([], {"LANCE_NAMESPACE_ROOT": root}),
        )
    ):
        destination = str(tmp_path / f"{number}")
        assert "1 table" in printed("backup", *given, destination, **environment)
    assert "expected ROOT" in refused("backup", str(tmp_path / "d"))
    assert "works on the files" in refused("backup", str(tmp_path / "d"), "--url", "http://h:1")


def test_tables_are_below_the_namespace_of_the_profile(root: str, tmp_path: Path) -> None:
    profiles = tmp_path / "lance-namespace" / "profiles.toml"
    profiles.parent.mkdir()
    profiles.write_text(f'[p]\nurl = "{root}"\nnamespace = "nb"\n')
    home = {"XDG_CONFIG_HOME": str(tmp_path), "LANCE_NAMESPACE_PROFILE": "p"}
    with Catalog.connect(root) as catalog:
        catalog.create_namespace("nb")
        catalog.create("nb.features", {"id": [1]})
    assert printed("ls", **home) == "nb.features\n"
    assert printed("ls", "-l", **home).split()[6:9] == ["nb.features", "1", "1"]
    assert "nb.features" in printed("show", "features", **home)
    printed("create", "-p", "deep.er", **home)
    assert printed("ls", "-R", **home).split() == ["nb.deep/", "nb.deep.er/", "nb.features"]
    assert "1 table" in printed("doctor", "--table", "features", **home)
    assert "does not exist" in refused("doctor", "--table", "t", **home)


def test_a_table_that_was_never_dropped_does_not_come_back_later(root: str) -> None:
    """The status of what can succeed later would have a script repeat it for ever."""
    assert "nosuch" in refused("undrop", "nosuch", "--root", root, status=2)


def test_a_namespace_that_is_dropped_as_a_table_is_told(root: str) -> None:
    printed("create", "space", "--root", root)
    assert "space is a namespace: drop it with --namespace" in refused("drop", "space", "--root", root)


def test_what_does_not_answer_has_the_status_of_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "ConnectError" in refused("tck", "--url", "http://127.0.0.1:9", status=5)
    dead = RootReport("s3://b/c", checked=True, findings=(RootFinding("unreachable", "expected an answer"),))
    monkeypatch.setattr(RootCheck, "check", lambda _self: dead)
    ended = invoke("check", "--root", str(tmp_path))
    assert ended.exit_code == 5
    assert "s3://b/c: was not checked: 1 error" in ended.stdout
