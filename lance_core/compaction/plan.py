"""Options of a compaction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lance_core.proto import lance_table_pb2 as pb


@dataclass(frozen=True, slots=True)
class CompactionOptions:
    """Which fragments are rewritten, and how. None leaves an option to pylance.

    Attributes:
        target_rows_per_fragment: Neighbouring fragments with fewer rows are merged.
        materialize_deletions: Whether fragments with deleted rows are rewritten without them.
        materialize_deletions_threshold: The share of deleted rows from which a fragment is rewritten, from 0 to 1.
        max_bytes_per_file: Upper bound of the size of new files.
        max_source_fragments: The largest number of fragments, the oldest first, that one run rewrites.
        max_source_bytes: The data files of the fragments that one run rewrites, the oldest first, have at most so many
            bytes. The fragments that become one new fragment are never split, so the first of them may have more.
        num_threads: Threads that pylance uses.
        batch_size: Rows that pylance reads at a time.
    """

    target_rows_per_fragment: int = 1 << 20
    materialize_deletions: bool = True
    materialize_deletions_threshold: float = 0.1
    max_bytes_per_file: int | None = None
    max_source_fragments: int | None = None
    max_source_bytes: int | None = None
    num_threads: int | None = None
    batch_size: int | None = None

    def __post_init__(self) -> None:
        for name in (
            *("target_rows_per_fragment", "max_bytes_per_file", "max_source_fragments", "max_source_bytes"),
            "num_threads",
        ):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} {value}: expected at least 1")
        if not 0 <= self.materialize_deletions_threshold <= 1:
            raise ValueError(f"materialize_deletions_threshold {self.materialize_deletions_threshold}: expected 0 to 1")

    def for_table(self, manifest: pb.Manifest) -> dict[str, Any]:
        """The options as pylance takes them, with the data file format of the table."""
        given = {
            name: value for name, value in asdict(self).items() if value is not None and name != "max_source_bytes"
        }
        version = manifest.data_format.version
        return given | ({"data_storage_version": version} if version else {})

    def limited(self, tasks: Sequence[str]) -> Sequence[str]:
        """The first of pylance's planned tasks, as its JSON: as many as `max_source_bytes` allows, and at least one."""
        if self.max_source_bytes is None:
            return tasks
        left = self.max_source_bytes
        for count, task in enumerate(tasks):
            fragments = json.loads(task)["task"]["fragments"]
            left -= sum(file["file_size_bytes"] or 0 for fragment in fragments for file in fragment["files"])
            if left < 0:
                return tasks[: max(count, 1)]
        return tasks
