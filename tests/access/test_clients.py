"""Grants as the Python client and the commands change and read them, beside a server that knows its callers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

from namespace_client import AccessRefused, AsyncCatalog, Catalog, CommitRejected, GrantedTo, InvalidCall, NotFound
from tests.cli.commands import invoke
from tests.server.servers import ServerProcess

KEYS = {f"{name}-secret-key": name for name in ("ann", "bob")}
ROWS = pa.table({"id": [1, 2]})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    home = tmp_path_factory.mktemp("grants")
    with ServerProcess(home / "catalog", log=home / "log", keys=KEYS) as found:
        with Catalog.connect(found.url, api_key="bob-secret-key") as anyone:
            before = anyone.grants()
            assert (before.in_force, before.grants, before.roles) == (False, (), ())
            assert anyone.can("own", catalog=True)
            anyone.enable_grants(principals=["ann"])
        yield found


@pytest.fixture
def ann(server: ServerProcess) -> Iterator[Catalog]:
    with Catalog.connect(server.url, api_key="ann-secret-key", namespace="shop") as catalog:
        catalog.ensure_namespace()
        yield catalog


@pytest.fixture
def bob(server: ServerProcess) -> Iterator[Catalog]:
    with Catalog.connect(server.url, api_key="bob-secret-key", namespace="shop") as catalog:
        yield catalog


def test_an_answer_that_has_begun_goes_on_after_a_revocation(server: ServerProcess, ann: Catalog, bob: Catalog) -> None:
    count = 3_000_000
    ann.create("large", pa.table({"id": pa.array(range(count))}))
    ann.grant("read", table="large", principal="bob")
    asked = {"url": f"{server.url}/v1/table/shop$large/query", "headers": {"x-api-key": "bob-secret-key"}}
    with httpx.stream("POST", **asked, json={"k": count}) as answer:
        pieces = answer.iter_raw()
        found = bytearray(next(pieces))
        ann.revoke("read", table="large", principal="bob")
        with pytest.raises(NotFound):
            bob.read("large")
        assert len(found) < count
        found += b"".join(pieces)
    assert pa.ipc.open_file(pa.BufferReader(found)).read_all().num_rows == count


def test_a_grant_a_role_and_the_reason(ann: Catalog, bob: Catalog) -> None:
    ann.create("a", ROWS)
    with pytest.raises(NotFound):
        bob.read("a")
    assert ann.grant(["read", "write"], namespace=["shop"], role="staff").privileges == ("read", "write")
    assert not ann.grant("read", namespace=["shop"], role="staff").changed
    assert ann.grant_role("staff", principal="bob").changed
    assert bob.read("a").num_rows == 2
    check = bob.can("read", table="a")
    assert check.allowed
    assert "granted to role staff" in check.reason
    [role] = bob.grants(principal="bob").roles
    assert (role.role, role.to, role.principal) == ("staff", GrantedTo("principal", "bob"), "ann")
    [grant] = ann.grants(role="staff").grants
    assert (grant.on.kind, grant.on.path, grant.privileges) == ("namespace", ("shop",), ("read", "write"))
    assert ann.revoke("write", namespace=["shop"], role="staff").privileges == ("read",)
    with pytest.raises(AccessRefused, match="expected write"):
        bob.append("a", ROWS)
    assert ann.revoke_role("staff", principal="bob").changed
    assert not ann.revoke_role("staff", principal="bob").changed
    with pytest.raises(NotFound):
        bob.read("a")


def test_a_transaction_grants_what_it_creates(ann: Catalog, bob: Catalog) -> None:
    with ann.begin() as tx:
        tx.create("b", ROWS)
        tx.grant("read", table="b", principal="bob")
    assert bob.read("b").num_rows == 2
    with pytest.raises(AccessRefused), bob.begin() as tx:
        tx.grant("write", table="b", principal="bob")
    assert not bob.can("write", table="b")


def test_the_async_client_does_the_same(server: ServerProcess, ann: Catalog, bob: Catalog) -> None:
    ann.create("c", ROWS)

    async def grant() -> bool:
        async with AsyncCatalog.connect(server.url, api_key="ann-secret-key", namespace="shop") as catalog:
            outcome = await catalog.grant("read", table="c", principal="bob")
            return outcome.changed and (await catalog.can("read", table="c", principal="bob")).allowed

    assert asyncio.run(grant())
    assert bob.read("c").num_rows == 2


def test_a_call_names_one_object_and_one_grantee(ann: Catalog) -> None:
    for named in ({}, {"table": "a", "catalog": True}, {"table": "a", "namespace": "b"}):
        with pytest.raises(InvalidCall, match="exactly one of table="):
            ann.grant("read", **named, principal="bob")  # type: ignore[arg-type]
    for named in ({}, {"principal": "bob", "role": "staff"}):
        with pytest.raises(InvalidCall, match="exactly one of principal="):
            ann.revoke(catalog=True, **named)  # type: ignore[arg-type]
    with pytest.raises(CommitRejected, match="found 'raed'"):
        ann.grant("raed", catalog=True, principal="bob")
    with pytest.raises(CommitRejected, match="in force"):
        ann.enable_grants(principals=["bob"])


def test_the_operator_is_never_locked_out(tmp_path: Path) -> None:
    root = str(tmp_path / "root")
    with pytest.raises(CommitRejected), Catalog.connect(root) as catalog:
        catalog.enable_grants()
    assert invoke("enable-grants", root, "--to", "ann").exit_code == 0
    assert invoke("revoke", root, "--catalog", "--to", "ann").exit_code == 0
    assert invoke("can", root, "ann", "own", "--catalog").exit_code == 1
    assert invoke("create", "made", "--root", root).exit_code == 0
    assert invoke("grant", root, "own", "--catalog", "--to", "ann").exit_code == 0
    assert invoke("can", root, "ann", "own", "--namespace", "made").stdout.startswith(
        "yes: own granted to principal ann"
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("grant", "read", "--to", "ann"), "expected one of --table, --namespace and --catalog, found none"),
        (("grant", "read", "--catalog", "--table", "a", "--to", "b"), "found --table and --catalog"),
        (("grant", "read", "--catalog"), "expected one of --to and --to-role, found none"),
        (("revoke", "--catalog", "--to", "a", "--to-role", "b"), "expected one of --to and --to-role, found both"),
        (("enable-grants",), "expected --to or --to-role"),
        (("grant", "raed", "--catalog", "--to", "ann"), "found 'raed'"),
    ],
)
def test_commands_say_what_they_lack(tmp_path: Path, arguments: tuple[str, ...], problem: str) -> None:
    name, *rest = arguments
    with Catalog.connect(tmp_path / "root") as catalog:
        catalog.enable_grants(roles=["owners"])
    done = invoke(name, *rest, "--root", str(tmp_path / "root"))
    assert done.exit_code == 2
    assert problem in done.stderr
