"""Which files a directory, a pattern and an address are, and which are refused by name."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from namespace_client import Catalog
from namespace_server.cli.files.refusals import FileRefused
from namespace_server.cli.files.sources import SourceFinder, _matches
from tests.cli.commands import parsed, printed, refused
from tests.emulators import Emulator


def file(path: Path, text: str = "id\n1\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def found(text: object) -> list[str]:
    """The last two names of the files that an argument names."""
    with SourceFinder(None, {}) as finder:
        return ["/".join(Path(each.name).parts[-2:]) for each in finder.find(str(text))]


def refusal_of(text: object) -> str:
    with pytest.raises(FileRefused) as refused:
        found(text)
    return str(refused.value)


def test_names_that_engines_give_to_what_is_not_data_are_left_out_by_wildcards(tmp_path: Path) -> None:
    for name in ("d/a.csv", "d/_temporary/0/b.csv", "d/.x/c.csv", "d/_d.csv", "d/.e.csv", "d/e/f.csv"):
        file(tmp_path / name)
    assert found(tmp_path / "d") == found(tmp_path / "d/**/*.csv") == found(tmp_path / "d/**") == ["d/a.csv", "e/f.csv"]
    assert found(tmp_path / "d/*.csv") == ["d/a.csv"]
    assert found(tmp_path / "d/_*.csv") == ["d/_d.csv"]
    assert found(tmp_path / "d/_*/*/*") == found(tmp_path / "d/_temporary") == ["0/b.csv"]


@pytest.mark.parametrize(
    "name", ["a[1].csv", "a*.csv", "a b.csv", "a=b.csv", "a,b.csv", "ü'\".csv", "a\nb.csv", "a%20.csv"]
)
def test_a_file_of_any_name_is_found_by_it(tmp_path: Path, name: str) -> None:
    file(tmp_path / name)
    file(tmp_path / "ab.csv")
    assert found(tmp_path / name) == [f"{tmp_path.name}/{name}"]


def test_patterns_are_those_of_shells(tmp_path: Path) -> None:
    for name in ("a1.csv", "a2.csv", "b1.csv", "x[1].csv"):
        file(tmp_path / "p" / name)
    for pattern, names in (
        ("[!a]1.csv", ["b1"]),
        ("a[12].*", ["a1", "a2"]),
        ("?1.csv", ["a1", "b1"]),
        ("x[[]*", ["x[1]"]),
    ):
        assert found(tmp_path / "p" / pattern) == [f"p/{each}.csv" for each in names], pattern
    for pattern in ("[a.csv", "[\\]a1.csv"):
        assert "expected files that match, found none" in refusal_of(tmp_path / "p" / pattern)
    for names, parts, wanted in (
        (["a", "b", "c"], ["**", "c"], True),
        (["c"], ["**", "c"], True),
        (["a", "b"], ["*"], False),
        (["a", "b"], ["a", "**", "**", "b"], True),
        (["_a", "b"], ["**", "b"], False),
    ):
        assert _matches(names, parts) == wanted, (names, parts)


def test_a_link_is_its_file_and_one_to_nothing_or_around_is_refused(tmp_path: Path) -> None:
    file(tmp_path / "day/1.csv")
    file(tmp_path / "else/2.csv")
    more = tmp_path / "day/more"
    more.symlink_to(tmp_path / "else")
    for place in ("day", "day/**/*.csv"):
        assert found(tmp_path / place) == ["day/1.csv", "more/2.csv"]
    more.unlink()
    more.symlink_to(tmp_path / "day")
    for place in ("day", "day/**/*.csv"):
        assert f"{more}: expected a directory of its own, found a link to" in refusal_of(tmp_path / place)
    more.unlink()
    gone = tmp_path / "day/3.csv"
    gone.symlink_to("nothing.csv")
    for place in ("day", "day/*.csv"):
        assert refusal_of(tmp_path / place) == f"{gone}: expected a file, found a link to nothing"
    gone.unlink()
    os.mkfifo(gone)
    assert refusal_of(tmp_path / "day") == f"{gone}: expected a file, found a pipe, a device or a socket"
    assert "expected a file or a pipe, found a device" in refusal_of("/dev/zero")


def test_addresses_of_files_are_decoded_and_others_refused(tmp_path: Path) -> None:
    file(tmp_path / "a b/1.csv")
    assert found(f"file://{tmp_path}/a%20b/1.csv") == ["a b/1.csv"]
    assert "expected a path, file:///path or one of s3://" in refusal_of("file://host/1.csv")
    assert "expected a path, file:///path or one of s3://" in refusal_of("hdfs://host/1.csv")
    assert "home directory" in refusal_of("~no-such-user/1.csv")


@pytest.fixture
def root(tmp_path: Path) -> str:
    with Catalog.connect(str(tmp_path / "catalog")) as catalog:
        catalog.create("t", schema=pa.schema([("id", pa.int64()), ("year", pa.int32()), ("month", pa.string())]))
    return str(tmp_path / "catalog")


def test_a_file_that_is_found_twice_and_an_input_that_is_named_twice_are_refused(root: str, tmp_path: Path) -> None:
    one = file(tmp_path / "day/1.csv")
    (tmp_path / "day/latest.csv").symlink_to("1.csv")
    for arguments in ([f"t={tmp_path}/day"], [f"t={one}", f"t={tmp_path}/day/../day/1.csv"]):
        assert f"t: expected each file once, found {one} again as " in refused("load", *arguments, "--root", root)
    told = refused("load", "t=-", "t=/dev/stdin", "--format", "csv", "--root", root)
    assert told == "standard input: expected once, as it can be read once, found twice"


def test_directories_say_columns_of_their_files(root: str, tmp_path: Path) -> None:
    for year, month, end in ((2025, "01", "csv"), (2026, "12", "csv"), (2026, "12", "parquet")):
        directory = tmp_path / f"parts/year={year}/month={month}"
        if end == "csv":
            file(directory / "1.csv", f"id\n{year}\n")
        else:
            pa.parquet.write_table(pa.table({"id": pa.array([7], pa.int32())}), directory / "2.parquet")
    file(tmp_path / "parts/year=__HIVE_DEFAULT_PARTITION__/3.jsonl", '{"id": 8}\n{"id": 9}\n')
    wanted = [
        {"id": 7, "year": 2026, "month": "12"},
        {"id": 8, "year": None, "month": None},
        {"id": 9, "year": None, "month": None},
        {"id": 2025, "year": 2025, "month": "01"},
        {"id": 2026, "year": 2026, "month": "12"},
    ]
    printed("load", f"t={tmp_path}/parts", "--root", root)
    told = printed("load", f"new={tmp_path}/parts", "--mode", "create", "--root", root)
    assert told.startswith("new: id int32, year int64, month string\n")
    for table in ("t", "new"):
        assert sorted(parsed("read", table, "--root", root), key=lambda row: row["id"]) == wanted
    printed("load", f"t={tmp_path}/parts/*/month=12/*.csv", "--mode", "overwrite", "--root", root)
    assert parsed("read", "t", "--root", root) == [{"id": 2026, "year": 2026, "month": 12}]
    printed(
        "load", f"t={tmp_path}/parts/year=2025/*/1.csv", "--mode", "overwrite", "--schema", "month int8", "--root", root
    )
    assert parsed("read", "t", "--root", root) == [{"id": 2025, "month": 1}]


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("year=x/1.csv", "id\n1\n", "1.csv: column year in the name of its directory: expected int32, found 'x'"),
        ("year=2026/1.csv", "id,year\n1,2026\n", "column year in the file or in its directory, found it in both"),
        ("year=2026/1.jsonl", '{"year": 2026}\n', "column year in the file or in its directory, found it in both"),
        ("other=1/1.csv", "id\n1\n", "1.csv: t has no column other"),
        ("year=1/year=2/1.csv", "id\n1\n", "expected directories with different columns, found year=2"),
        ("year=/1.csv", "id\n1\n", "expected a column and a value, __HIVE_DEFAULT_PARTITION__ for null, found year="),
        ("=1/1.csv", "id\n1\n", "expected a column and a value, __HIVE_DEFAULT_PARTITION__ for null, found =1"),
    ],
)
def test_what_is_wrong_with_the_columns_of_directories_is_said(
    root: str, tmp_path: Path, path: str, text: str, said: str
) -> None:
    file(tmp_path / "parts" / path, text)
    assert said in refused("load", f"t={tmp_path}/parts", "--root", root)
    assert parsed("read", "t", "--root", root) == []


@pytest.mark.parametrize("name", ["wrong", "missing", "surplus", "not-utf-8"])
@pytest.mark.parametrize("mode", ["append", "create"])
def test_a_parquet_or_arrow_file_that_does_not_fit_is_named(root: str, tmp_path: Path, name: str, mode: str) -> None:
    good, bad = tmp_path / "good.arrow", tmp_path / "bad.arrow"
    not_utf8 = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.array([0, 1], pa.int32()).buffers()[1], pa.py_buffer(b"\xff")]
    )
    tables = {
        good: pa.table({"id": [1], "year": pa.array([1], pa.int32()), "month": ["x"]}),
        bad: {
            "wrong": pa.table({"id": [1.0, 2.9], "year": [1, 2], "month": ["x", "y"]}),
            "missing": pa.table({"year": [1], "month": ["x"], "di": [1]}),
            "surplus": pa.table({"id": [1], "year": [1], "month": ["x"], "more": [1]}),
            "not-utf-8": pa.table({"id": [1], "year": pa.array([1], pa.int32()), "month": not_utf8}),
        }[name],
    }
    for path, table in tables.items():
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    table = "t" if mode == "append" else "new"
    told = refused("load", f"{table}={good}", f"{table}={bad}", "--mode", mode, "--root", root)
    assert told.startswith(f"{bad}: "), told
    if name == "wrong":
        assert "row 2: expected int64, found 2.9" in told
    assert parsed("ls", "--root", root) == [{"name": "t", "kind": "table"}]


@pytest.fixture
def web() -> Iterator[str]:
    class Answers(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Nothing."""

        def do_GET(self) -> None:
            body = b"id\n1\n"
            surplus = 10 if "short" in self.path else 0
            self.send_response(200)
            if "page" in self.path:  # as servers answer who must log in
                body = b"\n<!doctype html>\n<title>Log in</title>\n"
            if "html" in self.path:
                self.send_header("Content-Type", "text/html; charset=utf-8")
            if self.path.endswith(".gz"):  # as some servers do with files that are compressed
                body = gzip.compress(body)
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(body) + surplus))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_what_the_web_answers_is_whole_or_refused(root: str, web: str) -> None:
    for path in ("a.csv", "a.csv.gz", "a.csv?html"):
        printed("load", f"t={web}/{path}", "--root", root)
    assert [row["id"] for row in parsed("read", "t", "--root", root)] == [1, 1, 1]
    told = refused("load", f"new={web}/a.csv?html-page", "--mode", "create", "--root", root)
    assert told.endswith(": expected a file, found a page of the web")
    assert f"{web}/short.csv: not read: " in refused("load", f"t={web}/short.csv", "--root", root)
    assert "expected an address of the web" in refused("load", "t=http://[::1/a.csv", "--root", root)


