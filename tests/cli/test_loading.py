"""Where files are loaded from and read to, what `load` says, and what Ctrl-C leaves."""

from __future__ import annotations

import io
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from namespace_client import Catalog
from namespace_server.cli import interrupts, loading
from tests.cli.commands import invoke, parsed, printed, refused
from tests.emulators import Emulator

Load = Callable[..., str]


@pytest.fixture
def root(tmp_path: Path) -> str:
    with Catalog.connect(str(tmp_path / "catalog")) as catalog:
        catalog.create("t", pa.table({"id": pa.array([1], pa.int64()), "zip": ["007"]}))
    return str(tmp_path / "catalog")


def rows(root: str, table: str = "t") -> list[dict[str, Any]]:
    return parsed("read", table, "--root", root)


def file(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_directory_and_a_pattern_are_their_files_in_one_batch(root: str, tmp_path: Path) -> None:
    for number in (2, 3):
        file(tmp_path / f"day/{number}.csv", f"id,zip\n{number},00{number}\n")
    file(tmp_path / "day/below/4.jsonl", '{"zip": "004", "id": 4}\n')
    file(tmp_path / "day/_SUCCESS", "")
    file(tmp_path / "day/.hidden.csv", "x\n")
    version = parsed("log", "-n", "1", "--root", root)[0]["version"]
    assert "3 rows appended" in printed("load", f"t={tmp_path}/day/", "--root", root)
    assert {row["id"]: row["zip"] for row in rows(root)} == {1: "007", 2: "002", 3: "003", 4: "004"}
    assert parsed("log", "-n", "1", "--root", root)[0]["version"] == version + 1
    assert "2 rows appended" in printed("load", f"t={tmp_path}/day/*.csv", "--root", root)
    assert "3 rows appended" in printed("load", f"t={tmp_path}/day/**/[2-4].*", "--root", root)
    file(tmp_path / "day/5.csv", "id,zip\n5,x\n6\n")
    told = refused("load", f"t={tmp_path}/day", "--root", root)
    assert told == f"{tmp_path}/day/5.csv: line 3: expected 2 cells, found 1"
    assert "expected files that match, found none" in refused("load", f"t={tmp_path}/x*", "--root", root)


@pytest.mark.parametrize("mode", ["create", "append"])
def test_columns_of_files_in_another_order_are_matched_by_name(root: str, tmp_path: Path, mode: str) -> None:
    if mode == "append":
        with Catalog.connect(root) as catalog:
            catalog.create("p", schema=pa.schema([("a", pa.int64()), ("b", pa.int64())]))
    (tmp_path / "p").mkdir()
    pa.parquet.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "p/1.parquet")
    pa.parquet.write_table(pa.table({"b": [4], "a": [3]}), tmp_path / "p/2.parquet")
    file(tmp_path / "p/3.csv", "b,a\n6,5\n")
    printed("load", f"p={tmp_path}/p", "--mode", mode, "--root", root)
    assert rows(root, "p") == [{"a": 1, "b": 2}, {"a": 3, "b": 4}, {"a": 5, "b": 6}]


def test_a_vector_holds_what_the_file_says_or_is_refused(root: str, tmp_path: Path) -> None:
    pa.parquet.write_table(pa.table({"v": [[1.5, 2.0], [1e300, 0.0]]}), tmp_path / "v.parquet")
    told = refused("load", f"p={tmp_path}/v.parquet", "--mode", "create", "--vector", "v", "--root", root)
    assert "v.parquet: column 'v', row 2: expected float, found 1e+300" in told


def test_standard_input_and_pipes(root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"id,zip\n2,002\n")))
    from typer.testing import CliRunner

    from namespace_server.cli import cli

    done = CliRunner().invoke(cli, ["load", "t=-", "--format", "csv", "--root", root], input=b"id,zip\n2,002\n")
    assert done.exit_code == 0, done.stderr
    os.mkfifo(tmp_path / "pipe.csv")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe.csv").write_text("id,zip\n3,003\n"))
    writer.start()
    printed("load", f"t={tmp_path}/pipe.csv", "--root", root)
    writer.join()
    assert [row["zip"] for row in rows(root)] == ["007", "002", "003"]
    assert "expected one of .parquet" in refused("load", "t=-", "--root", root)


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_address_of_the_web(root: str, tmp_path: Path, web: str) -> None:
    file(tmp_path / "two.csv", "id,zip\n2,002\n")
    printed("load", f"t={web}/two.csv?key=secret", "--root", root)
    assert len(rows(root)) == 2
    assert refused("load", f"t={web}/three.csv?key=secret", "--root", root) == (
        f"{web}/three.csv?…: expected a file, found HTTP status 404"
    )


