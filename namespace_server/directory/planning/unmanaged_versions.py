"""Rows for versions that other writers committed above a head (rule P5: adopt them)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from lance_core.format.manifest import ManifestFile
from lance_core.format.naming import branch_base
from lance_core.transaction.base_files import bases_of_version
from lance_core.transaction.features import check_continuable
from lance_core.transaction.lineage import has_fragments_of, lineage_break, misplaced_index, unseen_deletions
from namespace_server.directory.manifests.stored_versions import FoundVersion, found_entry
from namespace_server.directory.model.entries import TableEntry, VersionEntry
from namespace_server.directory.model.snapshot import CatalogSnapshot
from namespace_server.directory.planning.freshness import MOST_VERSIONS
from namespace_server.directory.planning.planning_context import PlanningContext
from namespace_server.directory.planning.reached_bases import reaches_others


def adopt_found(
    snapshot: CatalogSnapshot,
    table: TableEntry,
    branch: str | None,
    found: Sequence[FoundVersion],
    context: PlanningContext,
) -> list[VersionEntry]:
    """Rows for canonical files of other writers above the head: contiguous, each built on the one before (P5).

    `found` has (naming scheme, parsed file, e_tag) per file, ascending. The rows end before the first file that does
    not descend from the head, whose writer may have read another version than that of the catalog (P12), that looks for
    a segment of an index where it is not, or of which a file is missing or too old, and before a version of a deleted
    branch (see `removed_files`); where grants are in force also before one that brings files of other tables into its
    own. There are none above a file whose number a version of the same group has taken in `snapshot`.
    """
    adopted: list[VersionEntry] = []
    files: dict[int, ManifestFile] = {}
    removed = frozenset() if branch is None else snapshot.removed_versions(branch_base(table.location, branch))
    head = snapshot.head(table.id, branch)
    below = None if head is None else context.manifest(head)

    def known(version: int) -> ManifestFile | None:
        return files.get(version) or context.row_manifest(snapshot, (table.id, branch), version)

    for scheme, file, e_tag in found:
        if below is not None and file.version <= below.version:
            # Adopted before, or the number of a batch of this group: what is above was built on this file then.
            taken = snapshot.version_entry(table.id, branch, file.version)
            if taken is None or taken.identity != file.identity:
                break
            continue
        if below is None and branch is None and file.version != 1:
            break
        if below is not None and (
            file.version != below.version + 1
            or lineage_break(below, file) is not None
            or unseen_deletions(below, file, known) is not None
            or misplaced_index(below, file) is not None
        ):
            break
        if (file.branch or None) != branch:
            break
        row = found_entry(table, branch, file, e_tag, scheme)
        if row.sha256 in removed:
            break
        if snapshot.policy is not None and reaches_others(
            bases_of_version(file, below), table.location, context.root_key
        ):
            break  # nobody is named who may read there (GR10)
        if below is not None and (
            context.other_meaning(row.base, file, below) is not None
            or _restores_another(snapshot, table, branch, file, files, context)
        ):
            break
        kept = _naming(snapshot, table, branch, file)
        if not context.is_adoptable(row.canonical_path, row.base, file, below, kept):
            break
        adopted.append(row)
        below = files[file.version] = file
    return adopted


def _restores_another(
    snapshot: CatalogSnapshot,
    table: TableEntry,
    branch: str | None,
    file: ManifestFile,
    adopted: Mapping[int, ManifestFile],
    context: PlanningContext,
) -> bool:
    """Whether a file of another writer restores rows that are not those of the version that it names."""
    if file.transaction is None or file.operation != "restore":
        return False
    number = file.transaction.restore.version
    row = snapshot.version_entry(table.id, branch, number)
    restored = adopted.get(number) or (None if row is None else context.manifest(row))
    return restored is not None and not has_fragments_of(restored, file)


def _naming(
    snapshot: CatalogSnapshot, table: TableEntry, branch: str | None, file: ManifestFile
) -> Iterator[VersionEntry]:
    """Rows that may name old files which a version names: of the version that it restores, and the newest ones (G2)."""
    if file.transaction is not None and file.transaction.HasField("restore"):
        restored = snapshot.version_entry(table.id, branch, file.transaction.restore.version)
        if restored is not None:
            yield restored
    yield from islice(snapshot.versions(table.id, branch, descending=True), MOST_VERSIONS)


def never_adopted(
    snapshot: CatalogSnapshot,
    table: TableEntry,
    branch: str | None,
    found: Sequence[FoundVersion],
    context: PlanningContext,
) -> str | None:
    """The SHA-256 of the first file above the head of a chain if it can never be adopted; None if it can be.

    None also for one that goes by itself (`removed_files`), or whose operation is not known, and where there is no
    head. `found` as in `adopt_found`. Raises `UnsupportedFeature` for a version that only later releases understand.
    """
    head = snapshot.head(table.id, branch)
    above = [each for each in found if head is not None and each[1].version > head.version]
    if not above or above[0][1].operation is None:
        return None
    check_continuable(above[0][1].manifest)
    if adopt_found(snapshot, table, branch, above, context):
        return None
    first = above[0][1].identity.sha256
    return None if first in {sha256 for _, sha256 in removed_files(snapshot, table, branch, above)} else first


def removed_files(
    snapshot: CatalogSnapshot,
    table: TableEntry,
    branch: str | None,
    found: Sequence[FoundVersion],
) -> list[tuple[str, str]]:
    """Keys and SHA-256 of the files, among those found above a head, of versions that went with a deleted branch.

    Its numbers are used again when it is made again. A process that was held at the promotion of such a version, or a
    put of a bucket that arrived late, may have written it since.
    """
    if branch is None:
        return []
    removed = snapshot.removed_versions(branch_base(table.location, branch))
    rows = [found_entry(table, branch, file, e_tag, scheme) for scheme, file, e_tag in found] if removed else []
    return [(row.canonical_path, row.sha256) for row in rows if row.sha256 in removed]
