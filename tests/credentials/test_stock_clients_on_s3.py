"""What pylance and lancedb promise of namespaces on S3, in each way in which a client can reach the files.

The same is asked of stock's own server, where it offers the way.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.file import LanceFileReader, LanceFileSession, LanceFileWriter
from lance.fragment import write_fragments
from lance.namespace import RestNamespace
from lance_namespace import (
    CreateTableRequest,
    DeclareTableRequest,
    DropTableRequest,
    ListTablesRequest,
    TableExistsRequest,
)
from lance_namespace.errors import TableNotFoundError
from lancedb.namespace import LanceNamespaceDBConnection

from tests.clients.databases import rows
from tests.credentials.conftest import GuardedS3
from tests.credentials.ways import EXPIRING, LIFETIME, OURS, WAYS, Way, asked, way
from tests.data.arrow import stream
from tests.documentation.pages import REPOSITORY, blocks

pytestmark = [pytest.mark.slow, pytest.mark.long]

WRITTEN_URL = "http://127.0.0.1:2333"


@pytest.fixture(scope="module")
def opened(guarded_service: GuardedS3, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Way]]:
    """Opens a way when a test first asks for it."""
    found: dict[str, Way] = {}
    with ExitStack() as stack:

        def find(name: str) -> Way:
            if name not in found:
                log = tmp_path_factory.mktemp("ways") / "log"
                found[name] = stack.enter_context(way(name, guarded_service, log))
            return found[name]

        yield find


@pytest.fixture(params=WAYS)
def on(request: pytest.FixtureRequest, opened: Callable[[str], Way], guarded_s3: GuardedS3) -> Way:
    """A way, for clients without keys in their environment. Temporary credentials last for an hour."""
    return opened(request.param)


@pytest.fixture(params=EXPIRING)
def ending(request: pytest.FixtureRequest, opened: Callable[[str], Way], guarded_s3: GuardedS3) -> Iterator[Way]:
    """A way in which credentials end after seconds."""
    guarded_s3.guard.lifetime = LIFETIME
    yield opened(request.param)
    assert guarded_s3.guard.denied == []


def _write(on: Way, client: RestNamespace, table: list[str], data: object, **given: object) -> lance.LanceDataset:
    """Write through a client; by default to a new table."""
    given = {"mode": "create", "storage_options": on.own, **given}
    return lance.write_dataset(data, namespace_client=client, table_id=table, **given)


def _open(on: Way, client: RestNamespace, table: list[str]) -> lance.LanceDataset:
    return lance.dataset(namespace_client=client, table_id=table, storage_options=on.own)


def _ids(found: pa.Table) -> list[int]:
    return sorted(found["id"].to_pylist())


# pylance


def test_create_and_open(on: Way) -> None:
    client, table = on.client(), on.new_table()
    created = _write(on, client, table, rows(0, 2))
    assert created.to_table() == rows(0, 2)
    assert len(created.versions()) == 1
    assert asked(client) == (1, 0)
    found = _open(on, client, table)
    assert found.to_table() == rows(0, 2)
    assert [found.count_rows() for _ in range(3)] == [2, 2, 2]
    assert asked(client) == (1, 1)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_write_to_a_table_that_exists(on: Way, mode: str) -> None:
    client, table = on.client(), on.new_table()
    _write(on, client, table, rows(0, 1))
    written = _write(on, client, table, rows(1, 3), mode=mode)
    expected = [0, 1, 2] if mode == "append" else [1, 2]
    assert _ids(written.to_table()) == expected
    assert len(written.versions()) == 2
    assert asked(client) == (1, 1)
    again = _open(on, client, table)
    assert _ids(again.to_table()) == expected
    assert len(again.versions()) == 2
    assert asked(client) == (1, 2)


def test_fragments_of_several_writers_in_one_commit(on: Way) -> None:
    client, table = on.client(), on.new_table()
    declared = client.declare_table(DeclareTableRequest(id=table))
    options = {**(on.own or {}), **(declared.storage_options or {})}
    place = {"storage_options": options, "namespace_client": client, "table_id": table}
    fragments = [
        fragment
        for start in (0, 2, 4)
        for fragment in write_fragments(rows(start, start + 2), declared.location, **place)
    ]
    operation = lance.LanceOperation.Overwrite(rows().schema, fragments)
    committed = lance.LanceDataset.commit(declared.location, operation, **place)
    assert _ids(committed.to_table()) == list(range(6))
    assert len(committed.versions()) == 1
    assert _open(on, client, table).count_rows() == 6


def _file(place: str, options: dict[str, object], start: int) -> None:
    with LanceFileWriter(place, rows().schema, **options) as writer:
        for batch in rows(start, start + 3).to_batches():
            writer.write_batch(batch)


def _files(on: Way, client: RestNamespace) -> tuple[str, dict[str, object]]:
    """A directory of a new table, and the arguments of what reads and writes single files there."""
    table = on.new_table()
    location = _write(on, client, table, rows(0, 1)).uri
    options = on.options(client, table)
    return f"{location}/data", {"storage_options": options, "namespace_client": client, "table_id": table}


def test_single_files(on: Way) -> None:
    client = on.client()
    place, given = _files(on, client)
    before = asked(client)
    _file(f"{place}/one.lance", given, 0)
    assert LanceFileReader(f"{place}/one.lance", **given).read_all().to_table() == rows(0, 3)
    session = LanceFileSession(place, **given)
    assert not session.contains("two.lance")
    with session.open_writer("two.lance", schema=rows().schema) as writer:
        writer.write_batch(rows(3, 6).to_batches()[0])
    assert session.contains("two.lance")
    assert {"one.lance", "two.lance"} <= {name.rpartition("/")[2] for name in session.list()}
    assert session.open_reader("two.lance").read_all().to_table() == rows(3, 6)
    assert asked(client) == before


def test_create_and_drop(on: Way) -> None:
    client, table = on.client(), on.new_table()
    _write(on, client, table, rows(0, 1))
    client.drop_table(DropTableRequest(id=table))
    with pytest.raises(TableNotFoundError):
        client.table_exists(TableExistsRequest(id=table))


@pytest.mark.parametrize("on", EXPIRING, indirect=True)  # no client reaches a file: one way is as good as another
@pytest.mark.parametrize("servers", [1, 2])
def test_tables_are_created_and_dropped_at_once(on: Way, servers: int) -> None:
    """Where there are two servers, each drops what the other has created."""
    tables = [on.new_table() for _ in range(10)]
    clients = [on.client(number % servers) for number in range(len(tables) + 1)]

    def create_and_drop(number: int) -> None:
        clients[number].create_table(CreateTableRequest(id=tables[number]), stream(rows(0, 3)))
        clients[number + 1].drop_table(DropTableRequest(id=tables[number]))

    with ThreadPoolExecutor(len(tables)) as threads:
        list(threads.map(create_and_drop, range(len(tables))))
    assert {name for _, name in tables}.isdisjoint(on.client().list_tables(ListTablesRequest(id=["w"])).tables)


@pytest.mark.parametrize("on", ["static options", "sessions"], indirect=True)
def test_what_is_handed_out_goes_over_what_a_client_has(on: Way) -> None:
    client, [*namespace, name] = on.client(), on.new_table()
    wrong = {"aws_access_key_id": "wrong", "aws_secret_access_key": "wrong"}
    _write(on, client, [*namespace, name], rows(0, 1), storage_options=wrong)
    database = LanceNamespaceDBConnection(client, storage_options=wrong)
    opened = database.open_table(name, namespace_path=namespace, storage_options=wrong)
    opened.add(rows(1, 2))
    assert _ids(opened.to_arrow()) == [0, 1]
    with pytest.raises(ValueError, match="AccessDenied"):
        lance.dataset(opened.uri, storage_options=on.service.public | wrong)


# lancedb


def test_lancedb_creates_and_opens_tables(on: Way) -> None:
    client, tables = on.client(), [on.new_table(), on.new_table()]
    database = on.database(client)
    for number, (_, name) in enumerate(tables):
        created = database.create_table(name, rows(number, number + 3), namespace_path=["w"])
        assert created.name == name
        assert _ids(created.to_arrow()) == list(range(number, number + 3))
    assert asked(client) == (2, 0)
    opened = [database.open_table(name, namespace_path=["w"], storage_options=on.own) for _, name in tables]
    assert asked(client) == (2, 2)
    for number, table in enumerate(opened):
        for _ in range(3):
            assert _ids(table.to_arrow()) == list(range(number, number + 3))
            assert table.count_rows() == 3
    assert asked(client) == (2, 2)


def test_lancedb_overwrites_a_table(on: Way) -> None:
    client, [*namespace, name] = on.client(), on.new_table()
    database = on.database(client)
    database.create_table(name, rows(0, 2), namespace_path=namespace)
    assert asked(client) == (1, 0)
    again = database.create_table(name, rows(5, 8), namespace_path=namespace, mode="overwrite")
    assert _ids(again.to_arrow()) == [5, 6, 7]
    assert asked(client) == (1, 1)


def test_lancedb_creates_a_table_without_rows(on: Way) -> None:
    client, [*namespace, name] = on.client(), on.new_table()
    table = on.database(client).create_table(name, schema=rows().schema, namespace_path=namespace)
    assert asked(client) == (1, 0)
    assert table.count_rows() == 0
    table.add(rows(0, 2))
    assert _ids(table.to_arrow()) == [0, 1]


# what expires


def test_an_open_dataset_asks_once_when_its_credentials_expire(ending: Way) -> None:
    client, table = ending.client(), ending.new_table()
    _write(ending, client, table, rows(0, 2))
    found = _open(ending, client, table)
    assert found.to_table() == rows(0, 2)
    declared, described = asked(client)
    time.sleep(LIFETIME)
    assert found.to_table() == rows(0, 2)
    assert found.count_rows() == 2
    assert asked(client) == (declared, described + 1)


def test_single_files_ask_once_when_credentials_expire(ending: Way) -> None:
    client = ending.client()
    place, given = _files(ending, client)
    session = LanceFileSession(place, **given)
    _file(f"{place}/one.lance", given, 0)
    before, described = asked(client)
    time.sleep(LIFETIME)
    _file(f"{place}/two.lance", given, 3)
    assert asked(client) == (before, described + 1)
    assert LanceFileReader(f"{place}/one.lance", **given).read_all().to_table() == rows(0, 3)
    assert session.open_reader("two.lance").read_all().to_table() == rows(3, 6)
    assert session.contains("one.lance")


def test_lancedb_reads_and_adds_when_credentials_expire(ending: Way) -> None:
    client, [*namespace, name] = ending.client(), ending.new_table()
    database = ending.database(client)
    written = database.create_table(name, rows(0, 2), namespace_path=namespace)
    written.add(rows(2, 4))
    read = database.open_table(name, namespace_path=namespace)
    assert _ids(read.to_arrow()) == [0, 1, 2, 3]
    declared, described = asked(client)
    time.sleep(LIFETIME)
    assert _ids(read.to_arrow()) == [0, 1, 2, 3]
    assert asked(client) == (declared, described + 1)
    written.add(rows(4, 6))
    assert written.count_rows() == 6


def test_a_write_that_takes_longer_than_its_credentials(ending: Way) -> None:
    """Files are uploaded in parts. The credentials end within a file, and between files."""
    client, table = ending.client(), ending.new_table()
    schema = pa.schema([("id", pa.int64()), ("noise", pa.binary())])
    noise = np.random.default_rng(1)

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(6):
            time.sleep(LIFETIME / 4)
            values = [noise.bytes(1 << 20) for _ in range(4)]
            yield pa.record_batch([range(number * 4, number * 4 + 4), values], schema=schema)

    reader = pa.RecordBatchReader.from_batches(schema, batches())
    _write(ending, client, table, reader, max_rows_per_file=12)
    assert asked(client)[1] > 0
    found = _open(ending, client, table)
    assert len(found.get_fragments()) == 2
    assert _ids(found.to_table(columns=["id"])) == list(range(24))
    assert all(len(value) == 1 << 20 for value in found.to_table()["noise"].to_pylist())


@pytest.mark.parametrize("on", OURS, indirect=True)
def test_the_page_about_buckets(on: Way) -> None:
    handed, keyed = blocks(REPOSITORY / "docs/guide/buckets.md", "python")
    text = handed if on.own is None else re.sub(r"^KEYS = .*$", f"KEYS = {on.own!r}", keyed, flags=re.MULTILINE)
    assert WRITTEN_URL in text
    exec(text.replace(WRITTEN_URL, on.urls[0]), {})
