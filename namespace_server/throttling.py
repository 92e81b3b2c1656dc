"""What one principal may have under way at one time, and the refusal of what is more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final

from lance_namespace.errors import ThrottlingError

from namespace_server.outcomes import NOTHING_DONE

_NOTHING: Final = nullcontext()
REQUESTS: Final = "max_requests_per_principal"
CHANGES: Final = "max_changes_per_principal"
UPLOADS: Final = "max_upload_bytes_per_principal"
OF_PRINCIPALS: Final = frozenset({REQUESTS, CHANGES, UPLOADS})
"""The settings that bound what one principal has under way."""


class LimitReached(ThrottlingError):
    """A setting bounds what may be under way at one time, and this would be more (429). Nothing was done.

    The same request may be repeated after `retry_after` seconds. `detail` is the name of the setting.
    """

    outcome = NOTHING_DONE
    retry_after = 1

    def __init__(self, setting: str, most: int, what: str, found: int) -> None:
        super().__init__(
            f"{setting}: expected at most {most} {what} at one time, found {found}; nothing was done, "
            f"try again in {self.retry_after} s"
        )
        self.detail = setting


class PrincipalLimit:
    """Counts what each principal has under way, and refuses what is above `most`; 0 is no bound, and counts nothing.

    All callers without a name are one principal. Belongs to one event loop.

    Attributes:
        refused: How often something was refused.
    """

    def __init__(self, setting: str, most: int, what: str) -> None:
        self.setting = setting
        self.most = most
        self.refused = 0
        self._what = f"{what} of one principal"
        self._held: Counter[str | None] = Counter()

    def take(self, principal: str | None, amount: int = 1) -> None:
        """Count so much more. Raises `LimitReached`, and then counts nothing."""
        found = self._held[principal] + amount
        if self.most and found > self.most:
            self.refused += 1
            raise LimitReached(self.setting, self.most, self._what, found)
        self._held[principal] = found

    def give_back(self, principal: str | None, amount: int = 1) -> None:
        """Count so much less."""
        self._held[principal] -= amount
        if not self._held[principal]:
            del self._held[principal]

    def holding(self, principal: str | None) -> AbstractContextManager[None]:
        """A context in which one more is counted. Entering raises `LimitReached`."""
        return self._holding(principal) if self.most else _NOTHING

    @contextmanager
    def _holding(self, principal: str | None) -> Iterator[None]:
        self.take(principal)
        try:
            yield
        finally:
            self.give_back(principal)


class Upload:
    """The bytes of one body that a principal sends."""

    def __init__(self, limit: PrincipalLimit, principal: str | None) -> None:
        self._limit = limit
        self._principal = principal
        self._size = 0

    @property
    def most(self) -> int:
        """The most bytes that all bodies of the principal may have; 0 is no bound."""
        return self._limit.most

    def grow(self, size: int) -> None:
        """Count up to so many bytes of the body. Raises `LimitReached`."""
        if self._limit.most and size > self._size:
            self._limit.take(self._principal, size - self._size)
            self._size = size

    def close(self) -> None:
        """Count it no longer."""
        if self._size:
            self._limit.give_back(self._principal, self._size)
            self._size = 0
