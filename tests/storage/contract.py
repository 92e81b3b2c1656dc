"""The contract of object stores. Subclass `StoreContract` with a fixture `store`, an empty root."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from lance_core.errors import AlreadyExists, NotFound, OversizedFile, PreconditionFailed, StorageError
from lance_core.storage.memory import MemoryStore
from lance_core.storage.port import ObjectStore
from lance_core.storage.sizes import LARGEST_REFERENCE
from lance_core.storage.wrappers.counting import CountingStore

RACERS = 16


@pytest.fixture(scope="module")
def racers() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(RACERS) as pool:
        yield pool


def race(pool: ThreadPoolExecutor, act: Callable[[int], object]) -> list[int]:
    """Let 16 threads call `act(number)` at once. Returns the numbers that succeeded; others must get AlreadyExists."""
    start = threading.Barrier(RACERS)

    def run(number: int) -> bool:
        start.wait()
        try:
            act(number)
        except AlreadyExists:
            return False
        return True

    won = list(pool.map(run, range(RACERS)))
    return [number for number, winner in enumerate(won) if winner]


def keys(store: ObjectStore, prefix: str, start_after: str | None = None) -> list[str]:
    return [meta.path for meta in store.list(prefix, start_after=start_after)]


class StoreContract:
    rounds = 50
    """Of a race."""

    clock_slack = timedelta(seconds=5)

    # reading

    def test_reads_back_what_was_put(self, store: ObjectStore) -> None:
        data = bytes(range(256)) * 40
        store.put("t/_versions/1.manifest", data)
        assert store.get("t/_versions/1.manifest") == data

    def test_put_replaces_the_whole_object(self, store: ObjectStore) -> None:
        store.put("a/b", b"a long first content")
        store.put("a/b", b"short")
        assert store.get("a/b") == b"short"

    def test_holds_an_empty_object(self, store: ObjectStore) -> None:
        store.put("t/.lance-reserved", b"")
        assert store.get("t/.lance-reserved") == b""
        assert store.get_range("t/.lance-reserved", 0, 10) == b""
        assert store.head("t/.lance-reserved").size == 0
        assert keys(store, "t") == ["t/.lance-reserved"]

    def test_an_object_larger_than_its_kind_can_be_is_not_read(self, store: ObjectStore) -> None:
        key = "t/_refs/tags/large.json"
        data = bytes(LARGEST_REFERENCE)
        store.put(key, data)
        assert store.get(key) == store.find(key) == data
        store.put(key, data + b"x")
        for read in (store.get, store.find, store.get_with_meta):
            with pytest.raises(OversizedFile, match=key) as caught:
                read(key)
            assert (caught.value.key, caught.value.size, caught.value.bound) == (key, len(data) + 1, len(data))
        assert store.get_range(key, len(data), 5) == b"x"
        assert store.tail(key, 2)[0] == b"\0x"
        store.put("t/data/of-any-size", data + b"x")
        assert store.get("t/data/of-any-size") == data + b"x"

    def test_a_reader_may_accept_less(self, store: ObjectStore) -> None:
        store.put("t/a", b"12345")
        assert store.get("t/a", at_most=5) == store.get_with_meta("t/a", at_most=5)[0] == b"12345"
        for read in (store.get, store.get_with_meta):
            with pytest.raises(OversizedFile, match="t/a: expected at most 4 bytes, found 5"):
                read("t/a", at_most=4)
            with pytest.raises(NotFound):
                read("t/b", at_most=4)

    def test_a_missing_object_is_not_found_and_its_key_is_named(self, store: ObjectStore) -> None:
        store.put("dir/object", b"x")
        for path in ("nothing", "dir/nothing", "dir", "dir/object/below"):
            with pytest.raises(NotFound, match=path):
                store.get(path)
            with pytest.raises(NotFound, match=path):
                store.get_range(path, 0, 4)
            with pytest.raises(NotFound, match=path):
                store.head(path)

    @pytest.mark.parametrize(
        ("offset", "length", "expected"),
        [
            (0, 4, b"0123"),
            (3, 4, b"3456"),
            (8, 4, b"89"),
            (10, 4, b""),
            (50, 4, b""),
            (0, 0, b""),
            (0, 99, b"0123456789"),
        ],
    )
    def test_ranges_end_with_the_object(self, store: ObjectStore, offset: int, length: int, expected: bytes) -> None:
        store.put("digits", b"0123456789")
        assert store.get_range("digits", offset, length) == expected

    def test_head_returns_size_time_and_the_e_tag_of_the_write(self, store: ObjectStore) -> None:
        e_tag = store.put("a/b", b"12345")
        meta = store.head("a/b")
        assert (meta.path, meta.size, meta.e_tag) == ("a/b", 5, e_tag)
        assert e_tag is not None
        assert e_tag.startswith('"')
        assert e_tag.endswith('"')
        assert abs(meta.last_modified - datetime.now(UTC)) < self.clock_slack

    def test_content_and_metadata_are_read_together(self, store: ObjectStore) -> None:
        store.put("a/b", b"12345")
        assert store.get_with_meta("a/b") == (b"12345", store.head("a/b"))
        with pytest.raises(NotFound):
            store.get_with_meta("a/c")

    def test_large_objects_are_read_back(self, store: ObjectStore) -> None:
        data = bytes(range(256)) * 4 * 1024 * 9
        store.put("plain", data)
        store.put_if_absent("conditional", data)
        assert store.get("plain") == data
        assert store.get("conditional") == data
        assert store.get_range("plain", len(data) - 3, 10) == data[-3:]

    # conditional writes

    def test_put_if_absent_writes_once(self, store: ObjectStore) -> None:
        e_tag = store.put_if_absent("slot/7", b"first")
        with pytest.raises(AlreadyExists, match="slot/7"):
            store.put_if_absent("slot/7", b"second")
        assert store.get("slot/7") == b"first"
        assert store.head("slot/7").e_tag == e_tag
        assert keys(store, "") == ["slot/7"]

    def test_publish_gives_a_second_name(self, store: ObjectStore) -> None:
        staged_tag = store.put("_staging/x/1", b"manifest")
        e_tag = store.publish("_staging/x/1", "t/_versions/1", b"manifest")
        assert store.get("t/_versions/1") == b"manifest"
        assert store.get("_staging/x/1") == b"manifest"
        assert store.head("t/_versions/1").e_tag == e_tag
        if store.content_e_tags:
            assert e_tag == staged_tag
        with pytest.raises(AlreadyExists, match="t/_versions/1"):
            store.publish("_staging/x/1", "t/_versions/1", b"manifest")

    def test_publish_writes_the_given_bytes_even_if_the_staged_object_changed(self, store: ObjectStore) -> None:
        store.put("staged", b"something longer, put there after the verification")
        store.publish("staged", "one", b"verified")
        assert store.get("one") == b"verified"

    def test_publish_by_link_of_a_missing_staged_object_is_not_found(self, store: ObjectStore) -> None:
        if store.content_e_tags:
            with pytest.raises(NotFound, match="staged"):
                store.publish("staged", "two", b"verified")
            assert store.find("two") is None
        else:
            store.publish("staged", "two", b"verified")
            assert store.get("two") == b"verified"

    def test_publish_leaves_a_taken_target_alone(self, store: ObjectStore) -> None:
        store.put("staged", b"ours")
        store.put("target", b"theirs")
        with pytest.raises(AlreadyExists):
            store.publish("staged", "target", b"ours")
        assert store.get("target") == b"theirs"
        assert store.get("staged") == b"ours"

    def test_rename_moves_to_a_vacant_key_only(self, store: ObjectStore) -> None:
        store.put("a/source", b"content")
        store.put("b/taken", b"theirs")
        with pytest.raises(AlreadyExists, match="b/taken"):
            store.rename_if_absent("a/source", "b/taken")
        assert store.get("b/taken") == b"theirs"
        store.rename_if_absent("a/source", "c/new/target")
        assert keys(store, "") == ["b/taken", "c/new/target"]
        assert store.get("c/new/target") == b"content"
        with pytest.raises(NotFound, match="a/source"):
            store.rename_if_absent("a/source", "d")
        assert keys(store, "") == ["b/taken", "c/new/target"]

    def test_replace_requires_the_current_e_tag(self, store: ObjectStore) -> None:
        old = store.put("canonical", b"foreign")
        assert old is not None
        new = store.replace("canonical", b"ours, of another length", if_match=old)
        assert store.get("canonical") == b"ours, of another length"
        assert store.head("canonical").e_tag == new
        with pytest.raises(PreconditionFailed, match="canonical"):
            store.replace("canonical", b"late", if_match=old)
        assert store.get("canonical") == b"ours, of another length"
        with pytest.raises(NotFound):
            store.replace("nothing", b"x", if_match=old)
        with pytest.raises(NotFound):
            store.get("nothing")

    def test_put_if_absent_has_one_winner(self, store: ObjectStore, racers: ThreadPoolExecutor) -> None:
        for attempt in range(self.rounds):
            path = f"race/{attempt}"
            winners = race(racers, lambda number, path=path: store.put_if_absent(path, b"%d" % number * 99))
            assert len(winners) == 1
            assert store.get(path) == b"%d" % winners[0] * 99

    def test_publish_has_one_winner(self, store: ObjectStore, racers: ThreadPoolExecutor) -> None:
        contents = {f"staged/{number}": b"%d" % number * 99 for number in range(RACERS)}
        for path, data in contents.items():
            store.put(path, data)
        for attempt in range(self.rounds):
            target = f"race/{attempt}"

            def act(number: int, target: str = target) -> None:
                path = f"staged/{number}"
                store.publish(path, target, contents[path])

            winners = race(racers, act)
            assert len(winners) == 1
            assert store.get(target) == contents[f"staged/{winners[0]}"]

    def test_rename_has_one_winner(self, store: ObjectStore, racers: ThreadPoolExecutor) -> None:
        for number in range(RACERS):
            store.put(f"source/{number}", b"%d" % number * 99)
        for attempt in range(self.rounds):
            target = f"race/{attempt}"
            winners = race(
                racers, lambda number, target=target: store.rename_if_absent(f"source/{number}", target, durable=False)
            )
            assert len(winners) == 1
            source = f"source/{winners[0]}"
            assert store.get(target) == b"%d" % winners[0] * 99
            with pytest.raises(NotFound):
                store.get(source)
            store.put(source, b"%d" % winners[0] * 99)

    # copying

    def test_a_copy_replaces_an_existing_object(self, store: ObjectStore) -> None:
        data = bytes(range(256)) * 4 * 1024 * 3
        store.put("a/source", data)
        store.put("b/target", b"something else")
        store.copy("a/source", "b/target")
        store.copy("a/source", "c/new/é #%41")
        store.put("empty", b"")
        store.copy("empty", "d")
        assert store.get("a/source") == store.get("b/target") == store.get("c/new/é #%41") == data
        assert store.get("d") == b""
        assert keys(store, "") == ["a/source", "b/target", "c/new/é #%41", "d", "empty"]
        store.put("a/source", b"changed")
        assert store.get("b/target") == data

    def test_a_copy_of_a_missing_object_is_not_found(self, store: ObjectStore) -> None:
        store.put("dir/object", b"x")
        for path in ("nothing", "dir", "dir/object/below"):
            with pytest.raises(NotFound, match=path):
                store.copy(path, "target")
        assert keys(store, "") == ["dir/object"]

    def test_objects_are_copied_from_other_stores(self, store: ObjectStore, other: ObjectStore) -> None:
        elsewhere = MemoryStore()
        elsewhere.put("a", b"from memory")
        other.put("b", b"from the same kind")
        store.copy("a", "c/1", origin=elsewhere)
        store.copy("b", "c/2", origin=other)
        store.copy("b", "c/3", origin=CountingStore(other))
        store.put("d", b"back")
        elsewhere.copy("d", "x", origin=store)
        assert [store.get(f"c/{number}") for number in (1, 2, 3)] == [b"from memory", *[b"from the same kind"] * 2]
        assert elsewhere.get("x") == b"back"
        with pytest.raises(NotFound, match="nothing"):
            store.copy("nothing", "y", origin=elsewhere)

    # deleting and listing

    def test_names_are_those_directly_in_a_directory(self, store: ObjectStore) -> None:
        assert list(store.names("d")) == []
        for key in ("d/b", "d/a", "d/e/f", "c/x", "dd/y"):
            store.put(key, b"1")
        assert sorted(store.names("d")) == ["a", "b"]
        assert list(store.names("d/e")) == ["f"]

    def test_first_is_the_first_object_of_a_listing(self, store: ObjectStore) -> None:
        assert store.first("d") is None
        for path in ("d/b", "d/a/x", "d/a-b", "e"):
            store.put(path, path.encode())
        first = store.first("d")
        assert first == next(iter(store.list("d")))
        assert first is not None
        assert first.path == "d/a-b"

    def test_directories_are_those_directly_in_a_directory(self, store: ObjectStore) -> None:
        assert list(store.directories("d")) == list(store.directories("")) == []
        for key in ("d/b", "d/a/x", "d/a/y/z", "d/e f/g", "d/ü/y", "c/x", "dd/y", "top"):
            store.put(key, b"1")
        assert sorted(store.directories("d")) == ["a", "e f", "ü"]
        assert sorted(store.directories("")) == ["c", "d", "dd"]
        assert list(store.directories("c")) == []
        store.delete("c/x")
        assert sorted(store.directories("")) == ["d", "dd"]

    def test_delete_if_requires_the_current_e_tag(self, store: ObjectStore) -> None:
        store.put("a", b"one")
        old = store.head("a").e_tag
        store.put("a", b"another")
        with pytest.raises(PreconditionFailed):
            store.delete_if("a", if_match=old)
        assert store.get("a") == b"another"
        store.delete_if("a", if_match=store.head("a").e_tag)
        assert store.find("a") is None
        store.delete_if("a", if_match=old)

    def test_delete_removes_and_accepts_absence(self, store: ObjectStore) -> None:
        store.put("a/b/c", b"x")
        store.delete("a/b/c")
        store.delete("a/b/c")
        store.delete("never/was/there")
        assert keys(store, "") == []
        store.put("a/b/c", b"y")
        assert store.get("a/b/c") == b"y"

    def test_deletes_many_and_accepts_absence(self, store: ObjectStore) -> None:
        names = ["a b", "é", "x&y<z>", "q'\"", "d/e/f", "%41", "a+b"]
        for name in (*names, "kept"):
            store.put(f"many/{name}", b"x")
        store.delete_all([f"many/{name}" for name in (*names, "absent")])
        assert keys(store, "") == ["many/kept"]
        store.delete_all(["many/kept"])
        store.delete_all([])
        assert keys(store, "") == []

    def test_lists_below_a_directory_in_byte_order(self, store: ObjectStore) -> None:
        paths = ["t/a", "t/a-b", "t/a.b", "t/a/b", "t/a/b-c", "t/a/b/c", "t/a0", "t/B", "t/é", "t/z", "ta", "t-a/x"]
        # A file system cannot hold a name both as a file and as a directory.
        paths = [path for path in paths if path not in ("t/a", "t/a/b")]
        for path in paths:
            store.put(path, b"x")
        assert keys(store, "") == sorted(paths, key=str.encode)
        below = sorted((path for path in paths if path.startswith("t/")), key=str.encode)
        assert keys(store, "t") == below
        assert keys(store, "t/a") == ["t/a/b-c", "t/a/b/c"]
        assert keys(store, "missing") == []
        assert keys(store, "ta") == []

    def test_lists_from_a_key_on(self, store: ObjectStore) -> None:
        paths = ["t/a-b", "t/a/b-c", "t/a/b/c", "t/a0", "t/b"]
        for path in paths:
            store.put(path, b"x")
        for start in [*paths, "t/a", "t/a/b", "t/a/b/zzz", "t/", "a", "u", "t/a/b0"]:
            expected = [path for path in paths if path.encode() > start.encode()]
            assert keys(store, "", start) == expected
            assert keys(store, "t", start) == expected

    def test_listing_and_head_agree(self, store: ObjectStore) -> None:
        store.put("t/a", b"123")
        store.put_if_absent("t/b", b"4")
        assert list(store.list("t")) == [store.head("t/a"), store.head("t/b")]

    def test_listing_sees_writes_and_removals_immediately(self, store: ObjectStore, other: ObjectStore) -> None:
        store.put("t/1", b"x")
        assert keys(store, "t") == ["t/1"]
        assert keys(other, "t") == ["t/1"]
        other.put("t/2", b"yy")
        other.delete("t/1")
        assert keys(store, "t") == ["t/2"]
        assert store.get("t/2") == b"yy"
        assert store.head("t/2").size == 2
        with pytest.raises(NotFound):
            store.head("t/1")
        with pytest.raises(NotFound):
            store.get("t/1")

    # keys, steps, paths

    @pytest.mark.parametrize(
        "path",
        ["", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/.", "./a", "a/..", "a\0b", "a\\b", "a\ud800"],
    )
    def test_invalid_keys_are_refused(self, store: ObjectStore, path: str) -> None:
        calls: list[Callable[[], object]] = [
            lambda: store.get(path),
            lambda: store.get_range(path, 0, 1),
            lambda: store.head(path),
            lambda: store.put(path, b"x"),
            lambda: store.put_if_absent(path, b"x"),
            lambda: store.replace(path, b"x", if_match='"x"'),
            lambda: store.publish(path, "fine", b"x"),
            lambda: store.publish("fine", path, b"x"),
            lambda: store.rename_if_absent(path, "fine"),
            lambda: store.rename_if_absent("fine", path),
            lambda: store.copy(path, "fine"),
            lambda: store.copy("fine", path),
            lambda: store.delete(path),
        ]
        for call in calls:
            with pytest.raises(StorageError, match="key ") as caught:
                call()
            assert type(caught.value) is StorageError
        if path:
            with pytest.raises(StorageError, match="key "):
                list(store.list(path))
        assert keys(store, "") == []

    def test_unusual_keys_are_accepted(self, store: ObjectStore) -> None:
        paths = ["ws$users/_versions/1", "..a/b..", "with space/é/%41", "a+b&c=d/#?x", "x/...", "q'\"<>/1"]
        for path in paths:
            store.put_if_absent(path, path.encode())
        assert keys(store, "") == sorted(paths, key=str.encode)
        for path in paths:
            assert store.get(path) == path.encode()
            assert store.head(path).path == path
            store.delete(path)
        assert keys(store, "") == []

    def test_map_and_gather_keep_order_and_make_every_call(self, store: ObjectStore) -> None:
        made: list[int] = []

        def call(number: int) -> int:
            made.append(number)
            if number in (3, 5):
                raise NotFound(f"number {number}")
            return number * 2

        assert store.map(call, [0, 1, 2]) == [0, 2, 4]
        assert store.map(call, []) == []
        made.clear()
        with pytest.raises(NotFound, match="number 3"):
            store.map(call, [0, 5, 3, 1][::-1])
        assert sorted(made) == [0, 1, 3, 5]
        store.gather([lambda: store.put("a", b"1"), lambda: store.put("b", b"2")])
        assert store.gather([lambda: store.get("b"), lambda: store.get("a")]) == [b"2", b"1"]

    def test_a_call_beside_a_block_has_ended_with_it(self, store: ObjectStore) -> None:
        with store.beside(lambda: store.put("beside", b"1")):
            store.put("block", b"2")
        assert (store.get("beside"), store.get("block")) == (b"1", b"2")
        with pytest.raises(NotFound, match="nothing"), store.beside(lambda: store.get("nothing")):
            store.put("block", b"3")
        assert store.get("block") == b"3"
        with pytest.raises(ValueError, match="the block"), store.beside(lambda: store.get("nothing")):
            raise ValueError("the block")

    def test_maps_can_be_nested(self, store: ObjectStore) -> None:
        def outer(row: int) -> list[str | None]:
            return store.map(lambda column: store.put(f"{row:02}/{column:02}", b"x"), range(6))

        store.map(outer, range(40))
        assert len(keys(store, "")) == 240

    def test_relative_path_is_the_inverse_of_object_path(self, store: ObjectStore) -> None:
        store.put("ws$t/_versions/1", b"x")
        path = store.object_path("ws$t/_versions/1")
        assert not path.startswith("/")
        assert path.endswith("ws$t/_versions/1")
        assert store.relative_path(path) == "ws$t/_versions/1"
        assert store.relative_path("/" + path) == "ws$t/_versions/1"
        assert store.relative_path(store.object_path("")) == ""
        assert store.relative_path(path + "/../../../../1") is None
        assert store.relative_path("//" + path) is None
        assert not store.uri.endswith("/")
        assert store.object_uri("ws$t/1") == store.uri + "/ws$t/1"
        assert store.object_uri("a b/%é") == store.uri + "/a%20b/%25%C3%A9"
        assert store.object_uri("") == store.uri

    def test_sync_accepts_what_was_written(self, store: ObjectStore) -> None:
        store.put("a/b/c", b"x", durable=False)
        store.put_if_absent("a/d", b"x", durable=False)
        store.sync(["a/b/c", "a/d", "a/b/c"])
        store.sync([])
        assert store.get("a/b/c") == b"x"
