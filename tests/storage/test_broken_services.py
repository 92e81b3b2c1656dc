"""Faulty services, and the errors that callers get."""

import socket
import ssl
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from lance_core.errors import AlreadyExists, NotFound, PreconditionFailed, StorageError, StorageUnknown
from lance_core.storage.bucket_store import BucketStore
from lance_core.storage.opening import open_store
from lance_core.storage.services import s3
from lance_core.storage.services.bucket import Failure
from lance_core.storage.services.obstore_errors import FailedAnswer, refusal
from lance_core.storage.services.options import Options, s3_arguments
from tests.emulators import AZURITE_ACCOUNT, AZURITE_KEY

pytestmark = pytest.mark.slow

BREAK = 0
"""Instead of a status: take the request and close the connection."""


@dataclass
class Script:
    """What a server does with the requests for one key, in turn; afterwards it answers 200. And what it got."""

    answers: dict[str, list[int]] = field(default_factory=dict)
    arrived: list[tuple[str, str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    refusal: bytes = b""
    """The body of answers that are not a success."""
    removed: bytes = b"<DeleteResult/>"
    """The body of the answer to the removal of many objects of S3."""
    copied: str | None = None
    """How copies on Azure end."""
    pause: float = 0.0
    """Seconds before an answer."""


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def port(script: Script) -> Iterator[int]:
    with serving(script) as port:
        yield port


@contextmanager
def serving(script: Script, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """A server that does what the script says, on the port, with TLS if there is a context for it."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # see tests/listener.py

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

        def handle_request(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            parts = urlsplit(self.path)
            name = parse_qs(parts.query).get("name", [unquote(parts.path)])[0].rpartition("/")[2]
            script.arrived.append((self.command, name))
            script.headers.append({key.lower(): value for key, value in self.headers.items()})
            time.sleep(script.pause)
            waiting = script.answers.get(name, [])
            status = waiting.pop(0) if waiting else 200
            if status == BREAK:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            updated = b"2030-01-01T00:00:00Z"
            body = b'{"name": "x", "size": "1", "generation": "7", "updated": "%s"}' % updated
            if self.command in {"PUT", "DELETE"}:
                body = b""
                if "x-ms-version" in self.headers and status == 200:
                    status = 201 if self.command == "PUT" and "x-ms-copy-source" not in self.headers else 202
            if parts.query == "delete":
                body = script.removed
            if status >= 300:
                body = script.refusal
            self.send_response(status)
            if script.copied is not None and self.command == "PUT":
                self.send_header("x-ms-copy-status", script.copied)
                self.send_header("x-ms-copy-id", "1")
            self.send_header("ETag", '"7"')
            self.send_header("Last-Modified", "Tue, 01 Jan 2030 00:00:00 GMT")
            self.send_header("Content-Range", f"bytes 0-{len(body) - 1}/{len(body)}")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_request  # noqa: N815

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def open_service(kind: str, port: int, *, origin: str | None = None, **more: str) -> BucketStore:
    """The store on a server; `origin` is its URL if it has another than that of the port, `more` are options."""
    endpoint = origin or f"http://127.0.0.1:{port}"
    options = {
        "s3": {"aws_endpoint": endpoint, "access_key_id": "k", "secret_access_key": "s", "region": "us-east-1"},
        "az": {
            "endpoint": f"{endpoint}/{AZURITE_ACCOUNT}",
            "account_name": AZURITE_ACCOUNT,
            "account_key": AZURITE_KEY,
        },
        "gs": {"google_base_url": endpoint, "google_skip_signature": "true"},
    }
    store = open_store(f"{kind}://bucket/root", {"allow_http": "true", **options[kind], **more})
    assert isinstance(store, BucketStore)
    store._pause = 0.0
    return store


@pytest.fixture(params=["s3", "az", "gs"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def store(kind: str, port: int) -> Iterator[BucketStore]:
    store = open_service(kind, port)
    # From here on there is a kept connection, which HTTP clients like to replace without a word when it breaks.
    store.put("warm", b"x")
    yield store
    store.close()


def arrivals(script: Script, name: str) -> int:
    return sum(1 for _, found in script.arrived if found == name)


CONDITIONAL: list[Callable[[BucketStore], object]] = [
    lambda store: store.put_if_absent("slot", b"x"),
    lambda store: store.publish("staged", "slot", b"x"),
    lambda store: store.replace("slot", b"x", if_match='"6"'),
]


@pytest.mark.parametrize("write", CONDITIONAL, ids=["put_if_absent", "publish", "replace"])
@pytest.mark.parametrize("answer", [BREAK, 500, 503], ids=["broken", "500", "503"])
def test_a_conditional_write_without_an_answer_is_unknown_and_never_resent(
    store: BucketStore, script: Script, write: Callable[[BucketStore], object], answer: int
) -> None:
    """F1: sent twice, it could meet its own object and be taken for the loser."""
    script.answers["slot"] = [answer]
    with pytest.raises(StorageUnknown, match="root/slot"):
        write(store)
    assert arrivals(script, "slot") == 1


def test_a_conditional_write_that_was_not_accepted_is_retried(store: BucketStore, script: Script) -> None:
    script.answers["slot"] = [429, 429]
    assert store.put_if_absent("slot", b"x") == '"7"'
    assert arrivals(script, "slot") == 3


@pytest.mark.parametrize("answer", [400, 401, 403, 501])
def test_a_refusal_is_final(store: BucketStore, script: Script, answer: int) -> None:
    calls: list[Callable[[], object]] = [
        lambda: store.put_if_absent("slot", b"x"),
        lambda: store.put("slot", b"x"),
        lambda: store.get("slot"),
        lambda: store.delete("slot"),
    ]
    for call in calls:
        script.arrived.clear()
        script.answers["slot"] = [answer]
        with pytest.raises(StorageError, match="root/slot") as caught:
            call()
        assert type(caught.value) is StorageError
        assert arrivals(script, "slot") == 1


def test_a_failed_condition_has_its_own_error(store: BucketStore, script: Script) -> None:
    script.answers["slot"] = [412]
    with pytest.raises(AlreadyExists):
        store.put_if_absent("slot", b"x")
    script.answers["slot"] = [412]
    with pytest.raises(PreconditionFailed):
        store.replace("slot", b"x", if_match='"6"')


@pytest.mark.parametrize("answer", [BREAK, 500, 429], ids=["broken", "500", "429"])
def test_reads_plain_puts_and_deletes_are_retried(store: BucketStore, script: Script, answer: int) -> None:
    calls: list[Callable[[], object]] = [
        lambda: store.get("object"),
        lambda: store.head("object"),
        lambda: store.put("object", b"x"),
    ]
    for call in calls:
        script.arrived.clear()
        script.answers["object"] = [answer] * 4
        call()
        assert arrivals(script, "object") == 5
    script.answers["object"] = [answer, 404]
    store.delete("object")


def test_retries_are_limited(store: BucketStore, script: Script) -> None:
    script.answers["object"] = [503] * 10
    with pytest.raises(StorageUnknown):
        store.put("object", b"x")
    assert arrivals(script, "object") == 5
    with pytest.raises(StorageError) as caught:
        store.get("object")
    assert type(caught.value) is StorageError


@pytest.mark.parametrize("retries", [0, 1, 7])
def test_their_number_is_an_option(kind: str, port: int, script: Script, retries: int) -> None:
    with closing(open_service(kind, port, client_max_retries=str(retries))) as store:
        script.answers["object"] = [503] * 10
        with pytest.raises(StorageError):
            store.get("object")
    assert arrivals(script, "object") == 1 + retries


def test_a_put_is_unknown_if_any_of_its_attempts_was(store: BucketStore, script: Script) -> None:
    script.answers["object"] = [BREAK, 403]
    with pytest.raises(StorageUnknown):
        store.put("object", b"x")


def test_a_move_that_leaves_the_source_is_unknown(store: BucketStore, script: Script) -> None:
    script.answers["source"] = [200, 200, 403]
    with pytest.raises(StorageUnknown, match="perhaps not removed"):
        store.rename_if_absent("source", "target")
    script.answers["source"] = [404]
    with pytest.raises(NotFound):
        store.rename_if_absent("source", "target")


def test_a_refused_connection_means_that_nothing_was_written(kind: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        store = open_service(kind, taken.getsockname()[1])
        with pytest.raises(StorageError) as caught:
            store.put_if_absent("slot", b"x")
        assert type(caught.value) is StorageError
        store.close()


class TestS3:
    """What is peculiar to obstore, which S3 is reached through."""

    @pytest.fixture
    def kind(self) -> str:
        return "s3"

    def test_a_conflict_of_two_conditional_writes_is_no_answer_yet(self, store: BucketStore, script: Script) -> None:
        script.refusal = b"<Error><Code>ConditionalRequestConflict</Code></Error>"
        script.answers["slot"] = [409, 409]
        assert store.put_if_absent("slot", b"x") == '"7"'
        assert arrivals(script, "slot") == 3

    def test_another_conflict_is_a_refusal_and_not_a_taken_key(self, store: BucketStore, script: Script) -> None:
        script.refusal = b"<Error><Code>OperationAborted</Code></Error>"
        script.answers["slot"] = [409]
        with pytest.raises(StorageError) as caught:
            store.put_if_absent("slot", b"x")
        assert type(caught.value) is StorageError

    def test_a_bucket_in_another_region_is_a_refusal(self, store: BucketStore, script: Script) -> None:
        script.answers["slot"] = [301]
        with pytest.raises(StorageError, match="region") as caught:
            store.put_if_absent("slot", b"x")
        assert "Debug source" not in str(caught.value)
        assert type(caught.value) is StorageError
        assert arrivals(script, "slot") == 1

    @pytest.mark.parametrize(
        "forged",
        [
            "\n\nDebug source:\n        inner: Status {\n            status: 412,\n            body: None,\n",
            "\n\nDebug source:\n        HttpError {\n            kind: Connect,\n",
            (
                "\n\nDebug source:\n  HttpError {\n   kind: Timeout,\n   source: reqwest::Error {\n    kind: Request,\n"
                "    source: hyper_util::client::legacy::Error(\n     Connect,\n"
            ),
        ],
    )
    def test_the_body_of_an_answer_cannot_imitate_another(
        self, store: BucketStore, script: Script, forged: str
    ) -> None:
        script.refusal = forged.encode()
        script.answers["slot"] = [500]
        with pytest.raises(StorageUnknown):
            store.put_if_absent("slot", b"x")
        assert arrivals(script, "slot") == 1

    def test_a_key_with_a_control_character_is_refused(self, store: BucketStore, script: Script) -> None:
        """Lance refuses it too."""
        script.arrived.clear()
        for call in (lambda: store.put_if_absent("a\nb", b"x"), lambda: store.get("a\nb")):
            with pytest.raises(StorageError, match="illegal character") as caught:
                call()
            assert type(caught.value) is StorageError
        assert script.arrived == []

    def test_a_large_body_has_more_time(self, port: int, script: Script) -> None:
        store = open_service("s3", port, timeout="200ms")
        script.pause = 0.5
        assert store.put_if_absent("large", b"x" * (9 << 20)) == '"7"'
        store.close()

    def test_the_environment_does_not_alter_what_is_given(
        self, port: int, script: Script, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name, value in {
            "AWS_ACCESS_KEY_ID": "other",
            "AWS_SECRET_ACCESS_KEY": "other",
            "AWS_SESSION_TOKEN": "other",
            "AWS_SKIP_SIGNATURE": "true",
            "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1",
            "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
            "AWS_REGION": "eu-central-1",
            "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true",
        }.items():
            monkeypatch.setenv(name, value)
        store = open_service("s3", port)
        store.put("object", b"x")
        store.close()
        assert script.arrived == [("PUT", "object")]
        assert "Credential=k/" in script.headers[0]["authorization"]
        assert "/us-east-1/s3/" in script.headers[0]["authorization"]
        assert "x-amz-security-token" not in script.headers[0]

    def test_an_endpoint_of_the_environment_may_be_an_address(
        self, port: int, script: Script, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name, value in {
            "AWS_ACCESS_KEY_ID": "k",
            "AWS_SECRET_ACCESS_KEY": "s",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_REGION": "eu-central-1",
        }.items():
            monkeypatch.setenv(name, value)
        store = open_store("s3://bucket/x")
        store.put("object", b"x")
        store.close()
        assert script.arrived[-1] == ("PUT", "object")

    def test_credentials_of_the_environment_are_renewed(
        self, port: int, script: Script, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """By the chain of botocore, here a program that a profile names."""
        program = tmp_path / "credentials.sh"
        program.write_text(
            f"""#!/bin/sh
echo x >>{tmp_path}/calls
count=$(wc -l <{tmp_path}/calls | tr -d ' ')
echo '{{"Version": 1, "SecretAccessKey": "s", "SessionToken": "t", "AccessKeyId": "key'$count'",'
date -u -d '+5 minutes' '+"Expiration": "%Y-%m-%dT%H:%M:%SZ"}}'
"""
        )
        program.chmod(stat.S_IRWXU)
        config = tmp_path / "config"
        config.write_text(f"[default]\nregion = us-east-1\ncredential_process = {program}\n")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
        monkeypatch.setattr(s3, "_CREDENTIALS_TIME", timedelta(0))
        store = open_store("s3://bucket/x", {"aws_endpoint": f"http://127.0.0.1:{port}", "allow_http": "true"})
        store.put("a", b"x")
        store.put("b", b"x")
        store.close()
        first, second = (
            next(part for part in found["authorization"].split() if "/" in part) for found in script.headers
        )
        assert first != second
        assert {found["x-amz-security-token"] for found in script.headers} == {"t"}

    def test_without_credentials_nothing_is_sent(
        self, port: int, script: Script, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        store = open_store("s3://bucket/x", {"aws_endpoint": f"http://127.0.0.1:{port}", "allow_http": "true"})
        with pytest.raises(StorageError, match="NoCredentials") as caught:
            store.put_if_absent("slot", b"x")
        assert type(caught.value) is StorageError
        assert script.arrived == []
        store.close()

    def test_many_objects_are_removed_by_one_request(self, port: int, script: Script) -> None:
        script.removed = b"<DeleteResult><Deleted><Key>root/1</Key></Deleted></DeleteResult>"
        store = open_service("s3", port)
        store.delete_all([f"{number}" for number in range(1_001)])
        store.close()
        assert sorted(script.arrived) == [("DELETE", "1000"), ("POST", "bucket")]

    @pytest.mark.parametrize("refusal", [b"<Error><Code>NotImplemented</Code></Error>", b""])
    def test_each_is_removed_alone_where_a_service_has_no_such_request(
        self, port: int, script: Script, refusal: bytes
    ) -> None:
        script.answers["bucket"], script.refusal = [501 if refusal else 405], refusal
        store = open_service("s3", port)
        store.delete_all(["a", "b"])
        store.close()
        assert script.arrived[0] == ("POST", "bucket")
        assert sorted(script.arrived[1:]) == [("DELETE", "a"), ("DELETE", "b")]

    def test_an_object_that_cannot_be_removed_with_others_is_told(self, port: int, script: Script) -> None:
        denied = b"<Error><Key>root/b</Key><Code>AccessDenied</Code><Message>no</Message></Error>"
        script.removed = b"<DeleteResult><Deleted><Key>root/a</Key></Deleted>" + denied + b"</DeleteResult>"
        script.answers["b"] = [403]
        store = open_service("s3", port)
        with pytest.raises(StorageError, match="/b: "):
            store.delete_all(["a", "b"])
        store.close()
        assert script.arrived.count(("POST", "bucket")) == 1

    def test_a_defect_of_obstore_is_an_error_of_the_store(self, port: int, script: Script) -> None:
        """It panics at an answer about a key that nobody named."""
        denied = b"<Error><Key>other</Key><Code>AccessDenied</Code><Message>no</Message></Error>"
        script.removed = b"<DeleteResult>" + denied + b"</DeleteResult>"
        store = open_service("s3", port)
        with pytest.raises(StorageUnknown, match="PanicException"):
            store._ask("a", lambda: store._bucket.remove_all(["root/a", "root/b"]), writes=True)
        store.delete_all(["a", "b"])
        store.close()
        assert sorted(script.arrived[-2:]) == [("DELETE", "a"), ("DELETE", "b")]

    def test_a_lost_answer_to_a_removal_is_followed_by_the_same_again(self, port: int, script: Script) -> None:
        script.answers["bucket"] = [BREAK]
        script.removed = b"<DeleteResult><Deleted><Key>root/a</Key></Deleted></DeleteResult>"
        store = open_service("s3", port)
        store.delete_all(["a", "b"])
        store.close()
        assert script.arrived == [("POST", "bucket")] * 2

    def test_hosted_addresses_have_the_bucket_in_their_name(self) -> None:
        options = {"aws_endpoint": "https://host:9000", "access_key_id": "k", "secret_access_key": "s", "region": "r"}
        hosted = s3.S3Bucket("bucket", s3_arguments(Options({**options, "virtual_hosted_style_request": "true"})))
        plain = s3.S3Bucket("bucket", s3_arguments(Options(options)))
        amazon = s3.S3Bucket("bucket", s3_arguments(Options({**options, "aws_endpoint": "", "region": "eu-west-1"})))
        places = [bucket._connected().single.config["endpoint"] for bucket in (hosted, plain, amazon)]
        assert places == ["https://bucket.host:9000", "https://host:9000", "https://bucket.s3.eu-west-1.amazonaws.com"]
        for bucket in (hosted, plain, amazon):
            bucket.disconnect()


def test_a_copy_that_fails_on_azure_tells_no_token(port: int, script: Script) -> None:
    script.copied = "failed"
    store = open_store(
        "az://container/root",
        {
            "endpoint": f"http://127.0.0.1:{port}/{AZURITE_ACCOUNT}",
            "account_name": AZURITE_ACCOUNT,
            "sas_token": "sv=2024-01-01&sig=secret",
            "allow_http": "true",
        },
    )
    with pytest.raises(StorageError, match="copy of root/a ended as failed") as caught:
        store.copy("a", "b")
    store.close()
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("bucket", "endpoint", "is_hosted"),
    [
        ("bucket", "https://s3.eu-west-1.amazonaws.com", True),
        ("bucket", "http://store:9000", True),
        ("bucket", "http://127.0.0.1:9000", False),
        ("bucket", "http://[::1]:9000", False),
        ("a.bucket", "https://s3.eu-west-1.amazonaws.com", False),
        ("Bucket", "http://store:9000", False),
        ("b_b", "http://store:9000", False),
    ],
)
def test_where_the_bucket_stands(bucket: str, endpoint: str, is_hosted: bool) -> None:
    assert s3.may_be_hosted(bucket, endpoint) is is_hosted


def test_what_an_error_of_obstore_stands_for() -> None:
    answered = Exception(
        "Generic S3 error: status code: 404\n\nDebug source:\nGeneric {\n    inner: Status {\n        status: 503,\n"
        '        body: Some(\n            "<Error><Code>SlowDown</Code></Error>",\n        ),\n    },\n}'
    )
    assert refusal(answered) == FailedAnswer(503, "SlowDown")
    assert refusal(Exception("an error without details")) is Failure.SILENT
