"""Pins, intents and dropped tables, of a server and of a root; the root may be the first argument."""

from __future__ import annotations

import uuid

import pyarrow as pa

from tests.cli.commands import parsed, printed, refused
from tests.cli.conftest import Shop


def test_a_pin(shop: Shop) -> None:
    pin, before = shop.namespace, shop.version()
    assert shop("pin", pin, "--version", str(before), "--for", "14d", "--reason", "audit") == (
        f"{pin}: catalog version {before} is pinned\n"
    )
    [found] = [each for each in shop.parsed("pins") if each["name"] == pin]
    assert (found["version"], found["reason"]) == (before, "audit")
    assert found["until"].endswith("+00:00")
    assert any(line.split()[:2] == [pin, f"{before:,}"] for line in shop("pins").splitlines())
    shop("unpin", pin)
    assert "there is no pin" in shop.refused("unpin", pin)


def test_an_intent(shop: Shop, people: pa.Table) -> None:
    name = shop.make("t", people)
    job = shop("intent", name, "--for", "2h", "--reason", "by hand").strip()
    assert str(uuid.UUID(job)) == job
    [found] = [each for each in shop.parsed("intents") if each["id"] == job]
    assert [(table["name"], table["read_version"]) for table in found["tables"]] == [(name, 1)]
    assert shop("end-intent", job) == f"{job}: ended\n"
    assert shop.parsed("end-intent", job) == {"id": job, "was_there": False}


def test_dropped_tables(shop: Shop, people: pa.Table) -> None:
    name = shop.make("t", people)
    shop("drop", name)
    [found] = [each for each in shop.parsed("dropped") if each["name"] == name]
    assert found["version"] == 1
    shop("undrop", name, "--as", shop.name("back"), "--id", found["tombstone"])
    assert shop("ls", shop.namespace) == f"{shop.name('back')}\n"


def test_the_root_may_be_the_first_argument(shop_root: str) -> None:
    printed("create", "n", "--exist-ok", "--root", shop_root)
    printed("pin", shop_root, "first", "--version", "1")
    assert "first" in [each["name"] for each in parsed("pins", shop_root)]
    printed("unpin", "first", LANCE_NAMESPACE_ROOT=shop_root)
    assert refused("pin", "a", "b", "--root", shop_root) == "expected NAME, found 2 arguments"
    assert refused("intent", shop_root) == "expected TABLE..., found 0 arguments"
