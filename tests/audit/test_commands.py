"""The history by principal and table, and refused attempts, by the client and the command."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pyarrow as pa
import pytest

from namespace_client import AccessRefused, AsyncCatalog, Catalog, InvalidCall, NotFound
from tests.audit.lines import written
from tests.audit.served import audited
from tests.cli.commands import parsed, printed, refused
from tests.waiting import until

ROWS = pa.table({"id": [1]})


def test_the_history_of_a_principal_and_of_a_table_under_all_its_names(tmp_path: Path) -> None:
    with audited(tmp_path) as server:
        with Catalog.connect(server.url, api_key="key-of-ann") as ann:
            ann.create_namespace("n")
            ann.create("n.first", ROWS)
            ann.create("n.other", ROWS)
            ann.rename("n.first", "n.second")
        with Catalog.connect(server.url, api_key="key-of-bob") as bob:
            bob.append("n.second", ROWS)
            bob.rename("n.second", "n.third")
            assert [batch.principal for version in bob.history(principal="bob") for batch in version.batches] == [
                "bob",
                "bob",
            ]
            found = bob.history(table="n.third")
            assert [str(change) for each in found for batch in each.batches for change in batch.changes] == [
                "rename_table n.second to n.third",
                "Append n.second",
                "rename_table n.first to n.second",
                "declare_table n.first",
                "Overwrite n.first",
            ]
            assert len(bob.history(1, table="n.third")) == 1
            assert bob.history(table="n.third", principal="ann")[-1].batches[0].changes[0].name == ("n", "first")
            assert not bob.history(principal="nobody")
            origins = [batch.origin for version in bob.history(audited=True) for batch in version.batches]
            assert {origin["client"] for origin in origins} == {"127.0.0.1"}
            assert all(not batch.origin for version in bob.history() for batch in version.batches)
        to = ("--url", server.url, "--api-key")
        assert len(parsed("log", *to, "key-of-ann", "--principal", "bob")) == 2
        assert len(parsed("log", *to, "key-of-ann", "--table", "n.third")) == 4
        assert "127.0.0.1" in printed("log", *to, "key-of-bob", "--origin")
        assert "code 15" in refused("log", *to, "key-of-ann", "--origin")


def test_refused_attempts_of_a_server_and_of_a_directory(tmp_path: Path) -> None:
    with audited(tmp_path) as server:
        with Catalog.connect(server.url, api_key="key-of-ann") as ann:
            with pytest.raises(NotFound):
                ann.drop("n.none")
            with pytest.raises(AccessRefused):
                ann.refused_attempts()
        with pytest.raises(AccessRefused), Catalog.connect(server.url, api_key="a-wrong-key") as stranger:
            stranger.tables()
        until(lambda: len(written(server.directory)) == 3)
        to = ("--url", server.url, "--api-key", "key-of-bob", "--refused")
        with Catalog.connect(server.url, api_key="key-of-bob") as bob:
            stranger_, reader, dropped = bob.refused_attempts()
            assert (dropped.action, dropped.principal, dropped.decision) == ("drop_table", "ann", "rejected")
            assert dropped.objects == (("n", "none"),)
            [reason] = reader.reasons
            assert reason.startswith("grant on catalog: audit_readers does not name the principal")
            assert stranger_.principal is None
            assert len(bob.refused_attempts(1)) == 1
            assert len(bob.refused_attempts(None, name="n")) == 1
            assert "drop_table" in repr(bob.refused_attempts(principal="ann"))

            async def ask() -> int:
                async with AsyncCatalog.connect(server.url, api_key="key-of-bob") as catalog:
                    return len(await catalog.refused_attempts(decision="denied"))

            assert asyncio.run(ask()) == 2
        assert len(parsed("log", *to)) == 3
        shown = printed("log", *to, "--principal", "ann", "--decision", "rejected")
        assert "n.none" in shown
        assert "Table not found" in shown
    by_directory = ("--refused", "--audit-log", str(server.directory))
    assert [row["action"] for row in parsed("log", *by_directory, "n")] == ["drop_table"]
    assert len(parsed("log", *by_directory, "-n", "2")) == 2


def test_the_root_of_a_directory_has_its_refused_attempts(tmp_path: Path) -> None:
    with audited(tmp_path) as server:
        server.post("/v1/namespace/n/create")
        server.post("/v1/table/t/drop")
    (tmp_path / "audit").rename(tmp_path / "root" / "_audit")
    assert len(parsed("log", "--refused", "--root", str(tmp_path / "root"))) == 1
    with Catalog.connect(tmp_path / "root") as catalog, pytest.raises(InvalidCall, match="log --refused"):
        catalog.refused_attempts()
    assert parsed("log", "--refused", "--root", str(tmp_path)) == []
    for where in ("--root", "--audit-log"):
        assert "expected a directory" in refused("log", "--refused", where, str(tmp_path / "none"))
    assert "expected one of" in refused("log", "--refused", "--root", str(tmp_path), "--decision", "x")
    assert "--refused" in refused("log", "--root", str(tmp_path), "--decision", "denied")
    assert "NAME or --table" in refused("log", "a", "--table", "b", "--root", str(tmp_path))
