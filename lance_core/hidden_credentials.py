"""Texts for people and logs, without the credentials that addresses in them may hold. Pure."""

from __future__ import annotations

import re
from typing import Final

_HIDDEN: Final = "…"
_WORD: Final = re.compile(r"""\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|[^\s'\"<>]+""")
"""What is in quotes, as values in texts are, or has no spaces."""
_SLASHES: Final = re.compile(r"//|%2f%2f", re.IGNORECASE)
_AUTHORITY: Final = re.compile(r"[^/?#]*")
_HOST: Final = re.compile(r"(?:\[[^\]]*\]?|[^:]*)(?::\d*)?[^\w]*")
"""A host, perhaps a port, and what ends a sentence."""
_QUERY: Final = re.compile(rf"(?:\?|%3f)(?!{_HIDDEN})", re.IGNORECASE)
_CONTAINER: Final = re.compile(r"abfss?:", re.IGNORECASE)
"""Before the `@` of these is the name of a container."""
_NAMES: Final = (
    *("sig", "signature", "x-amz-signature", "x-amz-credential", "x-amz-security-token"),
    *("x-goog-signature", "x-goog-credential", "awsaccesskeyid", "googleaccessid", "key-pair-id", "policy"),
    *("access_token", "id_token", "refresh_token", "token", "api_key", "apikey", "password", "passwd", "pwd"),
    *("secret", "client_secret", "sharedaccesssignature", "accountkey", "sharedaccesskey"),
    *("aws_access_key_id", "aws_secret_access_key", "aws_session_token", "access_key_id", "secret_access_key"),
    *("azure_storage_sas_token", "sas_token", "azure_storage_account_key", "account_key", "access_key"),
    *("google_storage_token", "session_token"),
)
_PARAMETER: Final = re.compile(
    rf"(?:(?<![\w.-])|(?<=%26)|(?<=%3f))({'|'.join(map(re.escape, _NAMES))})(=|%3d)(?!{_HIDDEN})[^&;,]+",
    re.IGNORECASE,
)
_SCHEME: Final = re.compile(r"\b(Bearer|Basic)( |%20)[\w.~+/=-]{8,}")


def without_credentials(text: str, *, is_value: bool = False) -> str:
    """A text in which addresses have no user, no password and no query, and parameters that sign or open nothing.

    What is hidden is an ellipsis. A query is hidden as a whole: services have parameters of their own. A container of
    Azure, which stands before an `@`, stays. It takes time in proportion to the length of the text.

    Args:
        text: An address, or any text with addresses in it.
        is_value: Whether it is one value that a caller sent: its password may have spaces or quotes.
    """
    if "//" in text or "=" in text or "%" in text:
        text = _word(text) if is_value else _WORD.sub(lambda found: _word(found[0]), text)
    return _SCHEME.sub(rf"\1\2{_HIDDEN}", text) if "Bearer" in text or "Basic" in text else text


def opens(name: str) -> bool:
    """Whether a parameter of this name signs or opens something, so that its value is shown to nobody."""
    return name.lower() in _NAMES


def _word(word: str) -> str:
    last, query = word.rfind("@"), _query(word, 0)
    found, done = [], 0
    while (slashes := _SLASHES.search(word, done)) is not None:
        begin = slashes.end()
        found.append(word[done:begin])
        done = begin
        user = _user(word, begin, last)
        if user > begin:
            found.append(_shown_user(word[max(0, slashes.start() - 6) : slashes.start()], word[begin:user]))
            done = user
        if query is not None and query.end() <= done:
            query = _query(word, done)
        if query is not None and slashes.start():
            quote = word[0] if word[0] in "'\"" else ""
            found.append(f"{word[done : query.end()]}{_HIDDEN}{quote}")
            return "".join(found)
    found.append(word[done:])
    hidden = "".join(found)
    if "=" not in hidden and "%3" not in hidden:
        return hidden
    return _PARAMETER.sub(rf"\1\2{_HIDDEN}", hidden)


def _query(word: str, begin: int) -> re.Match[str] | None:
    return _QUERY.search(word, begin)


def _user(word: str, begin: int, last: int) -> int:
    """Where the user and the password end that an address may have from `begin` on: at an `@`, `last` is the last one.

    A password may have a slash in it, as keys of S3 do: a port with an `@` in the path behind it is taken for one.
    Where an address was cut, what is no port is taken for a password, and hidden up to the end.
    """
    authority = _AUTHORITY.match(word, begin)
    end = begin if authority is None else authority.end()
    if last < begin:
        return begin if _HOST.fullmatch(word, begin, end) is not None else len(word) - (word[-1] in "'\"")
    if ":" in word[begin:end]:
        return last
    inside = word.rfind("@", begin, end)
    return begin if inside < 0 else inside


def _shown_user(scheme: str, user: str) -> str:
    if _CONTAINER.search(scheme) is None:
        return _HIDDEN
    container, colon, _ = user.partition(":")
    return f"{container}:{_HIDDEN}" if colon else user
