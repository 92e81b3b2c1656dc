"""Opening stores by URI and options."""

import uuid
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lance_core.errors import StorageError
from lance_core.hidden_credentials import without_credentials
from lance_core.storage import opening
from lance_core.storage.local import LocalStore
from lance_core.storage.memory import MemoryStore
from lance_core.storage.opening import open_store
from lance_core.storage.port import ObjectStore
from lance_core.storage.services.options import (
    Options,
    azure_arguments,
    gcs_arguments,
    s3_arguments,
    s3_write_arguments,
)
from tests.emulators import Emulator


def test_paths_and_file_uris_are_the_same_store(tmp_path: Path) -> None:
    root = tmp_path / "a b%20#é"
    store = open_store(root)
    assert isinstance(store, LocalStore)
    assert store.uri.endswith("/a%20b%2520%23%C3%A9")
    store.put("t/1", b"x")
    for uri in (str(root), f"{root}/", store.uri):
        assert open_store(uri).get("t/1") == b"x"
        assert open_store(uri).uri == store.uri


def test_relative_paths_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_store("catalog").uri == f"file://{tmp_path}/catalog"


def test_a_scheme_without_a_bucket_of_its_own_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not opened as another service."""
    monkeypatch.setattr(opening, "BUCKETS", {**opening.BUCKETS, "oss": "oss"})
    with pytest.raises(StorageError, match="oss://bucket/prefix: no object storage service oss"):
        open_store("oss://bucket/prefix")


def test_a_memory_name_is_one_store_in_the_process() -> None:
    name = uuid.uuid4().hex
    one, same, other = (open_store(f"memory://{part}") for part in (name, name, name + "x"))
    assert isinstance(one, MemoryStore)
    one.put("a", b"x")
    assert same.get("a") == b"x"
    assert list(other.list("")) == []


@pytest.mark.parametrize(
    "uri",
    [
        "ftp://host/x",
        "file://host/x",
        "s3:///x",
        "s3://key@bucket/x",
        "s3://bucket--x-s3/x",
        "s3://b/a/../c",
        "s3://b/x?v=1",
    ],
)
def test_invalid_uris_and_options_are_refused(uri: str) -> None:
    with pytest.raises(StorageError, match=r"expected|directory buckets"):
        open_store(uri)


def test_plain_http_must_be_allowed() -> None:
    with pytest.raises(StorageError, match="allow_http"):
        open_store("s3://bucket/x", {"aws_endpoint": "http://127.0.0.1:1"})
    with pytest.raises(StorageError, match="allow_http"):
        open_store("s3://bucket/x", {"aws_endpoint": "http://127.0.0.1:1", "allow_http": "false"})
    with pytest.raises(StorageError, match="allow_http: expected true or false, found 'perhaps'"):
        open_store("s3://bucket/x", {"aws_endpoint": "http://127.0.0.1:1", "allow_http": "perhaps"})


def test_s3_options_by_any_name() -> None:
    long = {
        "AWS_ACCESS_KEY_ID": "k",
        "aws_secret_access_key": "s",
        "aws_session_token": "t",
        "aws_region": "r",
        "aws_endpoint": "https://host/",
        "timeout": "30s",
    }
    short = {
        "access_key_id": "k",
        "secret_access_key": "s",
        "token": "t",
        "region": "r",
        "endpoint": "https://host",
    }
    expected = {
        "key": "k",
        "secret": "s",
        "token": "t",
        "anon": False,
        "requester_pays": False,
        "client_kwargs": {"endpoint_url": "https://host", "region_name": "r"},
        "config_kwargs": {"s3": {"addressing_style": "path"}},
    }
    assert s3_arguments(Options(long)) == s3_arguments(Options(short)) == expected
    hosted = s3_arguments(Options({**short, "virtual_hosted_style_request": "true"}))
    assert hosted["config_kwargs"] == {"s3": {"addressing_style": "virtual"}}
    assert s3_arguments(Options({"skip_signature": "true"}))["anon"] is True
    assert s3_write_arguments(Options({"aws_server_side_encryption": "aws:kms", "aws_sse_kms_key_id": "id"})) == {
        "ServerSideEncryption": "aws:kms",
        "SSEKMSKeyId": "id",
    }


def test_azure_options_by_any_name() -> None:
    key = {"azure_storage_account_name": "n", "azure_storage_account_key": "a2V5"}
    assert azure_arguments(Options(key), None) == {"account_name": "n", "account_key": "a2V5", "anon": False}
    assert azure_arguments(Options({"account_key": "a2V5"}), "fromuri")["account_name"] == "fromuri"
    with_endpoint = azure_arguments(Options({**key, "endpoint": "https://host/n/"}), None)
    assert with_endpoint == {
        "connection_string": "DefaultEndpointsProtocol=https;BlobEndpoint=https://host/n;AccountName=n;AccountKey=a2V5"
    }
    with_sas = azure_arguments(Options({"sas_token": "sv=1", "azure_endpoint": "https://host/n"}), None)
    assert with_sas["connection_string"].endswith("BlobEndpoint=https://host/n;SharedAccessSignature=sv=1")
    with_identity = azure_arguments(Options({"account_name": "n", "endpoint": "https://host"}), None)
    assert with_identity == {"account_name": "n", "account_host": "host", "anon": False}
    for place in ("https://host/n", "http://host"):
        with pytest.raises(StorageError, match="expected https://host without a path, or an account key or SAS token"):
            azure_arguments(Options({"endpoint": place, "allow_http": "true"}), None)


def test_google_options_by_any_name() -> None:
    assert gcs_arguments(Options({"service_account": "/key.json"})) == {"token": "/key.json"}
    assert gcs_arguments(Options({"google_service_account_key": '{"type": "x"}'})) == {"token": {"type": "x"}}
    assert gcs_arguments(Options({"skip_signature": "true", "google_base_url": "https://h"})) == {
        "token": "anon",
        "endpoint_url": "https://h",
    }


def check_against_pylance(store: ObjectStore, options: dict[str, str] | None) -> None:
    """What pylance writes under a URI of ours lies under the same key, and the other way round."""
    uri = store.object_uri("ws$a b/t")
    lance.write_dataset(pa.table({"a": [1, 2]}), uri, storage_options=options)
    for meta in list(store.list("ws$a b/t")):
        store.put(meta.path.replace("ws$a b/t", "copy/of it"), store.get(meta.path))
    assert lance.dataset(store.object_uri("copy/of it"), storage_options=options).count_rows() == 2
    assert {meta.path.split("/")[2] for meta in store.list("copy/of it")} >= {"data", "_versions"}


def test_pylance_finds_our_objects_in_files(tmp_path: Path) -> None:
    check_against_pylance(open_store(tmp_path / "with space%20"), None)


def test_pylance_finds_our_objects_on_s3(moto_server: Emulator) -> None:
    store = open_store(moto_server.new_root(), moto_server.storage_options)
    check_against_pylance(store, moto_server.storage_options)
    store.close()


def test_pylance_finds_our_objects_on_azure(azurite: Emulator) -> None:
    store = open_store(azurite.new_root(), azurite.storage_options)
    check_against_pylance(store, azurite.storage_options)
    store.close()


@pytest.mark.parametrize("uri", ["s3://user:SECRET@bucket/x", "gs://:SECRET@b", "nope://u:SECRET@b/x?k=SECRET"])
def test_a_secret_in_a_uri_is_refused_and_not_shown(uri: str) -> None:
    with pytest.raises(StorageError) as refused:
        open_store(uri)
    assert "SECRET" not in str(refused.value)
    assert without_credentials("abfss://container@account.dfs.core.windows.net/p") == (
        "abfss://container@account.dfs.core.windows.net/p"
    )
