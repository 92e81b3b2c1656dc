"""Tables and staged versions for the write benchmarks, made the way a stock client makes them, ahead of the clock.

A stock client writes a data file, a transaction file and a manifest named `<canonical>-<uuid>`, then asks the catalog
to create the version. Here all three are written for many tables and versions; what is measured is the asking.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from benchmarks.load import object_path
from benchmarks.support.servers import Server
from lance_core.format.manifest import encode_manifest_file, parse_manifest_file
from lance_core.format.naming import manifest_name
from lance_core.proto import lance_table_pb2 as pb

Operation = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Template:
    """The first version of a one-row table, as pylance wrote it, and its one data file."""

    manifest: pb.Manifest
    transaction: pb.Transaction
    data: bytes


@dataclass(slots=True)
class StagedTable:
    """A table of the catalog: where it lies, and the newest manifest that was staged for it."""

    identifier: tuple[str, ...]
    directory: Path
    manifest: pb.Manifest | None = None


def write_template(directory: Path) -> Template:
    """Let pylance write a table of one row with a few columns into `directory`."""
    directory.mkdir(exist_ok=True)
    row = pa.table({"id": pa.array([1], pa.int64()), "name": ["first"], "weight": [0.5]})
    lance.write_dataset(row, directory / "template.lance")
    versions, data = directory / "template.lance" / "_versions", directory / "template.lance" / "data"
    file = parse_manifest_file((versions / manifest_name(1)).read_bytes())
    if file.transaction is None:
        raise RuntimeError("pylance wrote no inline transaction into version 1 of the template")
    return Template(file.manifest, file.transaction, next(data.glob("*.lance")).read_bytes())


def stage_version(table: StagedTable, template: Template) -> Operation:
    """Write the files of the table's next version, one appended row, and return its `create_table_version` request."""
    manifest, transaction = pb.Manifest(), pb.Transaction()
    if table.manifest is None:
        manifest.CopyFrom(template.manifest)
        transaction.CopyFrom(template.transaction)
        for kind in ("data", "_versions", "_transactions"):
            (table.directory / kind).mkdir(parents=True, exist_ok=True)
        fragment = manifest.fragments[0]
    else:
        manifest.CopyFrom(table.manifest)
        fragment = manifest.fragments.add()
        fragment.CopyFrom(template.manifest.fragments[0])
        transaction.read_version = manifest.version
        manifest.max_fragment_id += 1
        manifest.version += 1
        fragment.id = manifest.max_fragment_id
    fragment.files[0].path = f"{uuid.uuid4().hex}.lance"
    transaction.uuid = str(uuid.uuid4())
    if table.manifest is None:
        transaction.overwrite.fragments[0].files[0].path = fragment.files[0].path
    else:
        transaction.append.fragments.add().CopyFrom(fragment)
        transaction.append.fragments[0].id = 0
    manifest.timestamp.GetCurrentTime()
    manifest.transaction_file = f"{transaction.read_version}-{transaction.uuid}.txn"
    encoded = encode_manifest_file(manifest, transaction)
    staged = table.directory / "_versions" / f"{manifest_name(manifest.version)}-{uuid.uuid4()}"
    (table.directory / "data" / fragment.files[0].path).write_bytes(template.data)
    (table.directory / "_transactions" / manifest.transaction_file).write_bytes(transaction.SerializeToString())
    staged.write_bytes(encoded)
    table.manifest = manifest
    return {
        "id": list(table.identifier),
        "version": manifest.version,
        "manifest_path": str(staged).lstrip("/"),
        "manifest_size": len(encoded),
        "naming_scheme": "V2",
    }


def declare_tables(server: Server, names: Sequence[tuple[str, ...]], *, batch: bool) -> list[StagedTable]:
    """Declare tables: in one batch where the server can, else one by one."""
    if batch:
        body = {"operations": [{"declare_table": {"id": list(name)}} for name in names]}
        answers = [result["declare_table"] for result in server.call("POST", "/v1/table/batch-commit", body)["results"]]
    else:
        answers = [server.call("POST", f"/v1/table/{object_path(name)}/declare", {"id": list(name)}) for name in names]
    return [
        StagedTable(name, Path(str(answer["location"]).removeprefix("file://")))
        for name, answer in zip(names, answers, strict=True)
    ]


def create_first_versions(server: Server, tables: Sequence[StagedTable], template: Template, *, batch: bool) -> None:
    """Stage and commit version 1 of every table: in one batch where the server can, else one by one."""
    operations = [stage_version(table, template) for table in tables]
    if batch:
        server.call("POST", "/v1/table/batch-commit", batch_body(operations))
        return
    for operation in operations:
        server.call("POST", create_path(operation), operation)


def create_path(operation: Operation) -> str:
    """The route of `version/create` for an operation."""
    return f"/v1/table/{object_path(operation['id'])}/version/create"


def batch_body(operations: Sequence[Operation]) -> dict[str, Any]:
    """The body of one `batch-commit` of `create_table_version` operations."""
    return {"operations": [{"create_table_version": operation} for operation in operations]}


def verify_tables(tables: Sequence[StagedTable]) -> None:
    """Open the tables with pylance: each must be at the version staged last, with a row for each version.

    Raises `RuntimeError` naming the first that is not.
    """
    for table in tables:
        expected = 0 if table.manifest is None else table.manifest.version
        dataset = lance.dataset(str(table.directory))
        found = (dataset.version, dataset.count_rows())
        if found != (expected, expected):
            raise RuntimeError(
                f"{'$'.join(table.identifier)} is at version {found[0]} with {found[1]} rows: "
                f"expected version {expected} with as many rows"
            )


def flush_files() -> float:
    """Let the kernel write out what the preparation left behind; returns the seconds that took."""
    began = time.perf_counter()
    os.sync()
    return time.perf_counter() - began
