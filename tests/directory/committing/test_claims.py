"""Rule S1: what a transaction says of its files is compared with the files, before a version refers to them."""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace.errors import InvalidInputError
from pyroaring import BitMap

from lance_core.format.deletion import deletion_file_path
from lance_core.format.manifest import parse_manifest_file
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.local import LocalStore
from lance_core.storage.wrappers.counting import CountingStore
from lance_core.table_files import TableFiles
from lance_core.transaction.operations import Delete, encode_transaction
from tests.directory.breaking import T
from tests.directory.tables import QUIET, Ground, as_operation, rows


def bucket(root: Path) -> Ground:
    """A catalog over a store that behaves like a bucket, and counts."""
    store = CountingStore(LocalStore(root, "none"))
    store.local = False
    return Ground(root, store)


def data_files(ground: Ground) -> set[Path]:
    return set((ground.root / ground.location(T) / "data").glob("*.lance"))


def changed(operation: dict[str, Any], change: Callable[[pb.Transaction], object]) -> dict[str, Any]:
    """The operation with another transaction."""
    inner = operation["commit_transaction"]
    transaction = pb.Transaction.FromString(base64.b64decode(inner["transaction"]))
    change(transaction)
    return {"commit_transaction": {**inner, "transaction": base64.b64encode(transaction.SerializeToString()).decode()}}


def fragment(transaction: pb.Transaction) -> pb.DataFragment:
    return transaction.append.fragments[0]


FALSE: dict[str, tuple[Callable[[pb.Transaction], object], str]] = {
    "a smaller size": (lambda t: setattr(fragment(t).files[0], "file_size_bytes", 10), r"has \d+ bytes, expected 10"),
    "a larger size": (
        lambda t: setattr(fragment(t).files[0], "file_size_bytes", 1 << 50),
        "expected 1125899906842624",
    ),
    "one file twice": (lambda t: t.append.fragments.append(fragment(t)), "is named by two fragments"),
    "an unknown base": (lambda t: setattr(fragment(t).files[0], "base_id", 7), "g.t: data file .* lies in base 7"),
}
FALSE_OF_CONTENT: dict[str, tuple[Callable[[pb.Transaction], object], str]] = {
    "more rows": (lambda t: setattr(fragment(t), "physical_rows", 5), "has 2 rows, expected 5"),
    "fewer rows": (lambda t: setattr(fragment(t), "physical_rows", 1), "has 2 rows, expected 1"),
    "no such column": (
        lambda t: fragment(t).files[0].column_indices.__setitem__(0, 55),
        "has 2 columns, expected a column 55",
    ),
    "columns of other types": (
        lambda t: fragment(t).files[0].fields.__setitem__(slice(0, 2), [1, 0]),
        r"has int64 in column 0, expected string \(name\)",
    ),
}


@pytest.mark.parametrize("name", {**FALSE, **FALSE_OF_CONTENT})
def test_a_transaction_that_says_what_is_not_so_is_refused(ground: Ground, name: str) -> None:
    ground.make_table(*T)
    change, reason = {**FALSE, **FALSE_OF_CONTENT}[name]
    operation = changed(ground.transaction(T, rows(3, 5)), change)

    with pytest.raises(InvalidInputError, match=reason) as refused:
        ground.batch(operation)

    assert "g$t" in str(refused.value)
    assert (ground.head(T), ground.ids(T)) == (1, [0, 1, 2])


@pytest.mark.parametrize("name", FALSE)
def test_sizes_bases_and_repetitions_are_looked_at_in_a_bucket_too(tmp_path: Path, name: str) -> None:
    ground = bucket(tmp_path / "root")
    ground.make_namespace("g")
    ground.make_table(*T)
    change, reason = FALSE[name]

    with pytest.raises(InvalidInputError, match=reason):
        ground.batch(changed(ground.transaction(T, rows(3, 5)), change))

    assert ground.ids(T) == [0, 1, 2]


def test_the_ends_of_data_files_in_a_bucket_are_read_by_a_setting(tmp_path: Path) -> None:
    store = CountingStore(LocalStore(tmp_path / "root", "none"))
    store.local = False
    ground = Ground(tmp_path / "root", store, replace(QUIET, verify_data_files=True))
    ground.make_namespace("g")
    ground.make_table(*T)
    change, reason = FALSE_OF_CONTENT["more rows"]

    with pytest.raises(InvalidInputError, match=reason):
        ground.batch(changed(ground.transaction(T, rows(3, 5)), change))

    ground.batch(ground.transaction(T, rows(3, 5)))
    assert ground.ids(T) == [0, 1, 2, 3, 4]


