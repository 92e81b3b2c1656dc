"""From method and path to endpoint.

Paths are matched as they were sent, before percent-decoding: a name that holds `%2F` must not become two segments and
reach the endpoint of another table.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Generic, TypeVar

from namespace_server.rest.errors import MethodNotAllowed, RouteNotFound

T = TypeVar("T")

_Key = tuple[bytes | None, ...]

_SHORT = 512
"""Bytes of a path that may be remembered: nobody has to have a key to send one."""


class PathTable(Generic[T]):
    """Targets by method and path template (`/v1/table/{id}/describe`).

    A path without parameters wins over one with; the number of targets does not matter to the cost of a look-up.
    Up to `remembered` short paths are not looked up again.
    """

    def __init__(self, targets: Iterable[tuple[str, str, T]], *, remembered: int = 8192) -> None:
        self._targets: dict[_Key, dict[str, T]] = {}
        self._holes: dict[int, list[tuple[int, ...]]] = {}
        for method, template, target in targets:
            segments = template.encode().split(b"/")
            holes = tuple(at for at, segment in enumerate(segments) if segment.startswith(b"{"))
            self._targets.setdefault(_without(segments, holes), {})[method] = target
            known = self._holes.setdefault(len(segments), [])
            if holes not in known:
                known.append(holes)
                known.sort(key=len)
        self._remembered = lru_cache(remembered)(self._look_up)

    def find(self, method: str, raw_path: bytes) -> tuple[T, bytes]:
        """The target, and the first parameter of the path as it was sent (empty if there is none).

        Trailing slashes are ignored. Raises `RouteNotFound` or `MethodNotAllowed`.
        """
        return self._remembered(method, raw_path) if len(raw_path) <= _SHORT else self._look_up(method, raw_path)

    def _look_up(self, method: str, raw_path: bytes) -> tuple[T, bytes]:
        segments = raw_path.rstrip(b"/").split(b"/")
        for holes in self._holes.get(len(segments), ()):
            methods = self._targets.get(_without(segments, holes))
            if methods is None:
                continue
            target = methods.get(method)
            if target is None:
                shown = raw_path.decode("latin-1")
                raise MethodNotAllowed(f"{method} {shown}: expected {', '.join(methods)}", tuple(methods))
            return target, segments[holes[0]] if holes else b""
        raise RouteNotFound(f"{method} {raw_path.decode('latin-1')}: no such route")


def _without(segments: list[bytes], holes: tuple[int, ...]) -> _Key:
    if not holes:
        return tuple(segments)
    key: list[bytes | None] = list(segments)
    for at in holes:
        key[at] = None
    return tuple(key)
