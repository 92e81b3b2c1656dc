"""Which versions of a table are backed up, and which files they need. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lance_core.cleanup.kinds import role_of
from lance_core.cleanup.reachability import names_used
from lance_core.errors import CorruptFile
from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import MAIN_BRANCH
from lance_core.format.refs import (
    BRANCHES_DIRECTORY,
    TAGS_DIRECTORY,
    BranchContents,
    TagContents,
    decode_branch,
    decode_tag,
    parse_ref_name,
)
from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.port import ObjectStore
from lance_core.table_files import PlacedFile, TableFiles
from lance_core.tables.stored_files import FileProblem
from lance_core.transaction.reachable import StatedFile
from namespace_server.directory.backup.external_blobs import blob_columns
from namespace_server.directory.backup.logs import log_state
from namespace_server.directory.backup.records import LeftOut, StoredVersion
from namespace_server.directory.model.entries import VersionEntry

ChainVersion = tuple[str | None, int]
"""Branch (None is main) and version."""


@dataclass(frozen=True, slots=True)
class References:
    """The references of a table. `others` are notes, which name no version; all by their keys."""

    tags: Mapping[str, TagContents] = field(default_factory=dict)
    branches: Mapping[str, tuple[str, BranchContents]] = field(default_factory=dict)
    others: frozenset[str] = frozenset()
    unreadable: tuple[LeftOut, ...] = ()

    def named(self) -> set[ChainVersion]:
        """The versions that tags name, and those at which branches begin."""
        tagged = {(_branch(tag.branch), tag.version) for tag in self.tags.values()}
        return tagged | {(_branch(each.parent_branch), each.parent_version) for _, each in self.branches.values()}

    def of(self, versions: Iterable[ChainVersion]) -> tuple[frozenset[str], list[LeftOut]]:
        """The keys of references to these versions and their branches, and the others, which would lead nowhere."""
        there = set(versions)
        chains = {branch for branch, _ in there}
        kept = set(self.others)
        left_out = list(self.unreadable)
        for key, tag in self.tags.items():
            if (_branch(tag.branch), tag.version) in there:
                kept.add(key)
            else:
                what = f"version {tag.version}" + (f" of branch {tag.branch}" if _branch(tag.branch) else "")
                left_out.append(LeftOut(key, f"names {what}, which is not part of the backup"))
        for key, (name, _) in self.branches.items():
            if name in chains:
                kept.add(key)
        return frozenset(kept), left_out


def read_references(location: str, files: Mapping[str, bytes]) -> References:
    """The references of the table at `location`, from its reference files and notes, by key."""
    tags: dict[str, TagContents] = {}
    branches: dict[str, tuple[str, BranchContents]] = {}
    others: set[str] = set()
    unreadable: list[LeftOut] = []
    for key, data in files.items():
        directory, _, file_name = key.removeprefix(f"{location}/").rpartition("/")
        name = parse_ref_name(file_name)
        try:
            if directory == TAGS_DIRECTORY and name is not None:
                tags[key] = decode_tag(data)
            elif directory == BRANCHES_DIRECTORY and name is not None:
                branches[key] = (name, decode_branch(data))
            else:
                others.add(key)
        except CorruptFile as error:
            unreadable.append(LeftOut(key, str(error)))
    return References(tags, branches, frozenset(others), tuple(unreadable))


def chosen_versions(
    rows: Mapping[str | None, Sequence[VersionEntry]], named: Container[ChainVersion], *, heads: bool
) -> list[VersionEntry]:
    """The versions of a table to back up, from those of each branch, ascending.

    All, or with `heads` the newest of each branch and those that are `named` by references.
    """
    return [
        row
        for branch, chain in rows.items()
        for row in chain
        if not heads or row is chain[-1] or (branch, row.version) in named
    ]


@dataclass(frozen=True, slots=True)
class VersionNeeds:
    """The files that one version of a table needs besides its manifest.

    Attributes:
        version: The version.
        names: The names of its files, under any root.
        placed: The files that it names below the root of the catalog.
        bases: The base paths, as they are written, that lead below the root: the key there.
        used: The keys of those in `bases` that files of the version lie below.
        outside: The base paths outside of the root that files of the version lie below.
        log: Its statement about its write-ahead log; None if it has none.
        has_blobs: Whether it has columns whose values may be files elsewhere.
    """

    version: StoredVersion
    names: frozenset[str]
    placed: tuple[PlacedFile, ...]
    bases: Mapping[str, str]
    used: frozenset[str]
    outside: frozenset[str]
    log: bytes | None = None
    has_blobs: bool = False

    @property
    def data_keys(self) -> set[str]:
        """The keys of its data files."""
        return {str(file.key) for file in self.placed if file.kind == "data"}


def needs_of(
    store: ObjectStore, base: str, version: StoredVersion, file: ManifestFile, shared: dict[str, PlacedFile]
) -> VersionNeeds:
    """The files that a version needs, from its manifest; `base` is the key of the root of its table or branch. No I/O.

    `shared` has the files of other versions of the table by key, and gets those of this one: versions share most of
    theirs. Raises `UnsupportedFeature` if the files cannot be determined.
    """
    files, manifest = TableFiles(store, base), file.manifest
    keys = {entry.path: files.key_of(entry.path) for entry in manifest.base_paths}
    named = [each for each in files.placed(file) if each.key is not None]
    placed = tuple(shared.get(str(each.key)) or shared.setdefault(str(each.key), _apart(each)) for each in named)
    indices = file.indices.indices if file.indices is not None else ()
    used_ids = {each.base_id for each in indices if each.HasField("base_id")}
    for fragment in manifest.fragments:
        used_ids |= {each.base_id for each in fragment.files if each.HasField("base_id")}
        if fragment.HasField("deletion_file") and fragment.deletion_file.HasField("base_id"):
            used_ids.add(fragment.deletion_file.base_id)
    used = {entry.path for entry in manifest.base_paths if entry.id in used_ids}
    inside = {path: key for path, key in keys.items() if key is not None}
    return VersionNeeds(
        version,
        frozenset(names_used(file)),
        placed,
        inside,
        frozenset(inside[path] for path in used if path in inside),
        frozenset(path for path in used if path not in inside),
        log_state(file),
        bool(blob_columns(manifest)),
    )


def further_roots(location: str, needs: Iterable[VersionNeeds]) -> list[str]:
    """The roots outside a table's location that its versions need files of."""
    used = {root for each in needs for root in each.used}
    return sorted(root for root in used if root != location and not root.startswith(f"{location}/"))


