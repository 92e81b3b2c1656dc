"""Garbage-collection plan: which files of a table may be removed, and why."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lance_core.cleanup.census import Census, FoundManifest, is_older_than, read_all
from lance_core.cleanup.reachability import file_name, names_used
from lance_core.cleanup.retention import DatedVersion, Retention, RetentionDecision, judge_versions
from lance_core.commit.staged import STAGING_DIRECTORY
from lance_core.errors import CorruptFile, UnsupportedFeature
from lance_core.format.manifest import ManifestFile, parse_manifest_file
from lance_core.format.naming import MAIN_BRANCH, VERSIONS_DIRECTORY, branch_base, parse_manifest_name
from lance_core.storage.port import ObjectMeta, ObjectStore


@dataclass(frozen=True, slots=True)
class Garbage:
    """A file that may be removed.

    Attributes:
        path: The key.
        size: The size in bytes.
        reason: Why it may be removed, in words.
        version: The version, if the file is the manifest of one.
        needs_version: The file is removed only if this version still exists.
    """

    path: str
    size: int
    reason: str
    version: int | None = None
    needs_version: int | None = None


@dataclass(frozen=True, slots=True)
class GarbageCollectionPlan:
    """What may be removed of one branch.

    Attributes:
        manifests: The manifests of expired versions, ascending. They are removed first.
        files: Other files.
        kept: By version, why each other version is kept.
        needs: The files that remaining manifests need.
        complete: Whether `manifests` holds all expired versions.
    """

    manifests: Sequence[Garbage]
    files: Sequence[Garbage]
    kept: Mapping[int, str]
    needs: Needs
    complete: bool


@dataclass(slots=True)
class Needs:
    """The needs of all manifests read so far.

    Attributes:
        names: Names of the files that the manifests need.
        forks: The versions that branches were forked from, as (branch, version).
        read: The branch in the content of each manifest read, by identity.
    """

    names: set[str] = field(default_factory=set)
    forks: set[tuple[str | None, int]] = field(default_factory=set)
    read: dict[tuple[str, int, datetime], str | None] = field(default_factory=dict)

    def add(self, store: ObjectStore, metas: Iterable[ObjectMeta]) -> None:
        """Read manifests that were not read yet, and add what they need.

        Raises `CorruptFile` and `UnsupportedFeature` if the needs of a manifest cannot be determined, `NotFound` if a
        manifest was removed.
        """
        unread = [meta for meta in metas if identity(meta) not in self.read]
        for meta, data in read_all(store, unread):
            file, names = read_needs(store, meta, data)
            self.names.update(names)
            if file.operation == "clone" and file.transaction is not None and file.branch is not None:
                clone = file.transaction.clone
                self.forks.add((_branch(clone.ref_name), clone.ref_version))
            self.read[identity(meta)] = file.branch


def read_needs(store: ObjectStore, meta: ObjectMeta, data: bytes) -> tuple[ManifestFile, frozenset[str]]:
    """Parse a manifest, and determine the names of the files that it needs.

    Raises `CorruptFile` and `UnsupportedFeature`, naming the file, if that is not possible or if its name and content
    disagree.
    """
    try:
        canonical = parse_manifest_name(meta.path.rpartition("/")[2])
        file = parse_manifest_file(data, expected_version=None if canonical is None else canonical[0])
        return file, frozenset(names_used(file))
    except (CorruptFile, UnsupportedFeature) as error:
        raise type(error)(f"{store.object_uri(meta.path)}: {error}") from error


def identity(meta: ObjectMeta) -> tuple[str, int, datetime]:
    """The identity of an object, which distinguishes it from an earlier object of the same key."""
    return meta.path, meta.size, meta.last_modified


def make_plan(
    store: ObjectStore,
    branch: str | None,
    census: Census,
    retention: Retention,
    *,
    now: datetime,
    grace: timedelta,
    max_manifest_bytes: int | None,
) -> GarbageCollectionPlan:
    """Plan the clean-up of one branch. Reads every manifest of the table, and writes nothing.

    A file may be removed if no remaining version of any branch and no staged or detached manifest needs it, and if it
    belonged to an expired version or is older than the grace time.

    Args:
        store: The store that holds the table.
        branch: The branch to clean up; None for main.
        census: The content of the table.
        retention: Which versions are kept.
        now: The time by the store's clock.
        grace: Minimum age of a removed file that no version ever needed.
        max_manifest_bytes: Largest total size of the manifests to be removed, the oldest first; None for no limit.

    Raises:
        CorruptFile, UnsupportedFeature: The needs of a manifest cannot be determined.
        NotFound: A concurrent clean-up removed a manifest.
    """
    needs = Needs()
    dead = dead_scratch(census, now, grace)
    own = dict(census.versions[branch])
    paths = {meta.path for meta in own.values()}
    needs.add(store, [meta for meta in standing_manifests(census, dead) if meta.path not in paths])
    dated = [DatedVersion(version, meta.last_modified) for version, meta in census.versions[branch]]
    pinned = pins(census, branch, needs)
    judged = judge_versions(dated, retention, now, pinned)
    verdicts = judged if max_manifest_bytes is None else _limit(judged, own, max_manifest_bytes)
    needs.add(store, [meta for version, meta in own.items() if version in verdicts.kept])
    expired = [own[version] for version in verdicts.expired]
    owners = _owners(store, expired)
    manifests = [
        Garbage(meta.path, meta.size, "expired", version)
        for version, meta in zip(verdicts.expired, expired, strict=True)
    ]
    files = [
        *_unneeded(branch, census, needs.names, owners, now, grace),
        *_lost_stages(branch, census, needs, now, grace),
        *_left_scratch(census, dead),
    ]
    return GarbageCollectionPlan(manifests, files, verdicts.kept, needs, len(verdicts.expired) == len(judged.expired))


def standing_manifests(census: Census, dead: Sequence[str]) -> Iterator[ObjectMeta]:
    """All manifests of the table, except those of interrupted compactions."""
    for entries in census.versions.values():
        yield from (meta for _, meta in entries)
    yield from (found.meta for found in census.others)
    for directory in census.scratch:
        if directory not in dead:
            begin = f"{directory}/{VERSIONS_DIRECTORY}/"
            yield from (
                meta
                for key, meta in census.files.items()
                if key.startswith(begin) and parse_manifest_name(key.removeprefix(begin)) is not None
            )


def pins(census: Census, branch: str | None, needs: Needs) -> dict[int, str]:
    """The versions of a branch that are referred to, with the reason in words."""
    pinned: dict[int, str] = {}
    for found in census.others:
        # While the version exists, its number is taken and the staged manifest cannot be published.
        if found.staged and _branch_of(found, needs) == branch:
            pinned[found.version] = f"staged again as {found.meta.path}"
    for origin, version in needs.forks:
        if origin == branch:
            pinned[version] = "a branch was forked from it"
    for name, entry in census.branches.items():
        if _branch(entry.parent_branch) == branch:
            pinned[entry.parent_version] = f"branch {name} was forked from it"
    for name, tag in census.tags.items():
        if _branch(tag.branch) == branch:
            pinned[tag.version] = f"tag {name}"
    return pinned


def dead_scratch(census: Census, now: datetime, grace: timedelta) -> list[str]:
    """The directories of interrupted compactions: all files in them are older than the grace time."""
    youngest: dict[str, datetime] = {}
    for key, meta in census.files.items():
        directory = "/".join(key.split("/", 3)[:3])
        if directory in census.scratch:
            youngest[directory] = max(youngest.get(directory, meta.last_modified), meta.last_modified)
    return [directory for directory, written in youngest.items() if now - written > grace]


def _branch(name: str | None) -> str | None:
    return None if not name or name == MAIN_BRANCH else name


def _branch_of(found: FoundManifest, needs: Needs) -> str | None:
    """The branch for which a manifest is staged, from its directory or, in `_staging/`, from its content."""
    if f"/{STAGING_DIRECTORY}/" in f"/{found.meta.path}":
        return needs.read[identity(found.meta)]
    return found.branch


def _limit(verdicts: RetentionDecision, metas: Mapping[int, ObjectMeta], limit: int) -> RetentionDecision:
    """The oldest expired versions, at least one, whose manifests fit into `limit` bytes; others are kept."""
    taken: list[int] = []
    size = 0
    for version in verdicts.expired:
        size += metas[version].size
        if taken and size > limit:
            break
        taken.append(version)
    left = dict.fromkeys(verdicts.expired[len(taken) :], "removed in a later round")
    return RetentionDecision(tuple(taken), {**verdicts.kept, **left})


def _owners(store: ObjectStore, metas: Sequence[ObjectMeta]) -> dict[str, int]:
    """The names that expired versions need, each with the newest version that needs it."""
    owners: dict[str, int] = {}
    for meta, data in read_all(store, metas):
        file, names = read_needs(store, meta, data)
        owners.update(dict.fromkeys(names, file.version))
    return owners


def _unneeded(
    branch: str | None,
    census: Census,
    needed: Container[str],
    owners: Mapping[str, int],
    now: datetime,
    grace: timedelta,
) -> Iterator[Garbage]:
    prefix = _prefix(branch)
    inner = tuple(root for root in map(_prefix, census.versions) if root.startswith(prefix) and root != prefix and root)
    for key, meta in census.files.items():
        if not key.startswith(prefix) or key.startswith(inner):
            continue
        name = file_name(key.removeprefix(prefix))
        if name is None or name in needed:
            continue
        if name in owners:
            yield Garbage(meta.path, meta.size, f"last needed by version {owners[name]}")
        elif is_older_than(meta, now, grace):
            yield Garbage(meta.path, meta.size, f"needed by no version, written {meta.last_modified:%Y-%m-%d %H:%M}Z")


def _prefix(branch: str | None) -> str:
    base = branch_base("", branch)
    return f"{base}/" if base else ""


def _lost_stages(
    branch: str | None, census: Census, needs: Needs, now: datetime, grace: timedelta
) -> Iterator[Garbage]:
    """Staged manifests that can never be published: their number is taken, and they are older than the grace time."""
    taken = {version for version, _ in census.versions[branch]}
    for found in census.others:
        lost = found.staged and found.version in taken and _branch_of(found, needs) == branch
        if lost and is_older_than(found.meta, now, grace):
            reason = f"staged as version {found.version}, which is taken"
            yield Garbage(found.meta.path, found.meta.size, reason, needs_version=found.version)


def _left_scratch(census: Census, dead: Sequence[str]) -> Iterator[Garbage]:
    for key, meta in census.files.items():
        if "/".join(key.split("/", 3)[:3]) in dead:
            yield Garbage(meta.path, meta.size, "left by an interrupted compaction")
