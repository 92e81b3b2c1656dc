"""How a server is, as Home tells it: by the metrics of a real one."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

from namespace_client import AccessRefused, Catalog
from namespace_console.application import Console
from namespace_server.app import create_app
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.rest.identity import Authenticator
from tests.console.conftest import KEY_OF, KEYS, Site, Visitor
from tests.running import serving


def test_home_counts_what_is_there(site: Site) -> None:
    catalog = site.owner
    names = catalog.namespaces(())
    namespaces, tables = len(names), sum(len(catalog.tables(name)) for name in names)
    shown = site.visitor("ann").text("")
    told = re.search(r"([\d,]+) namespaces ([\d,]+) tables", shown)
    assert told, shown
    assert (namespaces, tables) == tuple(int(count) for count in told.groups())
    batches = re.search(r"committed (\d+), rejected (\d+), unknown 0, failed 0", shown)
    assert batches, shown
    assert int(batches[1]) >= 4
    assert re.search(r"< [\d.]+ ms median of a flip", shown)


def test_home_tells_rows_and_bytes_and_links_what_is_worth_maintenance(tmp_path: Path) -> None:
    app = create_app(DirectoryNamespace(root=str(tmp_path), durability="none"), Authenticator(KEYS, wrong_keys=0))
    app.mount("console", Console())
    with serving(app) as url, Catalog.connect(url, api_key=KEY_OF["ann"]) as owner:
        owner.create_namespace(["shop"])
        for number in range(6):
            rows = pa.table({"id": [number, number + 1]})
            (owner.append if number else owner.create)(["shop", "orders"], rows)
        with httpx.Client(base_url=url, verify=False, timeout=30) as http:
            ann = Visitor(http)
            assert ann.sign_in(KEY_OF["ann"]).status_code == 303
            told, page = ann.text(""), ann.get("").text
            size = owner.figures().bytes
            with owner.begin(message="compact") as tx:
                tx.compact(["shop", "orders"])
            after = ann.text("")
    assert re.search(rf"1 namespace 1 table 12 rows {size / 1000:.1f} kB in 6 files", told), told
    assert "1 table is worth maintenance" in told
    assert "lance-namespace maintain" in told
    assert re.search(r'worth maintenance</dt><dd>1: <a href="/console/tables/shop%24orders">', page), page
    assert "is worth maintenance" not in after
    assert "Tables worth maintenance 0" in after


def test_home_tells_nothing_of_tables_to_who_may_create_some_and_sees_none(tmp_path: Path) -> None:
    app = create_app(DirectoryNamespace(root=str(tmp_path), durability="none"), Authenticator(KEYS, wrong_keys=0))
    app.mount("console", Console())
    with serving(app) as url, Catalog.connect(url, api_key=KEY_OF["ann"]) as owner:
        owner.create_namespace(["secret"])
        owner.create(["secret", "secret"], pa.table({"id": [1, 2]}))
        owner.enable_grants(principals=["ann"])
        owner.grant("create", principal="bob", catalog=True)
        owner.grant("see", principal="eve", catalog=True)
        told = {}
        for principal in ("ann", "bob", "eve"):
            with httpx.Client(base_url=url, verify=False, timeout=30) as http:
                visitor = Visitor(http)
                assert visitor.sign_in(KEY_OF[principal]).status_code == 303
                told[principal] = visitor.text("")
        with (
            Catalog.connect(url, api_key=KEY_OF["bob"]) as bob,
            pytest.raises(AccessRefused, match="all of the catalog"),
        ):
            bob.figures()
    assert "1 table 2 rows" in told["ann"]
    assert "1 table 2 rows" in told["eve"]
    assert "2 rows" not in told["bob"]
    assert "secret" not in told["bob"]
