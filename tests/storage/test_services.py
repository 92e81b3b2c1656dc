"""S3, Azure and Google: the contract over HTTP, and the number of requests."""

from collections import Counter
from collections.abc import Iterator

import pytest
from fsspec.asyn import sync

from lance_core.errors import AlreadyExists, NotFound, OversizedFile, StorageError
from lance_core.storage.bucket_store import BucketStore
from lance_core.storage.opening import open_store
from lance_core.storage.port import ObjectStore
from lance_core.storage.services.azure import AzureBucket
from lance_core.storage.services.options import Options, azure_arguments, s3_arguments
from lance_core.storage.services.s3 import S3Bucket
from tests.emulators import Emulator
from tests.storage.contract import StoreContract, keys, racers

__all__ = ["racers"]


class ServiceContract(StoreContract):
    rounds = 12  # of 16 requests each, which take milliseconds; who wins is the service's doing

    @pytest.fixture
    def root(self, emulator: Emulator) -> str:
        return emulator.new_root()

    @pytest.fixture
    def store(self, emulator: Emulator, root: str) -> Iterator[ObjectStore]:
        store = open_store(root, emulator.storage_options)
        yield store
        store.close()

    @pytest.fixture
    def other(self, emulator: Emulator, root: str) -> Iterator[ObjectStore]:
        store = open_store(root + "/", emulator.storage_options)
        yield store
        store.close()


class MissingBucket:
    def test_a_missing_bucket_is_an_error_and_not_a_missing_object(self, emulator: Emulator) -> None:
        store = open_store(f"{emulator.scheme}://nowhere/x", emulator.storage_options)
        with pytest.raises(StorageError, match="nowhere/x/y") as caught:
            store.get("y")
        assert type(caught.value) is StorageError
        store.close()


class CountedContract(ServiceContract):
    """For services in this process: every request to them is seen."""

    write = "PUT"
    copy = "PUT"
    stat = "HEAD"

    def test_each_call_is_one_request(self, emulator: Emulator, store: ObjectStore) -> None:
        e_tag = store.put("t/1", b"content")
        calls = [
            (lambda: store.get("t/1"), "GET"),
            (lambda: store.get_range("t/1", 2, 3), "GET"),
            (lambda: store.get_range("t/1", 200, 3), "GET"),
            (lambda: store.head("t/1"), self.stat),
            (lambda: list(store.list("t")), "GET"),
            (lambda: next(store.list("t", start_after="t/0")), "GET"),
            (lambda: store.put("t/2", b"x"), self.write),
            (lambda: store.put_if_absent("t/3", b"x"), self.write),
            (lambda: store.publish("t/3", "t/4", b"x"), self.write),
            (lambda: store.replace("t/1", b"x", if_match=str(e_tag)), self.write),
            (lambda: store.copy("t/1", "t/5"), self.copy),
            (lambda: store.delete("t/2"), "DELETE"),
            (lambda: store.delete("t/2"), "DELETE"),
        ]
        for call, method in calls:
            with emulator.counted() as methods:
                call()
            assert methods == [method]

    def test_each_miss_is_one_request(self, emulator: Emulator, store: ObjectStore) -> None:
        store.put("taken", b"x")
        misses = [
            (lambda: store.get("t/9"), NotFound, "GET"),
            (lambda: store.get_range("t/9", 0, 3), NotFound, "GET"),
            (lambda: store.head("t/9"), NotFound, self.stat),
            (lambda: store.get("taken", at_most=0), OversizedFile, "GET"),
            (lambda: store.put_if_absent("taken", b"x"), AlreadyExists, self.write),
            (lambda: store.publish("t/9", "taken", b"x"), AlreadyExists, self.write),
            (lambda: store.copy("t/9", "t/8"), NotFound, self.copy),
        ]
        for call, error, method in misses:
            with emulator.counted() as methods, pytest.raises(error):
                call()
            assert methods == [method]

    def test_a_rename_is_a_head_a_read_a_write_and_a_conditional_delete(
        self, emulator: Emulator, store: ObjectStore
    ) -> None:
        store.put("source", b"x")
        with emulator.counted() as methods:
            store.rename_if_absent("source", "target")
        assert Counter(methods) == Counter([self.stat, "GET", self.write, "DELETE"])

    def test_a_copy_within_one_service_does_not_pass_through_the_process(
        self, emulator: Emulator, store: ObjectStore
    ) -> None:
        elsewhere = open_store(emulator.new_root(), emulator.storage_options)
        elsewhere.put("source", b"x" * 100)
        with emulator.counted() as methods:
            store.copy("source", "target", origin=elsewhere)
        elsewhere.close()
        assert methods == [self.copy]
        assert store.get("target") == b"x" * 100


