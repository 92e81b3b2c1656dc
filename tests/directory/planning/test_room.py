"""No version that a client publishes leaves a table to which nothing can be committed any more."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import lance
import pytest
from lance_namespace.errors import InvalidInputError

from lance_core.format.manifest import encode_manifest_file, parse_manifest_file
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.operations import ReserveFragments, encode_transaction
from tests.directory.tables import Ground, as_operation, rows

TOP = (1 << 32) - 1
EDITS: dict[str, Callable[[pb.Manifest], None]] = {
    "fragment mark": lambda m: setattr(m, "max_fragment_id", TOP),
    "fragment id": lambda m: setattr(m.fragments[-1], "id", TOP),
    "row ids": lambda m: setattr(m, "next_row_id", (1 << 64) - 1),
    "the last time": lambda m: setattr(m.timestamp, "seconds", 253_402_300_798),
    "no time": lambda m: setattr(m.timestamp, "seconds", -1),
}


def test_a_reservation_of_all_ids(ground: Ground) -> None:
    table = ground.make_table("g", "t")
    all_of_them = encode_transaction(ReserveFragments(TOP), read_version=1, uuid=str(uuid.uuid4()))
    with pytest.raises(InvalidInputError, match="4294967295 fragment ids are reserved"):
        ground.batch(as_operation(table, all_of_them))

    many = encode_transaction(ReserveFragments(1 << 20), read_version=1, uuid=str(uuid.uuid4()))
    ground.batch(as_operation(table, many))
    ground.write(table, rows(3, 5))
    ground.batch(ground.transaction(table, rows(5, 6)))

    assert ground.ids(table) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("mode", ["append", "overwrite", "create"])
def test_a_staged_manifest_that_ends_its_table(ground: Ground, edit: str, mode: str) -> None:
    table = ["g", "t"]
    if mode != "create":
        ground.make_table(*table)
    operation = ground.stage(table, rows(3, 5), mode)
    request = operation["create_table_version"]
    staged = Path("/" + request["manifest_path"])
    file = parse_manifest_file(staged.read_bytes())
    EDITS[edit](file.manifest)
    data = encode_manifest_file(file.manifest, file.transaction, file.indices)
    staged.write_bytes(data)
    request["manifest_size"] = len(data)
    request.pop("e_tag", None)

    with pytest.raises(InvalidInputError):
        ground.batch(operation)

    ground.write(table, rows(3, 5))
    assert ground.open(table).count_rows() == (2 if mode == "create" else 5)
    assert lance.dataset(namespace_client=ground.namespace, table_id=table).version == ground.head(table)
