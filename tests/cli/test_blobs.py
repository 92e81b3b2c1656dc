"""One blob written to a file: whole, and on from where an interrupted command was."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pyarrow as pa
import pytest
from lance.blob import blob_array, blob_field

from tests.cli.commands import invoke
from tests.cli.conftest import Shop

LONG = os.urandom(3_000_000)


@pytest.fixture
def photos(shop: Shop) -> str:
    schema = pa.schema([pa.field("id", pa.int64()), blob_field("photo")])
    return shop.make("photos", pa.table([[1, 2, 3, 4], blob_array([b"small", LONG, None, b""])], schema))


def test_it_is_written_whole(shop: Shop, photos: str) -> None:
    target = shop.home / "photo.jpg"
    assert shop("blob", photos, "photo", "--row", "1", "-o", str(target)) == f"{target}: 3,000,000 bytes\n"
    assert target.read_bytes() == LONG
    shop("blob", photos, "photo", "--where", "id = 1", "-o", str(target))
    assert target.read_bytes() == b"small"
    assert shop.parsed("blob", photos, "photo", "--where", "id = 4", "-o", str(target)) == {
        "file": str(target),
        "bytes": 0,
        "row": 3,
    }
    assert target.read_bytes() == b""
    assert [path.name for path in shop.home.iterdir()] == [target.name]
    shop("blob", photos, "photo", "--row", "0", "--version", "1", "-o", str(target))
    assert target.read_bytes() == b"small"


def test_standard_output_has_its_bytes(shop: Shop, photos: str) -> None:
    assert invoke("blob", photos, "photo", "--row", "1", "-o", "-", *shop.options).stdout_bytes == LONG


def test_it_goes_on_where_it_was_interrupted(shop: Shop, photos: str) -> None:
    """What is there is kept, though it be other bytes than those of the blob: the name says that they are of it."""
    target = shop.home / "photo"
    part = _part(shop, target)
    part.write_bytes(b"-" * 1_000_000)
    said = shop("blob", photos, "photo", "--row", "1", "-o", str(target))
    assert said == f"{target}: 3,000,000 bytes, of which 1,000,000 were there\n"
    assert target.read_bytes() == b"-" * 1_000_000 + LONG[1_000_000:]
    part.write_bytes(b"-" * 3_000_001)
    shop("blob", photos, "photo", "--row", "1", "-o", str(target))
    assert target.read_bytes() == LONG
    assert [path.name for path in shop.home.iterdir()] == [target.name]


def test_two_commands_do_not_write_one_file(shop: Shop, photos: str) -> None:
    target = shop.home / "photo"
    with _part(shop, target).open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        refused = invoke("blob", photos, "photo", "--row", "1", "-o", str(target), *shop.options)
    assert refused.exit_code == 2
    assert "another command writes it" in refused.stderr


def _part(shop: Shop, target: Path) -> Path:
    """Where the bytes of the long blob are until it is whole."""
    with shop.catalog() as catalog:
        found = catalog.blob("photos", "photo", 1)
    assert found is not None
    assert found.tag is not None
    return target.with_name(f"{target.name}.{found.tag[1:17]}.part")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--row", "2"), "column photo is null in this row"),
        (("--row", "9"), "expected row 9, found none"),
        (("--where", "id > 2"), "found several"),
        ((), "--row, --where: expected one of them"),
        (("--row", "1", "--where", "id = 1"), "--row, --where: expected one of them"),
    ],
)
def test_what_is_refused(shop: Shop, photos: str, arguments: tuple[str, ...], text: str) -> None:
    refused = invoke("blob", photos, "photo", *arguments, "-o", str(shop.home / "x"), *shop.options)
    assert refused.exit_code != 0
    assert text in refused.stderr
    assert list(shop.home.iterdir()) == []


def test_a_place_that_cannot_be_written(shop: Shop, photos: str) -> None:
    refused = invoke("blob", photos, "photo", "--row", "1", "-o", str(shop.home / "none/x"), *shop.options)
    assert "not written: No such file or directory" in refused.stderr
