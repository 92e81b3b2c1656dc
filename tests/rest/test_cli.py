"""The command, as a user runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import lance
import pyarrow as pa
import pytest
from lance_namespace import CreateNamespaceRequest, connect

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "namespace_server", *arguments]


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LANCE_NAMESPACE_")}
    return {**kept, **more}


def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, check=False, timeout=60, env=environment(**more)
    )


@pytest.fixture
def start() -> Iterator[Callable[..., tuple[subprocess.Popen[str], str]]]:
    """Start a server on a free port; the process and its URL."""
    running: list[subprocess.Popen[str]] = []

    def begin(*arguments: str, **more: str) -> tuple[subprocess.Popen[str], str]:
        process = subprocess.Popen(
            command("serve", "--port", "0", *arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment(**more),
        )
        running.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("listening on "), line
        return process, line.removeprefix("listening on ").strip()

    yield begin
    for process in running:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_listening_for_strangers_is_refused_without_keys(tmp_path: Path, host: str) -> None:
    done = run("serve", "--root", str(tmp_path), "--host", host, "--port", "0")
    assert done.returncode == 2
    assert f"refused to listen on {host}" in done.stderr
    assert "LANCE_NAMESPACE_API_KEYS" in done.stderr
    assert "--insecure" in done.stderr


def test_listening_for_strangers_with_keys(tmp_path: Path, start: Callable[..., tuple[object, str]]) -> None:
    _, url = start("--root", str(tmp_path), "--host", "0.0.0.0", LANCE_NAMESPACE_API_KEYS='{"secret": "ann"}')
    url = url.replace("0.0.0.0", "127.0.0.1")
    assert httpx.get(f"{url}/v1/catalog").status_code == 401
    assert httpx.get(f"{url}/v1/catalog", headers={"x-api-key": "secret"}).status_code == 200
    stock = connect("rest", {"uri": url, "header.Authorization": "Bearer secret"})
    stock.create_namespace(CreateNamespaceRequest(id=["ws"]))


def test_listening_for_strangers_all_the_same(tmp_path: Path, start: Callable[..., tuple[object, str]]) -> None:
    _, url = start("--root", str(tmp_path), "--host", "0.0.0.0", "--insecure")
    assert httpx.get(url.replace("0.0.0.0", "127.0.0.1") + "/health/ready").status_code == 200


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "root: Field required"),
        (["--root", "/r", "--port", "99999"], "port"),
        (["--root", "/r", "--durability", "sometimes"], "durability"),
        (["--root", "/r", "--config", "/nowhere.toml"], "/nowhere.toml"),
        (["--root", "nothing://at/all"], "nothing"),
    ],
)
def test_settings_that_make_no_sense_are_named(arguments: list[str], said: str) -> None:
    done = run("serve", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_settings_file(tmp_path: Path, start: Callable[..., tuple[object, str]]) -> None:
    config = tmp_path / "settings.toml"
    config.write_text(f'root = "{tmp_path / "catalog"}"\ndurability = "none"\nlog_format = "json"\n')
    _, url = start("--config", str(config))
    assert httpx.get(f"{url}/v1/catalog").json()["root"].endswith("/catalog")


def test_ending_the_server_answers_what_it_accepted(
    tmp_path: Path, start: Callable[..., tuple[subprocess.Popen[str], str]]
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
    assert "adopted, 1 tables" in done.stdout
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
    assert (done.returncode, done.stdout) == (2, "")
    assert "manifest file of 19 bytes: expected at least 20" in done.stderr
    assert "Traceback" not in done.stderr


def test_compact(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    for mode in ("create", "append", "append"):
        lance.write_dataset(pa.table({"x": [1, 2]}), uri, mode=mode)
    done = run("compact", uri)
    assert (done.returncode, done.stderr) == (0, "")
    assert "version 4, 3 fragments became 1, 0 index segments rewritten" in done.stdout
    assert "nothing to compact, version 4" in run("compact", uri).stdout
    assert lance.dataset(uri).count_rows() == 6
    for arguments, said in ((["--branch", "none"], "expected a manifest"), (["--target-rows", "0"], "at least 1")):
        done = run("compact", uri, *arguments)
        assert (done.returncode, "Traceback" in done.stderr) == (2, False)
        assert said in done.stderr


def test_cleanup(tmp_path: Path) -> None:
    table = tmp_path / "t"
    for mode in ("create", "append", "overwrite"):
        lance.write_dataset(pa.table({"x": [1, 2]}), table, mode=mode)
    lance.dataset(table).tags.create("first", 1)
    moment = time.time() - 20 * 86_400
    for path in table.rglob("*"):
        os.utime(path, (moment, moment))
    before = {path for path in table.rglob("*") if path.is_file()}
    planned = run("cleanup", str(table), "--older-than", "14d", "--dry-run")
    assert (planned.returncode, planned.stderr) == (0, "")
    assert "kept     version 1: tag first" in planned.stdout
    assert "version 2 expired" in planned.stdout
    assert "1 versions and 2 files would go" in planned.stdout
    assert {path for path in table.rglob("*") if path.is_file()} == before
    done = run("cleanup", str(table), "--older-than", "14d", "--keep", "1")
    assert "1 versions and 2 files removed" in done.stdout
    assert [version["version"] for version in lance.dataset(table).versions()] == [1, 3]
    assert "0 versions and 0 files removed" in run("cleanup", str(table), "--older-than", "14d").stdout
    for arguments, said in (
        (["--older-than", "soon"], "--older-than soon: expected a number and one of s, m, h, d, w"),
        (["--keep", "0"], "keep 0: expected at least 1"),
        (["--branch", "none"], "expected a manifest"),
    ):
        done = run("cleanup", str(table), *arguments)
        assert (done.returncode, "Traceback" in done.stderr) == (2, False)
        assert said in done.stderr


def test_help_names_the_commands() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "serve" in done.stdout
    assert "adopt" in done.stdout