def test_a_bucket(root: str, tmp_path: Path, moto_server: Emulator) -> None:
    place = moto_server.new_root()
    options = [part for pair in moto_server.storage_options.items() for part in ("--storage-option", "=".join(pair))]
    for name in ("a.parquet", "b.csv.gz", "below/c.jsonl", "d.arrow"):
        printed("read", "t", "-o", f"{place}/{name}", "--root", root, *options)
    for number, what in enumerate(["", "/a.parquet", "/*.gz", "/below/", "/**/c.*"]):
        wanted = 4 if not what else 1
        assert f"{wanted} row" in printed("load", f"t={place}{what}", "--root", root, *options), number
    assert {row["zip"] for row in rows(root)} == {"007"}
    assert "expected files of this name, or in the directory, found none" in refused(
        "load", f"t={place}/no.csv", "--root", root, *options
    )
    assert "not written" in refused("read", "t", "-o", "s3://no-such-bucket/t.csv", "--root", root, *options)


def test_what_is_found_is_said_and_a_dry_run_only_says_it(root: str, tmp_path: Path) -> None:
    shops = file(tmp_path / "shops.csv", "zip,price,none\n00501,1.50,\n")
    more = file(tmp_path / "more.csv", "price,zip,none\nmany,1,x\n")
    load = ("load", f"s={shops}", f"s={more}", "--mode", "create", "--root", root)
    told = "s: zip string, price string, none string\n"
    assert printed(*load, "--dry-run") == f"{told}nothing is loaded\n"
    assert "does not exist" in refused("read", "s", "--root", root)
    assert printed(*load).startswith(told)
    assert rows(root, "s") == [
        {"zip": "00501", "price": "1.50", "none": None},
        {"zip": "1", "price": "many", "none": "x"},
    ]
    found = parsed("load", f"u={shops}", "--mode", "create", "--root", root, "--schema", "price decimal(10,2)")
    assert found["found_types"] == {"u": {"zip": "string", "price": "decimal128(10, 2)", "none": "string"}}
    assert "price string" in printed("load", f"v={shops}", "--mode", "create", "--text", "--dry-run", "--root", root)
    header = file(tmp_path / "header.csv", "a,b\n")
    printed("load", f"h={header}", "--mode", "create", "--root", root)
    printed("load", f"h={file(tmp_path / 'h.csv', 'b,a' + chr(10) + '1,x' + chr(10))}", "--root", root)
    assert rows(root, "h") == [{"a": "x", "b": "1"}]


def test_types_of_a_table_by_a_file_without_rows(root: str, tmp_path: Path) -> None:
    table = pa.table(
        {
            "b": [b"\x00\xff", None],
            "d": pa.array([1, None], pa.duration("ns")),
            "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
        }
    )
    with Catalog.connect(root) as catalog:
        catalog.create("all", table)
    printed("read", "all", "-o", f"{tmp_path}/all.jsonl", "--root", root)
    printed("read", "all", "--limit", "0", "-o", f"{tmp_path}/all.arrow", "--root", root)
    printed(
        "load", f"again={tmp_path}/all.jsonl", "--mode", "create", "--schema", f"{tmp_path}/all.arrow", "--root", root
    )
    with Catalog.connect(root) as catalog:
        assert catalog.dataset("again").to_table().to_pylist() == table.to_pylist()


def test_a_file_that_is_not_written_is_named(root: str, tmp_path: Path) -> None:
    for place in ("/dev/full", f"{tmp_path}/none/t.csv", f"{tmp_path}"):
        told = refused("read", "t", "-o", place, "--format", "csv", "--root", root)
        assert told.startswith(f"{place}: not written: ")
    assert "compresses its columns itself" in refused(
        "read", "t", "-o", f"{tmp_path}/t.csv.gz", "--format", "parquet", "--root", root
    )
    (tmp_path / "link.csv").symlink_to("real.csv")
    printed("read", "t", "-o", f"{tmp_path}/link.csv", "--root", root)
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == '"id","zip"\n1,"007"\n'
    assert {path.name for path in tmp_path.iterdir()} == {"catalog", "link.csv", "real.csv"}


