"""The command, as a user runs it."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from uuid import uuid4

import httpx
import lance
import pyarrow as pa
import pytest
from click.testing import Result
from lance.fragment import write_fragments
from lance.namespace import RestNamespace
from lance_namespace import CreateNamespaceRequest, connect
from typer.testing import CliRunner

from lance_core.commit.handlers.manifest_store import ManifestRow
from namespace_server.cli import cli
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.store.manifests import open_manifest_store
from namespace_server.store.schema import migrate
from tests.server.forking import ForkedProcess, fork

pytestmark = pytest.mark.slow

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "namespace_server", *arguments]


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LANCE_NAMESPACE_")}
    return {**kept, **more}


def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """The command in this process: one of its own takes two seconds to start. An exception that escapes is raised."""
    kept: dict[str, str | None] = {name: None for name in os.environ if name.startswith("LANCE_NAMESPACE_")}
    result = CliRunner(env={**kept, **more}).invoke(cli, arguments, catch_exceptions=False)
    return subprocess.CompletedProcess(arguments, result.exit_code, result.stdout, result.stderr)


def run_alone(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, check=False, timeout=60, env=environment()
    )


def refused(*arguments: str, **more: str) -> str:
    """What a command that is refused with status 2 says."""
    done = run(*arguments, **more)
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr


@pytest.fixture
def start() -> Iterator[Callable[..., tuple[ForkedProcess, str]]]:
    """Start a server on a free port; the process and its URL."""
    running: list[ForkedProcess] = []

    def begin(*arguments: str, **more: str) -> tuple[ForkedProcess, str]:
        with Path(os.devnull).open("w") as nowhere:
            process = fork(["serve", "--port", "0", *arguments], environment(**more), nowhere)
        running.append(process)
        line = process.stdout.readline()
        assert line.startswith("listening on "), line
        return process, line.removeprefix("listening on ").strip()

    yield begin
    for process in running:
        process.kill()
        process.wait(60)
        process.stdout.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_listening_for_strangers_is_refused_without_keys(tmp_path: Path, host: str) -> None:
    done = run("serve", "--root", str(tmp_path), "--host", host, "--port", "0")
    assert done.returncode == 2
    assert f"refused to listen on {host}" in done.stderr
    assert "LANCE_NAMESPACE_API_KEYS" in done.stderr
    assert "--insecure" in done.stderr


def test_listening_for_strangers_with_keys(tmp_path: Path, start: Callable[..., tuple[object, str]]) -> None:
    _, url = start("--root", str(tmp_path), "--host", "0.0.0.0", LANCE_NAMESPACE_API_KEYS='{"first-secret": "ann"}')
    url = url.replace("0.0.0.0", "127.0.0.1")
    assert httpx.get(f"{url}/v1/catalog").status_code == 401
    assert httpx.get(f"{url}/v1/catalog", headers={"x-api-key": "first-secret"}).status_code == 200
    stock = connect("rest", {"uri": url, "header.Authorization": "Bearer first-secret"})
    stock.create_namespace(CreateNamespaceRequest(id=["ws"]))


def test_keys_in_a_file_change_while_it_serves(tmp_path: Path, start: Callable[..., tuple[ForkedProcess, str]]) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_text('"key-of-ann" = "ann"\n')
    process, url = start(
        "--root", str(tmp_path / "catalog"), "--host", "0.0.0.0", LANCE_NAMESPACE_API_KEYS_FILE=str(keys)
    )
    url = url.replace("0.0.0.0", "127.0.0.1")

    def status(key: str) -> int:
        return httpx.get(f"{url}/v1/catalog", headers={"x-api-key": key}).status_code

    assert (status("key-of-ann"), status("key-of-bob")) == (200, 401)
    before = keys.stat()
    with keys.open("r+") as file:  # same size, inode and modification time: only the signal tells of it
        file.write('"key-of-bob"')
    os.utime(keys, ns=(before.st_atime_ns, before.st_mtime_ns))
    process.send_signal(signal.SIGHUP)
    deadline = time.monotonic() + 30
    while status("key-of-bob") != 200:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert status("key-of-ann") == 401
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0


def test_listening_for_strangers_all_the_same(tmp_path: Path, start: Callable[..., tuple[object, str]]) -> None:
    _, url = start("--root", str(tmp_path), "--host", "0.0.0.0", "--insecure")
    assert httpx.get(url.replace("0.0.0.0", "127.0.0.1") + "/health/ready").status_code == 200


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "root: expected a value, found none: give --root"),
        (["--root", "/r", "--port", "99999"], "port"),
        (["--root", "/r", "--durability", "sometimes"], "durability"),
        (["--root", "/r", "--config", "/nowhere.toml"], "/nowhere.toml"),
        (["--root", "nothing://at/all"], "nothing"),
    ],
)
def test_settings_that_make_no_sense_are_named(arguments: list[str], said: str) -> None:
    assert said in refused("serve", *arguments)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("API_KEYS", '{"SECRETKEY4":5}', "api_keys: entry 1: expected the name of a principal as text, found int"),
        ("API_KEYS", '{"":"svc"}', "api_keys: entry 1: expected a key of at least 8 characters, found 0"),
        ("API_KEYS", "{SECRETKEY4", "LANCE_NAMESPACE_API_KEYS: expected a JSON object, found malformed JSON at line 1"),
        ("APIKEYS", '{"SECRETKEY4": "ann"}', "LANCE_NAMESPACE_APIKEYS: no such setting, did you mean"),
        ("API_KEYS_FILE", "/nowhere", "api_keys_file: Path does not point to a file"),
    ],
)
def test_wrong_keys_are_told_in_one_line_that_does_not_show_them(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    told = refused("serve", "--root", str(tmp_path), "--port", "0", **{f"LANCE_NAMESPACE_{name}": text})
    assert told.startswith(f"lance-namespace: settings: {said}")
    assert (told.count("\n"), "SECRET" in told) == (1, False)


def test_a_file_without_keys_is_refused(tmp_path: Path) -> None:
    keys = tmp_path / "keys.toml"
    keys.touch()
    done = run("serve", "--root", str(tmp_path), "--port", "0", LANCE_NAMESPACE_API_KEYS_FILE=str(keys))
    assert done.returncode == 2
    expected = f"lance-namespace: settings: api_keys_file {keys}: expected at least one key, found none\n"
    assert done.stderr == expected


@pytest.mark.parametrize("arguments", [("migrate",), ("inspect", "/r")])
def test_every_command_refuses_a_misspelt_variable(arguments: tuple[str, ...]) -> None:
    environment = {"LANCE_NAMESPACE_MANIFEST_STORE": "sqlite:////nowhere/m.db", "LANCE_NAMESPACE_STORRAGE__X": "y"}
    result = CliRunner(env=environment).invoke(cli, arguments)
    assert result.exit_code == 2
    said = "LANCE_NAMESPACE_STORRAGE__…: no such setting, did you mean LANCE_NAMESPACE_STORAGE?"
    assert result.output == f"lance-namespace: {said}\n"


def test_a_settings_file(tmp_path: Path, start: Callable[..., tuple[object, str]]) -> None:
    config = tmp_path / "settings.toml"
    config.write_text(f'root = "{tmp_path / "catalog"}"\ndurability = "none"\nlog_format = "json"\n')
    _, url = start("--config", str(config))
    assert httpx.get(f"{url}/v1/catalog").json()["root"].endswith("/catalog")


def test_ending_the_server_answers_what_it_accepted(
    tmp_path: Path, start: Callable[..., tuple[ForkedProcess, str]]
) -> None:
    root = str(tmp_path / "catalog")
    process, url = start("--root", root)
    assert httpx.post(f"{url}/v1/namespace/ws/create", json={}).status_code == 200

    def declare(number: int) -> int:
        try:
            return httpx.post(f"{url}/v1/table/ws$t{number}/declare", json={}).status_code
        except httpx.TransportError:
            return 0

    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(declare, number) for number in range(64)]
        assert answers[0].result() == 200
        process.send_signal(signal.SIGTERM)
        statuses = [answer.result() for answer in answers]
    assert process.wait(60) == 0
    acknowledged = {f"ws$t{number}" for number, status in enumerate(statuses) if status == 200}

    _, url = start("--root", root)
    found = set(httpx.get(f"{url}/v1/table").json()["tables"])
    # An answer can be lost on its way when the connection closes, a table that was acknowledged cannot.
    assert acknowledged <= found
    assert {f"ws$t{number}" for number, status in enumerate(statuses) if status not in {0, 200}} & found == set()


def test_adopt(tmp_path: Path) -> None:
    root = str(tmp_path / "catalog")
    stock = connect("dir", {"root": root})
    stock.create_namespace(CreateNamespaceRequest(id=["ws"]))
    for mode in ("create", "append"):
        lance.write_dataset(pa.table({"x": [1]}), namespace_client=stock, table_id=["ws", "t"], mode=mode)
    done = run("adopt", "--root", root)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "ws$t: 2 versions"
    assert "adopted, 1 table," in done.stdout
    again = run("adopt", "--root", root)
    assert "was managed already" in again.stdout


def test_inspect(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"x": [1, 2]}), tmp_path / "t")
    done = run("inspect", str(tmp_path / "t"))
    assert done.returncode == 0, done.stderr
    assert "version       1, committed (V2 name), branch main" in done.stdout
    [manifest] = (tmp_path / "t" / "_versions").glob("*.manifest")
    found = json.loads(run("inspect", str(manifest), "--json").stdout)
    assert found["rows"]["live"] == 2
    manifest.write_bytes(b"nothing of the kind")
    done = run("inspect", str(tmp_path / "t"), "--version", "1")
    assert (done.returncode, done.stdout) == (3, "")
    assert "manifest file of 19 bytes: expected at least 20" in done.stderr
    assert "Traceback" not in done.stderr


def make_small_fragments(root: Path) -> str:
    """A catalog with the table `g$t` in six fragments; where the table lies."""
    with closing(DirectoryNamespace(root=str(root))) as made:
        made.create_namespace(CreateNamespaceRequest(id=["g"]))
        for number in range(6):
            mode = "append" if number else "create"
            data = pa.table({"x": [number]})
            lance.write_dataset(data, mode=mode, namespace_client=made, table_id=["g", "t"])
    [table] = root.glob("*_g$t")
    return str(table)


def test_maintain(tmp_path: Path) -> None:
    root = tmp_path / "catalog"
    table = make_small_fragments(root)
    planned = run("maintain", str(root), "--dry-run")
    assert (planned.returncode, planned.stderr) == (0, "")
    assert planned.stdout.startswith("g$t: to do: 6 small fragments, 0 with deleted rows, ")
    many = {"LANCE_NAMESPACE_MAINTENANCE": '{"maintenance.min_fragments": "7"}'}
    assert "nothing to do" in run("maintain", str(root), **many).stdout
    done = run("maintain", str(root), "--table", "g$t", "--policy", "maintenance.min_fragments=6", "--json", **many)
    assert done.returncode == 0, done.stderr
    [outcome] = json.loads(done.stdout)["outcomes"]
    assert (outcome["status"], outcome["removed_fragments"], outcome["added_fragments"]) == ("done", 6, 1)
    assert lance.dataset(table).to_table()["x"].to_pylist() == list(range(6))
    assert len(lance.dataset(table).get_fragments()) == 1
    for arguments, said in (
        ([str(tmp_path / "none")], "expected a catalog that keeps the versions of its tables"),
        ([str(root), "--table", "g$u"], "g$u does not exist"),
        ([str(root), "--namespace", "h"], "h does not exist"),
        ([str(root), "--policy", "maintenance.compact"], "--policy maintenance.compact: expected NAME=VALUE"),
        (
            [str(root), "--policy", "maintenance.compact=true", "--policy", "maintenance.compact=false"],
            "--policy maintenance.compact: expected one value, found two",
        ),
        ([str(root), "--policy", "maintenance.speed=9"], "property maintenance.speed: expected one of"),
    ):
        assert said in refused("maintain", *arguments)
    assert not (tmp_path / "none").exists()


def test_a_server_is_asked_to_maintain_a_table(tmp_path: Path, start: Callable[..., tuple[ForkedProcess, str]]) -> None:
    table = make_small_fragments(tmp_path)
    process, url = start("--root", str(tmp_path))
    planned = run("maintain", "--url", url, "--table", "g.t", "--dry-run")
    assert (planned.returncode, planned.stderr) == (0, "")
    assert planned.stdout.startswith("g.t: planned\n")
    done = run("maintain", "--table", "g$t", "--json", "--seconds", "60", LANCE_NAMESPACE_URL=url)
    assert done.returncode == 0, done.stderr
    [result] = json.loads(done.stdout)
    assert (result["id"], result["status"], result["commits"]) == (["g", "t"], "done", 1)
    assert len(lance.dataset(table).get_fragments()) == 1
    assert "g$u does not exist" in refused("maintain", "--url", url, "--table", "g.u")
    for given in (
        (),
        ("--table", "g.t", "--namespace", "g"),
        ("--table", "g.t", "--policy", "maintenance.compact=true"),
    ):
        assert "a server is asked by --table" in refused("maintain", "--url", url, *given)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0


def test_maintain_reports_a_failure(tmp_path: Path) -> None:
    root = tmp_path / "catalog"
    make_small_fragments(root)
    with closing(DirectoryNamespace(root=str(root))) as made:
        properties = {"id": ["g", "t"], "properties": {"maintenance.compact": "perhaps"}}
        made.commit_batch({"operations": [{"set_table_properties": properties}]})
    result = CliRunner().invoke(cli, ["maintain", str(root)])
    assert result.exit_code == 1
    assert "g$t: failed" in result.stdout


def test_a_server_maintains_its_tables(tmp_path: Path, start: Callable[..., tuple[ForkedProcess, str]]) -> None:
    table = make_small_fragments(tmp_path)
    settings = {"LANCE_NAMESPACE_MAINTENANCE_INTERVAL": "1"}
    process, url = start("--root", str(tmp_path), **settings)
    deadline = time.monotonic() + 60
    while len(lance.dataset(table).get_fragments()) > 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(lance.dataset(table).get_fragments()) == 1
    served = lance.dataset(namespace_client=RestNamespace(uri=url), table_id=["g", "t"])
    assert served.to_table()["x"].to_pylist() == list(range(6))
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0


def test_a_server_extends_indices(tmp_path: Path, start: Callable[..., tuple[ForkedProcess, str]]) -> None:
    table = make_small_fragments(tmp_path)
    with closing(DirectoryNamespace(root=str(tmp_path))) as made:
        made.data.change("create_table_scalar_index", {"id": ["g", "t"], "column": "x", "index_type": "BTREE"})
        lance.write_dataset(pa.table({"x": [6]}), mode="append", namespace_client=made, table_id=["g", "t"])
    policy = {"unindexed_rows": "1", "quiet_seconds": "0", "compact": "false"}
    given = json.dumps({f"maintenance.{name}": value for name, value in policy.items()})
    assert (
        "g$t: to do: 1 index to extend (1 row not covered)"
        in run("maintain", str(tmp_path), "--dry-run", LANCE_NAMESPACE_MAINTENANCE=given).stdout
    )
    settings = {"LANCE_NAMESPACE_MAINTENANCE_INTERVAL": "1", "LANCE_NAMESPACE_MAINTENANCE": given}
    process, url = start("--root", str(tmp_path), **settings)

    def covered() -> list[int]:
        [index] = lance.dataset(table).describe_indices()
        return [len(segment.fragment_ids) for segment in index.segments]

    deadline = time.monotonic() + 60
    while covered() != [7] and time.monotonic() < deadline:
        time.sleep(0.05)
    assert covered() == [7]
    served = lance.dataset(namespace_client=RestNamespace(uri=url), table_id=["g", "t"])
    assert served.to_table(filter="x = 6")["x"].to_pylist() == [6]
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0


def test_a_dry_run_of_gc_lists_the_files_that_nothing_names(tmp_path: Path) -> None:
    root = tmp_path / "catalog"
    with closing(DirectoryNamespace(root=str(root))) as made:
        made.create_namespace(CreateNamespaceRequest(id=["g"]))
        lance.write_dataset(pa.table({"x": [1]}), mode="create", namespace_client=made, table_id=["g", "t"])
        [table] = root.glob("*_g$t")
        [fragment] = write_fragments(pa.table({"x": [2]}), str(table), mode="append")
    path = f"{table.name}/data/{fragment.files[0].path}"
    young = run("gc", str(root), "--dry-run")
    assert (young.returncode, young.stderr) == (0, "")
    assert "too young to judge: g$t: 1 file, " in young.stdout
    assert "versions from 1 on are kept: 0 files, 0 bytes would go" in young.stdout
    moment = time.time() - 20 * 86_400
    os.utime(root / path, (moment, moment))
    listed = run("gc", str(root), "--dry-run", "--table", "g$t").stdout.splitlines()
    assert listed[0].startswith(f"orphan: g$t  {path}  ")
    assert listed[0].endswith("data file: named by no manifest")
    assert run("gc", str(root), "--dry-run", "--older-than", "30d").stdout.startswith("too young to judge: g$t: 1 file")
    found = json.loads(run("gc", str(root), "--dry-run", "--json").stdout)
    [orphan] = found["orphans"]
    size = (root / path).stat().st_size
    assert (orphan["path"], orphan["table"], orphan["size"], orphan["owned"]) == (path, "g$t", size, True)
    assert orphan["written"].startswith(f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M}")
    assert found["removed"] == {"named by no manifest": {"files": 1, "size": size}}
    assert (root / path).exists()
    for arguments, said in (
        ([str(tmp_path / "none"), "--dry-run"], "expected a catalog, found none"),
        ([str(root), "--dry-run", "--table", "g$u"], "g$u does not exist"),
        ([str(root), "--dry-run", "--older-than", "soon"], "--older-than soon: expected a number"),
        ([str(root), "--older-than", "1h"], "--older-than: expected --dry-run"),
    ):
        assert said in refused("gc", *arguments)
    assert not (tmp_path / "none").exists()


def test_migrate(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/m.db"
    done = run("migrate", "--manifest-store", url)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("schema 0")
    assert done.stdout.endswith(", was none\n")

    def invoke(*arguments: str, **more: str) -> Result:
        return CliRunner(env={"LANCE_NAMESPACE_MANIFEST_STORE": None, **more}).invoke(cli, ["migrate", *arguments])

    assert invoke(LANCE_NAMESPACE_MANIFEST_STORE=url).stdout.endswith(", as before\n")
    with closing(open_manifest_store(url)) as manifests:
        manifests.put_if_absent(ManifestRow("memory://r/t", 1, "t/_versions/1.manifest", 1, str(uuid4())))
    told = invoke("--manifest-store", url, "--revision", "base")
    assert (told.exit_code, told.stdout) == (2, "")
    assert "expected --yes, since it drops 1 row, which decide the commits of all catalogs" in told.stderr
    assert invoke("--manifest-store", url, "--revision", "base", "-y").stdout.startswith("schema none, was 0")
    assert invoke("--manifest-store", url, "--revision", "base").stdout == "schema none, as before\n"
    for arguments, said in (
        (["--manifest-store", "mysql://u:secret@h/d"], "expected sqlite"),
        (["--manifest-store", url, "--revision", "zz"], "zz"),
        (["--manifest-store", f"sqlite:///{tmp_path}/none/m.db"], "unable to open database file"),
        ([], "--manifest-store"),
    ):
        result = invoke(*arguments)
        assert (result.exit_code, "secret" in result.output) == (2, False)
        assert said in result.output


def test_serving_with_a_manifest_store(tmp_path: Path, start: Callable[..., tuple[ForkedProcess, str]]) -> None:
    root, url = str(tmp_path / "catalog"), f"sqlite:///{tmp_path}/m.db"
    told = refused("serve", "--root", root, "--port", "0", "--manifest-store", url)
    assert f"run: lance-namespace migrate --manifest-store {url}" in told
    migrate(url)
    process, first = start("--root", root, "--manifest-store", url)
    _, second = start("--root", root, LANCE_NAMESPACE_MANIFEST_STORE=url)
    catalog = RestNamespace(uri=first)
    catalog.create_namespace(CreateNamespaceRequest(id=["ws"]))
    table = {"namespace_client": catalog, "table_id": ["ws", "t"]}
    lance.write_dataset(pa.table({"x": [1]}), mode="create", **table)
    process.kill()
    table["namespace_client"] = RestNamespace(uri=second)
    lance.write_dataset(pa.table({"x": [2]}), mode="append", **table)
    dataset = lance.dataset(**table)
    assert dataset.to_table()["x"].to_pylist() == [1, 2]
    policy = ["--policy", "maintenance.min_fragments=2"]
    done = run("maintain", root, *policy, LANCE_NAMESPACE_MANIFEST_STORE=url)
    assert "2 fragments became 1, 0 index segments rewritten, 1 commits, version 3" in done.stdout, done.stderr
    assert lance.dataset(**table).version == 3
    with closing(open_manifest_store(url)) as manifests:
        uri = f"file://{Path(dataset.uri.removeprefix('file://'))}"
        assert [manifests.get(uri, version) is not None for version in (1, 2, 3, 4)] == [True, True, True, False]
        assert manifests.staged("file://", below=True) == []


def test_help_names_the_commands() -> None:
    done = run_alone("--help")
    assert done.returncode == 0
    assert "serve" in done.stdout
    assert "adopt" in done.stdout
    assert "migrate" in done.stdout


def test_version() -> None:
    done = run_alone("--version")
    expected = f"lance-namespace-server {version('lance-namespace-server')}\npylance {version('pylance')}\n"
    assert (done.returncode, done.stdout) == (0, f"{expected}Python {platform.python_version()}\n")


@pytest.mark.parametrize("option", ["--tls-certificate", "--tls-key"])
def test_tls_needs_a_certificate_and_its_key(tmp_path: Path, option: str) -> None:
    pem = tmp_path / "x.pem"
    arguments = ("serve", "--root", str(tmp_path), "--port", "0", option, str(pem))
    assert f"{option[2:].replace('-', '_')}: Path does not" in refused(*arguments)
    pem.touch()
    assert refused(*arguments) == "lance-namespace: settings: tls_certificate, tls_key: expected both or none\n"


@pytest.mark.parametrize(
    "statement",
    [
        "import namespace_server.cli",
        "import lance_core",
        "import namespace_client",
        "from namespace_client import Catalog, CatalogServer, CommitUnknown, RetryableConflict",
        "from namespace_client import Catalog; Catalog.connect('http://127.0.0.1:1').close()",
    ],
)
def test_help_and_a_first_import_load_nothing_large(statement: str) -> None:
    large = ["fastapi", "granian", "lance", "lance_namespace", "numpy", "pandas", "pyarrow", "pydantic", "sqlalchemy"]
    program = f"import sys\n{statement}\nprint(sorted(set(sys.modules) & set({large})))"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"
