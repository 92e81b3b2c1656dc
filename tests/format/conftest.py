"""Tables made by stock pylance with every operation."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest


@dataclass(frozen=True)
class Flavour:
    storage_version: str
    v2_names: bool
    stable_row_ids: bool


FLAVOURS = {
    "2.2": Flavour("2.2", v2_names=True, stable_row_ids=False),
    "2.0": Flavour("2.0", v2_names=True, stable_row_ids=False),
    "v1-names": Flavour("2.2", v2_names=False, stable_row_ids=False),
    "stable-row-ids": Flavour("2.2", v2_names=True, stable_row_ids=True),
}


def make_rows(start: int, count: int) -> pa.Table:
    ids = range(start, start + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": [f"row {i}" for i in ids],
            "point": [{"x": float(i), "tags": [str(i)]} for i in ids],
            "vector": pa.array([[float(i)] * 4 for i in ids], pa.list_(pa.float32(), 4)),
        }
    )


def work(root: str, flavour: Flavour) -> None:
    """Bring about every kind of transaction that pylance's Python interface makes."""
    table = lance.write_dataset(
        make_rows(0, 60),
        root,
        data_storage_version=flavour.storage_version,
        enable_v2_manifest_paths=flavour.v2_names,
        enable_stable_row_ids=flavour.stable_row_ids,
        max_rows_per_file=20,
    )
    table = lance.write_dataset(make_rows(60, 20), table, mode="append", commit_message="more rows")
    table.delete("id in (3, 4, 25)")
    table.update({"name": "'changed'"}, where="id = 7")
    table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(make_rows(78, 5))
    table.create_scalar_index("id", "BTREE")
    table.create_scalar_index("name", "BITMAP")
    table.add_columns({"double_id": "id * 2"})
    table.alter_columns({"path": "double_id", "name": "twice"})
    table.alter_columns({"path": "twice", "data_type": pa.int32()})
    table.drop_columns(["twice"])
    table.update_config({"lance.auto_cleanup.interval": "1000", "own": "value"})
    table.update_metadata({"table": "metadata"})
    table.update_schema_metadata({"schema": "metadata"})
    table.update_field_metadata({"name": {"field": "metadata"}})
    table.tags.create("first", 1)
    table.optimize.compact_files(target_rows_per_fragment=1000)
    table.optimize.optimize_indices()
    table.create_branch("dev", table.version)
    branch = table.checkout_version(("dev", None))
    branch = lance.write_dataset(branch.to_table().slice(0, 2), branch, mode="append")
    branch.delete("id = 11")
    branch.create_branch("dev/nested", branch.version)
    nested = branch.checkout_version(("dev/nested", None))
    nested.update({"name": "'nested'"}, where="id = 12")
    table = lance.dataset(root)
    table.drop_index("name_idx")
    table.checkout_version(5).restore()
    table = lance.dataset(root)
    table.delete("true")
    lance.write_dataset(make_rows(0, 3), root, mode="overwrite", data_storage_version=flavour.storage_version)
    table = lance.dataset(root)
    table.cleanup_old_versions(timedelta(days=30))


def manifests(root: Path) -> list[Path]:
    """All manifest files of a table and its branches."""
    return sorted(root.glob("**/_versions/*.manifest"))


@pytest.fixture(scope="session", params=FLAVOURS)
def worked_table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of a table with a long history; shared, so do not change it."""
    root = tmp_path_factory.mktemp("worked") / "table.lance"
    work(str(root), FLAVOURS[request.param])
    return root


@pytest.fixture(scope="session")
def worked_manifests(worked_table: Path) -> list[Path]:
    """Every manifest file in it."""
    found = manifests(worked_table)
    assert len(found) > 20
    return found