def test_an_upsert_leaves_columns_that_the_file_lacks(root: str, tmp_path: Path) -> None:
    with Catalog.connect(root) as catalog:
        catalog.create("u", pa.table({"id": [1, 2], "a": ["x", "y"], "b": [1, 2]}))
    changed = file(tmp_path / "u.jsonl", '{"id": 1, "b": 5}\n{"id": 2, "b": null}\n')
    printed("load", f"u={changed}", "--mode", "upsert", "--on", "id", "--root", root)
    found = sorted(rows(root, "u"), key=lambda row: row["id"])
    assert found == [{"id": 1, "a": "x", "b": 5}, {"id": 2, "a": "y", "b": None}]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["t={csv}", "--schema", "id int64"], "--schema: expected with --mode create or overwrite"),
        (["t={csv}", "--text"], "--text: expected with --mode create or overwrite"),
        (["t={csv}", "--mode", "upsert", "--on", "no", "--dry-run"], "--on no: expected columns of t among id, zip"),
        (["n={csv}", "--mode", "create", "--schema", "{twice}"], "the key 'id' twice in an object"),
        (["t={csv}", "--vector", "v"], "--vector: expected with --mode create or overwrite"),
        (["n={parquet}", "--mode", "create", "--text"], "--text: expected CSV or JSON files"),
        (["t={parquet}", "--delimiter", ";"], "--delimiter: expected CSV files"),
        (["t={parquet}", "--null", "NA"], "--null: expected CSV files"),
        (["n={csv}", "m={csv}", "--mode", "create", "--schema", "id int64"], "--schema: expected one table"),
        (["n={csv}", "--mode", "create", "--schema", "di int64"], "has no column di, and has id"),
        (["n={csv}", "--mode", "create", "--schema", "nothing.txt"], "nothing.txt: expected a file, or columns"),
        (["n={csv}", "--mode", "create", "--vector", "zip"], "--vector zip: expected lists of numbers"),
        (["n={csv}", "--mode", "create", "--vector", "v"], "--vector v: expected a column of the files"),
        (["t={csv}", "--delimiter", "ab"], "--delimiter ab: expected one character, or tab"),
        (["t={csv}", "--delimiter", ";"], "t has no column id,zip, expected id, zip"),
        (["t={named}"], "as its name says, found something else"),
    ],
)
def test_an_option_without_effect_is_refused(root: str, tmp_path: Path, arguments: list[str], said: str) -> None:
    files = {
        "csv": file(tmp_path / "a.csv", "id,zip\n2,002\n"),
        "parquet": tmp_path / "a.parquet",
        "named": file(tmp_path / "b.csv.gz", "id,zip\n2,002\n"),
        "twice": file(tmp_path / "twice.json", '{"id": "int64", "id": "text"}'),
    }
    pa.parquet.write_table(pa.table({"id": [2]}), files["parquet"])
    assert said in refused("load", *(each.format(**files) for each in arguments), "--root", root)
    assert len(rows(root)) == 1


