"""The catalog of one call of a tool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from namespace_client import Catalog


@dataclass(frozen=True, slots=True)
class OpenedCatalog:
    """A catalog for one call.

    Attributes:
        catalog: The catalog, in the name of the caller.
        close: Closes it after the call. By another thread, during the call, it gives up what is under way.
    """

    catalog: Catalog
    close: Callable[[], None]


Opener = Callable[[Any], OpenedCatalog]
"""Opens the catalog for a call. Its argument is the HTTP request of the call, None on standard input."""
