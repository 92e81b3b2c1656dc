"""A small table of stock pylance with a tag, branches and a few versions."""

from pathlib import Path

import lance
import pyarrow as pa
import pytest


def build_table(root: Path, *, v2_names: bool = True) -> Path:
    """Versions 1 to 4 on main, tag `two` on 2; branch `dev` from 2, with version 3; branch `dev/nested` from that."""
    uri = str(root)
    lance.write_dataset(pa.table({"a": [1, 2, 3]}), uri, enable_v2_manifest_paths=v2_names)
    table = lance.write_dataset(pa.table({"a": [4, 5]}), uri, mode="append")
    table.tags.create("two", 2)
    branch = table.create_branch("dev", 2)
    branch.delete("a = 1")
    branch.checkout_version(("dev", None)).create_branch("dev/nested", ("dev", None))
    table.tags.create("on-dev", ("dev", 3))
    table = lance.dataset(uri)
    table.create_scalar_index("a", "BTREE")
    table.update_config({"k": "v"})
    return root


@pytest.fixture(params=["V2", "V1"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The table's root, in both naming schemes."""
    return build_table(tmp_path / "store" / "table.lance", v2_names=request.param == "V2")
