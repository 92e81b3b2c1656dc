"""A batch may say which manifest a version must have, so that another version of its number is not taken for it."""

from __future__ import annotations

import base64
import hashlib
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_namespace import DeregisterTableRequest, RegisterTableRequest
from lance_namespace.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    LanceNamespaceError,
    TableVersionNotFoundError,
)

from lance_core.proto import lance_table_pb2 as pb
from lance_core.transaction.operations import MapUpdate, UpdateConfig, encode_transaction
from namespace_server.directory.namespace import DirectoryNamespace

OTHER = "0" * 64


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "the root"


@pytest.fixture
def namespace(root: Path) -> Iterator[DirectoryNamespace]:
    made = DirectoryNamespace(root=str(root), durability="none", sweep_interval_seconds="0")
    yield made
    made.close()


def register(namespace: DirectoryNamespace, root: Path, *values: int) -> None:
    """Register a table with a version for each value, in place of what was there."""
    shutil.rmtree(root / "place", ignore_errors=True)
    for value in values:
        lance.write_dataset(pa.table({"a": [value]}), root / "place", mode="append")
    namespace.register_table(RegisterTableRequest(id=["t"], location="place"))


def deregister(namespace: DirectoryNamespace) -> None:
    namespace.deregister_table(DeregisterTableRequest(id=["t"]))


def versions(namespace: DirectoryNamespace, at: int | None = None) -> dict[int, dict[str, Any]]:
    listed = namespace.read("list_table_versions", {"id": ["t"]}, at=at).body["versions"]
    return {version["version"]: version for version in listed}


def commit(namespace: DirectoryNamespace, read_version: int, manifest: str | None) -> Any:
    transaction = encode_transaction(UpdateConfig(MapUpdate({str(uuid.uuid4()): "v"})), read_version=read_version)
    request: dict[str, Any] = {"id": ["t"], "transaction": base64.b64encode(transaction.SerializeToString()).decode()}
    if manifest is not None:
        request["manifest_sha256"] = manifest
    [result] = namespace.commit_batch({"operations": [{"commit_transaction": request}]})["results"]
    return result["commit_transaction"]


def assert_version(namespace: DirectoryNamespace, version: int, manifest: str) -> None:
    request = {"id": ["t"], "version": version, "manifest_sha256": manifest}
    namespace.commit_batch({"operations": [{"assert_table_version": request}]})


def test_answers_about_versions_say_the_hash_of_their_manifests(namespace: DirectoryNamespace, root: Path) -> None:
    register(namespace, root, 1, 2)
    made = commit(namespace, 2, None)["version"]
    found = versions(namespace)
    assert found[3] == made
    for number, version in found.items():
        data = Path("/", version["manifest_path"]).read_bytes()
        assert version["manifest_sha256"] == hashlib.sha256(data).hexdigest()
        assert namespace.read("describe_table_version", {"id": ["t"], "version": number}).body["version"] == version
    at = namespace.read("describe_catalog", {}).body["version"]
    [pinned] = namespace.read("describe_catalog_version", {"version": at}).body["tables"]
    assert (pinned["version"], pinned["manifest_sha256"]) == (3, made["manifest_sha256"])
    assert pinned["timestamp_millis"] == made["timestamp_millis"]


def test_a_transaction_is_committed_on_the_manifest_it_was_computed_on(
    namespace: DirectoryNamespace, root: Path
) -> None:
    register(namespace, root, 1, 2)
    known = versions(namespace)[2]["manifest_sha256"]
    with pytest.raises(ConcurrentModificationError, match="version 2 is another one than was read") as refused:
        commit(namespace, 2, OTHER)
    [failure] = refused.value.failures  # type: ignore[attr-defined]
    assert (failure["expected"], failure["actual"]) == (2, 2)
    assert failure["hint"].startswith("retryable")
    assert commit(namespace, 2, known)["version"]["version"] == 3
    assert commit(namespace, 2, known)["rebased"]
    with pytest.raises(ConcurrentModificationError, match="version 2 is another one"):
        commit(namespace, 2, OTHER)


def test_a_chain_that_became_shorter_is_another_one(namespace: DirectoryNamespace, root: Path) -> None:
    register(namespace, root, 1, 2, 3)
    known = versions(namespace)[3]["manifest_sha256"]
    deregister(namespace)
    register(namespace, root, 7)
    with pytest.raises(ConcurrentModificationError, match="retryable: read version 3, but the head is 1"):
        commit(namespace, 3, known)
    with pytest.raises(InvalidInputError, match="read version 3, but the head is 1"):
        commit(namespace, 3, None)


def test_an_assertion_is_of_the_manifest(namespace: DirectoryNamespace, root: Path) -> None:
    register(namespace, root, 1)
    known = versions(namespace)[1]["manifest_sha256"]
    assert_version(namespace, 1, known)
    with pytest.raises(ConcurrentModificationError, match="version 1 is another one than was read"):
        assert_version(namespace, 1, OTHER)
    deregister(namespace)
    register(namespace, root, 2)
    with pytest.raises(ConcurrentModificationError, match=f"expected the manifest with SHA-256 {known}, found"):
        assert_version(namespace, 1, known)


def test_a_branch_is_begun_at_the_manifest_that_was_read(namespace: DirectoryNamespace, root: Path) -> None:
    register(namespace, root, 1)
    clone = pb.Transaction(uuid=str(uuid.uuid4()), read_version=1)
    clone.clone.CopyFrom(
        pb.Transaction.Clone(is_shallow=True, ref_version=1, ref_path=str(root / "place"), branch_name="b")
    )
    request = {"id": ["t"], "branch": "b", "transaction": base64.b64encode(clone.SerializeToString()).decode()}
    with pytest.raises(ConcurrentModificationError, match="version 1 is another one than was read"):
        namespace.commit_batch({"operations": [{"commit_transaction": {**request, "manifest_sha256": OTHER}}]})
    known = versions(namespace)[1]["manifest_sha256"]
    namespace.commit_batch({"operations": [{"commit_transaction": {**request, "manifest_sha256": known}}]})


@pytest.mark.parametrize("sent", ["", "0" * 63, "A" * 64, "0" * 65, 7])
def test_what_is_no_hash_is_refused(namespace: DirectoryNamespace, root: Path, sent: object) -> None:
    register(namespace, root, 1)
    with pytest.raises(InvalidInputError, match="manifest_sha256: expected"):
        assert_version(namespace, 1, sent)  # type: ignore[arg-type]
    if sent:
        with pytest.raises(LanceNamespaceError, match="manifest_sha256: expected"):
            commit(namespace, 1, sent)  # type: ignore[arg-type]


@pytest.mark.parametrize("now", [1, 3])
def test_an_earlier_catalog_version_does_not_name_files_of_other_versions(
    namespace: DirectoryNamespace, root: Path, now: int
) -> None:
    """Whether the new table has fewer versions, or as many."""
    register(namespace, root, 1, 2, 3)
    at = namespace.read("describe_catalog", {}).body["version"]
    assert sorted(versions(namespace, at)) == [1, 2, 3]
    deregister(namespace)
    register(namespace, root, *range(7, 7 + now))
    assert versions(namespace, at) == {}
    for number in (None, 1, 2, 3):
        with pytest.raises(TableVersionNotFoundError):
            namespace.read("describe_table_version", {"id": ["t"], "version": number}, at=at)
    assert sorted(versions(namespace)) == list(range(1, now + 1))
