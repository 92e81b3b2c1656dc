"""One request and its answer, and what a check expects of an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lance_namespace_urllib3_client import models
from lance_namespace_urllib3_client.models.error_response import ErrorResponse
from pydantic import BaseModel, ValidationError

from namespace_tck.operations import STATUS_OF_CODE, Operation, SuccessBody

SHOWN = 1500
"""Characters of a body that a report shows."""
_KINDS = frozenset({"retryable", "incompatible"})
_VENDED = re.compile(r'("storage_options":\s*)\{[^}]*\}')
"""Storage options, which may be credentials."""


@dataclass(frozen=True, slots=True)
class RecordedExchange:
    """A request and the answer to it. Headers of the request are left out: they may hold credentials.

    `headers` are those of the answer, in lower case. They are never shown.
    """

    method: str
    url: str
    sent: bytes
    is_text: bool
    status: int
    content_type: str
    received: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    def render(self) -> str:
        """Both sides as text of bounded length."""
        sent = _shown(self.sent) if self.is_text else f"<{len(self.sent)} bytes of Arrow>"
        lines = [f"{self.method} {self.url[:SHOWN]}"]
        if self.sent:
            lines.append(sent)
        textual = "json" in self.content_type or "text" in self.content_type
        received = _shown(self.received) if textual else f"<{len(self.received)} bytes of {self.content_type or '?'}>"
        lines.append(f"{self.status} {received if self.received else '(no body)'}")
        return "\n".join(lines)


def _shown(body: bytes) -> str:
    text = _VENDED.sub(r"\1{...}", body.decode("utf-8", "replace"))
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(text)} characters)"


class CheckFailed(Exception):
    """An answer was not what the specification promises. `exchange` is the answer in question."""

    def __init__(self, message: str, exchange: RecordedExchange | None = None) -> None:
        super().__init__(message)
        self.exchange = exchange


class CheckSkipped(Exception):
    """The check needs something that this server, or this place, does not have; the text says what."""


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """The answer to one request."""

    operation: Operation
    exchange: RecordedExchange

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.exchange.status

    @property
    def content(self) -> bytes:
        """The body."""
        return self.exchange.received

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return self.status // 100 == 2

    @property
    def code(self) -> int | None:
        """The code of an `ErrorResponse`; None where the body is not one."""
        error = _parsed(self.content)
        code = error.get("code") if isinstance(error, dict) else None
        return code if isinstance(code, int) and not self.is_success else None

    @property
    def is_unsupported(self) -> bool:
        """Whether the server says that it does not support this: code 0 with status 406."""
        return self.status == 406 and self.code == 0

    def fail(self, message: str) -> CheckFailed:
        """The failure of a check because of this answer."""
        return CheckFailed(message, self.exchange)

    def ok(self) -> Any:
        """The decoded body of a success.

        The status must be the published one, and the body must be the published model.

        Raises:
            CheckFailed: it is neither.
            CheckSkipped: the server says that it does not support this request.
        """
        if self.is_unsupported:
            raise CheckSkipped(f"{self.operation.name} refuses this request as unsupported")
        if self.status != self.operation.status:
            raise self.fail(f"expected status {self.operation.status}, found {self.status}")
        return self._decoded()

    def done(self) -> Any:
        """As `ok`, where the specification lets any status of success be answered."""
        if self.is_unsupported:
            raise CheckSkipped(f"{self.operation.name} refuses this request as unsupported")
        if not self.is_success:
            raise self.fail(f"expected a success, found status {self.status}")
        return _parsed(self.content)

    def refused(self, *codes: int, statuses: tuple[int, ...] = ()) -> Mapping[str, Any]:
        """The `ErrorResponse` of a refusal with one of `codes`, in the status that belongs to the code.

        A server that says the outcome, which the published specification does not ask for, must say that nothing was
        done. Raises `CheckFailed` if it is something else.
        """
        expected = " or ".join(str(code) for code in codes)
        if self.is_success:
            raise self.fail(f"expected a refusal with code {expected}, found status {self.status}")
        error = self.error()
        if error["code"] not in codes:
            raise self.fail(f"expected code {expected}, found code {error['code']} with status {self.status}")
        allowed = statuses or (STATUS_OF_CODE[error["code"]],)
        if self.status not in allowed:
            named = " or ".join(str(status) for status in allowed)
            raise self.fail(f"expected status {named} for code {error['code']}, found {self.status}")
        outcome = error.get("outcome", "nothing_done")
        if outcome != "nothing_done":
            raise self.fail(f"expected outcome nothing_done for a refusal, found {outcome!r}")
        for failure in error.get("failures") or ():
            if failure.get("kind", "retryable") not in _KINDS:
                raise self.fail(f"expected a failure of kind retryable or incompatible, found {failure['kind']!r}")
        return error

    def error(self) -> Mapping[str, Any]:
        """The body as an `ErrorResponse`. Raises `CheckFailed` if it is none, or its code is not a published one."""
        error = _parsed(self.content)
        self._validate(ErrorResponse, error)
        if not isinstance(error, dict) or error["code"] not in range(24):
            raise self.fail("expected an ErrorResponse with one of the published codes 0 to 23")
        return error

    def _decoded(self) -> Any:
        success = self.operation.success
        if success in (SuccessBody.NOTHING, SuccessBody.ARROW):
            return self.content
        found = _parsed(self.content)
        if success == SuccessBody.INTEGER:
            if type(found) is not int:
                raise self.fail("expected a JSON integer")
        elif success == SuccessBody.STRING:
            return self._text(found)
        elif success == SuccessBody.STRING_MAP:
            if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
                raise self.fail("expected a JSON object from strings to strings")
        else:
            self._validate(getattr(models, success), found)
        return found

    def _text(self, found: Any) -> str:
        if isinstance(found, str):
            return found
        if found is None and self.content:  # plain text is a string too: the specification names no encoding
            return self.content.decode("utf-8", "replace")
        raise self.fail("expected a string")

    def _validate(self, model: type[BaseModel], found: Any) -> None:
        try:
            model.model_validate(found)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise self.fail(f"expected {model.__name__}, found {place or 'the body'}: {first['msg']}") from None


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None
