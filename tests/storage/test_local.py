"""Local files: the contract, and what is specific to file systems."""

import errno
import fcntl
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import lance
import lance.namespace
import pyarrow as pa
import pytest
from lance_namespace import CreateNamespaceRequest, ListTableVersionsRequest

from lance_core.errors import AlreadyExists, NotFound, PreconditionFailed, StorageError, StorageUnknown
from lance_core.storage import durability, local, renaming
from lance_core.storage.local import LocalStore
from lance_core.storage.port import ObjectStore
from tests.storage.contract import StoreContract, keys, racers

__all__ = ["racers"]


class TestFsync(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[ObjectStore]:
        store = LocalStore(tmp_path / "not" / "yet", "fsync")
        yield store
        store.close()

    @pytest.fixture
    def other(self, tmp_path: Path) -> ObjectStore:
        return LocalStore(tmp_path / "not" / "yet", "fsync")


class TestNoFsync(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return LocalStore(tmp_path, "none")

    @pytest.fixture
    def other(self, tmp_path: Path) -> ObjectStore:
        return LocalStore(f"{tmp_path}/", "none")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    store = LocalStore(tmp_path)
    yield store
    store.close()


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


# e_tags


def test_e_tags_are_those_of_stock_lance(tmp_path: Path) -> None:
    namespace = lance.namespace.DirectoryNamespace(root=str(tmp_path), table_version_tracking_enabled="true")
    namespace.create_namespace(CreateNamespaceRequest(id=["ws"]))
    lance.write_dataset(pa.table({"a": [1]}), namespace_client=namespace, table_id=["ws", "t"], mode="create")
    (version,) = namespace.list_table_versions(ListTableVersionsRequest(id=["ws", "t"])).versions
    store = LocalStore(tmp_path)
    path = store.relative_path(version.manifest_path)
    assert path is not None
    assert store.head(path).e_tag == version.e_tag
    assert store.object_path(path) == version.manifest_path


def test_object_paths_outside_the_root_have_no_key(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "cat")
    assert store.relative_path(f"{tmp_path}/catalog/x") is None
    assert store.relative_path(f"{tmp_path}/other/x") is None
    assert store.relative_path(f"{tmp_path}/cat/x") == "x"


# what is no regular file


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def link_to_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


READS: dict[str, Callable[[LocalStore, str], object]] = {
    "get": lambda store, key: store.get(key),
    "get_range": lambda store, key: store.get_range(key, 0, 10),
    "get_with_meta": lambda store, key: store.get_with_meta(key),
    "head": lambda store, key: store.head(key),
    "tail": lambda store, key: store.tail(key, 10),
    "require": lambda store, key: store.require([key]),
    "copy": lambda store, key: store.copy(key, "t/target"),
    "rename": lambda store, key: store.rename_if_absent(key, "t/target"),
    "replace": lambda store, key: store.replace(key, b"new", if_match='"0-0-0"'),
    "sync": lambda store, key: store.sync([key]),
}


@pytest.mark.parametrize("make", [make_pipe, make_socket, link_to_device, Path.mkdir])
def test_only_a_regular_file_is_an_object(store: LocalStore, tmp_path: Path, make: Callable[[Path], None]) -> None:
    (tmp_path / "t").mkdir()
    make(tmp_path / "t/x")
    for name, read in READS.items():
        with pytest.raises(NotFound, match="t/x"):
            pytest.fail(f"{name}: {read(store, 't/x')!r}")
    assert store.find("t/x") is None
    assert keys(store, "t") == []
    assert "x" not in store.names("t")
    with pytest.raises(StorageError, match="t/x: expected a vacant key, found what is not a regular file"):
        store.put_if_absent("t/x", b"ours")
    with pytest.raises(StorageError, match="t/x"):
        store.publish("t/x", "t/x", b"ours")
    assert store.publish("t/x", "t/y", b"ours")
    assert store.get("t/y") == b"ours"


@pytest.mark.skipif(sys.platform != "linux", reason="leases of files are a call of Linux")
def test_a_file_that_a_file_server_has_a_lease_on_is_read(store: LocalStore, tmp_path: Path) -> None:
    """Linux refuses to open such a file without waiting, and asks the holder of the lease to return it."""
    store.put("t/x", b"content")
    holder = os.open(tmp_path / "t/x", os.O_RDWR)
    before = signal.signal(signal.SIGIO, lambda *_: fcntl.fcntl(holder, fcntl.F_SETLEASE, fcntl.F_UNLCK))
    try:
        fcntl.fcntl(holder, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(store.get, "t/x")
            while not reading.done():
                time.sleep(0.01)  # Python handles signals in this thread
        assert reading.result() == b"content"
    finally:
        signal.signal(signal.SIGIO, before)
        os.close(holder)


# temporary files and directories


@pytest.mark.parametrize("step", ["link", "replace", "write"])
def test_a_failed_write_leaves_no_file(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    store.put("t/0", b"before")
    monkeypatch.setattr(os, step, full)
    with pytest.raises(StorageError, match=r"t/1: .*No space left") as caught:
        store.put("t/1", b"x") if step == "replace" else store.put_if_absent("t/1", b"x")
    assert type(caught.value) is StorageError
    assert files(tmp_path) == ["t", "t/0"]


@pytest.mark.parametrize("step", ["link", "replace"])
def test_a_file_system_without_an_answer_gives_an_unknown_outcome(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def lost(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, step, lost)
    with pytest.raises(StorageUnknown, match="t/1"):
        store.put("t/1", b"x") if step == "replace" else store.put_if_absent("t/1", b"x")


def test_a_resent_link_is_recognised_as_the_same_write(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Network file systems repeat a link whose answer was lost, and then find its work."""
    link = os.link

    def repeated(source: str, target: str) -> None:
        link(source, target)
        link(source, target)

    monkeypatch.setattr(os, "link", repeated)
    store.put_if_absent("slot", b"ours")
    with pytest.raises(AlreadyExists):
        store.put_if_absent("slot", b"theirs")
    assert store.get("slot") == b"ours"


def test_listings_hide_temporary_files(store: LocalStore, tmp_path: Path) -> None:
    store.put("t/_versions/1.manifest", b"x")
    (tmp_path / "t/_versions" / f".{'0123456789abcdef' * 2}.tmp").write_bytes(b"torn")
    (tmp_path / "t/_versions/.hidden.tmp").write_bytes(b"an object like any other")
    assert keys(store, "") == ["t/_versions/.hidden.tmp", "t/_versions/1.manifest"]
    with pytest.raises(StorageError, match="temporary"):
        store.put(f"t/.{'0' * 32}.tmp", b"x")


def test_temporary_files_of_dead_writers_are_found_and_removed(store: LocalStore, tmp_path: Path) -> None:
    store.put("t/_versions/1.manifest", b"1")
    left = tmp_path / "t/_versions" / f".{'0123456789abcdef' * 2}.tmp"
    left.write_bytes(b"torn")
    [found] = store.unfinished("t")
    assert (found.path, found.size) == (f"t/_versions/{left.name}", 4)
    assert list(store.unfinished("")) == [found]
    assert list(store.unfinished("u")) == []
    store.delete(found.path)
    assert list(store.unfinished("")) == []
    assert keys(store, "") == ["t/_versions/1.manifest"]


def test_empty_directories_that_are_old_are_removed(store: LocalStore, tmp_path: Path) -> None:
    store.put("t/data/1.lance", b"1")
    for directory in ("t/old/empty", "t/young/empty", "t/data/sub"):
        (tmp_path / directory).mkdir(parents=True)
    for directory in ("t", "t/old", "t/old/empty", "t/data", "t/data/sub", "t/young"):
        os.utime(tmp_path / directory, (1, 1))
    store.remove_empty_directories("t", datetime.fromtimestamp(2, UTC))
    assert {str(path.relative_to(tmp_path)) for path in (tmp_path / "t").rglob("*")} == {
        "t/data",
        "t/data/1.lance",
        "t/young",
        "t/young/empty",
    }
    store.remove_empty_directories("none", datetime.now(UTC))
    store.delete("t/data/1.lance")
    store.remove_empty_directories("t", datetime.max.replace(tzinfo=UTC))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("call", ["put", "put_if_absent"])
def test_a_writer_whose_temporary_file_was_removed_writes_nothing(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """It was held for longer than any writer is waited for."""
    name = {"put": "replace", "put_if_absent": "link"}[call]
    given = getattr(os, name)

    def held(*arguments: Any, **options: Any) -> Any:
        for meta in store.unfinished(""):
            store.delete(meta.path)
        return given(*arguments, **options)

    monkeypatch.setattr(os, name, held)
    with pytest.raises(StorageError):
        getattr(store, call)("t/a", b"1")
    assert store.find("t/a") is None


def test_stock_lance_ignores_our_temporary_files(store: LocalStore, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"a": [1]}), uri)
    for directory in ("_versions", "data", "_transactions"):
        (tmp_path / "t.lance" / directory / f".{'f' * 32}.tmp").write_bytes(b"torn")
    lance.write_dataset(pa.table({"a": [2]}), uri, mode="append")
    assert lance.dataset(uri).count_rows() == 2
    assert [found["version"] for found in lance.dataset(uri).versions()] == [1, 2]


def test_directories_are_removed_with_their_last_object(store: LocalStore, tmp_path: Path) -> None:
    """Stock Lance takes a directory `x.lance` for a table."""
    store.put("x.lance/_versions/1", b"x")
    store.put("x.lance/data/a/b", b"x")
    store.delete("x.lance/data/a/b")
    assert files(tmp_path) == ["x.lance", "x.lance/_versions", "x.lance/_versions/1"]
    store.rename_if_absent("x.lance/_versions/1", "y")
    assert files(tmp_path) == ["y"]
    store.delete("y")
    assert tmp_path.is_dir()


@pytest.mark.parametrize("durable", [True, False])
def test_concurrent_creation_and_removal_of_directories_loses_no_write(store: LocalStore, durable: bool) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(60):
                path = f"a/b/{number}"
                store.put_if_absent(path, b"%d" % turn, durable=durable)
                store.publish(path, f"a/c/{number}", b"%d" % turn, durable=False)
                assert store.get(f"a/c/{number}") == b"%d" % turn
                store.delete(path)
                store.rename_if_absent(f"a/c/{number}", f"d/{number}", durable=False)
                store.delete(f"d/{number}")
        except BaseException as error:
            failures.append(error)
            raise

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert failures == []
    assert keys(store, "") == []


def test_a_directory_is_not_an_object(store: LocalStore) -> None:
    store.put("a/b", b"x")
    for call in (
        lambda: store.put("a", b"x"),
        lambda: store.put_if_absent("a", b"x"),
        lambda: store.put("a/b/c", b"x"),
    ):
        with pytest.raises(StorageError) as caught:
            call()
        assert type(caught.value) is StorageError
    store.delete("a")
    assert keys(store, "") == ["a/b"]


def test_links_to_directories_are_not_followed_when_listing(store: LocalStore, tmp_path: Path) -> None:
    store.put("a/b", b"x")
    (tmp_path / "a" / "loop").symlink_to(tmp_path / "a")
    (tmp_path / "a" / "gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "a" / "itself").symlink_to(tmp_path / "a" / "itself")
    assert keys(store, "") == ["a/b"]
    assert store.names("a") == ["b"]
    assert store.directories("") == ["a"]
    assert store.directories("a") == ["loop"]


def test_names_that_are_not_utf_8_are_ignored(store: LocalStore, tmp_path: Path) -> None:
    store.put("a/b", b"x")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/a/\xff")).write_bytes(b"x")
    assert keys(store, "", "a/a") == ["a/b"]


# publishing


def test_publishing_is_a_link(store: LocalStore, tmp_path: Path) -> None:
    store.put("staged", b"x")
    store.publish("staged", "t/1", b"x")
    assert (tmp_path / "staged").samefile(tmp_path / "t/1")


def test_without_links_publishing_writes_the_bytes(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux refuses links to files of other users that one may not write (protected_hardlinks)."""
    store.put("staged", b"x")
    link = os.link

    def refuse(source: str, target: str) -> None:
        if source.endswith("/staged"):
            raise PermissionError(errno.EPERM, "Operation not permitted")
        link(source, target)

    monkeypatch.setattr(os, "link", refuse)
    e_tag = store.publish("staged", "t/1", b"x")
    assert store.get("t/1") == b"x"
    assert store.head("t/1").e_tag == e_tag
    with pytest.raises(AlreadyExists):
        store.publish("staged", "t/1", b"x")


@pytest.fixture
def no_exclusive_rename(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system whose rename cannot refuse a taken name, as some network file systems."""
    monkeypatch.setattr("lance_core.storage.local.rename_to_vacant", lambda _source, _target: False)


def test_a_move_is_atomic(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes the old name while the mover is held is not removed with it."""
    store.put("a/source", b"x")
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", None)
        store.rename_if_absent("a/source", "b/target")
    assert (store.find("a/source"), store.get("b/target")) == (None, b"x")
    store.put("a/source", b"y")
    with pytest.raises(AlreadyExists):
        store.rename_if_absent("a/source", "b/target")
    assert (store.get("a/source"), store.get("b/target")) == (b"y", b"x")


@pytest.mark.usefixtures("no_exclusive_rename")
def test_a_move_in_two_steps_removes_no_other_file(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put("a/source", b"x")
    link = os.link

    def and_replace(source: str, target: str) -> None:
        link(source, target)
        store.put("a/source", b"y")

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", and_replace)
        store.rename_if_absent("a/source", "b/target")
    assert (store.get("a/source"), store.get("b/target")) == (b"y", b"x")


@pytest.mark.usefixtures("no_exclusive_rename")
def test_a_crash_in_a_move_leaves_both_names(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    def die(*_: object) -> None:
        raise Killed

    store.put("a/source", b"x")
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", die)
        with pytest.raises(Killed):
            store.rename_if_absent("a/source", "b/target")
    assert store.get("a/source") == store.get("b/target") == b"x"


# durability


class Disk:
    """What was made durable: paths given to fsync."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.synced: list[str] = []
        self._lock = threading.Lock()
        fsync = os.fsync

        def record(descriptor: int) -> None:
            path = Path(f"/proc/self/fd/{descriptor}").readlink()
            fsync(descriptor)
            with self._lock:
                self.synced.append(os.path.relpath(path, root))

        monkeypatch.setattr(os, "fsync", record)

    def take(self) -> list[str]:
        taken, self.synced = self.synced, []
        return taken


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(tmp_path, monkeypatch)


@pytest.fixture
def next_tick(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Trust directories at once, and let file times advance when told."""
    monkeypatch.setattr(durability, "_SETTLED_NS", -(10**18))
    probe = tmp_path_factory.mktemp("tick") / "probe"

    def wait() -> None:
        probe.write_bytes(b"")
        before = probe.stat().st_ctime_ns
        while probe.stat().st_ctime_ns == before:
            probe.chmod(0o600)

    return wait


def names(synced: list[str]) -> list[str]:
    return ["TEMPORARY" if path.endswith(".tmp") else path for path in synced]


@pytest.mark.parametrize("verb", ["put", "put_if_absent"])
def test_a_durable_write_syncs_the_bytes_first_and_then_every_name(store: LocalStore, disk: Disk, verb: str) -> None:
    getattr(store, verb)("a/b/c", b"x")
    assert names(disk.take()) == ["TEMPORARY", "a/b", "a", "."]


def test_a_new_root_is_made_durable_too(tmp_path: Path, disk: Disk) -> None:
    LocalStore(tmp_path / "new" / "root").put("x", b"x")
    assert set(names(disk.take())) == {".", "new", "TEMPORARY", "new/root"}


def test_publishing_syncs_the_staged_bytes_before_the_name(store: LocalStore, disk: Disk) -> None:
    store.put("s/staged", b"x", durable=False)
    assert disk.take() == []
    store.publish("s/staged", "t/1", b"x")
    assert disk.take() == ["s/staged", "t", "."]


def test_a_durable_copy_syncs_the_bytes_first_and_then_every_name(store: LocalStore, disk: Disk) -> None:
    store.put("s/source", b"x", durable=False)
    store.copy("s/source", "t/u/1")
    assert names(disk.take()) == ["TEMPORARY", "t/u", "t", "."]
    store.copy("s/source", "t/u/2", durable=False)
    assert disk.take() == []


def test_without_a_copy_in_the_kernel_the_bytes_are_copied(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytes(range(256)) * 4096 * 3
    store.put("source", data)
    kernel = os.copy_file_range
    calls: list[int] = []

    def refuse(source: int, target: int, count: int, offset: int) -> int:
        calls.append(offset)
        if len(calls) > 1:
            raise OSError(errno.EXDEV, "between file systems")
        return kernel(source, target, min(count, 1000), offset)

    monkeypatch.setattr(os, "copy_file_range", refuse)
    store.copy("source", "target")
    assert calls == [0, 1000]
    assert store.get("target") == data


def test_a_failed_copy_leaves_no_file(store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put("a/source", b"x")
    store.put("a/target", b"before")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    with pytest.raises(StorageError, match="a/target: cannot write it"):
        store.copy("a/source", "a/target")
    assert files(tmp_path) == ["a", "a/source", "a/target"]
    assert store.get("a/target") == b"before"


@pytest.mark.usefixtures("no_exclusive_rename")
def test_a_move_syncs_the_new_name_before_removing_the_old_one(
    store: LocalStore, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("s/staged", b"x")
    disk.take()
    unlink = os.unlink

    def record(path: str) -> None:
        disk.synced.append("UNLINK")
        unlink(path)

    monkeypatch.setattr(os, "unlink", record)
    store.rename_if_absent("s/staged", "t/1")
    assert disk.take() == ["s/staged", "t", ".", "UNLINK"]


def test_sync_covers_files_of_other_writers_and_each_directory_once(
    store: LocalStore, disk: Disk, tmp_path: Path
) -> None:
    lance.write_dataset(pa.table({"a": [1]}), str(tmp_path / "t"))
    paths = keys(store, "t")
    store.put("_staging/b/a/1", b"x", durable=False)
    assert disk.take() == []
    store.sync([*paths, "_staging/b/a/1", paths[0]])
    directories = {"."}
    for path in [*paths, "_staging/b/a/1"]:
        directories |= {str(parent) for parent in Path(path).parents}
    assert sorted(disk.take()) == sorted([*paths, "_staging/b/a/1", *directories])


def test_unchanged_directories_are_not_synced_again(
    store: LocalStore, disk: Disk, next_tick: Callable[[], None]
) -> None:
    store.put("a/b/1", b"x")
    disk.take()
    next_tick()
    store.put("a/b/2", b"x")
    assert names(disk.take()) == ["TEMPORARY", "a/b"]
    store.sync(["a/b/1"])
    assert disk.take() == ["a/b/1"]
    next_tick()
    store.put("a/c/1", b"x")
    assert names(disk.take()) == ["TEMPORARY", "a/c", "a"]


def test_recreated_directories_are_synced_again(
    store: LocalStore, disk: Disk, tmp_path: Path, next_tick: Callable[[], None]
) -> None:
    store.put("t.lance/data/1", b"x")
    next_tick()
    (tmp_path / "t.lance/data/1").unlink()
    (tmp_path / "t.lance/data").rmdir()
    (tmp_path / "t.lance").rmdir()
    (tmp_path / "t.lance/data").mkdir(parents=True)
    (tmp_path / "t.lance/data/1").write_bytes(b"y")
    disk.take()
    store.sync(["t.lance/data/1"])
    assert sorted(disk.take()) == [".", "t.lance", "t.lance/data", "t.lance/data/1"]


def test_a_recently_changed_directory_is_synced_again(store: LocalStore, disk: Disk) -> None:
    """File times advance in ticks: another change may share the one that was seen."""
    store.put("a/1", b"x")
    disk.take()
    store.sync(["a/1"])
    assert sorted(disk.take()) == [".", "a", "a/1"]


def test_sync_of_a_missing_object_is_not_found(store: LocalStore) -> None:
    store.put("a/b", b"x")
    for path in ("a/c", "c/d", "a"):
        with pytest.raises(NotFound):
            store.sync(["a/b", path])


def test_a_write_that_may_not_be_durable_is_unknown(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: str) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(durability, "sync_directory", fail)
    with pytest.raises(StorageUnknown, match="perhaps not durable"):
        store.put_if_absent("a/1", b"x")


def test_without_durability_nothing_is_synced(tmp_path: Path, disk: Disk) -> None:
    store = LocalStore(tmp_path, "none")
    store.put("a/1", b"x")
    store.publish("a/1", "b/1", b"x")
    store.rename_if_absent("b/1", "c/1")
    store.copy("a/1", "d/1")
    store.sync(["a/1", "c/1"])
    assert disk.take() == []


def test_durability_has_two_values(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected 'fsync' or 'none'"):
        LocalStore(tmp_path, "sometimes")  # type: ignore[arg-type]


# replacement


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Hold a process just before it exchanges two files, after its first look: the given actions run there, in turn."""
    exchange = renaming._rename
    actions: list[Callable[[], object]] = []

    def held(source: str, target: str, flag: int) -> bool:
        if actions:
            actions.pop(0)()
        return exchange(source, target, flag)

    monkeypatch.setattr(renaming, "_rename", held)
    return actions.append


def test_a_file_that_comes_between_comparison_and_replacement_stays(
    store: LocalStore, between: Callable[[Callable[[], object]], None]
) -> None:
    """A process is held between the two while another one replaces the file, as no lock or look could exclude."""
    e_tag = store.put("t/1", b"old")
    between(lambda: store.put("t/1", b"theirs"))
    with pytest.raises(PreconditionFailed, match="t/1: expected e_tag"):
        store.replace("t/1", b"ours", if_match=e_tag)
    assert store.get("t/1") == b"theirs"
    assert files(Path(store.root)) == ["t", "t/1"]


def test_a_file_that_is_removed_before_its_replacement_does_not_come_back(
    store: LocalStore, between: Callable[[Callable[[], object]], None]
) -> None:
    e_tag = store.put("t/1", b"old")
    between(lambda: store.delete("t/1"))
    with pytest.raises(NotFound, match="t/1: nothing to replace"):
        store.replace("t/1", b"ours", if_match=e_tag)
    assert files(Path(store.root)) == ["t"]


def test_the_newest_of_several_files_keeps_the_name(
    store: LocalStore, between: Callable[[Callable[[], object]], None]
) -> None:
    """One comes before the exchange, another one before the first is put back."""
    e_tag = store.put("t/1", b"old")
    between(lambda: store.put("t/1", b"theirs"))
    between(lambda: store.put("t/1", b"newer"))
    with pytest.raises(PreconditionFailed):
        store.replace("t/1", b"ours", if_match=e_tag)
    assert store.get("t/1") == b"newer"
    assert files(Path(store.root)) == ["t", "t/1"]


def test_a_file_is_put_back_under_a_name_that_was_removed_meanwhile(
    store: LocalStore, between: Callable[[Callable[[], object]], None]
) -> None:
    """What was removed was the file that should not have been there."""
    e_tag = store.put("t/1", b"old")
    between(lambda: store.put("t/1", b"theirs"))
    between((Path(store.root) / "t/1").unlink)
    with pytest.raises(PreconditionFailed):
        store.replace("t/1", b"ours", if_match=e_tag)
    assert store.get("t/1") == b"theirs"
    assert files(Path(store.root)) == ["t", "t/1"]


def test_a_file_system_without_exchange_compares_first(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renaming, "_rename", lambda _source, _target, _flag: False)
    e_tag = store.put("t/1", b"old")
    new = store.replace("t/1", b"ours", if_match=e_tag)
    assert (store.get("t/1"), store.head("t/1").e_tag) == (b"ours", new)
    with pytest.raises(PreconditionFailed):
        store.replace("t/1", b"late", if_match=e_tag)
    with pytest.raises(NotFound):
        store.replace("t/2", b"late", if_match=e_tag)
    assert files(Path(store.root)) == ["t", "t/1"]


def test_a_file_system_without_exchange_compares_again_before_it_replaces(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renaming, "_rename", lambda _source, _target, _flag: False)
    e_tag, write = store.put("t/1", b"old"), store._write

    def then_write(*given: Any) -> Any:
        monkeypatch.undo()
        monkeypatch.setattr(renaming, "_rename", lambda _source, _target, _flag: False)
        store.put("t/1", b"theirs")
        return write(*given)

    monkeypatch.setattr(store, "_write", then_write)
    with pytest.raises(PreconditionFailed):
        store.replace("t/1", b"ours", if_match=e_tag)
    assert store.get("t/1") == b"theirs"


def test_two_processes_replace_one_file_at_once(store: LocalStore) -> None:
    """Of the replacements of one content exactly one succeeds: no line is lost."""
    store.put("lines", b"\n")
    stores = [LocalStore(store.root, "none") for _ in range(4)]

    def add_lines(mine: LocalStore) -> None:
        for _ in range(50):
            while True:
                data, meta = mine.get_with_meta("lines")
                assert meta.e_tag is not None
                try:
                    mine.replace("lines", data + b"\n", if_match=meta.e_tag)
                except PreconditionFailed:
                    continue
                break

    with ThreadPoolExecutor(len(stores)) as pool:
        list(pool.map(add_lines, stores))
    assert store.get("lines") == b"\n" * 201


def test_a_replacement_waits_for_another_one_of_the_file(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is seen for a moment while a file is put back must be built on by none that asks for what it found."""
    e_tag = store.put("t/1", b"old")
    with renaming.locked(f"{store.root}/t/1"):
        monkeypatch.setattr(renaming, "_LONGEST_WAIT", 0.0)
        with pytest.raises(StorageError, match="t/1: cannot write it"):
            store.replace("t/1", b"ours", if_match=e_tag)
        assert files(Path(store.root)) == ["t", "t/1"]
    store.replace("t/1", b"ours", if_match=e_tag)
    assert store.get("t/1") == b"ours"


@pytest.mark.parametrize("exchange", [True, False])
def test_a_lock_is_on_the_file_that_has_the_name(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, exchange: bool
) -> None:
    """One that waits for the lock of a file gets it when the file has lost the name."""
    if not exchange:
        monkeypatch.setattr(renaming, "_rename", lambda _source, _target, _flag: False)
    e_tag = store.put("t/1", b"old")
    lock = renaming._lock

    def then_lock(descriptor: int) -> None:
        monkeypatch.setattr(renaming, "_lock", lock)
        store.put("t/1", b"theirs")
        lock(descriptor)

    monkeypatch.setattr(renaming, "_lock", then_lock)
    with pytest.raises(PreconditionFailed):
        store.replace("t/1", b"ours", if_match=e_tag)
    with renaming.locked(f"{store.root}/t/1") as found:
        assert found.st_size == len(b"theirs")


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("verb", ["put", "publish", "rename_if_absent"])
def test_a_directory_in_which_no_file_can_be_made_is_told(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, there: bool
) -> None:
    """As one of a file system that says that a file is missing where it does not let one be made."""
    store.put("staged", b"x")
    store.put("directory/other", b"x")
    place = "directory" if there else "missing"

    def refusing(call: Callable[..., Any]) -> Callable[..., Any]:
        def refuse(*arguments: Any, **options: Any) -> Any:
            if any(f"/{place}" in str(argument) for argument in arguments):
                if call is os.mkdir and there:
                    raise FileExistsError(errno.EEXIST, "there")
                raise FileNotFoundError(errno.ENOENT, "refused")
            return call(*arguments, **options)

        return refuse

    for name in ("open", "link", "mkdir"):
        monkeypatch.setattr(os, name, refusing(getattr(os, name)))
    monkeypatch.setattr(local, "rename_to_vacant", refusing(local.rename_to_vacant))
    calls: dict[str, Callable[[], object]] = {
        "put": lambda: store.put(f"{place}/x", b"x"),
        "publish": lambda: store.publish("staged", f"{place}/x", b"x"),
        "rename_if_absent": lambda: store.rename_if_absent("staged", f"{place}/x"),
    }
    with pytest.raises(StorageError, match=f"{place}: expected a directory in which files can be made") as told:
        calls[verb]()
    assert type(told.value) is StorageError
    monkeypatch.undo()
    assert store.get("staged") == b"x"
    assert not (tmp_path / "missing").exists()
