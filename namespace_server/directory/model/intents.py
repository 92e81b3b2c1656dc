"""The files and versions that intents keep, by the rows of one snapshot (rules G4 and G11)."""

from __future__ import annotations

from namespace_server.directory.model.snapshot import CatalogSnapshot


def horizon_at(snapshot: CatalogSnapshot, location: str) -> int:
    """The effective horizon of a location, in seconds since the epoch: unreferenced files older than it may be deleted.

    It is the lower of the horizon of the catalog and the times since when its intents keep the location. It never goes
    back: an intent begins at the horizon of the flip that registers it.
    """
    return held_horizons(snapshot).get(location, snapshot.collector.horizon)


def held_horizons(snapshot: CatalogSnapshot) -> dict[str, int]:
    """The effective horizons of the locations that intents name."""
    found: dict[str, int] = {}
    horizon = snapshot.collector.horizon
    for intent in snapshot.intents():
        for chain in intent.chains:
            found[chain.location] = min(found.get(chain.location, horizon), chain.since)
    return found


def read_versions(snapshot: CatalogSnapshot) -> dict[tuple[str, str | None], int]:
    """By location and branch (None is main), the lowest version that gc keeps because a job reads from it on.

    No row and no manifest of it, or of a later version of the chain, goes by gc. A request may delete it.
    """
    found: dict[tuple[str, str | None], int] = {}
    for intent in snapshot.intents():
        for chain in intent.chains:
            if chain.read_version:
                key = chain.location, chain.branch
                found[key] = min(found.get(key, chain.read_version), chain.read_version)
    return found
