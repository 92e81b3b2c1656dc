import shutil
import uuid
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lance_core.data import encode_rows, schema_fields
from lance_core.errors import CorruptFile, ReferenceNotFound, UnsupportedFeature
from lance_core.format.manifest import encode_manifest_file, parse_manifest_file
from lance_core.format.naming import NamingScheme, data_path
from lance_core.format.schema import data_file_message
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.memory import MemoryStore
from lance_core.storage.opening import open_store
from lance_core.storage.wrappers.counting import CountingStore
from lance_core.tables.dataset import Dataset

REFERENCES = [
    (None, None, 4),
    (1, None, 1),
    (4, None, 4),
    ((None, None), None, 4),
    ((None, 3), None, 3),
    (("main", 2), None, 2),
    (("dev", None), "dev", 3),
    (("dev", 2), "dev", 2),
    (("dev/nested", None), "dev/nested", 3),
    ("two", None, 2),
    ("on-dev", "dev", 3),
]


@pytest.mark.parametrize(("ref", "branch", "version"), REFERENCES)
def test_every_reference_opens_what_pylance_opens(table: Path, ref, branch: str | None, version: int) -> None:
    dataset = Dataset.open(str(table), ref)
    assert (dataset.branch, dataset.version) == (branch, version)
    stock = lance.dataset(str(table))
    theirs = stock if ref is None else stock.checkout_version(("main", None) if ref == (None, None) else ref)
    assert theirs.version == version
    mine = dataset.to_pylance()
    assert mine.version == version
    assert mine.to_table() == theirs.to_table()
    assert dataset.schema == theirs.schema
    assert dataset.transaction is not None
    assert dataset.transaction.uuid == theirs.read_transaction(version).uuid
    assert dataset.file.branch == branch


def test_a_table_is_found_below_the_root_of_a_store(table: Path) -> None:
    with_key = Dataset.open(open_store(table.parent), ("dev", None), location="table.lance")
    assert with_key.base == "table.lance/tree/dev"
    assert with_key.uri == table.as_uri() + "/tree/dev"
    assert with_key.to_pylance().to_table()["a"].to_pylist() == [2, 3, 4, 5]


@pytest.mark.parametrize(
    "ref", [5, 0, -1, 2**63, 2**64, ("dev", 1), ("nope", None), ("nope", 1), "nope", ("dev/nested", 2)]
)
def test_a_missing_version_tag_or_branch_is_reported(table: Path, ref) -> None:
    with pytest.raises(ReferenceNotFound, match="expected"):
        Dataset.open(str(table), ref)


def test_a_missing_table_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ReferenceNotFound, match="expected a manifest, found none"):
        Dataset.open(str(tmp_path / "nothing"))


@pytest.mark.parametrize(("ref", "branch", "version"), REFERENCES)
def test_checkout_takes_the_same_references(table: Path, ref, branch: str | None, version: int) -> None:
    dataset = Dataset.open(str(table), 1).checkout(ref)
    assert (dataset.branch, dataset.version) == (branch, version)


def test_a_version_number_is_resolved_on_the_open_branch(table: Path) -> None:
    branch = Dataset.open(str(table), ("dev", None))
    assert branch.checkout(2).branch == "dev"
    assert branch.checkout(None) is branch
    assert branch.checkout((None, 2)).branch is None
    with pytest.raises(ReferenceNotFound):
        branch.checkout(1)


def test_checkout_of_the_open_version_does_no_io(table: Path) -> None:
    store = CountingStore(open_store(table))
    main, branch = Dataset.open(store, 3), Dataset.open(store, ("dev", 3))
    with store.measure() as cost:
        assert main.checkout(3) is main
        assert main.checkout((None, 3)) is main
        assert main.checkout(("main", 3)) is main
        assert branch.checkout(3) is branch
        assert branch.checkout(("dev", 3)) is branch
    assert cost.requests == 0
    assert main.checkout(("dev", 3)).manifest != main.manifest


def test_requests_of_opening_a_table(tmp_path: Path) -> None:
    root = tmp_path / "table.lance"
    for _ in range(3):
        lance.write_dataset(pa.table({"a": [1]}), str(root), mode="append")
    store = CountingStore(open_store(root))

    def cost_of(ref) -> dict[str, int]:
        with store.measure() as cost:
            Dataset.open(store, ref)
        return dict(cost.by_verb)

    assert cost_of(2) == {"get": 1}
    assert cost_of(None) == {"list": 1, "get": 1}
    dataset = Dataset.open(store)
    with store.measure() as cost:
        assert dataset.checkout(None) is dataset
    assert dict(cost.by_verb) == {"list": 1}


