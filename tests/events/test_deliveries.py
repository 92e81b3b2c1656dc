"""Events that are delivered to a webhook: signed, in order, sent again until they are taken, to checked addresses."""

from __future__ import annotations

import base64
import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import httpcore
import pytest
import typer
from standardwebhooks import Webhook, WebhookVerificationError

from namespace_client import Catalog
from namespace_server.cli.webhooks.delivery import DeadLetters, Delivery, ReceiverGone
from namespace_server.cli.webhooks.receivers import ForbiddenAddress, Receiver
from namespace_server.cli.webhooks.signatures import SECRET, Signer
from tests.certificates import Certificates, certificates
from tests.cli.commands import invoke
from tests.documentation.pages import REPOSITORY
from tests.waiting import until

__all__ = ["certificates"]

KEY = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OTHER = "whsec_" + base64.b64encode(bytes(range(1, 33))).decode()
EVENT = {"id": "a/7", "data": {"catalog_version": 7, "kind": "committed"}}


class Inbox:
    """A receiver in a process of its own."""

    def __init__(self, directory: Path, answers: Sequence[str] = (), tls: Certificates | None = None) -> None:
        self.directory = directory
        directory.mkdir()
        (directory / "answers").write_text("\n".join(answers))
        given = [] if tls is None else [str(tls.certificate), str(tls.key)]
        command = [sys.executable, "-m", "tests.events.receiver", str(directory), *given]
        self.process = subprocess.Popen(command, cwd=REPOSITORY)
        until((directory / "port").exists)
        scheme = "http" if tls is None else "https"
        self.url = f"{scheme}://127.0.0.1:{(directory / 'port').read_text()}/hook"

    def received(self) -> list[dict[str, Any]]:
        file = self.directory / "received"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def versions(self) -> list[int]:
        return [json.loads(each["body"])["data"]["catalog_version"] for each in self.received()]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[Any]:
    opened: list[Inbox] = []

    def make(*answers: str, tls: Certificates | None = None) -> Inbox:
        opened.append(Inbox(tmp_path / f"inbox{len(opened)}", answers, tls))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A catalog of three versions, whose cursor `hook` is at its begin."""
    with Catalog.connect(tmp_path / "root") as catalog:
        for name in "abc":
            catalog.create_namespace(name)
        catalog.advance_cursor("hook", 0)
    return tmp_path / "root"


def deliver(root: Path, url: str, *options: str) -> Any:
    given = ("--root", str(root), "--cursor", "hook", "--once", "--kind", "committed", "--longest-pause", "0.05")
    return invoke("deliver", url, *given, *options, **{SECRET: KEY})


def cursor(root: Path) -> int:
    with Catalog.connect(root) as catalog:
        return catalog.cursors()[0].version


def delivery(receiver: Receiver, letters: DeadLetters | None = None, pauses: list[float] | None = None) -> Delivery:
    said: list[str] = []
    waited = [] if pauses is None else pauses
    return Delivery(receiver, Signer(KEY), letters, 300.0, said.append, waited.append)


def test_each_event_is_delivered_signed_and_in_order(root: Path, inbox: Any) -> None:
    receiver = inbox()
    done = deliver(root, receiver.url, "--allow-private")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [f"catalog version {number}: delivered" for number in (1, 2, 3)]
    assert receiver.versions() == [1, 2, 3]
    for message in receiver.received():
        event = Webhook(KEY).verify(message["body"], message["headers"])
        assert message["headers"]["webhook-id"] == event["id"]
        assert message["headers"]["content-type"] == "application/cloudevents+json; charset=utf-8"
        with pytest.raises(WebhookVerificationError):
            Webhook(OTHER).verify(message["body"], message["headers"])
        with pytest.raises(WebhookVerificationError):
            Webhook(KEY).verify(message["body"].replace("committed", "adopted"), message["headers"])
    assert cursor(root) >= 3
    assert deliver(root, receiver.url, "--allow-private").stdout == ""


def test_an_event_is_sent_again_until_it_is_taken_and_none_before(root: Path, inbox: Any) -> None:
    receiver = inbox("500", "hang-up", "503", "301 location http://127.0.0.1:1/", "400", "204", "slow 2")
    done = deliver(root, receiver.url, "--allow-private", "--timeout", "0.5")
    assert done.exit_code == 0
    assert receiver.versions() == [1] * 6 + [2] * 2 + [3]
    assert len({each["headers"]["webhook-id"] for each in receiver.received()}) == 3
    lines = done.stderr.splitlines()
    assert [line.split("not taken: ")[1].split(";")[0].split(": ")[0] for line in lines] == [
        "answered 500",
        "RemoteProtocolError",
        "answered 503",
        "answered 301",
        "answered 400",
        "ReadTimeout",
    ]


def test_a_redirect_is_not_followed(inbox: Any) -> None:
    hidden = inbox()
    receiver = inbox(f"307 location {hidden.url}")
    with closing(Receiver(receiver.url, allow_private=True)) as opened:
        assert opened.post(b"{}", {}).status == 307
    assert hidden.received() == []


def test_a_receiver_that_is_down_is_waited_for_longer_each_time() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 12:
            raise KeyboardInterrupt

    with closing(Receiver(f"http://127.0.0.1:{port}/", allow_private=True)) as receiver:
        sender = delivery(receiver)
        sender.pause = pause
        with pytest.raises(KeyboardInterrupt):
            sender.deliver(EVENT)
    for number, seconds in enumerate(pauses):
        longest = min(2.0**number, 300.0)
        assert longest / 2 <= seconds <= longest
    assert len({seconds / min(2.0**number, 300.0) for number, seconds in enumerate(pauses)}) > 6


def test_a_receiver_says_after_how_long_it_wants_more(inbox: Any) -> None:
    receiver, pauses = inbox("429 retry-after 40", "503 retry-after 4000", "204"), []
    with closing(Receiver(receiver.url, allow_private=True)) as opened:
        assert delivery(opened, pauses=pauses).deliver(EVENT)
    assert pauses == [40.0, 300.0]


def test_what_is_refused_or_not_taken_is_a_dead_letter(root: Path, inbox: Any, tmp_path: Path) -> None:
    receiver, letters = inbox("422", "500", "500", "500", "410"), tmp_path / "letters"
    done = deliver(root, receiver.url, "--allow-private", "--dead-letters", str(letters), "--tries", "3")
    assert done.exit_code == 0
    assert receiver.versions() == [1, 2, 2, 2, 3]
    found = [json.loads(line) for line in letters.read_text().splitlines()]
    assert [(each["event"]["data"]["catalog_version"], each["tries"], each["reason"]) for each in found] == [
        (1, 1, "answered 422"),
        (2, 3, "answered 500"),
        (3, 1, "answered 410"),
    ]
    assert cursor(root) >= 3


def test_dead_letters_that_cannot_be_written_end_the_command(root: Path, inbox: Any, tmp_path: Path) -> None:
    receiver = inbox("422")
    done = deliver(root, receiver.url, "--allow-private", "--dead-letters", str(tmp_path / "none" / "letters"))
    assert done.exit_code == 2
    assert "--dead-letters" in done.stderr
    assert cursor(root) == 0


def test_a_dead_letter_after_a_torn_one_has_a_line_of_its_own(inbox: Any, tmp_path: Path) -> None:
    """A disk that is full tears a line; the event is sent again when there is room."""
    letters = tmp_path / "letters"
    with closing(Receiver(inbox("422", "422").url, allow_private=True)) as opened:
        sender = delivery(opened)
        sender.dead_letters = DeadLetters(letters, 1)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (40, limits[1]))
        try:
            with pytest.raises(typer.Exit):
                sender.deliver(EVENT)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert letters.stat().st_size == 40
        assert not sender.deliver(EVENT)
    [torn, whole] = letters.read_text().splitlines()
    assert len(torn) == 40
    assert json.loads(whole)["event"] == EVENT


def test_without_dead_letters_a_receiver_that_is_gone_ends_the_command(root: Path, inbox: Any) -> None:
    done = deliver(root, inbox("204", "410").url, "--allow-private")
    assert done.exit_code == 2
    assert "the receiver wants no more events; cursor hook stays where it is" in done.stderr
    assert cursor(root) == 1
    with closing(Receiver(inbox("410").url, allow_private=True)) as opened, pytest.raises(ReceiverGone):
        delivery(opened).deliver(EVENT)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.9.9.9", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
        *("100.64.0.1", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0", "fd00::1", "ff02::1"),
        *("::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "::ffff:10.0.0.1", "64:ff9b:1::7f00:1"),
        *("::127.0.0.1", "::ffff:0:127.0.0.1", "fec0::1", "5f00::1", "192.0.0.192", "192.88.99.1"),
    ],
)
def test_private_addresses_are_refused_after_the_name_was_resolved(address: str) -> None:
    with (
        closing(Receiver("https://hook.example/", resolve=lambda _host, _port: [address])) as receiver,
        pytest.raises(ForbiddenAddress, match=r"hook\.example has the address"),
    ):
        receiver.post(b"{}", {})


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8", "2002:808:808::"]
)
def test_public_addresses_are_connected_to(address: str) -> None:
    tried: list[str] = []

    def connect(_self: object, host: str, *_: object) -> None:
        tried.append(host)
        raise httpcore.ConnectError

    with (
        pytest.MonkeyPatch.context() as patch,
        closing(Receiver("https://hook.example/", resolve=lambda _host, _port: [address])) as receiver,
    ):
        patch.setattr(httpcore.SyncBackend, "connect_tcp", connect)
        with pytest.raises(httpcore.ConnectError):
            receiver.post(b"{}", {})
    assert tried == [address]


def test_one_private_address_among_public_ones_is_refused() -> None:
    found = ["93.184.216.34", "127.0.0.1"]
    with (
        closing(Receiver("https://hook.example/", resolve=lambda _host, _port: found)) as receiver,
        pytest.raises(ForbiddenAddress, match=r"127\.0\.0\.1"),
    ):
        receiver.post(b"{}", {})


def test_a_name_that_is_resolved_to_another_address_later_is_checked_again(inbox: Any) -> None:
    """DNS rebinding: the address that was checked is the one that is connected to."""
    receiver, asked = inbox(), []

    def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["192.0.2.1"] if len(asked) % 2 else ["127.0.0.1"]

    port = receiver.url.split(":")[2].split("/")[0]
    with closing(Receiver(f"https://hook.example:{port}/", resolve=resolve, timeout=0.2)) as opened:
        for _ in range(4):
            with pytest.raises((ForbiddenAddress, httpcore.ConnectError, httpcore.ConnectTimeout)):
                opened.post(b"{}", {})
    assert len(asked) == 4  # once for each connection, and never again for it
    assert receiver.received() == []


@pytest.mark.parametrize(
    "url",
    [
        *("http://hook.example/", "ftp://hook.example/", "hook.example", "https:///path", "https://u:p@hook.example/"),
        *("https://hook.example:0/", "https://hook.example/#part", "file:///etc/passwd", "https://[::1/"),
        *("https://hook..example/", f"https://{'a' * 64}.example/", "https://höok.example/", "https://hook.example/ö"),
        *("https://hook.example/a b", "https://hook.example/a\nb", "https://hook.example\t/"),
    ],
)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(typer.Exit):
        Receiver(url)


def test_a_certificate_is_verified_by_the_authority_that_is_named(inbox: Any, certificates: Certificates) -> None:
    receiver = inbox(tls=certificates)
    with closing(Receiver(receiver.url, allow_private=True)) as opened, pytest.raises(httpcore.ConnectError):
        opened.post(b"{}", {})
    with closing(Receiver(receiver.url, allow_private=True, ca=certificates.authority)) as opened:
        assert opened.post(b"{}", {}).status == 204
    with (
        closing(
            Receiver(
                receiver.url.replace("127.0.0.1", "other.example"),
                allow_private=True,
                ca=certificates.authority,
                resolve=lambda *_: ["127.0.0.1"],
            )
        ) as opened,
        pytest.raises(httpcore.ConnectError, match=r"other\.example"),
    ):
        opened.post(b"{}", {})
    assert len(receiver.received()) == 1


@pytest.mark.parametrize(
    "secret", ["", "secret", "whsec_", "whsec_c2hvcnQ=", "whsec_%%%", base64.b64encode(bytes(32)).decode()]
)
def test_other_secrets_are_refused_and_not_shown(secret: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        Signer(secret)
    told = capsys.readouterr().err
    assert "secret of the webhook" in told
    assert "c2hvcnQ" not in told
    assert base64.b64encode(bytes(32)).decode() not in told


def test_the_secret_is_read_from_a_file_and_several_sign_while_they_are_changed(
    root: Path, inbox: Any, tmp_path: Path
) -> None:
    (tmp_path / "secrets").write_text(f"{OTHER}\n{KEY}\n")
    receiver = inbox()
    done = deliver(root, receiver.url, "--allow-private", "--secret-file", str(tmp_path / "secrets"))
    assert done.exit_code == 0
    [message, *_] = receiver.received()
    for key in (KEY, OTHER):
        assert Webhook(key).verify(message["body"], message["headers"])["id"] == message["headers"]["webhook-id"]
    assert deliver(root, receiver.url, "--secret-file", str(tmp_path / "none")).exit_code == 2


def test_a_killed_process_delivers_the_same_message_again_and_loses_none(root: Path, inbox: Any) -> None:
    receiver = inbox("204", "slow 60")
    command = [sys.executable, "-m", "namespace_server", "deliver", receiver.url, "--root", str(root)]
    command += ["--cursor", "hook", "--allow-private", "--kind", "committed"]
    running = subprocess.Popen(command, cwd=REPOSITORY, env={**os.environ, SECRET: KEY}, stdout=subprocess.PIPE)
    until(lambda: len(receiver.received()) == 2, 60)
    running.kill()  # the second message is delivered, and its cursor is not moved
    running.communicate()
    receiver.process.kill()
    receiver.process.wait()
    other = inbox()
    resumed = subprocess.Popen(
        [*command[:4], other.url, *command[5:]], cwd=REPOSITORY, env={**os.environ, SECRET: KEY}, stdout=subprocess.PIPE
    )
    until(lambda: other.versions()[-1:] == [3], 60)
    resumed.send_signal(signal.SIGTERM)
    resumed.communicate(timeout=30)
    assert resumed.returncode == 0
    ids: dict[int, set[str]] = {}
    for message in (*receiver.received(), *other.received()):
        event = json.loads(message["body"])
        ids.setdefault(event["data"]["catalog_version"], set()).add(message["headers"]["webhook-id"])
    assert sorted(ids) == [1, 2, 3]
    assert all(len(each) == 1 for each in ids.values())
    assert 2 in receiver.versions()
    assert 2 in other.versions()