def test_a_file_that_changes_while_it_is_read_is_refused(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grows = file(tmp_path / "a.csv", "id,zip\n2,002\n")
    read = loading._Stream._rows

    def growing(self: Any, opened: Any) -> Iterator[Any]:
        yield from read(self, opened)
        grows.write_text("id,zip\n2,002\n3,003\n")

    monkeypatch.setattr(loading._Stream, "_rows", growing)
    assert "a.csv: it was changed while it was read" in refused("load", f"t={grows}", "--root", root)
    assert len(rows(root)) == 1


def test_an_interrupt_that_is_hidden_commits_nothing(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = file(tmp_path / "a.csv", "id,zip\n2,002\n")
    read = loading._Stream._rows

    def interrupted(self: Any, opened: Any) -> Iterator[Any]:
        with suppress(KeyboardInterrupt):  # as pylance does that raises an error of its own, or none
            signal.raise_signal(signal.SIGINT)
        yield from read(self, opened)

    monkeypatch.setattr(loading._Stream, "_rows", interrupted)
    before = signal.getsignal(signal.SIGINT)
    assert invoke("load", f"t={here}", "--root", root).exit_code == 130
    assert len(rows(root)) == 1
    assert signal.getsignal(signal.SIGINT) is before


def interrupted_at_the_commit(root: str, directory: Path, monkeypatch: pytest.MonkeyPatch, times: int) -> Any:
    """The end of a load of one row that is interrupted so many times once its commit has begun."""
    here = file(directory / "a.csv", "id,zip\n2,002\n")
    hold = interrupts.Interrupts.hold

    def held(self: interrupts.Interrupts) -> None:
        hold(self)
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(interrupts.Interrupts, "hold", held)
    done = invoke("load", f"t={here}", "--root", root)
    assert done.exit_code == 130
    return done


def test_an_interrupt_during_the_commit_says_that_it_is_done(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = interrupted_at_the_commit(root, tmp_path, monkeypatch, 1)
    assert "interrupted after the commit: catalog version" in done.stderr
    assert len(rows(root)) == 2


def test_a_second_interrupt_during_the_commit_says_that_it_is_unknown(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = interrupted_at_the_commit(root, tmp_path, monkeypatch, 2)
    assert "interrupted twice, during the commit: the rows may be committed, or not" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["t={good}", "--mode", "create"], "t: expected no table of this name with --mode create, found one"),
        (["no={good}", "--mode", "overwrite"], "no: expected a table with --mode overwrite, found none"),
        (["no={good}"], "no such table"),
        (["no={good}", "--mode", "upsert", "--on", "id"], "no such table"),
        (["no.u={good}", "--mode", "create"], "no"),
        (["t={bad}"], "bad.csv: line 3: column id: expected int64, found 'x'"),
        (["t={bad}", "--mode", "upsert", "--on", "id"], "bad.csv: line 3: column id"),
        (["t={good}", "t={bad}"], "bad.csv: line 3: column id"),
        (["t={arrow}"], "bad.arrow: "),
        (["t={good}", "--branch", "no"], "no"),
        (["u={good}", "--mode", "create", "--schema", "id int64, zip date32"], "good.csv: line 2: column zip"),
        (["u={text}", "--mode", "create"], "not-utf-8.arrow: "),
        (["t={good}", "--text"], "--text: expected with --mode create or overwrite"),
        (["t={good}", "--vector", "zip"], "--vector: expected with --mode create or overwrite"),
        (["t={arrow}", "--delimiter", ";"], "--delimiter: expected CSV files, found arrow"),
    ],
)
def test_a_dry_run_is_refused_as_the_load_is(root: str, tmp_path: Path, arguments: list[str], said: str) -> None:
    not_utf8 = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.array([0, 1], pa.int32()).buffers()[1], pa.py_buffer(b"\xff")]
    )
    files = {
        "good": file(tmp_path / "good.csv", "id,zip\n2,002\n"),
        "bad": file(tmp_path / "bad.csv", "id,zip\n2,002\nx,003\n"),
        "arrow": tmp_path / "bad.arrow",
        "text": tmp_path / "not-utf-8.arrow",
    }
    for name, table in (("arrow", pa.table({"id": [2.5], "zip": ["x"]})), ("text", pa.table({"zip": not_utf8}))):
        with pa.ipc.new_file(files[name], table.schema) as writer:
            writer.write_table(table)
    given = ["load", *(each.format(**files) for each in arguments), "--root", root]
    before = sorted(Path(root).rglob("*"))
    told = refused(*given, "--dry-run")
    assert said in told
    assert sorted(Path(root).rglob("*")) == before
    assert refused(*given) == told


def test_a_dry_run_makes_no_catalog(tmp_path: Path) -> None:
    rows = file(tmp_path / "rows.csv", "id\n1\n")
    load = ("load", f"t={rows}", "--mode", "create", "--root", str(tmp_path / "new"))
    assert printed(*load, "--dry-run") == "t: id int64\nnothing is loaded\n"
    assert not (tmp_path / "new").exists()
    assert "t: id int64" in printed(*load)
