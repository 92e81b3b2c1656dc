"""The places of tables and base paths: below the root, and where the operator allows it.

Readers follow a base path with their own credentials and in their own network, so a path that one client writes is
opened by all others.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from lance_core.proto import lance_table_pb2 as pb
from lance_core.storage.local import LocalStore
from lance_core.storage.port import ObjectStore
from namespace_server.directory.model.errors import shown

_LOCAL_HOSTS = frozenset({"", "localhost"})


class _Place(NamedTuple):
    """A location in one spelling: scheme and host of a URI, or ('file', '') for a path; the path as components."""

    scheme: str
    host: str
    parts: tuple[str, ...]

    def is_in(self, other: _Place) -> bool:
        return self[:2] == other[:2] and self.parts[: len(other.parts)] == other.parts

    def below(self, key: str) -> _Place:
        return self._replace(parts=(*self.parts, *key.split("/")))


class AllowedLocations:
    """The root of a store and the `prefixes` (absolute paths or URIs) outside of it that may be referred to.

    Raises ValueError for a prefix that is neither an absolute path nor a URI, or that leads upward.
    """

    def __init__(self, store: ObjectStore, prefixes: Iterable[str] = ()) -> None:
        self._root = store.innermost.root if isinstance(store.innermost, LocalStore) else None
        places = [_place(store.uri)] if self._root is None else [_directory(self._root), _resolved(self._root)]
        for prefix in prefixes:
            places += _spellings(_place(prefix))
        self._places = tuple(places)

    def refused_bases(self, bases: Iterable[pb.BasePath]) -> dict[str, str]:
        """Those of the base paths that may not be referred to, each with the reason."""
        reasons = ((base.path, self.refusal(base.path)) for base in bases)
        return {path: reason for path, reason in reasons if reason is not None}

    def keys_below_root(self, locations: Iterable[str]) -> set[str]:
        """The keys of the places below the root that paths or URIs lead to, also by symbolic links; "" is the root."""
        found = set()
        for location in locations:
            try:
                place = _place(location)
            except ValueError:  # no reader can follow it either
                continue
            ways = [place, _resolved(_path(place))] if place.scheme == "file" else [place]
            roots = self._places[:1] if self._root is None else self._places[:2]
            found |= {"/".join(way.parts[len(root.parts) :]) for way in ways for root in roots if way.is_in(root)}
        return found

    def refusal(self, location: str) -> str | None:
        """Why a path or URI may not be referred to; None if it may."""
        try:
            place = _place(location)
        except ValueError as error:
            return f"{shown(location)}: {error}"
        if not self._is_allowed(place):
            return f"{shown(location)} lies outside the catalog's root and its allowed_locations"
        if place.scheme == "file" and not self._is_allowed(_resolved(_path(place))):
            return _leads_out(location)
        return None

    def link_refusal(self, location: str, others: Iterable[str] = ()) -> str | None:
        """Why the directory of a table, given as a key, may not be one, for a link to it or among its entries.

        The link leads out of what is allowed, or to another place in the root, or outside to where one of `others`
        leads, the directories of other tables: a place that has two names is committed to as two tables, and what is
        purged under one of them is lost under the other.
        """
        if self._root is None:
            return None
        directory = f"{self._root}/{location}"
        links = [directory]
        try:
            with os.scandir(directory) as entries:
                links += [entry.path for entry in entries if entry.is_symlink()]
        except OSError:  # what cannot be listed cannot be read as a dataset either
            pass
        root = _resolved(self._root)
        own = root.below(location)
        outside: dict[str, _Place] = {}
        for link in links:
            place, key = _resolved(link), os.path.relpath(link, self._root)
            if not self._is_allowed(place):
                return _leads_out(key)
            if not place.is_in(root):
                outside[key] = place
            elif not place.is_in(own):
                real = "/".join(place.parts[len(root.parts) :])
                return f"{shown(key)} leads to {shown(real)} by a symbolic link, expected that place without a link"
        for other in others if outside else ():
            theirs = _resolved(f"{self._root}/{other}")
            for key, place in outside.items():
                if place.is_in(theirs) or theirs.is_in(place):
                    return f"{shown(key)} leads by a symbolic link to where {shown(other)} does, that of another table"
        return None

    def link_outside(self, key: str) -> str | None:
        """Why a file is not read: it is a symbolic link that leads out. The directories above are not looked at."""
        if self._root is None:
            return None
        path = f"{self._root}/{key}"
        try:
            is_link = stat.S_ISLNK(os.lstat(path).st_mode)
        except OSError:
            return None
        return _leads_out(key) if is_link and not self._is_allowed(_resolved(path)) else None

    def links_outside(self, keys: Iterable[str]) -> dict[str, str]:
        """The symbolic links that lead out of the allowed places, among these keys and the directories above them.

        Each with the reason why what lies behind it is not read. A look at each file and each directory.
        """
        found: dict[str, str] = {}
        if self._root is None:
            return found
        looked: set[str] = set()
        for key in keys:
            step = key
            while step and step not in looked:
                looked.add(step)
                if (reason := self.link_outside(step)) is not None:
                    found[step] = reason
                step = step.rpartition("/")[0]
        return found

    def _is_allowed(self, place: _Place) -> bool:
        return any(place.is_in(allowed) for allowed in self._places)


class BlobLocations:
    """The `prefixes` (absolute paths or URIs) below which files may lie that values of columns of blobs name.

    The server reads such a file with its own rights, for everyone who may read the table: so the root is not among
    them. Raises ValueError as `AllowedLocations`.
    """

    def __init__(self, prefixes: Iterable[str] = ()) -> None:
        self._places = tuple(each for prefix in prefixes for each in _spellings(_place(prefix)))

    def refusal(self, location: str) -> str | None:
        """Why the file at a path or URI is not read; None if it is. Symbolic links are followed.

        A local one that is no regular file is not: pylance would wait for a writer of a named pipe.
        """
        try:
            place = _place(location)
        except ValueError as error:
            return f"{shown(location)}: {error}"
        if not all(any(end.is_in(allowed) for allowed in self._places) for end in _spellings(place)):
            return f"{shown(location)} lies outside the blob_locations of this server"
        if place.scheme == "file" and not Path(_path(place)).is_file():
            return f"{shown(location)}: expected a regular file, found none"
        return None


def _leads_out(location: str) -> str:
    return f"{shown(location)} leads out of the catalog's root and its allowed_locations by a symbolic link"


def _place(location: str) -> _Place:
    """Raises ValueError for what is neither an absolute path nor a URI without query, or has no plain components."""
    if not location or not location.isprintable():
        raise ValueError("expected an absolute path or a URI")
    scheme, separator, _ = location.partition("://")
    if separator:
        parts = urlsplit(location)
        if not parts.scheme or parts.query or parts.fragment or scheme != parts.scheme:
            raise ValueError("expected scheme://name/path, without query or fragment")
        host, path = parts.netloc, unquote(parts.path)
        if parts.scheme == "file":
            if host not in _LOCAL_HOSTS:
                raise ValueError(f"expected file:///path, found the host {shown(host.rpartition('@')[2])}")
            host = ""
    elif location.startswith("/"):
        scheme, host, path = "file", "", location
    else:
        raise ValueError("expected an absolute path or a URI")
    components = path.strip("/").split("/") if path.strip("/") else []
    if path.startswith("//") or any(part in {"", ".", ".."} or not part.isprintable() for part in components):
        raise ValueError("expected a path without empty components, '.' and '..'")
    return _Place(scheme, host, tuple(components))


def _spellings(place: _Place) -> list[_Place]:
    """A place, and where it leads if it is a local one."""
    return [place] if place.scheme != "file" else [place, _resolved(_path(place))]


def _directory(path: str) -> _Place:
    return _Place("file", "", tuple(path.strip("/").split("/")) if path.strip("/") else ())


def _resolved(path: str) -> _Place:
    """Where a local path leads, symbolic links followed."""
    return _directory(os.path.realpath(path))


def _path(place: _Place) -> str:
    return "/" + "/".join(place.parts)
