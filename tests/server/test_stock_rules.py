"""What stock clients rely on, and what they do to a catalog: refusals, lost answers, commits around it, clean-ups."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import lance
import lance.fragment
import lance_namespace as models
import orjson
import pyarrow as pa
import pytest
from lance.namespace import DirectoryNamespace as StockDirectory
from lance_namespace.errors import TableBranchNotFoundError

from lance_core.format.refs import branch_path, decode_branch
from lance_core.storage.local import LocalStore
from tests.directory.tables import Capture, Ground
from tests.server.proxy import Call, Proxy, stand_before
from tests.server.servers import REPOSITORY, ServerProcess, path_of, send
from tests.server.stock import Stock, ids, rows, tree
from tests.storage.faults import Fault, FaultStore, Write


@pytest.fixture
def table(stock: Stock, ns: str) -> list[str]:
    """A table with ids 0 to 2 at version 1."""
    return stock.make(ns, "t")


@pytest.fixture
def proxy(server: ServerProcess) -> Iterator[Proxy]:
    with stand_before(server.url) as standing:
        yield standing


@pytest.fixture
def behind(proxy: Proxy, server: ServerProcess) -> Stock:
    """A client that speaks through the proxy."""
    return Stock(proxy.url, server.root)


def _overtake(proxy: Proxy, act: Callable[[], object], times: int = 1) -> None:
    """Call `act` before each of the next `times` requests through the proxy that create a version."""
    left = threading.Semaphore(times)

    def before(call: Call) -> None:
        if call.creates_version and left.acquire(blocking=False):
            act()

    proxy.before = before


def _check_conflicts(proxy: Proxy) -> None:
    """No version was refused as taken that could not be described at that moment (P8, invariant 14)."""
    for call, described in proxy.conflicts:
        assert described.status == 200, (call.body, described.body)
        assert described.body["version"]["version"] == call.body["version"]
        assert Path("/" + described.body["version"]["manifest_path"]).is_file()


# Conflicts


def test_the_loser_of_a_race_describes_the_winner_and_rebases(
    stock: Stock, behind: Stock, proxy: Proxy, table: list[str]
) -> None:
    _overtake(proxy, lambda: stock.write(table, rows(10, 11)))

    written = behind.write(table, rows(20, 21))

    assert written.version == 3
    [(refused, _)] = proxy.conflicts
    assert (refused.answer and refused.answer.code, refused.body["version"]) == (14, 2)
    _check_conflicts(proxy)
    assert stock.ids(table) == [0, 1, 2, 10, 20]
    stock.check(table, 3)


def test_the_loser_of_the_same_rows_does_its_work_again(
    stock: Stock, behind: Stock, proxy: Proxy, table: list[str]
) -> None:
    _overtake(proxy, lambda: stock.open(table).update({"name": "'theirs'"}, where="id = 1"))

    behind.open(table).update({"name": "name || ' and ours'"}, where="id = 1")

    _check_conflicts(proxy)
    assert len(proxy.conflicts) == 1
    assert stock.open(table).to_table(filter="id = 1")["name"].to_pylist() == ["theirs and ours"]
    stock.check(table, 3)


def test_what_cannot_be_rebased_is_refused_with_the_reason(
    stock: Stock, behind: Stock, proxy: Proxy, table: list[str]
) -> None:
    _overtake(proxy, lambda: stock.write(table, rows(50, 52), "overwrite"))

    with pytest.raises(OSError, match=r"Incompatible transaction.*Append.*Overwrite at version 2"):
        behind.write(table, rows(20, 21))

    _check_conflicts(proxy)
    assert stock.ids(table) == [50, 51]
    stock.check(table, 2)


def test_no_conflict_in_a_stress_is_beyond_description(
    stock: Stock, behind: Stock, proxy: Proxy, table: list[str]
) -> None:
    overtaking = iter(range(100, 120))
    lock = threading.Lock()

    def act() -> None:
        with lock:
            number = next(overtaking)
        stock.write(table, rows(number, number + 1))

    _overtake(proxy, act, times=10)
    failures: list[Exception] = []

    def work(first: int) -> None:
        try:
            for number in range(first, first + 5):
                behind.write(table, rows(number, number + 1))
        except Exception as error:  # noqa: BLE001 - judged in the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(1000 * worker,)) for worker in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not failures
    assert len(proxy.conflicts) >= 10
    _check_conflicts(proxy)
    written = [number for worker in (1, 2, 3) for number in range(1000 * worker, 1000 * worker + 5)]
    assert stock.ids(table) == [0, 1, 2, *range(100, 110), *written]
    stock.check(table, 26)


def test_a_stale_handle_rebases(stock: Stock, table: list[str]) -> None:
    stale, deleting = stock.open(table), stock.open(table)
    for number in (10, 11, 12):
        stock.write(table, rows(number, number + 1))

    stale.insert(rows(20, 21))
    deleting.delete("id = 0")

    assert (stale.version, deleting.version) == (5, 6)
    assert stock.ids(table) == [1, 2, 10, 11, 12, 20]
    stock.check(table, 6)


# Answers that do not arrive


SPOILED = {"nothing": None, "an error": b'{"error": "lost", "code": 18}', "no JSON": b"<html>bad gateway</html>"}


@pytest.mark.parametrize("spoiled", SPOILED)
@pytest.mark.parametrize("change", ["append", "delete"])
def test_a_lost_acknowledgement_is_healed(
    stock: Stock, behind: Stock, proxy: Proxy, table: list[str], change: str, spoiled: str
) -> None:
    dataset = behind.open(table)
    proxy.spoiled = SPOILED[spoiled]
    proxy.spoil = lambda call: call.creates_version

    if change == "append":
        dataset.insert(rows(10, 12))
    else:
        dataset.delete("id = 1")

    creates = [call for call in proxy.calls if call.creates_version]
    assert [call.answer.status for call in creates if call.answer] == [200] * len(creates) != []
    assert dataset.version == 2
    assert stock.ids(table) == ([0, 1, 2, 10, 11] if change == "append" else [0, 2])
    stock.check(table, 2)


def test_a_lost_acknowledgement_of_a_first_version_is_healed(
    stock: Stock, behind: Stock, proxy: Proxy, ns: str
) -> None:
    proxy.spoil = lambda call: call.creates_version

    assert behind.write([ns, "t"], rows(0, 3), "create").version == 1

    assert stock.ids([ns, "t"]) == [0, 1, 2]
    stock.check([ns, "t"], 1)


def test_a_repeated_request_is_answered_as_the_first(
    stock: Stock, server: ServerProcess, behind: Stock, proxy: Proxy, table: list[str]
) -> None:
    """The staged file may be gone by then, and the catalog has moved on (P1)."""
    behind.write(table, rows(10, 11))
    [create] = [call for call in proxy.calls if call.creates_version]
    stock.write(table, rows(20, 21))
    Path("/" + create.body["manifest_path"]).unlink(missing_ok=True)

    again = server.call("POST", create.path, create.body)

    assert create.answer is not None
    assert (again.status, again.body) == (200, create.answer.body)
    stock.check(table, 3)


# Commits around the catalog


def _around(stock: Stock, table: list[str], start: int, stop: int, mode: str = "append") -> None:
    lance.write_dataset(rows(start, stop), str(stock.location(table)), mode=mode)


def test_a_fresh_writer_finds_commits_around_the_catalog_adopted(stock: Stock, table: list[str]) -> None:
    _around(stock, table, 10, 12)
    _around(stock, table, 12, 13)

    written = stock.write(table, rows(20, 21))

    assert written.version == 4
    assert stock.ids(table) == [0, 1, 2, 10, 11, 12, 20]
    assert stock.ids(table, 2) == [0, 1, 2, 10, 11]
    stock.check(table, 4)


def test_a_stale_writer_rebases_over_commits_around_the_catalog(stock: Stock, table: list[str]) -> None:
    stale = stock.open(table)
    lance.dataset(str(stock.location(table))).delete("id = 0")
    _around(stock, table, 10, 11)

    stale.insert(rows(20, 21))

    assert stale.version == 4
    assert stock.ids(table) == [1, 2, 10, 20]
    stock.check(table, 4)


def test_an_overwrite_around_the_catalog_is_adopted(stock: Stock, table: list[str]) -> None:
    """An append that began before cannot be rebased: an append to the table as opened again succeeds (invariant 12)."""
    _around(stock, table, 50, 52, "overwrite")

    stock.write(table, rows(60, 61))

    assert stock.ids(table) == [50, 51, 60]
    stock.check(table, 3)


def test_a_commit_around_the_catalog_that_lands_during_a_write(
    stock: Stock, behind: Stock, proxy: Proxy, table: list[str]
) -> None:
    _overtake(proxy, lambda: _around(stock, table, 10, 11))

    behind.write(table, rows(20, 21))

    _check_conflicts(proxy)
    assert len(proxy.conflicts) == 1
    assert stock.ids(table) == [0, 1, 2, 10, 20]
    stock.check(table, 3)


def test_a_commit_around_a_branch_is_adopted(stock: Stock, table: list[str]) -> None:
    branch = stock.open(table).create_branch("dev")
    around = lance.dataset(str(stock.location(table))).checkout_version(("dev", None))
    around.insert(rows(10, 11))

    branch.insert(rows(20, 21))

    assert ids(stock.open(table, branch="dev")) == [0, 1, 2, 10, 20]
    stock.check(table, 3, "dev")
    stock.check(table, 1)


def test_an_insert_of_a_stock_server_on_the_same_root_is_adopted(stock: Stock, table: list[str]) -> None:
    """`insert_into_table` looks at no fence (C8)."""
    other = StockDirectory(root=str(stock.root), dir_listing_enabled="false")
    other.insert_into_table(models.InsertIntoTableRequest(id=table), _stream(10, 12))

    stock.write(table, rows(20, 21))

    assert stock.ids(table) == [0, 1, 2, 10, 11, 20]
    stock.check(table, 3)


def _stream(start: int, stop: int) -> bytes:
    data = rows(start, stop)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, data.schema) as writer:
        writer.write_table(data)
    return bytes(sink.getvalue())


# Clean-ups


def test_versions_that_a_client_cleaned_up_are_gone(stock: Stock, server: ServerProcess, table: list[str]) -> None:
    for number in (10, 11, 12):
        stock.write(table, rows(number, number + 1))
    stale = stock.open(table, 2)
    stock.open(table).cleanup_old_versions(timedelta(0), retain_versions=2)

    for version in (1, 2):
        answer = server.call("POST", f"/v1/table/{path_of(*table)}/version/describe", {"id": table, "version": version})
        assert (answer.status, answer.code) == (404, 11), answer.body
        assert f"version {version}" in answer.body["error"]
    stock.check(table, 4)

    stale.insert(rows(20, 21))
    assert stock.ids(table) == [0, 1, 2, 10, 11, 12, 20]
    stock.check(table, 5)


def test_a_tagged_version_survives_a_clean_up(stock: Stock, table: list[str]) -> None:
    stock.write(table, rows(10, 11))
    stock.write(table, rows(11, 12))
    dataset = stock.open(table)
    dataset.tags.create("keep", 1)

    dataset.cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)

    assert [version["version"] for version in stock.listed(table)] == [3, 1]
    assert stock.ids(table, "keep") == [0, 1, 2]
    stock.open(table).insert(rows(12, 13))
    assert [version["version"] for version in stock.listed(table)] == stock.stored(table)[::-1] == [4, 3, 1]


# Promotions that are missing


def _promotes_version_2(write: Write) -> bool:
    return write.path.endswith("/18446744073709551613.manifest") and not write.path.startswith("__manifest/")


@pytest.fixture
def flipped(server: ServerProcess, stock: Stock, table: list[str]) -> dict[str, object]:
    """Version 2 of the table is committed by another process that never promoted it: a catalog version, and no file."""
    store = FaultStore(LocalStore(server.root, "none"))
    store.fail(Fault.LOST_REQUEST, when=_promotes_version_2, times=1000)
    other = Ground(server.root, store)
    staged = other.stage(table, rows(10, 12))
    answer = other.batch(staged)
    assert answer["results"][0]["create_table_version"]["version"]["version"] == 2
    assert any(_promotes_version_2(write) for write in store.writes)
    other.namespace.close()
    return answer


def _reads_by_catalog(stock: Stock, table: list[str]) -> int:
    assert stock.ids(table) == [0, 1, 2, 10, 11]
    return 2


def _describes(stock: Stock, table: list[str]) -> int:
    answer = stock.client.describe_table_version({"id": table, "version": 2})
    assert answer["version"]["manifest_path"].endswith("/18446744073709551613.manifest")
    return 2


def _writes(stock: Stock, table: list[str]) -> int:
    assert stock.write(table, rows(20, 21)).version == 3
    return 3


def _reads_by_uri_after_listing(stock: Stock, table: list[str]) -> int:
    stock.listed(table)
    assert ids(lance.dataset(str(stock.location(table)))) == [0, 1, 2, 10, 11]
    return 2


def _deletes_versions(stock: Stock, table: list[str]) -> int:
    body = orjson.dumps({"ranges": [{"start_version": 1, "end_version": 2}]})
    answer = send(stock.url, "POST", f"/v1/table/{path_of(*table)}/version/delete", body)
    assert (answer.status, answer.body["deleted_count"]) == (200, 1)
    assert [version["version"] for version in stock.listed(table)] == [2]
    stock.manifests(table)[1].unlink()  # the row is gone, the file is the collector's
    return 2


NEXT = [_reads_by_catalog, _describes, _writes, _reads_by_uri_after_listing, _deletes_versions]


@pytest.mark.parametrize("act", NEXT)
def test_the_next_operation_finishes_a_promotion(
    stock: Stock, table: list[str], flipped: dict[str, object], act: Callable[[Stock, list[str]], int]
) -> None:
    newest = act(stock, table)

    stock.check(table, newest)
    assert {10, 11} <= set(stock.ids(table))


# Names that move under an open handle


def test_a_handle_of_a_dropped_table_does_not_write_into_its_successor(stock: Stock, table: list[str]) -> None:
    """A location belongs to one incarnation of a table (N1)."""
    stale = stock.open(table)
    stock.client.drop_table(models.DropTableRequest(id=table))
    stock.make(*table, count=1)

    with pytest.raises(OSError, match="unknown"):
        stale.insert(rows(10, 11))

    assert stock.ids(table) == [0]
    stock.check(table, 1)
    stock.write(table, rows(20, 21))
    stock.check(table, 2)


def test_a_handle_of_a_renamed_table_is_refused_and_a_new_one_is_not(stock: Stock, ns: str, table: list[str]) -> None:
    stale = stock.open(table)
    stock.client.rename_table(models.RenameTableRequest(id=table, new_table_name="u"))

    with pytest.raises(OSError, match="unknown"):
        stale.insert(rows(10, 11))

    assert stock.ids([ns, "u"]) == [0, 1, 2]
    stock.write([ns, "u"], rows(20, 21))
    stock.check([ns, "u"], 2)


def test_a_handle_below_versions_that_the_catalog_deleted_rebases(stock: Stock, table: list[str]) -> None:
    stale = stock.open(table)
    for number in (10, 11):
        stock.write(table, rows(number, number + 1))
    body = orjson.dumps({"ranges": [{"start_version": 1, "end_version": 3}]})
    answer = send(stock.url, "POST", f"/v1/table/{path_of(*table)}/version/delete", body)
    assert answer.body["deleted_count"] == 2

    stale.insert(rows(20, 21))

    assert stale.version == 4
    assert [version["version"] for version in stock.listed(table)] == [4, 3]
    assert stock.ids(table) == [0, 1, 2, 10, 11, 20]


# Detached commits


def test_a_detached_commit_is_refused(stock: Stock, server: ServerProcess, table: list[str]) -> None:
    dataset = stock.open(table)
    fragments = lance.fragment.write_fragments(rows(10, 11), dataset.uri, mode="append")
    version = server.call("GET", "/v1/catalog").body["version"]

    with pytest.raises(OSError, match="unknown"):
        lance.LanceDataset.commit(
            dataset,
            lance.LanceOperation.Append(fragments),
            read_version=1,
            detached=True,
            namespace_client=stock.client,
            table_id=table,
            namespace_client_managed_versioning=True,
        )

    [staged] = [path for path in stock.versions_directory(table).iterdir() if path.name.startswith("d")]
    assert stock.stored(table) == [1]
    before = tree(stock.location(table))
    body = {"id": table, "version": -6051817056999957738, "manifest_path": str(staged), "naming_scheme": "V2"}
    answer = server.call("POST", f"/v1/table/{path_of(*table)}/version/create", body)
    assert (answer.status, answer.code) == (406, 0)
    assert "-6051817056999957738" in answer.body["error"]
    assert tree(stock.location(table)) == before
    assert server.call("GET", "/v1/catalog").body["version"] == version
    stock.check(table, 1)


# Branches between their first version and their ref file


DYING = """
import os, sys
from pathlib import Path
from tests.server.stock import Stock
from lance.namespace import RestNamespace

