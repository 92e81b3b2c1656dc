"""What principals are handed for tables on object services does what they are granted, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.access.granting import ADMIN, keys
from tests.credentials.conftest import GuardedS3
from tests.credentials.guarded_azure import guarded
from tests.credentials.guarded_google import google
from tests.credentials.guarded_s3 import ROLE
from tests.credentials.handed_options import CALLERS, Opener, OptionsByHttp, OptionsOnS3, VendingServer
from tests.emulators import AZURITE_ACCOUNT, Emulator
from tests.server.servers import ServerProcess

pytestmark = pytest.mark.services
OWN = "00000000_w$t"
SECRETS = {"s3": "aws_session_token", "azure": "sig=", "google": "bounded-"}


@contextmanager
def serving(emulator: Emulator, opener: Opener, given: Mapping[str, str], home: Path) -> Iterator[VendingServer]:
    stored = {f"STORAGE__{name.upper()}": value for name, value in emulator.storage_options.items()}
    environment = {f"LANCE_NAMESPACE_{name}": value for name, value in (stored | dict(given)).items()}
    root = emulator.new_root().replace(" ", "_")
    with (
        ServerProcess(root, log=home / "log", environment=environment, keys=keys(*CALLERS)) as server,
        httpx.Client(base_url=server.url, timeout=60) as http,
    ):
        yield VendingServer(opener, server, http)


def public(options: Mapping[str, str]) -> dict[str, str]:
    """The settings for what clients must know of a service beside keys."""
    return {f"VENDED_STORAGE__{name.upper()}": value for name, value in options.items()}


@pytest.fixture
def on_s3(guarded_s3: GuardedS3, tmp_path: Path) -> Iterator[VendingServer]:
    endpoint = guarded_s3.public["aws_endpoint"]
    given = {"VENDED_ROLE_ARN": ROLE, "VENDED_STS_ENDPOINT": endpoint, **public(guarded_s3.public)}
    with serving(guarded_s3.emulator, partial(OptionsOnS3.opened, endpoint), given, tmp_path) as shop:
        yield shop


@pytest.fixture
def on_azure(azurite: Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[VendingServer]:
    for name in [name for name in os.environ if name.startswith("AZURE_")]:
        monkeypatch.delenv(name)
    with guarded(azurite) as guard:
        endpoint = {"allow_http": "true", "azure_endpoint": f"{guard.url}/{AZURITE_ACCOUNT}"}
        given = {"VENDED_AZURE_SAS": "true", **public(endpoint)}
        with serving(azurite, partial(OptionsByHttp.on_azure, guard.url), given, tmp_path) as shop:
            yield shop


@pytest.fixture
def on_google(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[VendingServer]:
    for name in [name for name in os.environ if name.startswith("GOOGLE_")]:
        monkeypatch.delenv(name)
    with google() as guard:
        given = {"VENDED_GOOGLE_TOKEN": "true", "VENDED_STS_ENDPOINT": f"{guard.url}/sts", **public(guard.public)}
        with serving(guard.emulator, partial(OptionsByHttp.on_google, guard.url), given, tmp_path) as shop:
            yield shop


@pytest.fixture(params=["s3", *(pytest.param(name, marks=pytest.mark.slow) for name in ("azure", "google"))])
def service(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shop(service: str, request: pytest.FixtureRequest) -> VendingServer:
    found: VendingServer = request.getfixturevalue(f"on_{service}")
    return found


def test_each_principal_does_what_it_is_granted(shop: VendingServer, service: str) -> None:
    assert "storage_options" not in shop.described("seer")
    for who, writes in (("reader", False), ("writer", True)):
        handed = shop.handed(who)
        use, own, root, other = handed.use, handed.key, handed.root, f"{handed.root}/00000000_w$t2"
        assert own.endswith(OWN)
        assert use.may_read(f"{own}/_versions/absent")
        assert use.may_list(f"{own}/")
        assert use.may_list(f"{own}/_versions/")
        assert use.may_write(f"{own}/data/mine") is writes
        assert use.may_remove(f"{own}/data/mine") is writes
        for place in (other, f"{root}/__manifest", f"{root}/_staging", root):
            assert not use.may_read(f"{place}/_versions/absent"), place
            assert not use.may_write(f"{place}/data/mine"), place
            assert not use.may_remove(f"{place}/data/mine"), place
            assert not use.may_list(f"{place}/"), place
        beside = [own] if service != "azure" else []  # a signature for a directory is for the directory's own name too
        for prefix in ("", f"{root}/", root, f"{root}/0000", own[:-1], f"{own}2", f"{own}2/", *beside):
            assert not use.may_list(prefix), f"names of other tables by the prefix {prefix!r}"
        for key in (f"{own}2", *beside):
            assert not use.may_write(key), key


def test_uploads_in_parts_and_copies_on_s3_are_held_to_the_grants(on_s3: VendingServer) -> None:
    for who, writes in (("reader", False), ("writer", True)):
        handed = on_s3.handed(who)
        assert isinstance(handed.use, OptionsOnS3)
        assert handed.use.may("create_multipart_upload", Key=f"{handed.key}/data/parts") is writes
        source = {"Bucket": handed.use.bucket, "Key": f"{handed.root}/00000000_w$t2/data/x"}
        assert not handed.use.may("copy_object", Key=f"{handed.key}/data/copy", CopySource=source)


def test_what_is_handed_out_follows_the_grants_of_now(shop: VendingServer, service: str) -> None:
    def permission(who: str, **request: object) -> str:
        found = shop.described(who, **request)  # type: ignore[arg-type]
        if "storage_options" not in found:
            return "none" if found else "hidden"
        handed = shop.opened(found)
        return "write" if handed.use.may_write(f"{handed.key}/data/mine") else "read"

    assert [permission(who) for who in ("reader", "writer", "seer", "maker")] == ["read", "write", "none", "hidden"]
    assert permission("writer", check_declared=True) == "write"
    assert permission("writer", vend_credentials=False) == "none"
    before = shop.callers[ADMIN].get("/v1/catalog").json()["version"]
    past = {"x-lance-catalog-version": str(before)}
    shop.change("revokes", "t", "writer", "write")
    assert permission("writer") == "read"
    assert permission("writer", headers=past) == "read"
    shop.change("revokes", "t", "writer", "read")
    assert permission("writer") == permission("writer", headers=past) == "hidden"
    shop.grant("t", "maker", "maintain")
    assert permission("maker") == "none"
    assert shop.callers[ADMIN].post("/v1/table/w$t/rename", {"new_table_name": "u"}).status_code == 200
    assert permission("reader") == "hidden", "the name is no table's"
    assert permission("reader", headers=past) == "read"
    assert shop.callers[ADMIN].post("/v1/table/w$u/drop").status_code == 200
    assert permission("reader", headers=past) == "hidden", "its grants ended with it"
    assert SECRETS[service] not in shop.server.log.read_text()
