"""Transactions that add one row to a table, each with a data file of its own."""

from __future__ import annotations

import base64
import uuid
from pathlib import Path

from benchmarks.support.staging import Operation, Template
from lance_core.proto import lance_table_pb2 as pb
from namespace_server.directory.namespace import DirectoryNamespace

TableId = tuple[str, ...]


class TransactionWriter:
    """Writes data files below the tables of a catalog, and the `commit_transaction` operations that name them."""

    def __init__(self, root: Path, namespace: DirectoryNamespace, template: Template) -> None:
        self._root = root
        self._namespace = namespace
        self._template = template

    def write(self, table: TableId, *, anew: bool = False) -> Operation:
        """An append to the head of a table; its first version, or with `anew` an overwrite, with that row alone."""
        head = self._namespace.catalog.snapshot().head(table)
        read_version = 0 if head is None else head.version
        return one_row(table, self._template, self.write_data_file(table), read_version, anew=anew)

    def write_data_file(self, table: TableId) -> str:
        """Write a data file below a table; returns its name. Raises `KeyError` if there is no such table."""
        entry = self._namespace.catalog.snapshot().table(table)
        if entry is None:
            raise KeyError(table)
        return write_data_file(self._root / entry.location, self._template)


def write_data_file(location: Path, template: Template) -> str:
    """Write a data file of one row below the directory of a table; returns its name."""
    name = f"{uuid.uuid4().hex}{uuid.uuid4().hex[:18]}.lance"
    directory = location / "data"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_bytes(template.data)
    return name


def one_row(table: TableId, template: Template, name: str, read_version: int, *, anew: bool = False) -> Operation:
    """An append of the data file of this name to a version; the first version, or with `anew` an overwrite, with it."""
    message = pb.Transaction(read_version=read_version, uuid=str(uuid.uuid4()))
    fragment = pb.DataFragment()
    fragment.CopyFrom(template.manifest.fragments[0])
    fragment.files[0].path = name
    if read_version == 0 or anew:
        message.overwrite.fragments.append(fragment)
        message.overwrite.schema.extend(template.manifest.fields)
    else:
        message.append.fragments.append(fragment)
    encoded = base64.b64encode(message.SerializeToString()).decode()
    return {"commit_transaction": {"id": list(table), "transaction": encoded}}
