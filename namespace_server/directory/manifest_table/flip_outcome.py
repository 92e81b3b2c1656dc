"""The outcomes of committing a flip: committed, lost, displaced or unknown."""

from __future__ import annotations

from dataclasses import dataclass

from namespace_server.directory.model.snapshot import CatalogSnapshot


@dataclass(frozen=True, slots=True)
class FlipCommitted:
    """The flip is in the catalog; `snapshot` is the catalog after it."""

    snapshot: CatalogSnapshot


@dataclass(frozen=True, slots=True)
class FlipLost:
    """Another flip has that version: this one is not in the catalog and never will be. `winner` is its manifest."""

    winner: bytes


@dataclass(frozen=True, slots=True)
class FlipSuperseded:
    """The flip was written to a slot that a clean-up had freed, below the newest version (G7).

    It is in no history of the catalog, and the files that it staged stay (G9). `newest` is the newest snapshot.
    """

    newest: CatalogSnapshot


@dataclass(frozen=True, slots=True)
class FlipUnknown:
    """The flip may be in the catalog, or may still come to be. Committing the same flip again may tell (F1)."""

    reason: str


FlipOutcome = FlipCommitted | FlipLost | FlipSuperseded | FlipUnknown