class TestS3(CountedContract, MissingBucket):
    @pytest.fixture
    def emulator(self, moto_server: Emulator) -> Emulator:
        return moto_server

    def test_listings_are_read_page_by_page(
        self, emulator: Emulator, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "10")
        paths = [f"many/{number:04}" for number in range(35)]
        store.map(lambda path: store.put(path, b""), paths)
        with emulator.counted() as methods:
            assert next(store.list("many")).path == paths[0]
        assert methods == ["GET"]
        with emulator.counted() as methods:
            assert keys(store, "many", paths[4]) == paths[5:]
        assert methods == ["GET"] * 3

    def test_an_object_too_large_for_one_request_is_copied_in_parts(self, emulator: Emulator) -> None:
        options = Options(emulator.storage_options)
        bucket = S3Bucket(emulator.bucket, s3_arguments(options))
        store = BucketStore(bucket, f"s3://{emulator.bucket}", "parts")
        data = bytes(range(256)) * 4096 * 11
        store.put("source", data)
        place = {"Bucket": emulator.bucket, "Key": "parts/source"}

        async def copy() -> None:
            await bucket.copy_in_parts(place, found, "parts/target", 5 << 20)

        with emulator.counted() as methods:
            found = bucket.stat("parts/source")
            sync(bucket.file_system.loop, copy)
        assert Counter(methods) == {"HEAD": 1, "POST": 2, "PUT": 3}
        assert store.get("target") == data
        store.close()

    def test_folder_markers_are_not_objects(self, emulator: Emulator, store: ObjectStore) -> None:
        import boto3

        store.put("t/1", b"x")
        options = emulator.storage_options
        client = boto3.client(
            "s3",
            endpoint_url=options["aws_endpoint"],
            region_name="us-east-1",
            aws_access_key_id="key",
            aws_secret_access_key="secret",
        )
        client.put_object(Bucket=emulator.bucket, Key=store.object_path("t") + "/", Body=b"")
        client.close()
        assert keys(store, "") == ["t/1"]


class TestAzure(ServiceContract, MissingBucket):
    @pytest.fixture
    def emulator(self, azurite: Emulator) -> Emulator:
        return azurite

    def test_listings_are_read_page_by_page(self, emulator: Emulator, store: ObjectStore) -> None:
        paths = [f"many/{number:04}" for number in range(35)]
        store.map(lambda path: store.put(path, b""), paths)
        arguments = azure_arguments(Options(emulator.storage_options), None)
        bucket = AzureBucket(emulator.bucket, arguments, page_size=10)
        paged = BucketStore(bucket, f"az://{emulator.bucket}", store.object_path(""))
        assert keys(paged, "many") == paths
        assert keys(paged, "many", paths[4]) == paths[5:]
        paged.close()


class TestGcs(CountedContract):
    def test_a_long_copy_is_continued_by_its_token(self, emulator: Emulator, store: ObjectStore) -> None:
        store.put("source", b"x" * (2 << 20))
        with emulator.counted() as methods:
            store.copy("source", "target")
        assert methods == ["POST", "POST"]
        assert store.get("target") == store.get("source")

    write = "POST"
    copy = "POST"
    stat = "GET"

    @pytest.fixture
    def emulator(self, fake_gcs: Emulator) -> Emulator:
        return fake_gcs

    def test_listings_are_read_page_by_page(self, emulator: Emulator, store: ObjectStore) -> None:
        paths = [f"many/{number:04}" for number in range(250)]
        store.map(lambda path: store.put(path, b""), paths)
        with emulator.counted() as methods:
            assert keys(store, "many", paths[9]) == paths[10:]
        assert methods == ["GET"] * 3
