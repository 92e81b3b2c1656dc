"""Keys: the one place that says which paths a store accepts."""

from __future__ import annotations

import re
from urllib.parse import quote

from lance_core.errors import StorageError

_PLAIN_IN_URLS = "/!$&'()*+,:;=@~"


def quote_path(path: str) -> str:
    """A key or path as it stands in a URI: percent-encoded where a URL parser would otherwise change it."""
    return quote(path, safe=_PLAIN_IN_URLS)


def check_key(path: str) -> None:
    """Raise `StorageError` unless `path` is the key of an object: non-empty components that are not '.' or '..'.

    A backslash is refused because Azure takes it for a slash.
    """
    # Substring searches, not one regular expression: that takes ten times as long, and every call comes by here.
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
    """`is_key` of what a file system calls one of its entries, which is no '.' or '..' and holds no slash."""
    return (name.isascii() and "\\" not in name) or is_key(name)


def _judge(path: str) -> None:
    finding = None
    if "\0" in path or "\\" in path:
        finding = "it holds a NUL or a backslash"
    elif not path or path.startswith("/") or path.endswith("/") or "//" in path:
        finding = "it has an empty component"
    elif not {".", ".."}.isdisjoint(path.split("/")):
        finding = "it has a component that walks the tree"
    elif re.search(r"[\ud800-\udfff]", path):
        finding = "it is not valid Unicode"
    if finding is not None:
        raise StorageError(f"key {path!r}: expected components joined by '/', but {finding}")
