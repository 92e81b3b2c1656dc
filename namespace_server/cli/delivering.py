"""The command that delivers the events of a catalog to a webhook."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Final

import typer

from namespace_server.cli.command import refusal
from namespace_server.cli.connection import connected

_WAIT: Final = 2
"""Seconds of one request for events: a signal is seen after that."""
_KINDS: Final = ("committed", "adopted", "unmanaged", "housekeeping")


def deliver(
    context: typer.Context,
    target: Annotated[str, typer.Argument(metavar="URL", help="Where events are sent: https://host/path.")],
    cursor: Annotated[
        str, typer.Option(metavar="NAME", help="Cursor that is moved behind what was taken. It begins at the newest.")
    ],
    secret_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            help="Secrets that sign the events: whsec_ and base64, one a line ($LANCE_WEBHOOK_SECRET).",
        ),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="KIND", help="Only events of this kind (all but moves of cursors)."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Deliver what there is, and end.")] = False,
    dead_letters: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            help="File for events that the receiver refuses (4xx) or does not take. Without it they are sent for ever.",
        ),
    ] = None,
    tries: Annotated[int, typer.Option(min=1, help="Tries before an event is a dead letter.")] = 10,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for each step of a request.")] = 30.0,
    longest_pause: Annotated[float, typer.Option(min=0.0, help="The most seconds between two tries.")] = 300.0,
    receiver_ca: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            help="Authorities (PEM) that may have signed the receiver's certificate, in place of those of the system.",
        ),
    ] = None,
    allow_private: Annotated[
        bool,
        typer.Option("--allow-private", help="Also to private addresses and those of this machine, and http://."),
    ] = False,
) -> None:
    """Deliver each version of a catalog to a webhook, as a signed CloudEvent, in order, until it is interrupted.

    An event is sent again until the receiver answers 2xx; only then the next one is sent, and the cursor moved. One
    that is delivered twice, as after a crash, has the same webhook-id. Signatures are those of Standard Webhooks.
    """
    from namespace_client import EventsGone
    from namespace_client.events import EventFeed
    from namespace_server.cli.webhooks.delivery import DeadLetters, Delivery, ReceiverGone
    from namespace_server.cli.webhooks.receivers import Receiver
    from namespace_server.cli.webhooks.signatures import Signer, read_secrets

    signer = Signer(read_secrets(secret_file))
    letters = None if dead_letters is None else DeadLetters(dead_letters, tries)
    receiver = Receiver(target, allow_private=allow_private, ca=receiver_ca, timeout=timeout)
    with closing(receiver), connected(context) as catalog, _ended_by_signals() as ended:

        def pause(seconds: float) -> None:
            if ended.wait(seconds):
                raise _Ended

        say = partial(typer.echo, err=True)
        delivery = Delivery(receiver, signer, letters, longest_pause, say, pause)
        feed = EventFeed(catalog.access, cursor=cursor, follow=not once, kinds=kind or _KINDS, wait=_WAIT, pause=pause)
        try:
            while not ended.is_set() and (page := feed.page()) is not None:
                for event in page:
                    is_taken = delivery.deliver(event.cloud_event)
                    _say(context, event.version, is_taken)
                    feed.done(event)
                    if ended.is_set():
                        break
        except _Ended:
            pass
        except ReceiverGone as error:
            feed.leave()
            raise refusal(f"{error}; cursor {cursor} stays where it is") from error
        except EventsGone as error:
            raise refusal(f"cursor {cursor}: {error}") from error
        feed.close()


class _Ended(Exception):
    """A signal has ended a pause."""


def _say(context: typer.Context, version: int, is_taken: bool) -> None:
    if context.obj.as_json:
        typer.echo(json.dumps({"catalog_version": version, "delivered": is_taken}))
    elif is_taken:
        typer.echo(f"catalog version {version:,}: delivered")


@contextmanager
def _ended_by_signals() -> Iterator[threading.Event]:
    """Set by SIGTERM and SIGINT within the block: the command ends after the delivery under way.

    Nothing is raised in the midst of other work, which may be a commit. A second SIGINT ends the command at once.
    """
    ended = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> Any:
        ended.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    previous = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield ended
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
