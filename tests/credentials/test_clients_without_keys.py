"""Stock clients without keys in their environment work on a bucket with what they are handed, and with nothing more."""

from __future__ import annotations

import re
import time
from typing import Any
from urllib.parse import unquote

import boto3
import httpx
import lance
import lancedb
import pyarrow as pa
import pytest
from botocore.exceptions import ClientError
from lance.namespace import RestNamespace
from lance_namespace import CreateTableRequest, DeclareTableRequest, DescribeTableRequest

from tests.clients.databases import rows
from tests.credentials.conftest import GuardedS3, Serve
from tests.data.arrow import ARROW, stream

T = ["w", "t"]
KEYS = {"aws_access_key_id", "aws_secret_access_key", "aws_session_token", "expires_at_millis"}


def _ids(dataset: lance.LanceDataset) -> list[int]:
    return sorted(dataset.to_table(columns=["id"])["id"].to_pylist())


def _boto(service: GuardedS3, options: dict[str, str]) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=service.public["aws_endpoint"],
        region_name=service.public["aws_region"],
        aws_access_key_id=options["aws_access_key_id"],
        aws_secret_access_key=options["aws_secret_access_key"],
        aws_session_token=options.get("aws_session_token"),
    )


def _objects(service: GuardedS3, bucket: str) -> list[str]:
    pages = _boto(service, service.emulator.storage_options).get_paginator("list_objects_v2").paginate(Bucket=bucket)
    return [item["Key"] for page in pages for item in page.get("Contents", ())]


def _options(namespace: RestNamespace, table: list[str], **given: bool) -> dict[str, str]:
    return namespace.describe_table(DescribeTableRequest(id=table, **given)).storage_options or {}


def test_pylance_writes_and_reads(serve: Serve, guarded_s3: GuardedS3) -> None:
    namespace = RestNamespace(uri=serve().url)
    lance.write_dataset(rows(0, 40), namespace_client=namespace, table_id=T, mode="create")
    dataset = lance.write_dataset(rows(40, 60), namespace_client=namespace, table_id=T, mode="append")
    dataset.delete("id < 10")
    dataset.merge_insert("id").when_not_matched_insert_all().execute(rows(55, 70))
    dataset.create_scalar_index("id", "BTREE")
    dataset.optimize.compact_files()
    dataset.add_columns({"twice": "x * 2"})
    dataset.create_branch("dev").insert(rows(70, 71).append_column("twice", pa.array([1.0])))
    dataset.tags.create("now", dataset.version)
    opened = lance.dataset(namespace_client=namespace, table_id=T)
    assert _ids(opened) == list(range(10, 70))
    assert opened.to_table(filter="id = 65")["twice"].to_pylist() == [32.5]
    assert _ids(opened.checkout_version(("dev", None))) == list(range(10, 71))
    assert guarded_s3.guard.denied == []
    assert set(guarded_s3.guard.used)


def test_lancedb_writes_and_reads(serve: Serve, guarded_s3: GuardedS3) -> None:
    db = lancedb.connect_namespace("rest", {"uri": serve().url})
    table = db.create_table("t", rows(), namespace_path=["w"])
    table.add(rows(64, 70))
    table.create_index("id", config=lancedb.index.BTree())
    assert db.open_table("t", namespace_path=["w"]).count_rows("id > 60") == 9
    assert table.search([1.0] * 8).limit(3).to_arrow().num_rows == 3
    table.optimize()
    assert table.count_rows() == 70
    assert guarded_s3.guard.denied == []
    assert set(guarded_s3.guard.used)


def test_a_table_made_by_the_server_is_read_by_the_client(serve: Serve) -> None:
    namespace = RestNamespace(uri=serve().url)
    created = namespace.create_table(CreateTableRequest(id=T), stream(rows(0, 3)))
    assert created.storage_options is not None
    assert created.storage_options.keys() > KEYS
    assert _ids(lance.dataset(created.location, storage_options=created.storage_options)) == [0, 1, 2]


