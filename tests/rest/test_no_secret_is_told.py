"""A little life of a server: no log, trace, metric, error, file of the root or backup has a secret (class A16)."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pyarrow as pa
import pytest

from lance_core.proto import lance_table_pb2 as pb
from tests.data.arrow import stream
from tests.rest.test_tracing import Receiver
from tests.server.servers import REPOSITORY, ServerProcess
from tests.tokens.issuer import AUDIENCE, EC, Issuer, issuing

ROWS = stream(pa.table({"x": [1, 2, 3]}))


def secret(what: str) -> str:
    """A text that is nowhere else; with characters that addresses and JSON write in other ways."""
    return f"sEcReT-{what}-{uuid.uuid4().hex}"


@dataclass
class Life:
    """What is secret in it, by name, and all that was told: texts by where they are from."""

    home: Path
    secrets: dict[str, str] = field(default_factory=dict)
    told: dict[str, bytes] = field(default_factory=dict)

    def secret(self, what: str) -> str:
        return self.secrets.setdefault(what, secret(what))

    def tell(self, where: str, data: bytes | str) -> None:
        self.told[f"{len(self.told)} {where}"] = data.encode() if isinstance(data, str) else data

    def keep(self, answer: httpx.Response) -> httpx.Response:
        """Note an answer that is an error, and the headers of all."""
        self.tell(f"headers of {answer.request.url.path}", repr(answer.headers.raw))
        if answer.status_code >= 400:
            self.tell(f"{answer.status_code} {answer.request.method} {answer.request.url.path}", answer.content)
        return answer


def spellings(value: str) -> set[bytes]:
    """A secret as it is, and as addresses, headers and dumps have it."""
    plain = value.encode()
    return {plain, quote(value, safe="").encode(), plain.hex().encode(), *map(_core, (plain, b"user:" + plain))}


def _core(data: bytes) -> bytes:
    """The middle of its base64, which is the same whatever stands around it at this place."""
    return base64.b64encode(data)[8:-8]


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Life:
    home = tmp_path_factory.mktemp("life")
    life = Life(home)
    receiver = Receiver()
    try:
        with issuing() as issuer:
            _lived(life, issuer, receiver)
        life.tell("spans", b"".join(span.SerializeToString() for span in receiver.spans))
        assert receiver.spans
    finally:
        receiver.close()
    return life


def _lived(life: Life, issuer: Issuer, receiver: Receiver) -> None:
    key = life.secret("api key")
    settings = life.home / "settings.toml"
    settings.write_text(
        f"""
        log_level = "debug"
        log_format = "json"
        [api_keys]
        "{key}" = "ann"
        [storage]
        aws_secret_access_key = "{life.secret("storage")}"
        [vended_storage]
        aws_session_token = "{life.secret("vended")}"
        [[token_issuers]]
        issuer = "{issuer.url}"
        audience = "{AUDIENCE}"
        principal_prefix = "idp-"
        """
    )
    environment = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
        "LANCE_NAMESPACE_PEER_SECRET": life.secret("peers"),
    }
    log = life.home / "server.log"
    server = ServerProcess(life.home / "root", log=log, environment=environment, config=settings, alone=True)
    try:
        with httpx.Client(base_url=server.url, headers={"x-api-key": key}, timeout=60) as http:
            _asked(life, http, issuer)
            life.tell("metrics", http.get("/metrics").content)
            for process in _processes(server):
                life.tell(f"command line of {process}", Path(f"/proc/{process}/cmdline").read_bytes())
        _commands(life, server.url, key)
    finally:
        server.stop()


def _processes(server: ServerProcess) -> list[int]:
    assert server._process is not None
    found = [server._process.pid]
    for each in found:
        for children in Path(f"/proc/{each}/task").glob("*/children"):
            found += map(int, children.read_text().split())
    return found


def _asked(life: Life, http: httpx.Client, issuer: Issuer) -> None:
    def post(path: str, body: Any = None, **headers: str) -> httpx.Response:
        return life.keep(http.post(path, json={} if body is None else body, headers=headers))

    def rows(path: str, **headers: str) -> httpx.Response:
        given = {"content-type": "application/vnd.apache.arrow.stream", **headers}
        return life.keep(http.post(path, content=ROWS, headers=given))

    named = life.secret("named in a body")
    identity = {"identity": {"api_key": named, "auth_token": named}}
    assert post("/v1/namespace/a/create", identity).status_code == 200
    assert rows("/v1/table/a$t/create").status_code == 200
    assert "aws_session_token" in post("/v1/table/a$t/describe", identity).json()["storage_options"]
    assert rows("/v1/table/a$t/insert").status_code == 200
    assert post("/v1/table/a$t/tags/create", {"tag": "v", "version": 1}).status_code == 200
    assert post("/v1/namespace/a/create", identity).status_code == 409
    # tokens: a good one, ones that are not, and what is no token
    for what, claims in (("good", {}), ("expired", {"exp": 1}), ("of another audience", {"aud": "x"})):
        token = issuer.token(EC, **claims)
        life.secrets[f"{what} token"] = token.rpartition(".")[2]
        bearer = {"authorization": f"Bearer {token}", "x-api-key": ""}
        answer = life.keep(httpx.post(f"{http.base_url}/v1/namespace/$/exists", json={}, headers=bearer))
        assert answer.status_code == (401 if claims else 200) or what == "good"
    for scheme in ("Bearer {}", "Basic {}", "bearer{}", "Negotiate {}"):
        given = {"authorization": scheme.format(base64.b64encode(f"user:{life.secret('password')}".encode()).decode())}
        life.keep(httpx.get(f"{http.base_url}/v1/catalog", headers=given))
        life.keep(httpx.get(f"{http.base_url}/v1/catalog", headers={"x-api-key": life.secret("wrong key")}))
        life.keep(httpx.get(f"{http.base_url}/v1/catalog", headers={"x-api-key": life.secret("key é").encode()}))
    # addresses in each place where a client may put one
    for number, address in enumerate(_addresses(life.secret("address"))):
        name = f"a$new{number}"
        assert post(f"/v1/table/{name}/register", {"location": address}).status_code >= 400
        assert post(f"/v1/table/{name}/declare", {"location": address}).status_code >= 400
        if "://" in address:  # others are paths below the root, and kept as such
            intended = {"id": ["a", "n"], "location": address}
            post("/v1/catalog/intents", {"intent_id": str(uuid.uuid4()), "tables": [intended]})
        version = {"version": 3, "manifest_path": address, "manifest_size": 9}
        assert post("/v1/table/a$t/version/create", version).status_code >= 400
        message = pb.Transaction(read_version=2, uuid=str(uuid.uuid4()))
        message.update_bases.new_bases.add(id=7, path=address)
        encoded = base64.b64encode(message.SerializeToString()).decode()
        batch = {"operations": [{"commit_transaction": {"id": ["a", "t"], "transaction": encoded}}]}
        assert post("/v1/table/batch-commit", batch).status_code >= 400
        life.keep(http.get(f"/v1/{quote(address, safe='/:@')}"))
        life.keep(http.get(f"/v1/catalog/versions?page_token={quote(address)}"))
        life.keep(http.get("/v1/catalog", headers={"origin": address}))
        life.keep(http.get("/v1/catalog", headers={"x-lance-catalog-version": address}))
        post("/v1/table/a$t/describe", {"version": address})
        post(f"/v1/table/a$t/create?mode={quote(address, safe='')}")
        post("/v1/table/a$t/clone", {"source_location": address})
    life.keep(http.get(f"/v1/catalog?api_key={life.secret('query')}"))
    life.keep(http.get(f"/v1/catalog?page_token=x&token={life.secret('query')}"))
    life.keep(http.get("/v1/catalog", headers={"host": f"user:{life.secret('host')}@example.org"}))


def _addresses(value: str) -> list[str]:
    return [
        f"s3://user:{value}@bucket/x",
        f"s3://{value}@bucket/x",
        f"S3A://user:a/{value}@bucket/x",
        f"https://user:it's {value}@host/x",
        f"abfss://container:{value}@account.dfs.core.windows.net/x",
        f"https://account.blob.core.windows.net/c/x?sv=1&sig={value}",
        f"https://bucket.s3.amazonaws.com/x?X-Amz-Credential=a&X-Amz-Signature={value}",
        f"x?X-Amz-Signature={value}",
        f"file://user:{value}@localhost/x",
    ]


def _commands(life: Life, url: str, key: str) -> None:
    """What is printed, also where a secret is in an argument or in the environment."""
    root = str(life.home / "root")

    def run(*arguments: str, **environment: str) -> None:
        found = subprocess.run(
            [sys.executable, "-m", "namespace_server", *arguments],
            capture_output=True, cwd=REPOSITORY, env=os.environ | environment, timeout=120, check=False,
        )  # fmt: skip
        life.tell(f"output of {arguments[0]}", found.stdout + found.stderr)

    mine = {"LANCE_NAMESPACE_URL": url, "LANCE_NAMESPACE_API_KEY": key}
    run("backup", root, str(life.home / "backup"))
    run("-vv", "doctor", root)
    run("-vv", "log", **mine)
    run("whoami", **{**mine, "LANCE_NAMESPACE_API_KEY": life.secret("key of a command")})
    run("-vv", "list", "--root", f"s3://user:{life.secret('root')}@bucket/x")
    run("-vv", "list", "--url", f"http://user:{life.secret('url')}@127.0.0.1:1")
    assert (life.home / "backup").is_dir()


def test_no_secret_is_told(life: Life) -> None:
    for path in life.home.rglob("*"):
        if path.is_file() and path.name != "settings.toml":
            life.tell(str(path.relative_to(life.home)), path.read_bytes())
    assert any("server.log" in where for where in life.told)
    assert any("_audit" in where for where in life.told)
    looked_for = {what: spellings(value) for what, value in life.secrets.items()}
    assert len(looked_for) > 12
    found = [
        (what, where, data[max(0, data.index(each) - 200) : data.index(each) + 80])
        for where, data in life.told.items()
        for what, each_of in looked_for.items()
        for each in each_of
        if each in data
    ]
    assert not found, json.dumps([[*map(str, each)] for each in found[:10]], indent=1)


def test_what_is_no_secret_is_told(life: Life) -> None:
    """The search finds what is there: names in the log, in the audit, in errors and in the backup."""
    everything = b"".join(life.told.values())
    assert b'"principal": "ann"' in everything or b'"principal":"ann"' in everything
    assert sum(b"bucket/x" in data for data in life.told.values()) > 10
