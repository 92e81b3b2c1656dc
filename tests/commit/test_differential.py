"""The same stale transaction after the same commit, by both engines: the same verdict, or a listed difference.

Every operation that both engines commit is judged against every kind of operation, in both orders. The cases are
generated from the two lists below; a test fails if a kind of operation is missing from one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pytest
from lance.lance import DatasetBasePath

from lance_core.format.manifest import encode_manifest_file
from lance_core.format.naming import manifest_name
from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.operations import ReserveFragments, UpdateMemWalState
from tests.commit.outcomes import PYLANCE, outcome_of
from tests.transaction.tables import Table, borrow, make_table, rows

pytestmark = pytest.mark.slow

OK, R, I = "committed", "retryable", "incompatible"  # noqa: E741
READ = 3
"""The version that both read: two fragments of ten rows, and an index on column x."""

Action = Callable[[lance.LanceDataset], object]


def tighten(dataset: lance.LanceDataset) -> None:
    dataset.alter_columns({"path": "s", "nullable": False})


OURS: dict[str, tuple[str, Action]] = {
    # The kind of operation, and what makes pylance commit one.
    "append": ("append", lambda d: lance.write_dataset(rows(50, 52), d, mode="append")),
    "overwrite": ("overwrite", lambda d: lance.write_dataset(rows(50, 52), d, mode="overwrite")),
    "delete": ("delete", lambda d: d.delete("id = 3", conflict_retries=0)),
    "delete of the fragment": ("delete", lambda d: d.delete("id < 10", conflict_retries=0)),
    "update": ("update", lambda d: d.update({"s": "'7'"}, where="id = 3", conflict_retries=0)),
    "columns": ("update", lambda d: rewrite_without_retries(d, 3)),
    "config": ("update_config", lambda d: d.update_config({"k": "v"})),
    "schema metadata": ("update_config", lambda d: d.update_schema_metadata({"m": "v"})),
    "project": ("project", lambda d: d.drop_columns(["s"])),
    "tightening project": ("project", tighten),
    "merge": ("merge", lambda d: d.add_columns({"y": "x"})),
    "index": ("create_index", lambda d: d.create_scalar_index("id", "BTREE")),
    "index on what goes": ("create_index", lambda d: d.create_scalar_index("s", "BTREE")),
    "dropped index": ("create_index", lambda d: d.drop_index("x_idx")),
    "data": ("data_replacement", PYLANCE["data_replacement"]),
    "rewrite": ("rewrite", lambda d: d.optimize.compact_files()),
    "restore": ("restore", PYLANCE["restore"]),
    "bases": ("update_bases", lambda d: d.add_bases([DatasetBasePath("/other", name="m")])),
}

THROUGH_THE_INTERFACE = {"delete", "delete of the fragment", "update", "columns", "rewrite", "bases"}
"""`LanceDataset.commit` cannot be told which rows the first four touch, and pylance cannot show the others again."""


def rewrite_without_retries(dataset: lance.LanceDataset, start: int) -> None:
    merge = dataset.merge_insert("x").when_matched_update_all().conflict_retries(0)
    merge.execute(rows(start, start + 1).drop(["id"]))


THEIRS: dict[str, tuple[str, Action]] = {
    "append": ("append", PYLANCE["append"]),
    "delete, other row": ("delete", PYLANCE["delete, other row"]),
    "delete, same row": ("delete", PYLANCE["delete, same row"]),
    "delete elsewhere": ("delete", PYLANCE["delete elsewhere"]),
    "delete of the fragment": ("delete", PYLANCE["delete of the fragment"]),
    "delete of nothing": ("delete", lambda d: d.delete("id = 99")),
    "update, other row": ("update", PYLANCE["update, other row"]),
    "update, same row": ("update", PYLANCE["update, same row"]),
    "upsert": ("update", PYLANCE["upsert"]),
    "columns": ("update", lambda d: rewrite_without_retries(d, 4)),
    "columns elsewhere": ("update", lambda d: rewrite_without_retries(d, 14)),
    "overwrite": ("overwrite", PYLANCE["overwrite"]),
    "index": ("create_index", lambda d: d.create_scalar_index("s", "BITMAP")),
    "same index": ("create_index", lambda d: d.create_scalar_index("id", "BTREE")),
    "dropped index": ("create_index", lambda d: d.drop_index("x_idx")),
    "rewrite": ("rewrite", PYLANCE["rewrite"]),
    "merge": ("merge", PYLANCE["merge"]),
    "project": ("project", PYLANCE["project"]),
    "tightening project": ("project", tighten),
    "restore": ("restore", PYLANCE["restore"]),
    "config, other key": ("update_config", PYLANCE["config, other key"]),
    "config, same key": ("update_config", PYLANCE["config, same key"]),
    "config replaced": ("update_config", lambda d: d.update_config({"z": "1"}, replace=True)),
    "schema metadata": ("update_config", PYLANCE["schema metadata"]),
    "field metadata": ("update_config", lambda d: d.update_field_metadata({"id": {"k": "v"}})),
    "data": ("data_replacement", PYLANCE["data_replacement"]),
    "data elsewhere": ("data_replacement", PYLANCE["data_replacement elsewhere"]),
    "bases": ("update_bases", PYLANCE["update_bases"]),
    "same bases": ("update_bases", lambda d: d.add_bases([DatasetBasePath("/other", name="m")])),
}


def overlay(on: int) -> pb.Transaction:
    file = pb.DataFile(path="overlay.lance", fields=[2], column_indices=[0], file_major_version=2, file_minor_version=2)
    overlays = [pb.DataOverlayFile(data_file=file, shared_offset_bitmap=BITMAP)]
    groups = [pb.Transaction.DataOverlayGroup(fragment_id=on, overlays=overlays)]
    return pb.Transaction(data_overlay=pb.Transaction.DataOverlay(groups=groups))


BITMAP = b"\x3a\x30\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x03\x00"
"""Row 3."""

Transaction = pb.Transaction

HANDMADE: dict[str, tuple[str | None, pb.Transaction]] = {
    # What pylance's interface cannot commit: a version that changes nothing, made by such a transaction.
    "reserve": ("reserve_fragments", Transaction(reserve_fragments=Transaction.ReserveFragments(num_fragments=1))),
    "log": ("update_mem_wal_state", Transaction(update_mem_wal_state=Transaction.UpdateMemWalState())),
    "overlay": ("data_overlay", overlay(0)),
    "overlay elsewhere": ("data_overlay", overlay(1)),
    "composite": ("composite_operation", pb.Transaction(composite_operation=b"\x00")),
    "unknown": (None, pb.Transaction.FromString(b"\xc2\x3e\x00")),
}  # fmt: skip

DIFFERENCES: dict[tuple[str, str], tuple[str, str]] = {
    # ours, theirs: stock pylance, we
    ("index on what goes", "project"): (OK, R),
    ("project", "field metadata"): (OK, R),
    ("tightening project", "field metadata"): (OK, R),
    ("config", "config replaced"): (OK, I),
    ("bases", "composite"): (OK, I),
    ("bases", "unknown"): (OK, I),
}

ONLY_AT_THE_BEGINNING = {"clone"}
NOT_COMMITTED_BY_BOTH = {
    "reserve_fragments": "stock pylance commits it only as the first half of a compaction",
    "update_mem_wal_state": "stock pylance's interface has no such operation",
    "data_overlay": "we judge it, and refuse to commit it",
    "composite_operation": "neither engine commits it",
}


def test_every_pair_of_operations_has_a_case() -> None:
    known = {
        field.name for field in pb.Transaction.DESCRIPTOR.oneofs_by_name["operation"].fields
    } - ONLY_AT_THE_BEGINNING
    assert {kind for kind, _ in OURS.values()} == known - NOT_COMMITTED_BY_BOTH.keys()
    assert {kind for kind, _ in (*THEIRS.values(), *HANDMADE.values())} == known | {None}
    for ours, theirs in DIFFERENCES:
        assert ours in OURS
        assert theirs in {**THEIRS, **HANDMADE}


def make(root: Path) -> Table:
    table = make_table(root, (0, 10), (10, 20))
    table.open().create_scalar_index("x", "BTREE")
    assert table.open().version == READ
    return table


def borrow_both(table: Table, ours: str) -> tuple[Callable[[Table], str], Callable[[Table], str]]:
    """How stock pylance and we commit an operation of `OURS` that was made on what the table is now."""
    _, action = OURS[ours]
    seen: list[lance.LanceOperation.BaseOperation] = []

    def act(dataset: lance.LanceDataset) -> None:
        action(dataset)
        latest = lance.dataset(dataset.uri)
        if ours not in THROUGH_THE_INTERFACE:
            seen.append(latest.read_transaction(latest.version).operation)

    operation = borrow(table, act)

    def stock(place: Table) -> str:
        try:
            if ours in THROUGH_THE_INTERFACE:
                action(place.open(READ))
            else:
                lance.LanceDataset.commit(place.uri, seen[0], read_version=READ)
        except OSError as error:
            text = str(error)
            if "Retryable" in text or "Too many concurrent writers" in text:
                return R
            assert "ncompatible" in text, text
            return I
        return OK

    return stock, lambda place: outcome_of(place, operation, READ)


def write_handmade(table: Table, transaction: pb.Transaction) -> None:
    head = table.head()
    manifest = pb.Manifest()
    manifest.CopyFrom(head.manifest)
    manifest.version += 1
    manifest.ClearField("transaction_file")
    made = pb.Transaction(read_version=head.version, uuid="handmade")
    made.MergeFrom(transaction)
    path = table.path / "_versions" / manifest_name(manifest.version)
    path.write_bytes(encode_manifest_file(manifest, made, head.indices))


@pytest.mark.parametrize("theirs", [*THEIRS, *HANDMADE])
def test_verdicts_are_those_of_pylance(tmp_path: Path, theirs: str) -> None:
    table = make(tmp_path / "first")
    for ours in OURS:
        mine = table.copy(tmp_path / f"{ours} mine")
        stock, we = borrow_both(mine, ours)
        if ours == "rewrite":  # its ids were reserved in the copy only
            reserve(mine)
        if theirs in HANDMADE:
            write_handmade(mine, HANDMADE[theirs][1])
        else:
            THEIRS[theirs][1](mine.open())
            assert mine.head().operation == THEIRS[theirs][0]
        other = mine.copy(tmp_path / f"{ours} other")
        before = mine.open().version
        verdicts = stock(other), we(mine)
        expected = DIFFERENCES.get((ours, theirs))
        assert verdicts == (expected or (verdicts[0],) * 2), (ours, theirs)
        mine.open().validate()
        if verdicts == (OK, OK):
            assert mine.open().version == before + 1
            assert other.open().version == before + (2 if ours == "rewrite" else 1)  # it reserves ids first
            assert mine.open().to_table().sort_by("id") == other.open().to_table().sort_by("id"), (ours, theirs)


def reserve(table: Table) -> None:
    assert outcome_of(table, ReserveFragments(1), READ) == OK


@pytest.mark.parametrize("theirs", THEIRS)
def test_pylance_judges_our_commits_as_its_own(tmp_path: Path, theirs: str) -> None:
    """What was committed since is the same transaction, once by stock pylance and once by us."""
    table = make(tmp_path / "first")
    for ours in OURS:
        mine = table.copy(tmp_path / f"{ours} mine")
        stock, _ = borrow_both(mine, ours)
        reserve(mine)
        committed = borrow(mine, THEIRS[theirs][1])
        other = mine.copy(tmp_path / f"{ours} other")
        THEIRS[theirs][1](other.open())
        assert outcome_of(mine, committed, READ + 1) == OK
        assert stock(mine) == stock(other), (ours, theirs)
        mine.open().validate()
        assert mine.open().to_table().sort_by("id") == other.open().to_table().sort_by("id"), (ours, theirs)


def test_pylance_judges_our_log_state_as_its_own(tmp_path: Path) -> None:
    for ours in OURS:
        mine = make(tmp_path / ours)
        stock, we = borrow_both(mine, ours)
        reserve(mine)
        other = mine.copy(tmp_path / f"{ours} other")
        log = UpdateMemWalState((pb.CompactedSsTable(shard_id=pb.UUID(uuid=b"s" * 16)),))
        assert outcome_of(mine, log, READ + 1) == OK
        write_handmade(other, HANDMADE["log"][1])
        again = mine.copy(tmp_path / f"{ours} again")
        assert stock(mine) == stock(other) == we(again), ours
