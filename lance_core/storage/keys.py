"""Which keys a store accepts, and how keys are written in URIs."""

from __future__ import annotations

import re
from urllib.parse import quote

from lance_core.errors import StorageError

_PLAIN_IN_URLS = "/!$&'()*+,:;=@~"


def quote_path(path: str) -> str:
    """A key or path for use in a URI: percent-encoded where a URL parser would otherwise change it."""
    return quote(path, safe=_PLAIN_IN_URLS)


def check_key(path: str) -> None:
    """Raise `StorageError` unless `path` is the key of an object: non-empty components that are not '.' or '..'.

    A backslash is refused because Azure treats it as a slash.
    """
    # Substring searches take a tenth of the time of a regular expression, and every call checks its key.
    if (
        not path
        or path[0] in "./"
        or path[-1] == "/"
        or "//" in path
        or "/." in path
        or "\\" in path
        or "\0" in path
        or not path.isascii()
    ):
        _judge(path)


def check_prefix(prefix: str) -> None:
    """Raise `StorageError` unless `prefix` is a directory key without a trailing slash, or '' for the root."""
    if prefix:
        check_key(prefix)


def is_key(path: str) -> bool:
    """Whether `check_key` accepts it."""
    try:
        check_key(path)
    except StorageError:
        return False
    return True


def is_name(name: str) -> bool:
    """`is_key` for the name of a directory entry, which is never '.' or '..' and has no slash."""
    return (name.isascii() and "\\" not in name) or is_key(name)


def _judge(path: str) -> None:
    finding = None
    if "\0" in path or "\\" in path:
        finding = "it holds a NUL or a backslash"
    elif not path or path.startswith("/") or path.endswith("/") or "//" in path:
        finding = "it has an empty component"
    elif not {".", ".."}.isdisjoint(path.split("/")):
        finding = "it has a component '.' or '..'"
    elif re.search(r"[\ud800-\udfff]", path):
        finding = "it is not valid Unicode"
    if finding is not None:
        raise StorageError(f"key {path!r}: expected components joined by '/', but {finding}")
