"""Versions that a worker opens before the next change of their table comes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import httpx
import lance
import pyarrow as pa
import pytest

from lance_core.format.manifest import parse_manifest_file
from lance_core.format.naming import NamingScheme, manifest_path
from namespace_server.workers.change_pool import ChangePool
from table_data import staging
from table_data.batch_operations import TableState, VersionIdentity
from table_data.errors import VersionGone, WorkFailed
from table_data.jobs.job import Job
from table_data.jobs.reading import OpenVersions
from table_data.jobs.sessions import ChangeSession
from tests.data.pools import play_with

pytestmark = pytest.mark.slow
UPDATE = Job("update_table", {"updates": [["a", "a + 1"]], "predicate": "a = 1"})


@pytest.fixture
def base(tmp_path: Path) -> TableState:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"a": range(10)}), uri)
    file = parse_manifest_file(Path(manifest_path(uri, 1, NamingScheme.V2)).read_bytes())
    return TableState(("t",), uri, 1, identity=VersionIdentity(file.identity.sha256, file.timestamp_ms))


def refuse(*_: object) -> None:
    raise AssertionError("opened again")


def test_a_change_finds_its_version_open(base: TableState, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = OpenVersions()
    versions.open(base, {})
    with monkeypatch.context() as patched:
        patched.setattr(staging, "open_version", refuse)
        staged = ChangeSession(UPDATE, versions=versions).stage(base)
        assert staged.result == {"updated_rows": 1}
        with pytest.raises(WorkFailed, match="opened again"):
            ChangeSession(UPDATE, versions=versions).stage(base)
    assert staged.operations[0].manifest_sha256 == base.identity.sha256  # type: ignore[union-attr]


@pytest.mark.parametrize("field", ["uri", "branch", "version", "identity", "options"])
def test_another_version_is_not_taken_for_it(base: TableState, field: str) -> None:
    versions = OpenVersions()
    versions.open(base, {})
    other: dict[str, object] = {
        "uri": f"{base.uri}/",
        "branch": "b",
        "version": 2,
        "identity": VersionIdentity("0" * 64, 0),
    }
    if field == "options":
        assert versions.take(base, {"region": "x"}) is None
    else:
        assert versions.take(replace(base, **{field: other[field]}), {}) is None  # type: ignore[arg-type]
    assert versions.take(base, {}) is not None


def test_a_version_that_is_another_one_is_not_opened(base: TableState) -> None:
    versions = OpenVersions()
    replaced = replace(base, identity=VersionIdentity("0" * 64, 0))
    with pytest.raises(VersionGone):
        versions.open(replaced, {})
    assert versions.take(replaced, {}) is None


def test_the_last_few_stay_open(base: TableState) -> None:
    versions = OpenVersions()
    several = [{"number": str(number)} for number in range(10)]
    for options in several:
        versions.open(base, options)
    assert [versions.take(base, options) is not None for options in several] == [False] * 2 + [True] * 8


@pytest.mark.usefixtures("no_relief")
def test_a_process_that_cannot_open_a_version_goes_on(base: TableState) -> None:
    async def scene(pool: ChangePool) -> None:
        async with pool.change(UPDATE) as change:
            await change.stage(base)
            await change.prepare(replace(base, version=7))
        [process] = pool._started
        async with pool.change(UPDATE) as change:
            assert (await change.stage(base)).result == {"updated_rows": 1}
        assert [process] == list(pool._started)

    play_with(lambda starter: ChangePool(starter, 1, timeout=60.0), scene)


def test_changes_that_follow_each_other(http: httpx.Client, table: str) -> None:
    """Of main and of a branch, with a change of another client in between."""
    assert http.post(f"{table}/branches/create", json={"name": "b"}).status_code == 200
    for number in range(1, 6):
        for branch in ({}, {"branch": "b"}):
            body = {"predicate": "a > 0", "updates": [["a", "a + 1"]], **branch}
            answer = http.post(f"{table}/update", json=body)
            assert answer.status_code == 200, answer.text
            assert answer.json()["updated_rows"] == 2
        counted = http.post(f"{table}/count_rows", json={"predicate": f"a > {number}"})
        assert counted.json() == 2
