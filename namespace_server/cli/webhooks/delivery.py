"""Each event signed, sent to a receiver, and sent again until it is taken, or is a dead letter."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import httpcore

from namespace_server.cli.command import refusal
from namespace_server.cli.webhooks.receivers import ForbiddenAddress, Receiver, Reply
from namespace_server.cli.webhooks.signatures import Signer

Json = dict[str, Any]
Say = Callable[[str], None]

_FIRST_PAUSE: Final = 1.0
_TAKEN: Final = range(200, 300)
_REFUSED: Final = range(400, 500)
_LATER: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})
"""Statuses of a receiver that would take the message later."""


class ReceiverGone(Exception):
    """The receiver wants no more messages (410)."""


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """A file of events that were given up, one a line, with the reason; and after how many tries.

    A line that is torn, as by a full disk, stays one of its own: its event is sent again, and has another line then.
    """

    file: Path
    tries: int

    def put(self, event: Json, reason: str, tries: int) -> None:
        """Write an event, to its end on the disk. Raises what `refusal` gives."""
        line = {"given_up_at": datetime.now(UTC).isoformat(), "tries": tries, "reason": reason, "event": event}
        is_new = not self.file.exists()
        try:
            with self.file.open("ab") as stream:
                if _is_torn(self.file):
                    stream.write(b"\n")
                stream.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
                stream.flush()
                os.fsync(stream.fileno())
            if is_new:
                _sync_directory(self.file.absolute().parent)
        except OSError as error:
            raise refusal(f"--dead-letters {self.file}: {error.strerror or error}") from error


def _is_torn(file: Path) -> bool:
    """Whether the last line of a file has no end."""
    with file.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(size - 1, 0))
        return stream.read(1) not in {b"", b"\n"}


def _sync_directory(directory: Path) -> None:
    """Make the name of a new file durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@dataclass
class Delivery:
    """Deliveries to one receiver, in order: an event is done before the next one is sent.

    Attributes:
        receiver: Where events are sent.
        signer: What signs them.
        dead_letters: Where an event goes that the receiver refuses, or does not take in so many tries. Without it an
            event is sent until it is taken.
        longest_pause: The most seconds between two tries.
        say: Prints a line about what is wrong.
        pause: Waits for a number of seconds.
    """

    receiver: Receiver
    signer: Signer
    dead_letters: DeadLetters | None
    longest_pause: float
    say: Say
    pause: Callable[[float], None] = field(default=time.sleep)

    def deliver(self, event: Json) -> bool:
        """Send an event until it is taken; False if it was given up.

        Raises `ReceiverGone`.
        """
        body = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
        number, tries = event["data"]["catalog_version"], 0
        while True:
            tries += 1
            reply, reason = self._send(str(event["id"]), body)
            if reply is not None and reply.status in _TAKEN:
                return True
            if self._gives_up(event, reply, reason, tries):
                self.say(f"catalog version {number}: given up after {tries} tries: {reason}")
                return False
            seconds = self._pause_after(tries, reply)
            self.say(f"catalog version {number}: not taken: {reason}; next try in {seconds:.0f} s")
            self.pause(seconds)

    def _send(self, message_id: str, body: bytes) -> tuple[Reply | None, str]:
        headers = {
            "content-type": "application/cloudevents+json; charset=utf-8",
            "user-agent": "lance-namespace",
            **self.signer.headers(message_id, body, datetime.now(UTC)),
        }
        try:
            reply = self.receiver.post(body, headers)
        except ForbiddenAddress as error:
            return None, str(error)
        except (OSError, httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
            return None, f"{type(error).__name__}: {error}".rstrip(": ")
        return reply, f"answered {reply.status}"

    def _gives_up(self, event: Json, reply: Reply | None, reason: str, tries: int) -> bool:
        is_refused = reply is not None and reply.status in _REFUSED and reply.status not in _LATER
        if self.dead_letters is None:
            if reply is not None and reply.status == HTTPStatus.GONE:
                raise ReceiverGone(f"{reason}: the receiver wants no more events")
            return False
        if not is_refused and tries < self.dead_letters.tries:
            return False
        self.dead_letters.put(event, reason, tries)
        return True

    def _pause_after(self, tries: int, reply: Reply | None) -> float:
        """Longer after each try, and never the same for two senders; at least what the receiver asks for."""
        longest = min(_FIRST_PAUSE * 2 ** min(tries - 1, 20), self.longest_pause)
        wanted = 0.0 if reply is None or reply.retry_after is None else min(reply.retry_after, self.longest_pause)
        return max(random.uniform(longest / 2, longest), wanted)  # noqa: S311 - no secret