def test_the_options_of_a_table_open_nothing_else(serve: Serve, guarded_s3: GuardedS3) -> None:
    server = serve()
    namespace = RestNamespace(uri=server.url)
    for name in ("t", "t2"):  # the name of one begins with that of the other
        namespace.create_table(CreateTableRequest(id=["w", name]), stream(rows(0, 3)))
    mine = _options(namespace, T)
    other = namespace.describe_table(DescribeTableRequest(id=["w", "t2"]))
    beside = namespace.describe_table(DescribeTableRequest(id=T)).location + "-beside"
    for attempt in (
        lambda: lance.dataset(other.location, storage_options=mine).to_table(),
        lambda: lance.write_dataset(rows(0, 1), other.location, mode="append", storage_options=mine),
        lambda: lance.write_dataset(rows(0, 1), beside, storage_options=mine),
        lambda: lance.dataset(f"{server.root}/__manifest", storage_options=mine).to_table(),
    ):
        with pytest.raises((OSError, ValueError)):
            attempt()
    assert _ids(lance.dataset(other.location, storage_options=other.storage_options)) == [0, 1, 2]
    bucket, _, prefix = other.location.removeprefix("s3://").partition("/")
    [theirs, *_] = [path for path in _objects(guarded_s3, bucket) if path.startswith(f"{unquote(prefix)}/data/")]
    client = _boto(guarded_s3, mine)
    for call in (
        lambda: client.get_object(Bucket=bucket, Key=theirs),
        lambda: client.put_object(Bucket=bucket, Key=theirs, Body=b""),
        lambda: client.delete_object(Bucket=bucket, Key=theirs),
    ):
        with pytest.raises(ClientError, match="AccessDenied"):
            call()
    assert _options(namespace, ["w", "t2"])["aws_access_key_id"] != mine["aws_access_key_id"]


def test_permission_to_read_is_no_permission_to_write(serve: Serve, guarded_s3: GuardedS3) -> None:
    server = serve(VENDED_PERMISSION="read")
    namespace = RestNamespace(uri=server.url)
    namespace.create_table(CreateTableRequest(id=T), stream(rows(0, 3)))
    dataset = lance.dataset(namespace_client=namespace, table_id=T)
    assert _ids(dataset) == [0, 1, 2]
    with pytest.raises(OSError, match=r"(?i)denied"):
        dataset.insert(rows(3, 4))
    assert {action for action, _ in guarded_s3.guard.denied} <= {"s3:PutObject", "s3:AbortMultipartUpload"}
    answer = httpx.post(f"{server.url}/v1/table/w$t/insert", content=stream(rows(3, 4)), headers=ARROW, timeout=60)
    assert answer.status_code == 200, answer.text
    assert _ids(lance.dataset(namespace_client=namespace, table_id=T)) == [0, 1, 2, 3]


def test_answers_share_credentials_until_half_of_their_time_is_over(serve: Serve, guarded_s3: GuardedS3) -> None:
    guarded_s3.guard.lifetime = 12.0
    namespace = RestNamespace(uri=serve().url)
    namespace.declare_table(DeclareTableRequest(id=T))
    found = {_options(namespace, T)["aws_access_key_id"] for _ in range(5)}
    assert len(found) == guarded_s3.guard.issued == 1
    time.sleep(6.1)
    renewed = _options(namespace, T)
    assert renewed["aws_access_key_id"] not in found
    assert int(renewed["expires_at_millis"]) / 1000 > time.time() + 6


def test_what_is_declared_is_handed_out_too(serve: Serve) -> None:
    namespace = RestNamespace(uri=serve().url)
    declared = namespace.declare_table(DeclareTableRequest(id=T))
    assert declared.storage_options is not None
    assert declared.storage_options.keys() == _options(namespace, T).keys() > KEYS
    lance.write_dataset(rows(0, 3), declared.location, storage_options=declared.storage_options)