def test_a_file_of_a_live_fragment_is_not_added_again(ground: Ground) -> None:
    ground.make_table(*T)
    first = ground.transaction(T, rows(3, 5))
    ground.batch(first)
    ground.batch(ground.transaction(T, rows(5, 7)))

    with pytest.raises(InvalidInputError, match="belongs to a fragment of the table already"):
        ground.batch(changed(first, lambda t: (setattr(t, "uuid", str(uuid.uuid4())), setattr(t, "read_version", 3))))

    assert ground.ids(T) == [0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize("length", [0, 100])
def test_a_data_file_without_its_end_is_refused_of_every_writer(tmp_path: Path, remote: bool, length: int) -> None:
    ground = bucket(tmp_path / "root") if remote else Ground(tmp_path / "root", None, QUIET)
    ground.make_namespace("g")
    ground.make_table(*T)
    for write in (ground.transaction, ground.stage):
        before = data_files(ground)
        operation = write(T, rows(3, 5))
        [file] = data_files(ground) - before
        size = file.stat().st_size
        file.write_bytes(file.read_bytes()[:length])

        with pytest.raises(InvalidInputError, match=f"{file.name} has {length} bytes, expected {size}"):
            ground.batch(operation)

        assert ground.head(T) == 1


@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize("broken", [b"", b"no bitmap", BitMap([1, 2]).serialize()])
def test_a_deletion_file_that_is_none_or_another_is_refused(tmp_path: Path, remote: bool, broken: bytes) -> None:
    ground = bucket(tmp_path / "root") if remote else Ground(tmp_path / "root", None, QUIET)
    ground.make_namespace("g")
    ground.make_table(*T)
    location = ground.location(T)
    head = parse_manifest_file(next((ground.root / location / "_versions").glob("*.manifest")).read_bytes())
    updated, removed = TableFiles(ground.store, location).delete_rows(head.outline, {0: BitMap([1])})
    operation = as_operation(T, encode_transaction(Delete(updated, removed, "id = 1"), read_version=1))
    file = ground.root / deletion_file_path(location, 0, updated[0].deletion_file)
    whole = file.read_bytes()
    file.write_bytes(broken)

    with pytest.raises(InvalidInputError, match=re.escape(file.name) + " cannot be read"):
        ground.batch(operation)

    assert ground.ids(T) == [0, 1, 2]
    file.write_bytes(whole)
    ground.batch(operation)
    assert ground.ids(T) == [0, 2]


@pytest.mark.usefixtures("still_clock")
@pytest.mark.parametrize("tables", [1, 10])
def test_the_files_of_staged_manifests_are_looked_at_without_a_further_round_trip(tmp_path: Path, tables: int) -> None:
    ground = bucket(tmp_path / "root")
    ground.make_namespace("g")
    for number in range(tables):
        ground.make_table("g", f"t{number}")
    ground.catalog.sweep()
    operations = [ground.stage(["g", f"t{number}"], rows(5, 6)) for number in range(tables)]

    assert isinstance(ground.store, CountingStore)
    with ground.store.measure() as cost:
        ground.batch(*operations)

    assert cost.round_trips == 4  # as before files were looked at: beside the staging of the row file
    assert cost.by_verb["head"] == 2 * tables  # the manifest, when it is read, and its one data file


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_files_of_every_format_and_of_nested_columns_are_taken(ground: Ground, version: str) -> None:
    wide = pa.table(
        {
            "id": [1, 2],
            "struct": [{"a": 1, "b": [1, 2]}, {"a": 2, "b": []}],
            "list": [["x"], []],
            "choice": pa.array(["x", "y"]).dictionary_encode(),
            "vector": pa.array([[1.0, 2.0]] * 2, pa.list_(pa.float32(), 2)),
            **{f"c{number}": [number, None] for number in range(300)},  # the descriptor lies before the tail
        }
    )
    for mode in ("create", "append"):
        lance.write_dataset(
            wide, mode=mode, namespace_client=ground.namespace, table_id=T, data_storage_version=version
        )
    assert ground.open(T).count_rows() == 4


def test_a_legacy_table_is_taken(ground: Ground) -> None:
    lance.write_dataset(
        rows(0, 3), mode="create", namespace_client=ground.namespace, table_id=T, data_storage_version="legacy"
    )
    assert ground.ids(T) == [0, 1, 2]
