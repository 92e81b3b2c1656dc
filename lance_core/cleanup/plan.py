"""What may go, and why."""

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
    """A file that may go. `path` is its key, `size` is in bytes; `version` is set for the manifest of a version.

    It stays after all when the version `needs_version` is not there any more.
    """

    path: str
    size: int
    reason: str
    version: int | None = None
    needs_version: int | None = None


@dataclass(frozen=True, slots=True)
class GarbageCollectionPlan:
    """`manifests` of versions, ascending, then `files`; `kept` says why each other version stays.

    `needs` is what the versions that stay, and all else that is there, were seen to need.
    """

    manifests: Sequence[Garbage]
    files: Sequence[Garbage]
    kept: Mapping[int, str]
    needs: Needs
    complete: bool
    """Whether all versions that may go are among `manifests`."""


@dataclass(slots=True)
class Needs:
    """Names of files that manifests need, the versions that branches began from, and which manifests were read."""

    names: set[str] = field(default_factory=set)
    forks: set[tuple[str | None, int]] = field(default_factory=set)
    read: dict[tuple[str, int, datetime], str | None] = field(default_factory=dict)
    """The branch that each manifest says it is of, by place, size and time."""

    def add(self, store: ObjectStore, metas: Iterable[ObjectMeta]) -> None:
        """Read manifests and note what they need; those that were read already are not read again.

        Raises `CorruptFile` and `UnsupportedFeature` for one of which that cannot be known, `NotFound` when one is
        gone.
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
    """A manifest, whose name and content agree, and the names of the files that it needs.

    Raises `CorruptFile` and `UnsupportedFeature`, with its place, when that cannot be known.
    """
    try:
        canonical = parse_manifest_name(meta.path.rpartition("/")[2])
        file = parse_manifest_file(data, expected_version=None if canonical is None else canonical[0])
        return file, frozenset(names_used(file))
    except (CorruptFile, UnsupportedFeature) as error:
        raise type(error)(f"{store.object_uri(meta.path)}: {error}") from error


def identity(meta: ObjectMeta) -> tuple[str, int, datetime]:
    """What distinguishes an object from another one that had its key."""
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
    """Judge one branch of a table in the light of all of it; reads every manifest that there is, and writes nothing.

    At most `max_manifest_bytes` of manifests are planned to go, the oldest first. A file goes when no version that
    stays needs it, on any branch, nor any staged or detached manifest, and it either belonged to a version that goes
    or is older than the grace time. Raises `CorruptFile` and `UnsupportedFeature` when the needs of one manifest
    cannot be known, `NotFound` when somebody else removes manifests at the same time.
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
    """All manifests that are there, but for those of dead compactions."""
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
    """The versions of a branch that something refers to, and what does."""
    pinned: dict[int, str] = {}
    for found in census.others:
        # While the number is taken, nobody can publish what was staged for it.
        if found.staged and _branch_of(found, needs) == branch:
            pinned[found.version] = f"staged again as {found.meta.path}"
    for origin, version in needs.forks:
        if origin == branch:
            pinned[version] = "a branch began from it"
    for name, entry in census.branches.items():
        if _branch(entry.parent_branch) == branch:
            pinned[entry.parent_version] = f"branch {name} began from it"
    for name, tag in census.tags.items():
        if _branch(tag.branch) == branch:
            pinned[tag.version] = f"tag {name}"
    return pinned


def dead_scratch(census: Census, now: datetime, grace: timedelta) -> list[str]:
    """The directories of compactions that did not end: nothing in them is younger than the grace time."""
    youngest: dict[str, datetime] = {}
    for key, meta in census.files.items():
        directory = "/".join(key.split("/", 3)[:3])
        if directory in census.scratch:
            youngest[directory] = max(youngest.get(directory, meta.last_modified), meta.last_modified)
    return [directory for directory, written in youngest.items() if now - written > grace]


def _branch(name: str | None) -> str | None:
    return None if not name or name == MAIN_BRANCH else name


def _branch_of(found: FoundManifest, needs: Needs) -> str | None:
    """The branch for which a manifest is staged: its directory says so, or in `_staging/` its content."""
    if f"/{STAGING_DIRECTORY}/" in f"/{found.meta.path}":
        return needs.read[identity(found.meta)]
    return found.branch


def _limit(verdicts: RetentionDecision, metas: Mapping[int, ObjectMeta], limit: int) -> RetentionDecision:
    """The oldest of the expired versions, as many as fit in one round, and one at least."""
    taken: list[int] = []
    size = 0
    for version in verdicts.expired:
        size += metas[version].size
        if taken and size > limit:
            break
        taken.append(version)
    left = dict.fromkeys(verdicts.expired[len(taken) :], "its turn comes in the next round")
    return RetentionDecision(tuple(taken), {**verdicts.kept, **left})


def _owners(store: ObjectStore, metas: Sequence[ObjectMeta]) -> dict[str, int]:
    """The names that expired versions need, with the newest version that does."""
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
    """Staged manifests that can never become versions: their number is taken, and they are old."""
    taken = {version for version, _ in census.versions[branch]}
    for found in census.others:
        lost = found.staged and found.version in taken and _branch_of(found, needs) == branch
        if lost and is_older_than(found.meta, now, grace):
            reason = f"staged as version {found.version}, which is taken"
            yield Garbage(found.meta.path, found.meta.size, reason, needs_version=found.version)


def _left_scratch(census: Census, dead: Sequence[str]) -> Iterator[Garbage]:
    for key, meta in census.files.items():
        if "/".join(key.split("/", 3)[:3]) in dead:
            yield Garbage(meta.path, meta.size, "left by a compaction that did not end")
