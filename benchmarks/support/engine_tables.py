"""Tables for the benchmark of the engine, made ahead of the clock, and the appends that are committed to them.

A table is made once and copied for every measured commit, so that each commit finds the same: copies share their files
by hard links. The data files of fragments that are there before are left out, for no commit looks at them.
"""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from lance.fragment import FragmentMetadata, write_fragments

from lance_core.commit.loop import commit_transaction
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.local import LocalStore
from lance_core.transaction.operations import Append, encode_transaction

_METADATA_DIRECTORIES = ("_versions", "_transactions")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A copy of a table, and an append to it whose data file is written: for either engine, in its own words."""

    directory: Path
    read_version: int
    head: int
    transaction: pb.Transaction
    operation: lance.LanceOperation.Append
    newest_fragment: int

    @property
    def uri(self) -> str:
        """As both engines open it."""
        return str(self.directory)


class SampleTable:
    """A table of `fragments` fragments of one row, followed by `appends` versions with one more each."""

    def __init__(self, directory: Path, fragments: int, appends: int = 0) -> None:
        row = pa.table({"id": pa.array([1], pa.int64()), "name": ["first"], "weight": [0.5]})
        lance.write_dataset(row, directory)
        (written,) = write_fragments(row, str(directory), mode="append")
        self.directory = directory
        self.fragments = fragments + appends
        self._description: dict[str, Any] = written.to_json()
        self._data = (directory / "data" / str(self._description["files"][0]["path"])).read_bytes()
        self.head = 1
        if fragments > 1:
            self._grow(fragments - 1)
        for _ in range(appends):
            self._grow(1)

    def copy(self, directory: Path, behind: int = 0) -> Prepared:
        """A copy, and an append made `behind` versions before its head."""
        for name in _METADATA_DIRECTORIES:
            (directory / name).mkdir(parents=True)
            for file in os.scandir(self.directory / name):
                os.link(file.path, directory / name / file.name)
        (directory / "data").mkdir()
        path = _file_name()
        (directory / "data" / path).write_bytes(self._data)
        transaction = encode_transaction(Append((self._fragment(path),)), read_version=self.head - behind)
        operation = lance.LanceOperation.Append([self._metadata(path)])
        return Prepared(directory, self.head - behind, self.head, transaction, operation, self.fragments - 1)

    def _grow(self, fragments: int) -> None:
        operation = Append(tuple(self._fragment(_file_name()) for _ in range(fragments)))
        store = LocalStore(self.directory, durability="none")
        commit_transaction(store, "", encode_transaction(operation, read_version=self.head))
        self.head += 1

    def _fragment(self, path: str) -> pb.DataFragment:
        (file,) = self._description["files"]
        written = pb.DataFile(
            path=path,
            fields=file["fields"],
            column_indices=file["column_indices"],
            file_major_version=file["file_major_version"],
            file_minor_version=file["file_minor_version"],
            file_size_bytes=file["file_size_bytes"],
        )
        return pb.DataFragment(files=[written], physical_rows=self._description["physical_rows"])

    def _metadata(self, path: str) -> FragmentMetadata:
        (file,) = self._description["files"]
        return FragmentMetadata.from_json(json.dumps({**self._description, "files": [{**file, "path": path}]}))


def _file_name() -> str:
    """As long as those of pylance are."""
    return f"{uuid.uuid4().hex}{uuid.uuid4().hex[:18]}.lance"
