"""What is to be compacted, and how far."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lance_core.proto import lance_table_pb2 as pb


@dataclass(frozen=True, slots=True)
class CompactionOptions:
    """Which fragments are rewritten, and into what.

    Neighbouring fragments of fewer rows than `target_rows_per_fragment` are joined; a fragment of which at least the
    share `materialize_deletions_threshold` is deleted is written again without those rows, unless
    `materialize_deletions` is off. `max_bytes_per_file` bounds the new files. With `max_source_fragments` one run
    takes at most so many of the oldest ones. None leaves a choice to pylance.
    """

    target_rows_per_fragment: int = 1 << 20
    materialize_deletions: bool = True
    materialize_deletions_threshold: float = 0.1
    max_bytes_per_file: int | None = None
    max_source_fragments: int | None = None
    num_threads: int | None = None
    batch_size: int | None = None

    def __post_init__(self) -> None:
        for name in ("target_rows_per_fragment", "max_bytes_per_file", "max_source_fragments", "num_threads"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} {value}: expected at least 1")
        if not 0 <= self.materialize_deletions_threshold <= 1:
            raise ValueError(f"materialize_deletions_threshold {self.materialize_deletions_threshold}: expected 0 to 1")

    def for_table(self, manifest: pb.Manifest) -> dict[str, Any]:
        """The options as pylance takes them, for files of the format that the table has."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        version = manifest.data_format.version
        return given | ({"data_storage_version": version} if version else {})