def needed_files(needs: Iterable[VersionNeeds], root: str, sizes: Mapping[str, int]) -> dict[str, int]:
    """The files below `root`, the location of a table or another root, that versions need: size by key."""
    names: set[str] = set()
    keys: set[str] = set()
    for each in needs:
        names |= each.names
        keys |= {str(file.key) for file in each.placed}
    below = f"{root}/" if root else ""
    found: dict[str, int] = {}
    for key, size in sizes.items():
        if not key.startswith(below):
            continue
        role = role_of(key.removeprefix(below))
        # Blobs lie beside their data file, in a directory of its name.
        beside = f"{key.rpartition('/')[0]}.lance"
        if (role is not None and role.name in names) or key in keys or beside in keys:
            found[key] = size
    return found


def what_is_lost(problems: Iterable[FileProblem], *, also_indices: bool) -> str | None:
    """Why a version cannot be backed up, by the problems of its files; None if it can.

    It cannot without its rows, with `also_indices` neither without files of an index, for which its queries fail.
    """
    kinds = {"data", "deletion", *(["index"] if also_indices else ())}
    lost = (each for each in problems if each.file.kind in kinds)
    return next((f"{each.key}: {each.text}" for each in lost), None)


def _apart(file: PlacedFile) -> PlacedFile:
    """The same without references into the manifest, which would stay in memory as a whole."""
    deletion = file.stated.deletion
    copied = None if deletion is None else pb.DeletionFile.FromString(deletion.SerializeToString())
    return PlacedFile(file.key, file.kind, StatedFile(file.stated.size, file.stated.rows, deletion=copied))


def _branch(name: str | None) -> str | None:
    return None if not name or name == MAIN_BRANCH else name
