"""Files that clients wrote and that are larger than any of their kind: they are not read, and stop no other table."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from lance_namespace.errors import InternalError, InvalidInputError

from lance_core.format.naming import manifest_name
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.local import LocalStore
from lance_core.storage.port import ObjectStore
from lance_core.storage.sizes import LARGEST_MANIFEST
from tests.directory.invariants import check_progress, check_quiet
from tests.directory.tables import Ground, rows
from tests.storage.bucketlike import BucketLike

TABLE = ["g", "t"]
HUGE = LARGEST_MANIFEST + 1


def make_huge(path: Path) -> None:
    """A file of holes, which takes no space."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(HUGE)


@pytest.fixture(params=[LocalStore, lambda root, _: BucketLike(LocalStore(root, "none"))], ids=["directory", "bucket"])
def catalog(tmp_path: Path, request: pytest.FixtureRequest) -> Ground:
    open_store: Callable[[Path, str], ObjectStore] = request.param
    made = Ground(tmp_path / "root", open_store(tmp_path / "root", "none"))
    made.make_namespace("g")
    made.make_table(*TABLE)
    made.catalog.sweep()
    return made


def test_a_deletion_file_is_as_large_as_its_fragment_allows(catalog: Ground) -> None:
    location = catalog.location(TABLE)
    file = catalog.catalog.manifests.load(catalog.catalog.snapshot().head(tuple(TABLE), None))
    transaction = pb.Transaction(read_version=1, uuid=str(uuid.uuid4()))
    transaction.delete.updated_fragments.append(file.manifest.fragments[0])
    transaction.delete.predicate = "id = 1"
    deletion = transaction.delete.updated_fragments[0].deletion_file
    deletion.read_version, deletion.id, deletion.num_deleted_rows = 1, 77, 1
    make_huge(catalog.root / location / "_deletions/0-1-77.arrow")
    commit = {"id": TABLE, "transaction": base64.b64encode(transaction.SerializeToString()).decode()}
    with pytest.raises(InvalidInputError, match=rf"_deletions/0-1-77\.arrow .*at most 65548 bytes, found {HUGE}"):
        catalog.batch({"commit_transaction": commit})


@pytest.mark.parametrize(
    ("stated", "expected"),
    [(500, f"manifest_size says 500 bytes, the file has {HUGE}"), (HUGE, f"expected at most {LARGEST_MANIFEST} bytes")],
)
def test_a_staged_manifest_is_as_large_as_the_request_says(catalog: Ground, stated: int, expected: str) -> None:
    path = f"{catalog.location(TABLE)}/_versions/{manifest_name(2)}-{uuid.uuid4()}"
    make_huge(catalog.root / path)
    sent = {"id": TABLE, "version": 2, "manifest_path": catalog.store.object_path(path), "manifest_size": stated}
    with pytest.raises(InvalidInputError, match=expected):
        catalog.call("create_table_version", **sent, naming_scheme="V2")


def test_a_manifest_that_nobody_can_read_is_set_aside_for_the_next_version(catalog: Ground) -> None:
    append = catalog.transaction(TABLE, rows(3, 5))
    path = f"{catalog.location(TABLE)}/_versions/{manifest_name(2)}"
    make_huge(catalog.root / path)
    assert [each["version"] for each in catalog.read("list_table_versions", id=TABLE)["versions"]] == [1]
    catalog.batch(append)
    for _ in range(2):
        catalog.catalog.sweep()
    assert catalog.ids(TABLE) == [0, 1, 2, 3, 4]
    [kept] = (catalog.root / "_staging/foreign").glob(f"*/{path}")
    assert kept.stat().st_size == HUGE
    [report] = [each for each in catalog.again().catalog.snapshot().records() if each.state == "foreign"]
    assert orjson.loads(report.results)["reason"] == "it is no manifest"
    kept.unlink()
    check_quiet(catalog.root)
    check_progress(catalog.root)


@pytest.mark.parametrize(
    ("file", "operation", "request_"),
    [
        ("_refs/tags/big.json", "list_table_tags", {}),
        ("_refs/tags/big.json", "get_table_tag_version", {"tag": "big"}),
        ("_refs/branches/big.json", "list_table_branches", {}),
    ],
)
def test_a_reference_names_itself_as_damaged(
    catalog: Ground, file: str, operation: str, request_: dict[str, str]
) -> None:
    make_huge(catalog.root / catalog.location(TABLE) / file)
    with pytest.raises(InternalError, match=rf"{file}.*: expected at most 1048576 bytes, found {HUGE}"):
        catalog.read(operation, id=TABLE, **request_)
