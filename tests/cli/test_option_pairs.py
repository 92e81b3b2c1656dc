"""Options that contradict each other are refused by name: none of them is ignored."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from namespace_client import Catalog
from tests.cli.commands import invoke, parsed, printed, refused


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("pairs") / "catalog"
    with Catalog.connect(str(place)) as catalog:
        catalog.create("t", {"id": [1]})
    (place.parent / "rows.csv").write_text("id\n2\n")
    return str(place)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("read t --format csv --json", "--json: goes without --format, unless --output is a file"),
        ("read t --format csv -o - --json", "--json: goes without --format, unless --output is a file"),
        ("read t --format csv -o /dev/stdout --json", "--json: goes without --format, unless --output is a file"),
        ("read t --branch b --tag g", "a tag goes without version and branch"),
        ("read t --version 1 --tag g", "a tag goes without version and branch"),
        ("show --rows 3", "--rows: expected the name of a table with it"),
        ("show --branch b", "--branch: expected the name of a table with it"),
        ("show --tag g", "--tag: expected the name of a table with it"),
        ("show --version 1", "--version: expected the name of a table with it"),
        ("create n --schema {schema} --exist-ok", "--exist-ok: goes without --schema"),
        ("drop t --cascade", "--cascade: expected with --namespace"),
        ("load t={rows} --on id", "--mode upsert goes with --on KEY"),
        ("load t={rows} --mode upsert --on id --on v", "--on v: expected each column of a key once, in one --on: id,v"),
        ("load t={rows} --mode upsert --on t=id --on t=v", "--on t=v: expected each column of a key once, in one --on"),
        ("load t={rows} --mode upsert --on id,id", "--on id,id: expected each column of a key once, in one --on: id"),
        ("load t={rows} --mode create --branch b", "--branch: goes without --mode create"),
        ("gc --dry-run --max-removals 1", "--max-removals: goes without --dry-run"),
        ("gc --dry-run --max-time 1h", "--max-time: goes without --dry-run"),
        ("gc --older-than 1h", "--older-than: expected --dry-run"),
        ("gc --changed --table t", "--changed: goes without --table"),
        ("maintain --dry-run --seconds 1", "--seconds: goes without --dry-run"),
        ("doctor --remove-lost", "--remove-lost: expected --repair too"),
        ("check --durability none", "--durability: expected none of it"),
        ("ls --api-key k", "--api-key: goes with a server"),
        ("ls --token k", "--token: goes with a server"),
    ],
)
def test_on_a_catalog(root: str, arguments: str, said: str) -> None:
    home = Path(root).parent
    given = arguments.format(schema="'id int64'", rows=home / "rows.csv").split()
    with_schema = ["id int64" if each == "'id" else each for each in given if each != "int64'"]
    assert said in refused(*with_schema, "--root", root)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tck", "--list", "--url", "http://127.0.0.1:1"], "--url: goes without --list"),
        (["tck", "--list", "--header", "x-api-key: k"], "--header: goes without --list"),
        (["tck", "--list", "--junit", "results.xml"], "--junit: goes without --list"),
        (["ls", "--url", "http://127.0.0.1:1", "--durability", "none"], "--durability: goes with --root"),
        (
            ["ls", "--url", "http://127.0.0.1:1", "--manifest-store", "sqlite:///m"],
            "--manifest-store: goes with --root",
        ),
        (
            ["query", "t", "--text", "x", "--vector", "[1]", "--root", "r"],
            "expected one of --vector, --vector-file",
        ),
    ],
)
def test_of_others(arguments: list[str], said: str) -> None:
    assert said in refused(*arguments)


def test_json_describes_a_file_that_is_written(root: str, tmp_path: Path) -> None:
    """Beside a file there is one document, and a file of any format."""
    target = tmp_path / "t.csv"
    assert parsed("read", "t", "-o", str(target), "--root", root) == {"file": str(target), "rows": 1}
    assert target.read_text().splitlines()[1:] == ["1"]


def test_standard_output_by_its_path_has_the_rows_alone(root: str) -> None:
    for place in ("-", "/dev/stdout", "/dev/fd/1"):
        assert printed("read", "t", "--format", "csv", "-o", place, "--root", root).splitlines()[1:] == ["1"]


def test_a_dry_run_of_maintenance_leaves_what_a_run_would_leave(tmp_path: Path) -> None:
    with Catalog.connect(str(tmp_path)) as catalog:
        for number in range(5):
            rows = pa.table({"id": [number]})
            _ = catalog.append("t", rows) if number else catalog.create("t", rows)
        catalog.delete("t", "id = 1")
    policy = ("--policy", "maintenance.min_fragments=2", "--root", str(tmp_path))
    for arguments, said in (((), "t: left to its writers: "), (("--force",), "t: to do: ")):
        assert printed("maintain", "--dry-run", *arguments, *policy).startswith(said)
    assert printed("maintain", *policy).startswith("t: left to its writers: ")
    assert invoke("maintain", "--force", *policy).stdout.startswith("t: done: ")
