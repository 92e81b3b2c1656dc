"""Status and body of failed requests, from the errors of obstore.

obstore gives the status and the body of an answer only in the text of its errors. The second part of that text, the
debug form of the error, has strings only quoted and escaped, so that no key and no body of an answer can imitate it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from obstore.exceptions import InvalidPathError, NotSupportedError

from lance_core.storage.services.bucket import Failure

_DEBUG_PART = "\n\nDebug source:\n"
_STATUS = re.compile(
    r'^ +inner: Status \{\n +status: (\d{3}),\n +body: (?:None|Some\(\n +"(.*)",\n +\)),$', re.MULTILINE
)
_CODE = re.compile(r"<Code>(\w+)</Code>")
_NEVER_SENT = re.compile(
    r"^ +HttpError \{\n +kind: (?:Connect|Timeout,\n +source: reqwest::Error \{\n +kind: Request,\n"
    r" +source: hyper_util::client::legacy::Error\(\n +Connect),$",
    re.MULTILINE,
)
"""No connection: it was refused, or not made in time."""
_LEFT = re.compile(r'^ +source: DeleteFailed \{\n +path: ".*",\n +code: "(\w+)",$', re.MULTILINE)
"""One of many objects was not removed."""
_BUSY = frozenset({"InternalError", "ServiceUnavailable", "SlowDown"})
_REDIRECTED = re.compile(r"^ +inner: BareRedirect,$", re.MULTILINE)


class FailedAnswer(NamedTuple):
    """An answer that is not a success. `code` is that of the error document of S3, '' if there is none."""

    status: int
    code: str = ""


def without_debug_form(error: BaseException) -> str:
    """The first part of the text of an error."""
    return str(error).partition(_DEBUG_PART)[0]


def refusal(error: Exception) -> FailedAnswer | Failure:
    """The answer that an error of obstore stands for; what the failure means if there was no answer."""
    if isinstance(error, ValueError | InvalidPathError | NotSupportedError):
        return Failure.REFUSED  # obstore does not take the key, for example
    text = str(error).rpartition(_DEBUG_PART)[2]
    answer = _STATUS.search(text)
    if answer is not None:
        code = _CODE.search(answer[2] or "")
        return FailedAnswer(int(answer[1]), code[1] if code is not None else "")
    left = _LEFT.search(text)
    if left is not None:
        return FailedAnswer(503 if left[1] in _BUSY else 403, left[1])
    if _REDIRECTED.search(text):
        return Failure.REFUSED  # the bucket is in another region
    return Failure.REPEAT if _NEVER_SENT.search(text) else Failure.SILENT
