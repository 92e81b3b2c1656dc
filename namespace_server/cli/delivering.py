"""The command that delivers the events of a catalog to a webhook."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Final

import typer

from namespace_server.cli.command import ExitStatus, refusal
from namespace_server.cli.connection import connected

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
    from namespace_server.cli.webhooks.delivery import DeadLetters, Delivery, ReceiverGone
    from namespace_server.cli.webhooks.receivers import Receiver
    from namespace_server.cli.webhooks.signatures import Signer, read_secrets

    signer = Signer(read_secrets(secret_file))
    letters = None if dead_letters is None else DeadLetters(dead_letters, tries)
    receiver = Receiver(target, allow_private=allow_private, ca=receiver_ca, timeout=timeout)
    with closing(receiver), connected(context) as catalog, _ending_on_sigterm():
        delivery = Delivery(receiver, signer, letters, longest_pause, lambda line: typer.echo(line, err=True))
        events = catalog.events(cursor=cursor, follow=not once, kinds=kind or _KINDS)
        try:
            with closing(events):  # type: ignore[type-var]
                for event in events:
                    is_taken = delivery.deliver(event.cloud_event)
                    _say(context, event.version, is_taken)
        except ReceiverGone as error:
            raise refusal(f"{error}; cursor {cursor} stays where it is") from error
        except EventsGone as error:
            raise refusal(f"cursor {cursor}: {error}") from error


def _say(context: typer.Context, version: int, is_taken: bool) -> None:
    if context.obj.as_json:
        typer.echo(json.dumps({"catalog_version": version, "delivered": is_taken}))
    elif is_taken:
        typer.echo(f"catalog version {version:,}: delivered")


@contextmanager
def _ending_on_sigterm() -> Iterator[None]:
    """Within the block SIGTERM ends the command, once the cursor is behind what was taken."""

    def end(_number: int, _frame: FrameType | None) -> Any:
        raise typer.Exit(ExitStatus.DONE)

    previous = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
