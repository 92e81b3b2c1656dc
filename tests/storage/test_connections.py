"""Options and variables that say how the clients of services connect: timeouts, proxies, certificates."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from lance_core.errors import StorageError, StorageUnknown
from lance_core.storage.opening import open_store
from lance_core.storage.services.options import Connections, Options, connections
from tests.certificates import Certificates, certificates
from tests.emulators import AZURITE_ACCOUNT
from tests.storage.test_broken_services import Script, arrivals, kind, open_service, port, script, serving

__all__ = ["certificates", "kind", "port", "script"]

ELSEWHERE = "http://storage.invalid"
"""An origin that only a proxy reaches."""


def test_defaults() -> None:
    assert connections(Options({})) == Connections(5.0, 60.0, None)


@pytest.mark.parametrize(("text", "seconds"), [("250ms", 0.25), ("30s", 30.0), ("2m", 120.0), ("1h", 3600.0)])
def test_durations(text: str, seconds: float) -> None:
    found = connections(Options({"connect_timeout": text, "TIMEOUT": text}))
    assert (found.connect_timeout, found.answer_timeout) == (seconds, seconds)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("timeout", "30"), ("timeout", "0s"), ("connect_timeout", "-1s"), ("proxy_url", "proxy:3128")),
        *(("client_max_retries", "-1"), ("client_max_retries", "many"), ("client_max_retries", "101")),
    ],
)
def test_values_that_make_no_sense_are_named(kind: str, name: str, value: str) -> None:
    with pytest.raises(StorageError, match=f"storage option {name}: expected"):
        open_store(f"{kind}://bucket/x", {name: value})


def test_a_proxy_with_a_password_is_not_shown() -> None:
    with pytest.raises(StorageError) as caught:
        connections(Options({"proxy_url": "socks5://user:secret@proxy:1"}))
    assert "secret" not in str(caught.value)


def test_a_late_answer_is_unknown(kind: str, port: int, script: Script) -> None:
    with closing(open_service(kind, port, timeout="200ms")) as store:
        store.put("warm", b"x")
        script.pause = 1.0
        with pytest.raises(StorageUnknown):
            store.put_if_absent("slot", b"x")
        assert arrivals(script, "slot") == 1
        if kind == "s3":  # by another client than the writes
            with pytest.raises(StorageUnknown):
                store.delete_if("other", if_match='"7"')
            assert arrivals(script, "other") == 1


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port on which no connection is ever accepted."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:  # they fill the queue
            each.setblocking(False)
            each.connect_ex(address)
        yield address[1]
        for each in waiting:
            each.close()


def test_a_connection_that_is_not_made_in_time_is_no_lost_answer(kind: str, silent_port: int) -> None:
    with closing(open_service(kind, silent_port, connect_timeout="100ms")) as store:
        began = time.monotonic()
        with pytest.raises(StorageError) as caught:
            store.put_if_absent("slot", b"x")
        assert type(caught.value) is StorageError  # nothing was sent: the outcome is known
        assert time.monotonic() - began < 5


def use(kind: str, port: int, script: Script, **more: str) -> None:
    """Requests of each client of a service to an origin that only a proxy, the server on the port, reaches."""
    origin = f"{ELSEWHERE}/{AZURITE_ACCOUNT}" if kind == "az" else ELSEWHERE
    with closing(open_service(kind, port, origin=origin, **more)) as store:
        assert store.put_if_absent("slot", b"x") == '"7"'
        store.get("slot")
        store.delete_if("slot", if_match='"7"')
    assert arrivals(script, "slot") == 3


def test_a_proxy_in_the_options(kind: str, port: int, script: Script) -> None:
    use(kind, port, script, proxy_url=f"http://127.0.0.1:{port}")


def test_a_proxy_in_the_environment(kind: str, port: int, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
    use(kind, port, script)


WITH_TLS = """
import sys
from contextlib import closing
from lance_core.errors import StorageError
from lance_core.storage.opening import open_store
from tests.emulators import AZURITE_ACCOUNT
from tests.storage.test_broken_services import open_service
port, origin = int(sys.argv[1]), f"https://127.0.0.1:{sys.argv[1]}"
anonymous = {"endpoint": origin, "account_name": "n", "azure_skip_signature": "true"}
for kind in ("s3", "az", "anonymous", "gs"):
    place = f"{origin}/{AZURITE_ACCOUNT}" if kind == "az" else origin
    for act in ("put_if_absent", "delete_if"):
        opened = (
            open_store("az://bucket/root", anonymous)
            if kind == "anonymous"
            else open_service(kind, port, origin=place)
        )
        with closing(opened) as store:
            try:
                store.put_if_absent("slot", b"x") if act == "put_if_absent" else store.delete_if("slot", if_match='"7"')
                print(kind, act, "done")
            except StorageError as error:
                print(kind, act, type(error).__name__)
"""


@pytest.mark.parametrize("trusted", [True, False])
def test_certificates_of_an_authority_in_the_environment(
    script: Script, certificates: Certificates, trusted: bool
) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates.certificate, certificates.key)
    authority = str(certificates.authority)
    variables = {"SSL_CERT_FILE": authority, "AWS_CA_BUNDLE": authority} if trusted else {}
    with serving(script, context) as port:
        done = subprocess.run(
            [sys.executable, "-c", WITH_TLS, str(port)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **variables},
        )
    outcome = "done" if trusted else "StorageError"
    assert done.stdout.splitlines() == [
        f"{kind} {act} {outcome}" for kind in ("s3", "az", "anonymous", "gs") for act in ("put_if_absent", "delete_if")
    ], done.stderr
