"""The key of a server with keys, in Spark: the option as its page has it, and what is shown without a key."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException
from pyspark.sql import SparkSession

from namespace_client import Catalog
from tests.documentation.pages import REPOSITORY, blocks
from tests.server.servers import NO_KEY, UNKNOWN_KEY, ServerProcess
from tests.spark.sql.conftest import NewSession

[WRITTEN] = blocks(REPOSITORY / "docs" / "guide" / "authentication.md", "properties")
KEY, OTHER = "secret-key", "another-key"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a server with the key of the page and a table `guarded.runs` of two rows."""
    home = tmp_path_factory.mktemp("guarded")
    with ServerProcess(home / "catalog", log=home / "log", keys={KEY: "ada", OTHER: "ben"}) as server:
        with Catalog.connect(server.url, token=KEY, namespace="guarded") as catalog:
            catalog.ensure_namespace()
            catalog.create("runs", pa.table({"id": [1, 2]}))
        yield server.url


def test_the_option_of_the_page_opens_the_catalog(new_session: NewSession, guarded: str) -> None:
    session = new_session(guarded)
    for line in WRITTEN.splitlines():
        session.conf.set(*line.split())
    session.sql("INSERT INTO lance.guarded.runs VALUES (3)")
    assert session.table("lance.guarded.runs").count() == 3


@pytest.mark.parametrize(("option", "message"), [({}, NO_KEY), ({"token": "wrong-key"}, UNKNOWN_KEY)])
def test_without_a_known_key_nothing_is_read(
    new_session: NewSession, spark: SparkSession, guarded: str, option: dict[str, str], message: str
) -> None:
    with pytest.raises(IllegalArgumentException, match=re.escape(f"[AccessRefused] {message}")):
        new_session(guarded, **option).sql("SHOW NAMESPACES IN lance").collect()
    place = {"server": guarded, "table": "guarded$runs"}
    with pytest.raises(AnalysisException, match=f"AccessRefused: {message}"):
        spark.read.format("lance").options(**place, **option).load()
    assert spark.read.format("lance").options(**place, token=KEY).load().count() >= 2


def test_procedures_change_grants(new_session: NewSession, guarded: str) -> None:
    with Catalog.connect(guarded, token=KEY) as catalog:
        catalog.enable_grants(principals=["ada"])
    ada, ben = new_session(guarded, token=KEY), new_session(guarded, token=OTHER)
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        ben.table("lance.guarded.runs")
    [made] = ada.sql("CALL lance.system.grant('read, write', role => 'team', namespace => 'guarded')").collect()
    assert (made.changed, made.privileges) == (True, "read, write")
    [made] = ada.sql("CALL lance.system.grant_role('team', principal => 'ben')").collect()
    assert made.changed
    ben.sql("INSERT INTO lance.guarded.runs VALUES (4)")
    with pytest.raises(IllegalArgumentException, match=r"permission denied.*expected drop"):
        ben.sql("DROP TABLE lance.guarded.runs")
    [told] = ben.sql("CALL lance.system.can('write', table => 'guarded.runs')").collect()
    assert told.allowed
    assert "granted to role team" in told.reason
    listed = ada.sql("CALL lance.system.grants(role => 'team')").collect()
    assert [(row.on, row.to, row.privileges, row.by) for row in listed] == [
        ("namespace guarded", "role team", "read, write", "ada")
    ]
    [made] = ada.sql("CALL lance.system.revoke('write', role => 'team', namespace => 'guarded')").collect()
    assert made.privileges == "read"
    with pytest.raises(IllegalArgumentException, match=r"permission denied.*expected write"):
        ben.sql("INSERT INTO lance.guarded.runs VALUES (5)")
    assert ben.table("lance.guarded.runs").count() >= 3
    [made] = ada.sql("CALL lance.system.revoke_role('team', principal => 'ben')").collect()
    assert made.changed
    with pytest.raises(IllegalArgumentException, match="exactly one of table, namespace and on_catalog"):
        ada.sql("CALL lance.system.grant('read', principal => 'ben')")