def values(names: Any) -> list[Any]:
    return [each["id"] for each in names]


@pytest.mark.parametrize("service", ["moto_server", "fake_gcs", "azurite"])
def test_a_bucket_has_the_rules_of_directories(
    root: str, tmp_path: Path, service: str, request: pytest.FixtureRequest
) -> None:
    from lance_core.storage.opening import open_store

    emulator = request.getfixturevalue(service)
    place = emulator.new_root()
    options = options_of(emulator)
    store = open_store(place, emulator.storage_options)
    names = ("d/year=2026/1.csv", "d/_temporary/2.csv", "d/a[1].csv", "d/.b.csv", "d/e/f.csv")
    for number, name in enumerate(names):
        store.put(name, f"id\n{number}\n".encode())
    store.close()
    for what, wanted in (
        ("d", [0, 2, 4]),
        ("d/", [0, 2, 4]),
        ("d/**", [0, 2, 4]),
        ("d/**/*.csv", [0, 2, 4]),
        ("d/*.csv", [2]),
        ("d/a[1].csv", [2]),
        ("d/_temporary/*", [1]),
        ("d/[!a]*/*.csv", [0, 4]),
    ):
        printed("load", f"t={place}/{what}", "--mode", "overwrite", "--root", root, *options)
        assert sorted(values(parsed("read", "t", "--root", root))) == wanted, what
    for end in ("parquet", "csv.gz"):
        printed("read", "t", "-o", f"{place}/out/t.{end}", "--root", root, *options)
        printed("load", f"t={place}/out/t.{end}", "--root", root, *options)
    assert "found none" in refused("load", f"t={place}/none/", "--root", root, *options)