def test_e_tags_are_kept_and_compared(table: Path) -> None:
    store = CountingStore(open_store(table))
    latest = Dataset.open(store)
    committed = latest.commit(append_of(latest, [9]))
    [first, *_] = store.list("_versions")
    newest = max(store.list("_versions"), key=lambda meta: meta.last_modified)
    assert first.path.endswith(".manifest")
    assert latest.e_tag not in {None, committed.e_tag}
    assert committed.e_tag == newest.e_tag
    assert Dataset.open(store, 5).e_tag is None  # a read tells none

    by_number = Dataset.open(store, 5)
    with store.measure() as cost:
        assert committed.checkout(None) is committed
    assert dict(cost.by_verb) == {"list": 1}
    with store.measure() as cost:
        same = by_number.checkout(None)
    assert dict(cost.by_verb) == {"list": 1, "get": 1}
    assert (same.version, same.e_tag) == (5, committed.e_tag)
    assert same.checkout(None) is same


def test_a_manifest_that_was_replaced_under_its_name_is_opened_anew(table: Path) -> None:
    dataset = Dataset.open(str(table))
    key = next(meta.path for meta in dataset.store.list("_versions") if meta.e_tag == dataset.e_tag)
    dataset.manifest.config["k"] = "w"  # of the same length
    dataset.store.put(key, encode_manifest_file(dataset.manifest, dataset.file.transaction, dataset.indices))
    newer = dataset.checkout(None)
    assert newer is not dataset
    assert newer.manifest.config["k"] == "w"
    assert newer.e_tag != dataset.e_tag


def test_a_tag_on_the_open_version_reads_only_the_tag(table: Path) -> None:
    store = CountingStore(open_store(table))
    main, dev = Dataset.open(store, 2), Dataset.open(store, ("dev", 3))
    with store.measure() as cost:
        assert main.checkout("two") is main
        assert dev.checkout("on-dev") is dev
    assert dict(cost.by_verb) == {"get": 2}


def test_a_new_version_is_seen_by_checking_out_the_latest(table: Path) -> None:
    dataset = Dataset.open(str(table))
    lance.write_dataset(pa.table({"a": [6]}), str(table), mode="append")
    assert dataset.version == 4
    newer = dataset.checkout(None)
    assert (newer.version, newer.file.operation) == (5, "append")
    assert newer.naming_scheme is dataset.naming_scheme


def test_the_hint_and_staged_and_detached_files_are_not_versions(table: Path) -> None:
    versions = table / "_versions"
    (versions / "latest_version_hint.json").write_text('{"version": 99}')
    head = next(versions.glob("*.manifest"))
    for name in ("18446744073709551600.manifest-6ba7b810", "d9223372036854775900.manifest", "9.manifest#1"):
        shutil.copy(head, versions / name)
    assert Dataset.open(str(table)).version == 4
    assert [entry.version for entry in Dataset.open(str(table)).history()] == [4, 3, 2, 1]


def test_history_is_that_of_pylance(table: Path) -> None:
    for ref in (None, ("dev", None), ("dev/nested", None)):
        dataset = Dataset.open(str(table), ref)
        stock = dataset.to_pylance()
        history = dataset.history()
        assert [entry.version for entry in history] == [entry["version"] for entry in stock.versions()][::-1]
        for entry in history:
            assert entry.transaction_uuid == stock.read_transaction(entry.version).uuid
    main = Dataset.open(str(table)).history()
    assert [entry.operation for entry in main] == ["update_config", "create_index", "append", "overwrite"]
    assert [entry.read_version for entry in main] == [3, 2, 1, 0]
    assert main == sorted(main, key=lambda entry: entry.timestamp_ns, reverse=True)


def test_transactions_that_are_not_inline_are_read_from_their_file(table: Path) -> None:
    path = next(path for path in (table / "_versions").glob("*.manifest") if parse(path).version == 2)
    file = parse(path)
    path.write_bytes(encode_manifest_file(file.manifest, None, file.indices))
    dataset = Dataset.open(str(table), 2)
    assert dataset.file.transaction is None
    assert dataset.transaction == file.transaction
    entry = dataset.history()[2]
    assert (entry.operation, entry.transaction_uuid) == ("append", file.identity.transaction_uuid)
    transaction_file = table / "_transactions" / file.manifest.transaction_file
    transaction_file.write_bytes(b"\xff")
    with pytest.raises(CorruptFile, match=transaction_file.name):
        _ = Dataset.open(str(table), 2).transaction
    transaction_file.unlink()
    assert Dataset.open(str(table), 2).transaction is None
    assert dataset.history()[2].operation is None


