"""The record of a batch says where its request came from, and only auditors read that."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from namespace_server.app import create_app
from namespace_server.attempts import RequestOrigin
from namespace_server.directory.manifest_table.peer_secret import PeerSecret
from namespace_server.directory.manifest_table.peers import Peer
from namespace_server.directory.namespace import DirectoryNamespace
from namespace_server.rest.forwarding import Forwarding
from namespace_server.rest.identity import Authenticator
from namespace_server.rest.origins import read_origin, write_origin
from tests.running import serving

SECRET = PeerSecret("a secret of servers")
ORIGIN = RequestOrigin("192.0.2.7", "client/1", "r-1")


def origins(namespace: DirectoryNamespace) -> list[Any]:
    """The origins of the batches in the history of a catalog, newest first."""
    found = namespace.catalog.table.history(limit=100, before=None)
    return [outline.get("origin") for entry in found for outline in entry.outline.batches.values()]


def stream() -> bytes:
    rows = pa.table({"id": [1]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def test_every_kind_of_change_is_recorded_with_its_origin(tmp_path: Path) -> None:
    namespace = DirectoryNamespace(root=str(tmp_path), durability="none")
    app = create_app(namespace, Authenticator({}), proxies=["127.0.0.1"])
    with serving(app) as url, httpx.Client(base_url=url, headers={"user-agent": "client/1"}, timeout=60) as http:

        def change(path: str, **given: Any) -> None:
            headers = {"x-request-id": path, "x-forwarded-for": "192.0.2.7"} | given.pop("headers", {})
            assert http.post(path, headers=headers, **given).status_code == 200, path
            assert origins(namespace)[0] == {"client": "192.0.2.7", "user_agent": "client/1", "request_id": path}

        rows = {"content-type": "application/vnd.apache.arrow.stream"}
        change("/v1/namespace/n/create", json={})
        change("/v1/table/n$t/create", content=stream(), headers=rows)
        change("/v1/table/n$t/insert", content=stream(), headers=rows)
        change("/v1/table/n$t/update", json={"updates": [["id", "2"]]})
        change("/v1/table/batch-commit", json={"operations": [{"declare_table": {"id": ["n", "u"]}}]})
        change("/v1/table/n$t/tags/create", json={"tag": "x", "version": 1})
        change("/v1/table/n$t/tags/delete", json={"tag": "x"})
        told = http.get("/v1/catalog/versions").text + http.get("/v1/catalog/events", params={"since": 0}).text
    assert "client/1" not in told
    assert "192.0.2.7" not in told
    assert told.count('"num_operations"') == 14


def test_work_in_this_process_has_no_origin(tmp_path: Path) -> None:
    with closing(DirectoryNamespace(root=str(tmp_path))) as namespace:
        namespace.write("create_namespace", {"id": ["n"]})
        assert origins(namespace) == [None]


def test_a_change_that_is_handed_over_keeps_the_origin_of_its_client(tmp_path: Path) -> None:
    committing = DirectoryNamespace(root=str(tmp_path), durability="none")
    handing = DirectoryNamespace(root=str(tmp_path), durability="none")
    first = Peer("committing")
    answering = Forwarding(first, SECRET, committing.catalog.table.peers)
    with serving(create_app(committing, Authenticator({}), forwarding=answering)) as url:
        peers = handing.catalog.table.peers
        passing = Forwarding(Peer("handing"), SECRET, peers)
        with serving(create_app(handing, Authenticator({}), forwarding=passing, proxies=["127.0.0.1"])) as other:
            peers.saw(Peer("committing", url))
            headers = {"x-forwarded-for": "192.0.2.7", "user-agent": "client/1", "x-request-id": "r-1"}
            assert httpx.post(f"{other}/v1/namespace/n/create", json={}, headers=headers).status_code == 200
            assert answering is not passing
            assert origins(committing) == [ORIGIN.as_json()]


def test_a_client_cannot_tell_an_origin(tmp_path: Path) -> None:
    namespace = DirectoryNamespace(root=str(tmp_path), durability="none")
    forwarding = Forwarding(Peer("this"), SECRET, namespace.catalog.table.peers)
    with serving(create_app(namespace, Authenticator({}), forwarding=forwarding)) as url:
        told = write_origin(ORIGIN, PeerSecret("another secret of servers"), "this")
        headers = {"x-lance-forwarded-to": "this", "x-lance-origin": told}
        assert httpx.post(f"{url}/v1/namespace/n/create", json={}, headers=headers).status_code == 200
        assert origins(namespace)[0]["client"] == "127.0.0.1"


@pytest.mark.parametrize("header", ["", ".", "x", "x.y", "é.y", write_origin(ORIGIN, SECRET, "another process")])
def test_an_origin_without_a_proof_for_this_process_is_none(header: str) -> None:
    assert read_origin(header.encode(), SECRET, "this") is None
    assert read_origin(write_origin(ORIGIN, SECRET, "this").encode(), SECRET, "this") == ORIGIN