def options_of(emulator: Emulator) -> list[str]:
    return [part for pair in emulator.storage_options.items() for part in ("--storage-option", "=".join(pair))]


KEYS = (
    "a b.csv",
    "a%20b.csv",
    "ä/ü.csv",
    "a#b.csv",
    "a?b.csv",
    "a+b&c=d.csv",
    "[x]*.csv",
    "~a/'\"!(),;:@$.csv",
    "a..b.csv",
)


@pytest.mark.parametrize("service", ["moto_server", "fake_gcs", "azurite"])
def test_a_key_is_written_and_read_as_it_is(root: str, service: str, request: pytest.FixtureRequest) -> None:
    from lance_core.storage.opening import open_store

    emulator = request.getfixturevalue(service)
    options, place = options_of(emulator), f"{emulator.scheme}://{emulator.bucket}"
    with Catalog.connect(root) as catalog:
        catalog.append("t", {"id": [1]})
    store = open_store(place, emulator.storage_options)
    for key in KEYS:
        printed("read", "t", "-o", f"{place}/keys/{key}", "--root", root, *options)
        assert store.get(f"keys/{key}").startswith(b'"id","year","month"'), key
        printed("load", f"t={place}/keys/{key}", "--mode", "overwrite", "--root", root, *options)
    assert sorted(meta.path for meta in store.list("keys")) == sorted(f"keys/{key}" for key in KEYS)
    store.close()


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("a//b.csv", "it has an empty component"),
        ("/b.csv", "it has an empty component"),
        ("a/./b.csv", "it has a component '.' or '..'"),
        ("a/../b.csv", "it has a component '.' or '..'"),
        ("a\\b.csv", "it holds a NUL or a backslash"),
    ],
)
def test_a_key_that_clients_would_change_is_refused(root: str, moto_server: Emulator, key: str, why: str) -> None:
    options, place = options_of(moto_server), f"s3://{moto_server.bucket}/{key}"
    for arguments in (["read", "t", "-o", place], ["load", f"t={place}"]):
        told = refused(*arguments, "--root", root, *options)
        assert (told.startswith(f"{place}: key "), told.endswith(f"but {why}")) == (True, True), told
    for pattern in ("d//", "d//*.csv", "*//c.csv"):
        assert "it has an empty component" in refused(
            "load", f"t=s3://{moto_server.bucket}/{pattern}", "--root", root, *options
        )