def parse(path: Path):
    return parse_manifest_file(path.read_bytes())


def test_a_file_that_is_another_version_is_not_opened(tmp_path: Path) -> None:
    store = MemoryStore()
    store.put("_versions/18446744073709551613.manifest", encode_manifest_file(pb.Manifest(version=7), None))
    for ref in (None, 2):
        with pytest.raises(CorruptFile, match=r"18446744073709551613\.manifest.*version 2 contains version 7"):
            Dataset.open(store, ref)


def test_a_table_with_an_unsupported_feature_is_not_opened() -> None:
    store = MemoryStore()
    manifest = pb.Manifest(version=1, reader_feature_flags=1 << 20)
    store.put("t/_versions/1.manifest", encode_manifest_file(manifest, None))
    with pytest.raises(UnsupportedFeature, match="reader feature bits 20"):
        Dataset.open(store, location="t")


def test_both_naming_schemes_in_one_directory_are_refused(table: Path) -> None:
    main = Dataset.open(str(table))
    versions = table / "_versions"
    shutil.copy(next(versions.glob("*.manifest")), versions / "1.manifest")
    shutil.copy(next(versions.glob("*.manifest")), versions / "18446744073709551614.manifest")
    dataset = Dataset.open(str(table), ("dev", None))
    with pytest.raises(UnsupportedFeature, match="expected one naming scheme"):
        dataset.checkout((None, None))
    with pytest.raises(UnsupportedFeature, match="expected one naming scheme"):
        main.history()


def test_each_branch_has_its_own_naming_scheme(table: Path) -> None:
    names = [path.name for path in (table / "_versions").glob("*.manifest")]
    expected = NamingScheme.V1 if "1.manifest" in names else NamingScheme.V2
    assert Dataset.open(str(table)).naming_scheme is expected
    assert Dataset.open(str(table), ("dev", None)).naming_scheme is NamingScheme.V2


def append_of(dataset: Dataset, values: list[int]) -> pb.Transaction:
    rows = pa.table({"a": values})
    encoded = encode_rows(rows)
    name = f"{uuid.uuid4()}.lance"
    dataset.store.put(data_path(dataset.base, name), encoded)
    file = data_file_message(name, schema_fields(rows.schema), size=len(encoded))
    fragment = pb.DataFragment(physical_rows=len(values), files=[file])
    return pb.Transaction(
        read_version=dataset.version, uuid=str(uuid.uuid4()), append=pb.Transaction.Append(fragments=[fragment])
    )


@pytest.mark.parametrize("ref", [None, 2, ("dev", None), ("dev/nested", None)])
def test_a_commit_is_the_next_version_of_its_branch(table: Path, ref) -> None:
    dataset = Dataset.open(str(table), ref)
    latest = dataset.checkout(None)
    rows = latest.to_pylance().to_table()["a"].to_pylist()
    committed = dataset.commit(append_of(dataset, [10, 11]))
    assert (committed.branch, committed.version) == (dataset.branch, latest.version + 1)
    assert latest.checkout(None).manifest == committed.manifest
    assert committed.checkout(None) is committed
    theirs = committed.to_pylance()
    theirs.validate()
    assert theirs.to_table()["a"].to_pylist() == [*rows, 10, 11]
    lance.write_dataset(pa.table({"a": [12]}), theirs, mode="append")
    assert committed.checkout(None).to_pylance().count_rows() == len(rows) + 3


def test_a_staged_version_is_visible_once_it_is_published(table: Path) -> None:
    dataset = Dataset.open(str(table))
    staged = dataset.stage(append_of(dataset, [10]))
    assert dataset.checkout(None) is dataset
    assert staged.open().to_table()["a"].to_pylist() == [1, 2, 3, 4, 5, 10]
    staged.publish()
    published = dataset.checkout(None)
    assert published.version == 5
    assert published.to_pylance().to_table()["a"].to_pylist() == [1, 2, 3, 4, 5, 10]


def test_the_indices_come_with_the_manifest(table: Path) -> None:
    assert Dataset.open(str(table), 2).indices is None
    indices = Dataset.open(str(table), 3).indices
    assert indices is not None
    assert [index.name for index in indices.indices] == ["a_idx"]
