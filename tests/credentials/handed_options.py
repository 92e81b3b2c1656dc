"""What principals are handed for a table, used for requests to the service, and a server that hands it out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

import httpx
import pyarrow as pa
from botocore.exceptions import ClientError
from botocore.session import Session

from tests.access.granting import ADMIN, Caller
from tests.data.arrow import stream
from tests.emulators import AZURITE_ACCOUNT
from tests.server.servers import ServerProcess

ROWS = stream(pa.table({"x": [1, 2, 3]}))
CALLERS = (ADMIN, "reader", "writer", "seer", "maker")


class HandedOptions(Protocol):
    """Requests to a bucket with what one principal was handed for a table: whether the service lets them through."""

    def may_list(self, prefix: str) -> bool: ...
    def may_read(self, key: str) -> bool: ...
    def may_write(self, key: str) -> bool: ...
    def may_remove(self, key: str) -> bool: ...


class Opener(Protocol):
    """Opens a bucket with what was handed out."""

    def __call__(self, options: dict[str, str], bucket: str) -> HandedOptions: ...


@dataclass
class OptionsOnS3:
    """See `HandedOptions`."""

    client: Any
    bucket: str

    @classmethod
    def opened(cls, endpoint: str, options: dict[str, str], bucket: str) -> OptionsOnS3:
        client = Session().create_client(
            "s3",
            region_name="us-east-1",
            endpoint_url=endpoint,
            aws_access_key_id=options["aws_access_key_id"],
            aws_secret_access_key=options["aws_secret_access_key"],
            aws_session_token=options["aws_session_token"],
        )
        return cls(client, bucket)

    def may(self, verb: str, **given: Any) -> bool:
        try:
            getattr(self.client, verb)(Bucket=self.bucket, **given)
        except ClientError as error:
            return _is_let_through(error.response["ResponseMetadata"]["HTTPStatusCode"])
        return True

    def may_list(self, prefix: str) -> bool:
        return self.may("list_objects_v2", Prefix=prefix)

    def may_read(self, key: str) -> bool:
        return self.may("get_object", Key=key)

    def may_write(self, key: str) -> bool:
        return self.may("put_object", Key=key, Body=b"x")

    def may_remove(self, key: str) -> bool:
        return self.may("delete_object", Key=key)


@dataclass
class OptionsByHttp:
    """See `HandedOptions`: where a token or a signature goes with plain requests."""

    url: str
    query: str = ""
    headers: dict[str, str] | None = None
    listing: str = ""

    @classmethod
    def on_azure(cls, url: str, options: dict[str, str], bucket: str) -> OptionsByHttp:
        signature = options["azure_storage_sas_token"]
        headers = {"x-ms-version": "2021-12-02", "x-ms-blob-type": "BlockBlob"}
        return cls(f"{url}/{AZURITE_ACCOUNT}/{bucket}", signature, headers, "restype=container&comp=list")

    @classmethod
    def on_google(cls, url: str, options: dict[str, str], bucket: str) -> OptionsByHttp:
        token = options["google_storage_token"]
        return cls(f"{url}/{bucket}", headers={"authorization": f"Bearer {token}"}, listing="list-type=2")

    def _may(self, method: str, key: str, *queries: str, body: bytes | None = None) -> bool:
        query = "&".join(each for each in (*queries, self.query) if each)
        target = f"{self.url}/{quote(key)}".rstrip("/")
        answer = httpx.request(method, f"{target}?{query}", headers=self.headers, content=body)
        return _is_let_through(answer.status_code)

    def may_list(self, prefix: str) -> bool:
        return self._may("GET", "", self.listing, f"prefix={quote(prefix, safe='')}")

    def may_read(self, key: str) -> bool:
        return self._may("GET", key)

    def may_write(self, key: str) -> bool:
        return self._may("PUT", key, body=b"x")

    def may_remove(self, key: str) -> bool:
        return self._may("DELETE", key)


def _is_let_through(status: int) -> bool:
    """Whether a service let a request through, also for an object that is not there."""
    assert status in {403, 404} or status < 300, status
    return status != 403


@dataclass
class Handed:
    """What one principal was handed for the table, and where the table lies: `key` in the bucket, below `root`."""

    use: HandedOptions
    key: str
    root: str


class VendingServer:
    """A server with `w$t`, whose location is the beginning of that of `w$t2`, and callers."""

    def __init__(self, opener: Opener, server: ServerProcess, http: httpx.Client) -> None:
        self._open, self.server = opener, server
        self.callers = {name: Caller(http, name) for name in CALLERS}
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

    def handed(self, who: str) -> Handed:
        return self.opened(self.described(who))

    def opened(self, described: dict[str, Any]) -> Handed:
        parts = urlsplit(described["location"])
        key = parts.path.strip("/")
        return Handed(self._open(described["storage_options"], parts.netloc), key, key.rpartition("/")[0])
