"""One of many writers: commits batches over two of several shared tables, and says on standard output what became of
each, a JSON object per line.

Told by a JSON object as its only argument: `urls` of the servers, `root`, `tables` (name -> location, in namespace
`g`), `writer` (its number), `batches` (how many).
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import random
import sys
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from lance_core.commit.prepare import History, TableFiles, prepare_commit
from lance_core.errors import NotFound
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.format.naming import manifest_path
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.local import LocalStore
from tests.staged_fragments import stage_fragments

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
TRIES = 200


@dataclass
class Account:
    """What a batch wanted, and what became of it. `rows` and `transactions` are by table."""

    key: str
    rows: dict[str, int] = field(default_factory=dict)
    transactions: dict[str, str] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    explicit: str | None = None
    asserted: str | None = None
    status: int = 0
    rebased: bool = False
    repeats: int = 0
    transaction_id: str | None = None


class Writer:
    """See the module."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.urls: list[str] = config["urls"]
        self.root = Path(config["root"])
        self.store = LocalStore(self.root, "none")
        self.tables: dict[str, str] = config["tables"]
        self.number: int = config["writer"]
        self.batches: int = config["batches"]
        self.chance = random.Random(self.number)
        self.heads = dict.fromkeys(self.tables, 1)
        self.connections = {url: http.client.HTTPConnection(urlsplit(url).netloc, timeout=60) for url in self.urls}

    def run(self) -> None:
        for batch in range(self.batches):
            os.write(1, f"{json.dumps(vars(self.commit(batch)))}\n".encode())  # in one piece: the pipe is shared

    def commit(self, batch: int) -> Account:
        account = Account(f"writer {self.number} batch {batch}")
        first, second = self.chance.sample(sorted(self.tables), 2)
        kind = self.chance.random()
        operations = [self.create(account, first, batch) if kind < 0.15 else self.append(account, first, batch)]
        if kind > 0.85:
            account.asserted = second
            operations.append({"assert_table_version": {"id": ["g", second], "version": self.describe(second)}})
        else:
            operations.append(self.append(account, second, batch))
        self.decide(account, operations)
        return account

    def decide(self, account: Account, operations: list[dict[str, Any]]) -> None:
        """Send the batch until there is a verdict: silence and 503 are none, and the key makes repeating safe."""
        status, body = 0, None
        while status in {0, 503}:
            assert account.repeats <= TRIES, body
            status, body = self.ask("/v1/table/batch-commit", {"operations": operations}, key=account.key)
            account.repeats += status in {0, 503}
        account.status = status
        if status == 200:
            account.transaction_id = body["transaction_id"]
            self.learn(account, operations, body["results"])
            if self.chance.random() < 0.1:
                again = self.insist("/v1/table/batch-commit", {"operations": operations}, key=account.key)
                assert again["transaction_id"] == account.transaction_id, "the same key was another application"
        else:
            assert status == 409, body
            for failure in body["failures"]:  # what stood in the way can be described, at any server (P8)
                table = failure["id"][-1]
                self.heads[table] = self.describe(table, failure["actual"])

    def learn(self, account: Account, operations: list[dict[str, Any]], results: list[dict[str, Any]]) -> None:
        for operation, result in zip(operations, results, strict=True):
            [(kind, request)] = operation.items()
            if kind != "assert_table_version":
                table = request["id"][-1]
                account.versions[table] = self.heads[table] = result[kind]["version"]["version"]
                account.rebased |= result[kind].get("rebased", False)

    def append(self, account: Account, table: str, batch: int) -> dict[str, Any]:
        """A transaction that the server rebases: it read the head that this writer heard of last."""
        transaction = self.transaction(account, table, batch, self.heads[table])
        encoded = base64.b64encode(transaction.SerializeToString()).decode()
        return {"commit_transaction": {"id": ["g", table], "transaction": encoded}}

    def create(self, account: Account, table: str, batch: int) -> dict[str, Any]:
        """A version as stock clients stage it: built on the head of this moment, good for that number only."""
        account.explicit = table
        head = self.manifest(table, self.describe(table))
        location = self.tables[table]
        transaction = self.transaction(account, table, batch, head.version)
        prepared = prepare_commit(transaction, History(head), TableFiles(self.store, location), now_ns=time.time_ns())
        staged = f"{manifest_path(location, prepared.version)}-{uuid.uuid4()}"
        for path, data in (*prepared.files, (staged, prepared.manifest)):
            self.store.put(path, data)
        version = {"version": prepared.version, "manifest_path": self.store.object_path(staged)}
        size = {"manifest_size": len(prepared.manifest), "naming_scheme": "V2"}
        return {"create_table_version": {"id": ["g", table], **version, **size}}

    def transaction(self, account: Account, table: str, batch: int, read_version: int) -> pb.Transaction:
        """An append of one row, whose id is used once."""
        row = (self.number + 1) * 1_000_000 + batch * 10 + len(account.rows)
        account.rows[table] = row
        data = pa.table({"id": [row], "name": [account.key]}, schema=SCHEMA)
        message = pb.Transaction(read_version=read_version, uuid=str(uuid.uuid4()))
        message.append.fragments.extend(stage_fragments(data, str(self.root / self.tables[table]), mode="append"))
        account.transactions[table] = message.uuid
        return message

    def manifest(self, table: str, version: int) -> ManifestFile:
        """A version that the server described: promoted, or else at the path that it told."""
        try:
            return parse_manifest_file(self.store.get(manifest_path(self.tables[table], version)))
        except NotFound:
            body = self.insist(f"/v1/table/g${table}/version/describe", {"version": version})
            path = self.store.relative_path(body["version"]["manifest_path"])
            assert path is not None
            return parse_manifest_file(self.store.get(path))

    def describe(self, table: str, version: int | None = None) -> int:
        """The head's number; or the number of a version that must be there."""
        request = {} if version is None else {"version": version}
        found: int = self.insist(f"/v1/table/g${table}/version/describe", request)["version"]["version"]
        return found

    def insist(self, path: str, body: dict[str, Any], key: str | None = None) -> Any:
        """The body of a success, from whichever server gives it."""
        for _ in range(TRIES):
            status, answer = self.ask(path, body, key)
            if status not in {0, 503}:
                assert status == 200, answer
                return answer
        raise AssertionError(f"{path}: no answer")

    def ask(self, path: str, body: dict[str, Any], key: str | None = None) -> tuple[int, Any]:
        """One request to one of the servers: status and body, or (0, None) when the connection ended."""
        connection = self.connections[self.chance.choice(self.urls)]
        headers = {"content-type": "application/json"} | ({} if key is None else {"idempotency-key": key})
        try:
            connection.request("POST", path, json.dumps(body).encode(), headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        except (http.client.HTTPException, ConnectionError):
            connection.close()
            return 0, None


if __name__ == "__main__":
    Writer(json.loads(sys.argv[1])).run()
