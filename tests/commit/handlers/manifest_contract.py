"""The contract of external manifest stores. Subclass `ManifestContract` with a fixture `manifests`, an empty store."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from lance_core.commit.handlers import ManifestRow, ManifestStore

RACERS = 8
BASE = "s3://bucket/a b%2525/t$x"
UUID = "0b2f5c9e-0000-4000-8000-00000000000"


def staged_row(version: int, base_uri: str = BASE, uuid: str = f"{UUID}0", size: int = 434) -> ManifestRow:
    return ManifestRow(base_uri, version, f"{base_uri}/_versions/{version}.manifest-{uuid}", size, uuid)


class ManifestContract:
    def test_a_row_is_read_back_unchanged(self, manifests: ManifestStore) -> None:
        row = staged_row((1 << 63) - 1, size=1 << 40)
        assert manifests.get(BASE, row.version) is None
        assert manifests.put_if_absent(row)
        assert manifests.get(BASE, row.version) == row
        assert manifests.get(BASE, 1) is None
        assert manifests.get(BASE.upper(), row.version) is None

    def test_a_version_has_one_row(self, manifests: ManifestStore) -> None:
        assert manifests.put_if_absent(staged_row(5))
        assert not manifests.put_if_absent(staged_row(5, uuid=f"{UUID}1"))
        assert not manifests.put_if_absent(staged_row(5))
        assert manifests.get(BASE, 5) == staged_row(5)
        assert manifests.put_if_absent(staged_row(6))
        assert manifests.put_if_absent(staged_row(5, base_uri=f"{BASE}/tree/dev"))

    def test_a_row_is_replaced_only_if_it_is_unchanged(self, manifests: ManifestStore) -> None:
        row, other = staged_row(5), staged_row(5, uuid=f"{UUID}1")
        assert not manifests.replace(row, row.finished())
        assert manifests.get(BASE, 5) is None
        manifests.put_if_absent(row)
        assert not manifests.replace(other, other.finished())
        assert not manifests.replace(replace(row, size=1), other)
        assert not manifests.replace(row.finished(), other)
        assert manifests.get(BASE, 5) == row
        assert manifests.replace(row, row.finished())
        assert manifests.get(BASE, 5) == row.finished()
        assert not manifests.replace(row, row.finished())
        assert manifests.replace(row.finished(), other)
        assert manifests.get(BASE, 5) == other

    def test_a_row_is_removed_only_if_it_is_unchanged(self, manifests: ManifestStore) -> None:
        row = staged_row(5)
        manifests.put_if_absent(row)
        assert not manifests.remove(row.finished())
        assert manifests.get(BASE, 5) == row
        assert manifests.remove(row)
        assert not manifests.remove(row)
        assert manifests.get(BASE, 5) is None

    def test_lists_staged_rows(self, manifests: ManifestStore) -> None:
        rows = [staged_row(version) for version in (12, 9, 10)]
        for row in (*rows, staged_row(3, base_uri="s3://bucket/a b%2525/t$x2")):
            manifests.put_if_absent(row)
        manifests.put_if_absent(staged_row(8).finished())
        assert manifests.staged(BASE) == sorted(rows, key=lambda row: row.version)
        manifests.replace(rows[0], rows[0].finished())
        assert manifests.staged(BASE) == [rows[1], rows[2]]
        assert manifests.staged("s3://bucket") == []

    def test_lists_staged_rows_below_a_uri(self, manifests: ManifestStore) -> None:
        bases = [f"{BASE}/tree/dev", BASE, f"{BASE}-2", BASE.upper() + "/x", "s3://bucket/a bX2525/t$x/x"]
        for base in bases:
            manifests.put_if_absent(staged_row(1, base_uri=base))
        assert {row.base_uri for row in manifests.staged(BASE, below=True)} == {BASE, f"{BASE}/tree/dev"}
        assert {row.base_uri for row in manifests.staged("s3://bucket", below=True)} == set(bases) - {bases[3]}

    def test_of_concurrent_writers_one_gets_the_version(self, manifests: ManifestStore) -> None:
        start = threading.Barrier(RACERS)

        def put(number: int) -> list[bool]:
            start.wait()
            return [manifests.put_if_absent(staged_row(version, uuid=f"{UUID}{number}")) for version in range(1, 41)]

        with ThreadPoolExecutor(RACERS) as pool:
            won = list(pool.map(put, range(RACERS)))
        for version in range(1, 41):
            [winner] = [number for number in range(RACERS) if won[number][version - 1]]
            assert manifests.get(BASE, version) == staged_row(version, uuid=f"{UUID}{winner}")

    def test_of_concurrent_replacements_one_succeeds(self, manifests: ManifestStore) -> None:
        start = threading.Barrier(RACERS)
        first = staged_row(1).finished()
        manifests.put_if_absent(first)

        def swap(number: int) -> bool:
            start.wait()
            return manifests.replace(first, staged_row(1, uuid=f"{UUID}{number}"))

        with ThreadPoolExecutor(RACERS) as pool:
            won = list(pool.map(swap, range(RACERS)))
        assert won.count(True) == 1
        assert manifests.get(BASE, 1) == staged_row(1, uuid=f"{UUID}{won.index(True)}")