@pytest.mark.parametrize("given", [{"vend_credentials": False}, {}], ids=["not wanted", "switched off"])
def test_nothing_is_handed_out(serve: Serve, guarded_s3: GuardedS3, given: dict[str, bool]) -> None:
    off = {} if given else dict.fromkeys(("VENDED_ROLE_ARN", "VENDED_STS_ENDPOINT"), "")
    off |= {} if given else {f"VENDED_STORAGE__{name.upper()}": "" for name in guarded_s3.public}
    server = serve(**off)
    for table, operation in (("a", "declare"), ("a", "describe")):
        answer = httpx.post(f"{server.url}/v1/table/w${table}/{operation}", json=given)
        assert answer.status_code == 200
        assert "storage_options" not in answer.json()
        assert "secret" not in answer.text
    if not given:
        created = httpx.post(f"{server.url}/v1/table/w$b/create", content=stream(rows(0, 1)), headers=ARROW, timeout=60)
        assert "storage_options" not in created.json()
    assert guarded_s3.guard.issued == 0


def test_options_that_are_the_same_for_all(serve: Serve, guarded_s3: GuardedS3) -> None:
    server = serve(VENDED_ROLE_ARN="", VENDED_STS_ENDPOINT="")
    namespace = RestNamespace(uri=server.url)
    namespace.declare_table(DeclareTableRequest(id=T))
    assert _options(namespace, T) == guarded_s3.public
    assert _options(namespace, T, vend_credentials=True) == guarded_s3.public
    assert guarded_s3.guard.issued == 0


def test_a_token_service_that_does_not_answer(serve: Serve, guarded_s3: GuardedS3) -> None:
    server = serve()
    guarded_s3.guard.is_down = True
    declared = httpx.post(f"{server.url}/v1/table/w$t/declare", json={}, timeout=60)
    assert declared.status_code == 200
    assert "storage_options" not in declared.json()
    described = httpx.post(f"{server.url}/v1/table/w$t/describe", json={}, timeout=60)
    assert (described.status_code, described.json()["code"]) == (503, 17)
    assert described.json()["error"] == (
        "credentials of the table: expected an answer of the token service, found AccessDenied"
    )
    assert httpx.post(f"{server.url}/v1/table/w$t/describe", json={"vend_credentials": False}).status_code == 200
    guarded_s3.guard.is_down = False
    assert httpx.post(f"{server.url}/v1/table/w$t/describe", json={}).status_code == 200


def test_nothing_secret_is_logged(serve: Serve, guarded_s3: GuardedS3) -> None:
    server = serve()
    namespace = RestNamespace(uri=server.url)
    namespace.create_table(CreateTableRequest(id=T), stream(rows(0, 3)))
    found = _options(namespace, T)
    guarded_s3.guard.is_down = True
    httpx.post(f"{server.url}/v1/table/w$other/declare", json={}, timeout=60)
    server.stop()
    log = server.log.read_text()
    assert re.search("describe", log)
    for secret in (found["aws_secret_access_key"], found["aws_session_token"], found["aws_access_key_id"]):
        assert secret not in log


def test_clients_of_a_fenced_root_commit_through_the_catalog_alone(serve: Serve, guarded_s3: GuardedS3) -> None:
    """Their sessions refuse canonical manifests; all that a client does goes through the server."""
    namespace = RestNamespace(uri=serve(FENCED="true").url)
    table = {"namespace_client": namespace, "table_id": T}
    lance.write_dataset(rows(0, 40), **table, mode="create")
    dataset = lance.write_dataset(rows(40, 60), **table, mode="append")
    dataset.delete("id < 10")
    dataset.optimize.compact_files()
    dataset.tags.create("kept", dataset.version)
    branch = dataset.create_branch("dev", dataset.version)
    assert branch.count_rows() == 50
    assert guarded_s3.guard.denied == []

    found = namespace.describe_table(DescribeTableRequest(id=T))
    with pytest.raises(OSError, match=r"(?i)denied|forbidden|403|permission"):
        lance.write_dataset(rows(60, 70), found.location, mode="append", storage_options=found.storage_options)
    [denied] = set(guarded_s3.guard.denied)
    assert denied[0] == "s3:PutObject"
    assert re.search(r"/_versions/\d+\.manifest$", denied[1])
    assert _ids(lance.dataset(**table)) == list(range(10, 60))
