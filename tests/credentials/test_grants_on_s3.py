"""What principals are handed for tables on S3 does what they are granted, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from botocore.exceptions import ClientError
from botocore.session import Session

from tests.access.granting import ADMIN, Caller, keys
from tests.credentials.conftest import GuardedS3
from tests.credentials.guarded_s3 import ROLE
from tests.data.arrow import stream
from tests.server.servers import ServerProcess

ROWS = stream(pa.table({"x": [1, 2, 3]}))
OWN = "00000000_w$t"


class HandedOptions:
    """Requests to the bucket with what one principal was handed for a table."""

    def __init__(self, service: GuardedS3, options: dict[str, str], location: str) -> None:
        self.bucket, _, self.key = location.removeprefix("s3://").partition("/")
        self.root = self.key.rpartition("/")[0]
        self.client = Session().create_client(
            "s3",
            region_name="us-east-1",
            endpoint_url=service.public["aws_endpoint"],
            aws_access_key_id=options["aws_access_key_id"],
            aws_secret_access_key=options["aws_secret_access_key"],
            aws_session_token=options["aws_session_token"],
        )

    def may(self, verb: str, **given: Any) -> bool:
        try:
            getattr(self.client, verb)(Bucket=self.bucket, **given)
        except ClientError as error:
            if (status := error.response["ResponseMetadata"]["HTTPStatusCode"]) not in {403, 404}:
                raise
            return status != 403
        return True

    def may_list(self, prefix: str) -> bool:
        return self.may("list_objects_v2", Prefix=prefix)

    def may_read(self, key: str) -> bool:
        return self.may("get_object", Key=key)

    def may_write(self, key: str) -> bool:
        return self.may("put_object", Key=key, Body=b"x")

    def may_remove(self, key: str) -> bool:
        return self.may("delete_object", Key=key)


class VendingServer:
    """A server with `w$t`, whose location is the beginning of that of `w$t2`, and callers."""

    def __init__(self, service: GuardedS3, server: ServerProcess, http: httpx.Client) -> None:
        self.service, self.server = service, server
        self.callers = {name: Caller(http, name) for name in (ADMIN, "reader", "writer", "seer", "maker")}
        admin = self.callers[ADMIN]
        assert admin.post("/v1/catalog/access", {"administrators": [{"principal": ADMIN}]}).status_code == 200
        assert admin.post("/v1/namespace/w/create").status_code == 200
        for name in ("t", "t2"):
            declared = admin.post(f"/v1/table/w${name}/declare", {"location": f"{server.root}/00000000_w${name}"})
            assert declared.status_code == 200, declared.text
            assert admin.post(f"/v1/table/w${name}/insert", ROWS).status_code == 200
        self.grant("t", "reader", "read")
        self.grant("t", "writer", "read", "write")
        self.grant("t", "seer", "see", "write")

    def change(self, kind: str, table: str, to: str, *privileges: str) -> None:
        change = {"on": {"table": ["w", table]}, "to": {"principal": to}, "privileges": list(privileges)}
        answer = self.callers[ADMIN].post("/v1/catalog/grants", {kind: [change]})
        assert answer.status_code == 200, answer.text

    def grant(self, table: str, to: str, *privileges: str) -> None:
        self.change("grants", table, to, *privileges)

    def described(self, who: str, headers: dict[str, str] | None = None, **request: Any) -> dict[str, Any]:
        answer = self.callers[who].post("/v1/table/w$t/describe", request, headers)
        return dict(answer.json()) if answer.status_code == 200 else {}

    def handed(self, who: str) -> HandedOptions:
        found = self.described(who)
        return HandedOptions(self.service, found["storage_options"], found["location"])


@pytest.fixture
def shop(guarded_s3: GuardedS3, tmp_path: Path) -> Iterator[VendingServer]:
    given = {
        "VENDED_ROLE_ARN": ROLE,
        "VENDED_STS_ENDPOINT": guarded_s3.public["aws_endpoint"],
        **{f"STORAGE__{name.upper()}": value for name, value in guarded_s3.emulator.storage_options.items()},
        **{f"VENDED_STORAGE__{name.upper()}": value for name, value in guarded_s3.public.items()},
    }
    environment = {f"LANCE_NAMESPACE_{name}": value for name, value in given.items()}
    root = guarded_s3.emulator.new_root().replace(" ", "_")
    principals = keys(ADMIN, "reader", "writer", "seer", "maker")
    with (
        ServerProcess(root, log=tmp_path / "log", environment=environment, keys=principals) as server,
        httpx.Client(base_url=server.url, timeout=60) as http,
    ):
        yield VendingServer(guarded_s3, server, http)


def test_each_principal_does_what_it_is_granted(shop: VendingServer) -> None:
    assert "storage_options" not in shop.described("seer")
    for who, writes in (("reader", False), ("writer", True)):
        handed = shop.handed(who)
        own, other = handed.key, f"{handed.root}/00000000_w$t2"
        assert own.endswith(OWN)
        assert handed.may_read(f"{own}/_versions/absent")
        assert handed.may_list(f"{own}/")
        assert handed.may_list(f"{own}/_versions/")
        assert handed.may_write(f"{own}/data/mine") is writes
        assert handed.may_remove(f"{own}/data/mine") is writes
        assert handed.may("create_multipart_upload", Key=f"{own}/data/parts") is writes
        for place in (other, f"{handed.root}/__manifest", f"{handed.root}/_staging", handed.root):
            assert not handed.may_read(f"{place}/_versions/absent"), place
            assert not handed.may_write(f"{place}/data/mine"), place
            assert not handed.may_remove(f"{place}/data/mine"), place
            assert not handed.may_list(f"{place}/"), place
        for prefix in ("", f"{handed.root}/", handed.root, f"{handed.root}/0000", own[:-1], f"{own}2", f"{own}2/", own):
            assert not handed.may_list(prefix), f"names of other tables by the prefix {prefix!r}"
        source = {"Bucket": handed.bucket, "Key": f"{other}/data/x"}
        assert not handed.may("copy_object", Key=f"{own}/data/copy", CopySource=source)
        for key in (f"{own}2", own):
            assert not handed.may_write(key), key


def test_what_is_handed_out_follows_the_grants_of_now(shop: VendingServer) -> None:
    def permission(who: str, **request: Any) -> str:
        found = shop.described(who, **request)
        if "storage_options" not in found:
            return "none" if found else "hidden"
        handed = HandedOptions(shop.service, found["storage_options"], found["location"])
        return "write" if handed.may_write(f"{handed.key}/data/mine") else "read"

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
    log = shop.server.log.read_text()
    assert "aws_session_token" not in log
