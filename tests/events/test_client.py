"""The client's iterators: with and without a server, through a restart of it, and with another consumer at work."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from namespace_client import AsyncCatalog, Catalog, CatalogUnavailable, EventsGone, IncompatibleConflict, InvalidCall
from tests.events.following import followed, free_port


@pytest.fixture(params=["in process", "http"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    """A catalog of three versions."""
    root = tmp_path / "root"
    if request.param == "http":
        with followed(root) as server, Catalog.connect(server.url) as found:
            _fill(found)
            yield found
    else:
        with Catalog.connect(str(root)) as found:
            _fill(found)
            yield found


def _fill(catalog: Catalog) -> None:
    for number in range(3):
        catalog.create_namespace(f"n{number}")


def versions(catalog: Catalog, **options: object) -> list[int]:
    return [event.version for event in catalog.events(**options)]  # type: ignore[arg-type]


def test_events_end_with_the_newest_version_of_their_beginning(catalog: Catalog) -> None:
    assert versions(catalog, since=0) == [1, 2, 3]
    assert versions(catalog, since=2) == [3]
    assert versions(catalog) == []
    found = []
    for event in catalog.events(since=1):
        catalog.create_namespace(f"later{event.version}")
        found.append(event.version)
    assert found == [2, 3]


def test_a_cursor_moves_behind_what_is_done(catalog: Catalog) -> None:
    catalog.advance_cursor("c", 1)
    events = iter(catalog.events(cursor="c"))
    with closing(events):  # type: ignore[type-var]
        assert [next(events).version, next(events).version] == [2, 3]
    [cursor] = catalog.cursors()
    assert (cursor.version, cursor.expired) == (2, False)
    assert versions(catalog, cursor="c")[0] == 3


def test_moves_of_cursors_move_none(catalog: Catalog) -> None:
    catalog.advance_cursor("c", 0)
    versions(catalog, cursor="c")
    [before] = catalog.cursors()
    found = [event.kind for event in catalog.events(cursor="c")]
    assert set(found) == {"cursors"}
    assert catalog.cursors()[0].version == before.version


@pytest.mark.parametrize("kinds", ["committed", [], ["comitted"], ["committed", "x"], [None], "", {}])
def test_kinds_that_there_are_not_are_refused(catalog: Catalog, kinds: list[str]) -> None:
    known = "committed, adopted, unmanaged, housekeeping, cursors, hidden"
    with pytest.raises(InvalidCall, match=f"kinds: expected a list of some of {known}; found "):
        catalog.events(since=0, kinds=kinds)


@pytest.mark.parametrize("since", [-1, True, 1.5, "1"])
def test_since_is_a_catalog_version(catalog: Catalog, since: int) -> None:
    with pytest.raises(InvalidCall, match="since: expected a whole number from 0"):
        catalog.events(since=since)


def test_what_is_not_asked_for_is_passed_by_the_cursor_too(catalog: Catalog) -> None:
    catalog.advance_cursor("c", 0)
    assert [event.version for event in catalog.events(cursor="c", kinds=["adopted"])] == []
    assert catalog.cursors()[0].version >= 3


def test_a_new_cursor_begins_at_the_newest_version(catalog: Catalog) -> None:
    assert versions(catalog, cursor="new", kinds=["committed"]) == []
    [cursor] = catalog.cursors()
    assert (cursor.name, cursor.version) == ("new", 3)


def test_a_second_consumer_of_a_cursor_is_noticed(catalog: Catalog) -> None:
    catalog.advance_cursor("c", 0)
    events = catalog.events(cursor="c")
    assert next(events).version == 1
    catalog.advance_cursor("c", 3)
    with pytest.raises(IncompatibleConflict, match="it is at catalog version 3"):
        list(events)


def test_an_iterator_that_is_left_after_its_cursor_was_moved_says_so_and_raises_nothing(
    catalog: Catalog, caplog: pytest.LogCaptureFixture
) -> None:
    catalog.advance_cursor("c", 0)
    events = catalog.events(cursor="c")
    assert next(events).version == 1
    assert next(events).version == 2
    catalog.advance_cursor("c", 3)
    del events
    gc.collect()  # what is raised there is printed, and an error of this test
    assert "it is at catalog version 3" in caplog.text
    assert catalog.cursors()[0].version == 3


def test_a_cursor_that_cannot_be_moved_for_now_is_said_to_stay(
    catalog: Catalog, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.advance_cursor("c", 0)

    def read_only(*_: object, **__: object) -> None:
        raise CatalogUnavailable("this server takes no changes for now", code=17)

    monkeypatch.setattr(catalog.access, "commit", read_only)
    assert versions(catalog, cursor="c") == [1, 2, 3, 4]
    assert caplog.text.count("cursor c stays at catalog version 0 for now: this server takes no changes for now") == 1


def test_a_transaction_moves_a_cursor_or_is_not_made(catalog: Catalog) -> None:
    catalog.advance_cursor("c", 1)
    with catalog.begin() as tx:
        tx.create("t", [{"x": 1}])
        tx.advance_cursor("c", 2, expected=1)
    assert catalog.cursors()[0].version == 2
    tx = catalog.begin().__enter__()
    tx.append("t", [{"x": 2}])
    tx.advance_cursor("c", 3, expected=1)
    with pytest.raises(IncompatibleConflict):
        tx.commit()
    assert catalog.read("t").num_rows == 1


def test_an_iterator_goes_on_from_where_a_transaction_of_its_consumer_put_the_cursor(catalog: Catalog) -> None:
    catalog.create("copied", [{"version": 0}])
    catalog.advance_cursor("c", 1)
    seen = []
    for event in catalog.events(cursor="c"):
        seen.append(event.version)
        if event.version == 3:
            with catalog.begin() as tx:
                tx.append("copied", [{"version": 3}])
                tx.advance_cursor("c", 3)
    assert seen[:3] == [2, 3, 4]
    assert catalog.cursors()[0].version >= 4
    newest = catalog.history(1)[0].version
    catalog.create_namespace("later")
    catalog.advance_cursor("c", newest)
    with closing(iter(catalog.events(cursor="c", kinds=["committed"]))) as events:  # type: ignore[type-var]
        event = next(events)
        with catalog.begin() as tx:
            tx.append("copied", [{"version": event.version}])
            tx.advance_cursor("c", event.version)
    assert catalog.cursors()[0].version == event.version
    assert catalog.read("copied")["version"].to_pylist() == [0, 3, event.version]


def test_what_the_client_refuses(catalog: Catalog) -> None:
    with pytest.raises(InvalidCall, match="expected one of them"):
        catalog.events(since=1, cursor="c")
    with pytest.raises(IncompatibleConflict):
        catalog.advance_cursor("c", 1, expected=2)


def test_events_that_are_gone_are_an_error_of_their_own(catalog: Catalog, tmp_path: Path) -> None:
    [first] = [each for each in (tmp_path / "root/__manifest/_versions").iterdir() if _number(each) == 1]
    first.unlink()
    with pytest.raises(EventsGone, match="take a baseline"):
        versions(catalog, since=0)


def test_a_follower_is_told_what_comes(catalog: Catalog) -> None:
    events = catalog.events(since=3, follow=True)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(next, events)
        time.sleep(0.5)
        catalog.create_namespace("later")
        assert waiting.result(timeout=10).version == 4


def test_asyncio_follows_too(catalog: Catalog) -> None:
    catalog.advance_cursor("c", 0)

    async def follow() -> list[int]:
        found = []
        async for event in AsyncCatalog(catalog).events(cursor="c", follow=True):
            found.append(event.version)
            if len(found) == 5:
                break
        return found

    timer = threading.Timer(0.5, catalog.create_namespace, ["later"])
    timer.start()
    assert asyncio.run(follow()) == [1, 2, 3, 4, 5]
    timer.join()


def test_a_follower_goes_on_after_a_restart_of_its_server(tmp_path: Path) -> None:
    port = free_port()
    with ThreadPoolExecutor(1) as pool:
        with followed(tmp_path / "root", port=port) as server:
            server.namespace("a")
            catalog = Catalog.connect(server.url, retries=0)
            events = catalog.events(since=0, follow=True)
            assert next(events).version == 1
            waiting = pool.submit(next, events)
            time.sleep(0.3)
        time.sleep(0.5)
        assert not waiting.done()
        with followed(tmp_path / "root", port=port) as server:
            version = server.namespace("b")
            assert waiting.result(timeout=20).version == 2 <= version
        catalog.close()


def _number(path: Path) -> int:
    return 2**64 - 1 - int(path.name.removesuffix(".manifest"))
