"""The write-ahead log of a table: rows that a client acknowledged, and that no version of the table has yet.

<base>/_mem_wal/<shard>/manifest/<number>.binpb   what a shard consists of, each number written once
<base>/_mem_wal/<shard>/manifest/version_hint.json   a hint at the newest number, written again and again
<base>/_mem_wal/<shard>/wal/<number>.arrow        rows as they were acknowledged, each number written once
<base>/_mem_wal/<shard>/<hash>_gen_<n>/           the rows of many entries, as a table

Numbers are written as 64 binary digits, the lowest first. A log has no history: a backup takes it as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from lance_core.errors import CorruptFile, NotFound, UnsupportedFeature
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import join_key
from lance_core.storage.port import ObjectStore
from lance_core.transaction.indices import MEM_WAL
from namespace_server.directory.model.object_ids import ObjectId, join

T = TypeVar("T")

_DIRECTORY: Final = "_mem_wal"
_ENTRY: Final = re.compile(r"(.+/wal)/([01]{64})\.arrow", re.ASCII)
_HINT: Final = "/manifest/version_hint.json"
_TRIES: Final = 20


class LogCompacted(UnsupportedFeature):
    """Rows of a log went into a version of the table that is not part of the backup.

    Attributes:
        table_id: The table.
        branch: The branch of the version; None is main.
    """

    def __init__(self, table_id: ObjectId, branch: str | None, version: int, later: int) -> None:
        super().__init__(
            f"table {join(table_id)}: version {later} has rows of the write-ahead log that version {version} has not, "
            "and the log may have no more: back up the newest version"
        )
        self.table_id = table_id
        self.branch = branch


def log_state(file: ManifestFile) -> bytes | None:
    """The statement of a version about its log, such as the parts whose rows it has; None if it has no log."""
    indices = file.indices.indices if file.indices is not None else ()
    return next((index.index_details.value for index in indices if index.name == MEM_WAL), None)


def capture(store: ObjectStore, base: str, use: Callable[[Mapping[str, int]], T]) -> T:
    """Call `use` with the files of a log that belong together, sizes by key, until none of them goes meanwhile.

    Clients go on to write. `use` gets the files of one time: all that the manifests of the shards name, and each
    entry before the last one that it gets. The hints are left out: clients do without them. Two listings for each try.

    Raises:
        CorruptFile: The log does not rest. The call may be repeated.
        StorageError: And what `use` raises, but `NotFound`.
    """
    for _ in range(_TRIES):
        first, second = _listed(store, base), _listed(store, base)
        entries = {key: named for key in first if (named := _number(key)) is not None}
        # A new table of rows comes with a new manifest of its shard, after which entries may go.
        if {key: first[key] for key in first.keys() - entries.keys()} != {
            key: size for key, size in second.items() if _number(key) is None
        }:
            continue
        last: dict[str, int] = {}
        for shard, number in entries.values():
            last[shard] = max(number, last.get(shard, 0))
        # Listings are not made at one time: the first one may lack an entry before one that it has.
        chosen = {key: size for key, size in second.items() if _is_within(_number(key), last)}
        if not first.keys() <= chosen.keys():
            continue
        try:
            return use(chosen)
        except NotFound:
            continue
    raise CorruptFile(f"{join_key(base, _DIRECTORY)}: expected a log that rests for a moment: repeat the backup")


def _is_within(entry: tuple[str, int] | None, last: Mapping[str, int]) -> bool:
    """Whether a file is no entry, or one up to the last one of its shard."""
    return entry is None or entry[1] <= last.get(entry[0], -1)


def _listed(store: ObjectStore, base: str) -> dict[str, int]:
    found = store.list(join_key(base, _DIRECTORY))
    return {meta.path: meta.size for meta in found if not meta.path.endswith(_HINT)}


def _number(key: str) -> tuple[str, int] | None:
    """The directory and the number of an entry; None for another file."""
    named = _ENTRY.fullmatch(key)
    return None if named is None else (named[1], int(named[2][::-1], 2))
