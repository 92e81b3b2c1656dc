"""The secrets of a webhook, and the headers of a signed message, as Standard Webhooks has them."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from standardwebhooks import Webhook

from namespace_server.cli.command import refusal

SECRET: Final = "LANCE_WEBHOOK_SECRET"  # noqa: S105 - the name of a variable
_PREFIX: Final = "whsec_"
_LEAST, _MOST = 24, 64


class Signer:
    """Signs messages with each of some secrets: a receiver takes a message that one of them has signed."""

    def __init__(self, secrets: str) -> None:
        self._webhooks = [Webhook(_decoded(each)) for each in secrets.split()]
        if not self._webhooks:
            raise refusal(f"no secret of the webhook: expected one in {SECRET}, or in the file of --secret-file")

    def headers(self, message_id: str, body: bytes, now: datetime) -> Mapping[str, str]:
        """The headers of a message that is sent now."""
        moment = now.astimezone(UTC)
        signatures = [each.sign(message_id, moment, body.decode()) for each in self._webhooks]
        return {
            "webhook-id": message_id,
            "webhook-timestamp": str(int(moment.timestamp())),
            "webhook-signature": " ".join(signatures),
        }


def read_secrets(file: Path | None) -> str:
    """The secrets, from a file or else from the environment, divided by white space. Raises what `refusal` gives."""
    if file is None:
        return os.environ.get(SECRET, "")
    try:
        return file.read_text("ascii")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "expected ASCII"
        raise refusal(f"--secret-file {file}: {reason}") from error


def _decoded(secret: str) -> bytes:
    """The bytes of a secret, which no message shows. They are the key: 24 to 64 of them."""
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        key = b""
    if not secret.startswith(_PREFIX) or not _LEAST <= len(key) <= _MOST:
        raise refusal(
            f"secret of the webhook: expected {_PREFIX} and base64 of {_LEAST} to {_MOST} bytes, found another text"
        )
    return key