def test_objects_that_cannot_be_named_are_refused_where_they_would_be_loaded(
    root: str, moto_server: Emulator, tmp_path: Path
) -> None:
    """To leave them out would lose rows without a word."""
    import boto3

    options, place = options_of(moto_server), moto_server.new_root()
    below = place.split("/", 3)[3]
    given = {name.removeprefix("aws_"): value for name, value in moto_server.storage_options.items()}
    client = boto3.client(
        "s3",
        endpoint_url=given["endpoint"],
        region_name=given["region"],
        aws_access_key_id=given["access_key_id"],
        aws_secret_access_key=given["secret_access_key"],
    )
    for name in ("d/1.csv", "d//2.csv", "e/1.csv", "e/f/"):
        body = b"" if name.endswith("/") else b"id\n1\n"
        client.put_object(Bucket=moto_server.bucket, Key=f"{below}/{name}", Body=body)
    client.close()
    for what in ("d", "d/", "d/**/*.csv"):
        told = refused("load", f"t={place}/{what}", "--root", root, *options)
        assert told.startswith(f"{place}/d//2.csv: key ")
        assert told.endswith("it has an empty component")
    for what in ("d/*.csv", "e"):  # that does not find it, and the mark of a folder
        printed("load", f"t={place}/{what}", "--root", root, *options)
    assert values(parsed("read", "t", "--root", root)) == [1, 1]


@pytest.mark.parametrize("of", ["root", "server"])
def test_the_options_of_a_profile_are_for_files_too(
    root: str, moto_server: Emulator, tmp_path: Path, of: str, request: pytest.FixtureRequest
) -> None:
    target = root if of == "root" else request.getfixturevalue("shop_server").url
    profiles = tmp_path / "lance-namespace" / "profiles.toml"
    profiles.parent.mkdir()
    secret = moto_server.storage_options["aws_secret_access_key"]
    options = {**moto_server.storage_options, "aws_secret_access_key": "another"}
    lines = "\n".join(f'{name} = "{value}"' for name, value in options.items())
    profiles.write_text(f'[p]\nurl = "{target}"\n[p.storage_options]\n{lines}\n')
    place, name = moto_server.new_root(), f"t{tmp_path.name.replace('-', '_')}"
    source = file(tmp_path / "rows.csv")
    given = ("--profile", "p", "--storage-option", f"aws_secret_access_key={secret}")
    environment = {"XDG_CONFIG_HOME": str(tmp_path), "APPDATA": str(tmp_path)}
    printed("load", f"{name}={source}", "--mode", "create", *given, **environment)
    printed("read", name, "-o", f"{place}/a.csv", *given, **environment)
    printed("load", f"{name}={place}/a.csv", *given, **environment)
    assert values(parsed("read", name, *given, **environment)) == [1, 1]
