"""Why a collection stops. What it removed before was garbage; nothing else was."""

from __future__ import annotations

from lance_core.errors import LanceCoreError


class CollectionStopped(LanceCoreError):
    """A run cannot go on, with the reason. It may be started again."""
