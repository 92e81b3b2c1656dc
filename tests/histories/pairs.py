"""Clients of servers on one root: each commits rows to its two tables, and notes what became of them."""

from __future__ import annotations

import http.client
import json
import random
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance

from benchmarks.support.staging import Template
from benchmarks.support.transactions import one_row, write_data_file
from tests.histories.servers import Place
from tests.server.servers import Answer, send

PATIENCE = 60.0
"""Seconds after which a batch without an answer is given up."""
NAMESPACE = "clients"
BATCH = "/v1/table/batch-commit"
Table = tuple[str, str]


@dataclass(slots=True)
class Client:
    """One client: its tables with their directories, and what became of its batches, by their data files."""

    number: int
    tables: Sequence[tuple[Table, Path]]
    answered: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    version: int = 0

    def commit(self, urls: Sequence[str], template: Template) -> None:
        """One batch, asked for until there is an answer."""
        names = [write_data_file(place, template) for _, place in self.tables]
        operations = [
            one_row(table, template, name, self.version) for (table, _), name in zip(self.tables, names, strict=True)
        ]
        key, began = str(uuid.uuid4()), time.monotonic()
        answer: Answer | None = None
        while time.monotonic() - began < PATIENCE:
            try:
                answer = _post(random.choice(urls), BATCH, {"operations": operations}, key)
            except (OSError, http.client.HTTPException):
                answer = None
            if answer is not None and answer.status < 500:
                break
            time.sleep(0.05)
        both = " ".join(names)
        if answer is None or answer.status >= 500:
            self.unknown.append(both)
        elif answer.status == 200:
            self.answered.append(both)
            self.version = answer.body["results"][0]["commit_transaction"]["version"]["version"]
            self.waits.append(time.monotonic() - began)
        else:
            self.refused.append(f"{both}: {answer.status} {answer.body}")


def _post(url: str, path: str, body: dict[str, Any], key: str) -> Answer:
    headers = {"content-type": "application/json", "idempotency-key": key}
    return send(url, "POST", path, json.dumps(body).encode(), headers, timeout=20)


def make_clients(place: Place, url: str, count: int) -> list[Client]:
    """Clients with two empty tables each."""
    names = [(NAMESPACE, f"t{number:03d}") for number in range(2 * count)]
    _post(url, f"/v1/namespace/{NAMESPACE}/create", {}, str(uuid.uuid4()))
    operations = [{"declare_table": {"id": name}} for name in names]
    answer = _post(url, BATCH, {"operations": operations}, str(uuid.uuid4()))
    if answer.status != 200:
        raise RuntimeError(f"tables for the clients: expected 200, found {answer.status} {answer.body}")
    declared = [result["declare_table"] for result in answer.body["results"]]
    locations = [table["location"].rstrip("/").rpartition("/")[2] for table in declared]
    places = [(name, place.directory / location) for name, location in zip(names, locations, strict=True)]
    return [Client(number, places[2 * number : 2 * number + 2]) for number in range(count)]


def lost_or_torn(clients: Sequence[Client]) -> Iterator[str]:
    """What is wrong with the tables, by what clients were told."""
    for client in clients:
        for refused in client.refused:
            yield f"client {client.number}: refused: {refused}"
        found = [_files(place) for _, place in client.tables]
        for outcome, batches in (("answered", client.answered), ("unknown", client.unknown)):
            for batch in batches:
                counts = [files[name] for files, name in zip(found, batch.split(), strict=True)]
                if counts != [1, 1] and (outcome == "answered" or counts != [0, 0]):
                    yield f"client {client.number}: a batch that was {outcome} is in its tables {counts} times"


def _files(table: Path) -> Counter[str]:
    """The data files of the newest version, as stock pylance reads it."""
    if not (table / "_versions").is_dir():
        return Counter()
    return Counter(
        file.path for fragment in lance.dataset(str(table)).get_fragments() for file in fragment.data_files()
    )