class Dying(RestNamespace):
    def create_table_version(self, request):
        super().create_table_version(request)
        os._exit(9)

stock = Stock(sys.argv[1], Path(sys.argv[2]))
stock.client = Dying(uri=sys.argv[1])
stock.open(sys.argv[3].split("$")).create_branch("dev")
"""


def test_a_branch_is_completed_when_its_creator_died(stock: Stock, server: ServerProcess, table: list[str]) -> None:
    stock.write(table, rows(3, 5))
    command = [sys.executable, "-c", DYING, server.url, str(server.root), "$".join(table)]
    assert subprocess.run(command, cwd=REPOSITORY, check=False).returncode == 9
    ref = Path(branch_path(str(stock.location(table)), "dev"))

    Ground(server.root).catalog.sweep()
    assert not ref.exists(), "a creator that lives would write it within a minute"
    long_ago = time.time() - 90
    os.utime(stock.manifests(table, "dev")[2], (long_ago, long_ago))
    Ground(server.root).catalog.sweep()

    contents = decode_branch(ref.read_bytes())
    assert (contents.parent_branch, contents.parent_version) == (None, 2)
    branch = stock.open(table, branch="dev")
    assert branch.version == 2
    branch.insert(rows(10, 11))
    assert set(stock.open(table).branches.list()) == {"dev"}
    assert ids(stock.open(table, branch="dev")) == [0, 1, 2, 3, 4, 10]
    stock.check(table, 3, "dev")


def test_two_forks_of_one_name(stock: Stock, behind: Stock, proxy: Proxy, table: list[str]) -> None:
    """The second is told that the name is taken (P4), and the first keeps its chain."""
    stock.write(table, rows(10, 11))
    _overtake(proxy, lambda: stock.open(table).create_branch("dev", 1))

    with pytest.raises(OSError, match="version 2 is unknown"):
        behind.open(table).create_branch("dev", 2)

    [refused] = [call.answer for call in proxy.calls if call.creates_version]
    assert refused is not None
    assert (refused.status, refused.code) == (409, 23)
    assert "dev" in refused.body["error"]
    assert ids(stock.open(table, branch="dev")) == [0, 1, 2]
    stock.open(table, branch="dev").insert(rows(20, 21))
    assert ids(stock.open(table, branch="dev")) == [0, 1, 2, 20]
    stock.check(table, 2, "dev")


def test_a_branch_made_anew_is_not_taken_for_the_deleted_one(tmp_path: Path) -> None:
    """A process that promoted the old branch, and holds its rows for gone, leaves the new one alone."""
    first = Ground(tmp_path)
    first.make_namespace("g")
    table = first.make_table("g", "t")
    dataset = lance.dataset(namespace_client=first.namespace, table_id=table)
    dataset.create_branch("dev").insert(rows(10, 11))
    old = list(first.catalog.snapshot().versions(("g", "t"), "dev"))
    dataset.branches.delete("dev")
    store = FaultStore(LocalStore(tmp_path, "none"))
    second = first.again(store)
    with pytest.raises(TableBranchNotFoundError):
        second.read("list_table_versions", id=table, branch="dev", limit=1, descending=True)

    lance.dataset(namespace_client=second.namespace, table_id=table).create_branch("dev")
    staged = _stage_on_branch(second, table)
    store.fail(Fault.LOST_REQUEST, when=_promotes_version_2, times=1000)
    second.call("create_table_version", **staged)
    first.catalog.record_housekeeping.remove(old)
    first.catalog.sweep()
    first.catalog.flush_record_housekeeping()

    assert [entry.version for entry in first.catalog.snapshot().versions(("g", "t"), "dev")] == [1, 2]
    assert ids(lance.dataset(namespace_client=first.namespace, table_id=table).checkout_version(("dev", None))) == [
        0,
        1,
        2,
        20,
    ]


def _stage_on_branch(ground: Ground, table: list[str]) -> dict[str, object]:
    """What stock pylance would send for an append to the branch `dev`."""
    capture = Capture(ground.namespace)
    branch = lance.dataset(namespace_client=capture, table_id=table).checkout_version(("dev", None))
    branch.insert(rows(20, 21))
    [request] = capture.captured
    return request
