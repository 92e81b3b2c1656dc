"""Names of versions in Spark: what they stand for in a catalog, and what is said of those that stand for nothing."""

from __future__ import annotations

import pytest
from lance_namespace import CreateTableBranchRequest, CreateTableTagRequest

from namespace_client import CommitRejected
from spark_catalog.version_names import (
    CommitTime,
    MissingTable,
    MissingVersion,
    NamedVersions,
    Tag,
    VersionOfCatalog,
    newest_by,
    parse_version,
)
from tests.client.scene import Scene, rows


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("7", 7),
        ("first", "first"),
        ("catalog:7", VersionOfCatalog(7)),
        ("catalog:x", "catalog:x"),
        ("-1", "-1"),
        ("\u00b2", "\u00b2"),
    ],
)
def test_names_are_parsed(text: str, name: object) -> None:
    assert parse_version(text) == name


LISTED = [{"version": number, "timestamp_millis": ms} for number, ms in [(3, 20), (2, 20), (1, 10)]]


@pytest.mark.parametrize(
    ("microseconds", "newest", "newest_before"),
    [(20_001, 3, 3), (20_000, 3, 1), (19_999, 1, 1), (10_000, 1, None), (9_999, None, None)],
)
def test_a_time_names_the_newest_version_up_to_it(
    microseconds: int, newest: int | None, newest_before: int | None
) -> None:
    time = CommitTime(microseconds)
    assert newest_by(LISTED, time) == newest
    assert newest_by(LISTED, time, is_before=True) == newest_before


@pytest.fixture
def named(scene: Scene) -> NamedVersions:
    """A table of three versions with a tag, and a branch from the second one with a version and a tag of its own."""
    table = [scene.namespace, "t"]
    scene.make("t", 1)
    with scene.catalog.begin() as tx:
        tx.append("t", rows(2))
    scene.stock().create_table_branch(CreateTableBranchRequest(id=table, name="trial", from_version=2))
    for branch in ("trial", None):
        with scene.catalog.begin() as tx:
            tx.append("t", rows(3), branch=branch)
    scene.stock().create_table_tag(CreateTableTagRequest(id=table, tag="first", version=1))
    scene.stock().create_table_tag(CreateTableTagRequest(id=table, tag="tried", version=3, branch="trial"))
    return NamedVersions(scene.catalog.access, (scene.namespace, "t"), scene.catalog_version())


def test_every_name_stands_for_a_version(scene: Scene, named: NamedVersions) -> None:
    found = [named.find(), named.find(2), named.find("first"), named.find("tried"), named.find("trial")]
    assert [(state.version, state.branch) for state in found] == [
        (3, None),
        (2, None),
        (1, None),
        (3, "trial"),
        (3, "trial"),
    ]
    assert [named.find(branch=branch).branch for branch in ("trial", "main")] == ["trial", None]
    assert named.tagged("tried") == named.find("tried")
    assert (named.tag("first"), named.tag("tried"), named.tag("trial")) == (Tag(1, None), Tag(3, "trial"), None)
    assert all(state.identity is not None for state in found)


def test_a_catalog_version_names_the_version_that_was_the_newest(scene: Scene, named: NamedVersions) -> None:
    created = scene.catalog_version()
    while _version(scene, created - 1) is not None:
        created -= 1
    assert named.find(VersionOfCatalog(created)).version == 1
    earlier = NamedVersions(scene.catalog.access, (scene.namespace, "t"), created)
    assert earlier.find().version == 1
    with pytest.raises(MissingVersion, match=r"t: version 2: expected one that its metadata table versions lists"):
        earlier.find(2)
    with pytest.raises(MissingVersion, match=rf"catalog version {created + 1}: expected a number from 1 to {created}$"):
        earlier.find(VersionOfCatalog(created + 1))
    for at in (0, created - 1):
        with pytest.raises(MissingTable, match=f"t: no such table at catalog version {at}"):
            NamedVersions(scene.catalog.access, (scene.namespace, "t"), at).find()


def test_a_time_is_looked_up_on_its_branch(scene: Scene, named: NamedVersions) -> None:
    main, trial = (scene.catalog.access.versions((scene.namespace, "t"), branch=each) for each in (None, "trial"))
    second, third = (CommitTime(int(version["timestamp_millis"]) * 1000) for version in (main[1], trial[0]))
    assert named.find(second).version == 2
    assert named.find(third, branch="trial").branch == "trial"
    with pytest.raises(
        MissingVersion, match=r"t: no version at 1970-01-01T00:00:00.001000\+00:00; the oldest is of 20\d\d-"
    ):
        named.find(CommitTime(1000))


def test_names_that_stand_for_nothing(scene: Scene, named: NamedVersions) -> None:
    with pytest.raises(MissingVersion, match="version 'x': expected a number, a tag, a branch, or catalog: and a cata"):
        named.find("x")
    with pytest.raises(MissingVersion, match="tag 'trial': there is no such tag"):
        named.tagged("trial")
    with pytest.raises(MissingVersion, match="any version of branch x: expected one"):
        named.find(branch="x")
    nowhere = NamedVersions(scene.catalog.access, (scene.namespace, "nowhere"), scene.catalog_version())
    for name in (None, 1, "x", CommitTime(1), VersionOfCatalog(scene.catalog_version())):
        with pytest.raises(MissingTable, match="nowhere: no such table at catalog version"):
            nowhere.find(name)


def test_lists_have_all_pages(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    access, table = scene.catalog.access, (scene.namespace, "t")
    scene.make("t", *range(40))
    for number in range(1, 4):
        scene.stock().create_table_tag(CreateTableTagRequest(id=list(table), tag=f"tag{number}", version=number))
    ask = access._backend.ask
    monkeypatch.setattr(
        access._backend, "ask", lambda operation, request, **pin: ask(operation, request | {"limit": 1}, **pin)
    )
    assert [version["version"] for version in access.versions(table)] == [4, 3, 2, 1]
    assert {name: tag["version"] for name, tag in access.tags(table).items()} == {"tag1": 1, "tag2": 2, "tag3": 3}
    assert access.branches(table) == {}
    with pytest.raises(CommitRejected) as error:
        access.tags((scene.namespace, "nowhere"))
    assert error.value.code == 4


def _version(scene: Scene, at: int) -> int | None:
    state = scene.catalog.access.table((scene.namespace, "t"), at=at)
    return None if state is None else state.version
